"""The manual pages of the contracts and their headers agree, and so do the handler guide, the template of `weir new-handler` and
<weir/handler.h>."""

import json
import os
import re
import shlex
import subprocess

from header import Header
from harness import ADDER, BUILD, SOURCE, WEIR, assert_ledgers, case, environment, main, run, wait_for
from markdown import Text
from mdoc import Page

CC = shlex.split(os.environ.get("WEIR_TEST_CC", "cc"))
HEADERS = ("options.h", "host.h", "handler.h")
CONTRACT = Header(SOURCE, HEADERS)
GUIDE = Text(os.path.join(SOURCE, "doc", "handler-guide.md"))


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def contract_text(headers=HEADERS):
    return "".join(read(SOURCE, "include", "weir", name) for name in headers)


def template(folder, name="probe"):
    done = run(WEIR, "new-handler", name, cwd=folder)
    assert done.returncode == 0, done.stderr
    return read(folder, name, name + ".c")


def assert_same(documented, real, where):
    missing, wrong = [x for x in real if x not in documented], [x for x in documented if x not in real]
    assert not missing and not wrong, f"{where}: missing {missing}, wrong {wrong}"


# ---- The manual pages and their headers ----------------------------------------------------------------

# Each with its headers, some of their structures, and the number of their functions. weir-source(7) refers to weir-handler(7) for the
# headers that both contracts have.
PAGES = {
    "weir-handler.7": (HEADERS, {"weir_handler_type", "weir_outcome", "weir_host", "weir_blocking_call"}, 3),
    "weir-source.7": (("source.h",), {"weir_source_type", "weir_blocks", "weir_intake", "weir_parser"}, 1),
}


def pages():
    """The name of each page, the page, and its entry."""
    return [(name, Page(os.path.join(SOURCE, "doc", name)), *entry) for name, entry in PAGES.items()]


@case
def the_pages_show_every_structure_with_its_fields_in_order():
    for page_name, page, headers, some, _ in pages():
        structures = Header(SOURCE, headers).structures()
        assert some <= set(structures), structures
        assert_same(page.subsections("STRUCTURES"), structures, f"{page_name}, STRUCTURES")
        for name, fields in structures.items():
            documented = [" ".join(arguments) for arguments in page.items("Fa", "STRUCTURES", name)]
            assert documented == fields, f"{page_name}, {name}: {documented} != {fields}"


@case
def the_pages_describe_every_constant_and_service_and_no_other():
    for page_name, page, headers, _, _ in pages():
        contract = Header(SOURCE, headers)
        explained = [arguments[0] for arguments in page.items("Dv")]
        assert len(explained) == len(set(explained)), sorted(explained)
        assert_same(explained, contract.constants() | contract.services(), f"{page_name}, .It Dv")


@case
def the_pages_declare_every_function_of_the_headers():
    for page_name, page, headers, _, functions in pages():
        text = re.sub(r"/\*.*?\*/", "", contract_text(headers), flags=re.S)
        declared = re.findall(r"^(?:WEIR_PLUGIN_EXPORT|static inline) ([^;{]*?\))(?:;|\n\{)", text, re.M)
        real = [re.sub(r"\* ", "*", " ".join(declaration.split())) for declaration in declared]
        assert len(real) == functions, real
        assert_same([re.sub(r"\* ", "*", text) for text in page.prototypes().values()], real, f"{page_name}, SYNOPSIS")


INCLUDES = "#include <assert.h>\n#include <poll.h>\n#include <stdbool.h>\n#include <weir/test_clock.h>\n"


def waiting():
    """The guide's function that waits."""
    return next(snippet for snippet in GUIDE.snippets("c") if "bool wait_for_room" in snippet)


# ---- The guide ----------------------------------------------------------------------------------------


@case
def a_handler_that_waits_as_the_guide_does_delivers_everything_at_the_end(folder):
    """Its destination is a full pipe, whose reader begins only after the program has asked it to stop."""
    source = template(folder)
    source = source.replace("O_WRONLY | O_CREAT | O_APPEND", "O_WRONLY | O_NONBLOCK")
    source = source.replace("static void emit(", "#include <poll.h>\n" + waiting() + "\nstatic void emit(", 1)
    source = source.replace("        size_t end;\n", "        size_t end;\n        if (!wait_for_room(handler)) {\n"
                            '            fail(outcome, WEIR_OUTCOME_RETRY, "wait for", handler->options->path, EAGAIN);\n'
                            "            return;\n        }\n", 1)
    assert "wait_for_room(handler)" in source and "O_NONBLOCK" in source
    path, plugin, pipe = (os.path.join(folder, name) for name in ("full.c", "probe.so", "pipe"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    compiled = subprocess.run([*CC, "-shared", "-fPIC", "-D_GNU_SOURCE", f"-I{SOURCE}/include", f"-I{BUILD}/include", "-o", plugin, path],
                              capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = os.path.join(folder, "log")
    config = {"settings": {"shutdown_timeout": "4m"}, "groups": {"*": "slow"},
              "handlers": {"slow": {"type": "probe", "plugin": plugin, "path": pipe, "chunk": "1KiB", "retry_min": "1h", "retry_max": "1h",
                                    "queue": "64MiB"}}}
    with open(log, "w", encoding="utf-8") as errors:
        program = subprocess.Popen([ADDER, "-n", "20000", "-H", "slow"], env=environment(WEIR_CONFIG=config), stdout=subprocess.PIPE,
                                   stderr=errors)
    wait_for(lambda: "shutting down: waiting" in read(log), "a program that waits for its handler")
    os.set_blocking(reader, True)
    with os.fdopen(reader, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    assert_ledgers(json.loads(program.communicate(timeout=240)[0]))
    assert program.returncode == 0 and len(lines) == 20000 and "dropped" not in read(log), (len(lines), read(log))


@case
def the_guide_s_unit_test_with_a_clock_of_its_own_passes_without_waiting(folder):
    test = next(snippet for snippet in GUIDE.snippets("c") if "void test_waiting" in snippet)
    path, program = os.path.join(folder, "test.c"), os.path.join(folder, "test")
    run_it = """
int main(void)
{
    int ends[2];
    char bytes[4096] = "";
    assert(pipe2(ends, O_NONBLOCK) == 0);
    while (write(ends[1], bytes, sizeof bytes) > 0)
        continue;
    test_waiting(ends[0], ends[1]);
    return 0;
}
"""
    with open(path, "w", encoding="utf-8") as file:
        file.write(INCLUDES + template(folder) + waiting() + test + run_it)
    done = subprocess.run([*CC, "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}/include", f"-I{BUILD}/include", "-o", program, path],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([program], timeout=120).returncode == 0


@case
def the_snippets_of_the_guide_are_in_the_template_or_compile_with_it(folder):
    source = template(folder)
    snippets = GUIDE.snippets("c")
    from_template = [snippet for snippet in snippets if snippet in source]
    assert len(snippets) >= 12 and len(from_template) >= 5, (len(snippets), len(from_template))
    for number, snippet in enumerate(snippet for snippet in snippets if snippet not in source):
        path = os.path.join(folder, f"snippet_{number}.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'{INCLUDES}{source}\n{waiting()}\n#line 1 "snippet"\n{snippet}' if snippet != waiting() else
                       f"{INCLUDES}{source}\n{snippet}")
        done = subprocess.run([*CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-const-variable",
                               "-Wno-unused-variable", "-fsyntax-only", "-I", os.path.join(SOURCE, "include"),
                               "-I", os.path.join(BUILD, "include"), path], capture_output=True, text=True)
        assert done.returncode == 0, f"{snippet}\n{done.stderr}"


@case
def the_guide_names_every_callback_outcome_and_service():
    text = GUIDE.text
    fields = [re.search(r"\(\*(\w+)\)", field) for field in CONTRACT.structures()["weir_handler_type"]]
    callbacks = [found.group(1) for found in fields if found]
    assert callbacks == ["prepare", "create", "open", "emit", "flush", "close", "destroy", "wake", "emit_now", "abandon", "probe"], callbacks
    for callback in callbacks:
        assert f"`{callback}`" in text, callback
    flags = {"WEIR_OUTCOME_GIVES_UP"}
    codes = {name for name in CONTRACT.constants() if name.startswith("WEIR_OUTCOME_")} - flags
    explained = {row["code"].strip("`") for table in GUIDE.tables("code") for row in table}
    assert explained == codes and all(f"`{flag}`" in text for flag in flags), explained ^ codes
    for service in ("waiting/1", "blocking_call/1", "try_timeout/1"):
        assert f"`{service}`" in text, service


@case
def the_guide_and_the_template_use_only_names_of_the_headers(folder):
    header = contract_text() + read(SOURCE, "include", "weir", "types.h") + read(SOURCE, "include", "weir", "test_clock.h")
    known = set(re.findall(r"\b(?:weir|WEIR)_\w+", header + read(SOURCE, "include", "weir", "weir.h")))
    documented = set(re.findall(r"\b(?:weir|WEIR)_\w+\b(?!\.)", GUIDE.text + template(folder)))
    example = {"weir_samples"}  # the table of examples/postgres_handler
    assert documented <= known | example | {"WEIR_PLUGIN_PATH"}, documented - known


main()
