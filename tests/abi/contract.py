"""The plugin ABI is unchanged since it was recorded: plugins built from the headers of that time work now."""

import json
import os
import re
import shlex
import subprocess

import sourced
from harness import ADDER, BUILD, SOURCE, WEIR, assert_ledgers, case, lines_of, main, run

CC = shlex.split(os.environ.get("WEIR_TEST_CC", "cc"))
FROZEN_HEADERS = os.path.join(SOURCE, "tests", "abi", "1")
FROZEN_PLUGIN = os.path.join(BUILD, "tests", "abi", ".libs", "frozen.so")
HEADERS = ("types.h", "options.h", "host.h", "handler.h", "source.h")
SOURCE_PLUGIN = os.path.join(BUILD, "tests", "abi", ".libs", "frozen_source.so")
# One side allocates these, or walks arrays of them, without knowing the other side's size.
NEVER_GROW = {"weir_number", "weir_typed_value", "weir_sample", "weir_encoded", "weir_list", "weir_map", "weir_default", "weir_label",
              "weir_sender", "weir_block_sample"}


# ---- Header constants and offsets ---------------------------------------------------------------------


def read_header(folder):
    text = ""
    for name in HEADERS:
        with open(os.path.join(folder, "weir", name), encoding="utf-8") as file:
            text += file.read()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def fields_of(body):
    """The names of a structure's fields."""
    body = re.sub(r"WEIR_PRINTF\(.*?\)", "", body)
    body = re.sub(r"union \{.*?\}", "union", body, flags=re.S)
    for field in filter(None, (part.strip() for part in body.split(";"))):
        pointer = re.search(r"\(\*(\w+)\)\(", field)
        yield pointer.group(1) if pointer else re.search(r"(\w+)(\[\d+\])?$", field).group(1)


def expressions(text):
    """(label, expression) of each number that both sides compile in."""
    for body in re.findall(r"enum \w* ?\{(.*?)\};", text, re.S):
        for name in (item.split("=")[0].strip() for item in body.split(",") if item.strip()):
            yield f"{name}", f"(long long){name}"
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.S):
        yield f"size of {name}", f"(long long)sizeof({name})"
        for field in fields_of(body):
            yield f"offset of {name}.{field}", f"(long long)offsetof({name}, {field})"
            yield f"size of {name}.{field}", f"(long long)sizeof((({name} *)0)->{field})"
    yield "WEIR_ABI", "(long long)WEIR_ABI"


def evaluate(folder, text, *include):
    """The values of the frozen headers' numbers and texts when compiled with the headers in `include`."""
    lines = [f'printf("{label}\\t%lld\\n", {expression});' for label, expression in expressions(text)]
    lines += [f'printf("{name}\\t%s\\n", {name});' for name in re.findall(r'#define (WEIR_\w+) "', text)]
    source, program = os.path.join(folder, "values.c"), os.path.join(folder, "values")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <stdio.h>\n#include <weir/handler.h>\n#include <weir/source.h>\nint main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    flags = [flag for path in include for flag in ("-I", path)]
    done = subprocess.run([*CC, *flags, source, "-o", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return dict(line.split("\t") for line in output.splitlines())


def may_grow(label):
    name = re.fullmatch(r"size of (\w+)", label)
    return name and name.group(1) not in NEVER_GROW


@case
def every_number_of_the_recorded_headers_is_unchanged(folder):
    text = read_header(FROZEN_HEADERS)
    then = evaluate(folder, text, FROZEN_HEADERS)
    now = evaluate(folder, text, os.path.join(SOURCE, "include"), os.path.join(BUILD, "include"))
    some = {"offset of weir_handler_type.abandon", "WEIR_OUTCOME_FAILED", "WEIR_SERVICE_ENCODER", "offset of weir_source_type.abandon",
            "WEIR_SERVICE_PARSER", "offset of weir_blocks.mark_repeat", "size of weir_block_sample", "WEIR_MARK_DROPPED"}
    assert len(then) > 300 and some <= set(then), then
    for label, number in then.items():
        fits = int(now[label]) >= int(number) if may_grow(label) else now[label] == number
        assert fits, f"{label} was {number} when the headers were recorded, and is now {now[label]}"


@case
def structures_that_may_grow_begin_with_their_size(folder):
    text = read_header(os.path.join(SOURCE, "include"))
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.S):
        sized = re.match(r"\s*size_t size;", body) is not None
        assert sized or name in NEVER_GROW or name == "weir_option", f"{name}: must begin with its size or be in NEVER_GROW"


# ---- The frozen plugin --------------------------------------------------------------------------------


def config_of(folder, kind, **options):
    handler = {"type": kind, "plugin": FROZEN_PLUGIN, "path": os.path.join(folder, "out"), **options}
    return {"settings": {"labels": {"host": "h"}}, "handlers": {"old": handler}, "groups": {"*": "old"}}


@case
def plugins_with_frozen_shorter_and_longer_structs_load_and_deliver(folder):
    for kind in ("frozen", "frozen_short", "frozen_long"):
        place = os.path.join(folder, kind)
        os.mkdir(place)
        config = config_of(place, kind, list=["a", "b"], map={"k": "v"}, about={"title": "t"}, factor=2.5, loud=True, pause="2ms")
        done = run(WEIR, "emit", "-g", "my_app", "-l", "route=/x", "a=1", "b=2.5", WEIR_CONFIG=config)
        assert done.returncode == 0 and done.stderr == "", (kind, done.stderr)
        assert lines_of(os.path.join(place, "out")) == [
            "options old t 0 2000000 4096 2.5 1 a b k=v",
            f"host abi=1 unknown=0 type={kind} prepared=1",
            "my_app a 1 double route=/x host=h unit=- help=- note=- cumulative=0 more=1",
            "my_app b 2.5 double route=/x host=h unit=- help=- note=- cumulative=0 more=0",
        ], (kind, lines_of(os.path.join(place, "out")))


@case
def the_frozen_plugin_encodes_and_is_retried_and_every_value_arrives_once(folder):
    for kind in ("frozen", "frozen_short", "frozen_long"):
        out = os.path.join(folder, "out")
        config = config_of(folder, kind, mode="encoded", limit="64B", retries=3, format="influx")
        done = run(ADDER, "-n", 500, "-f", -1, "-H", "old", WEIR_CONFIG=config)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert_ledgers(report)
        stats = report["handlers"]["old"]
        assert stats["delivered"] == 500 and stats["queued"] == 0, stats
        values = [int(value) for value in re.findall(r"\bt0=(\d+)", "\n".join(lines_of(out)))]
        assert values == list(range(500)), values[:5]
        os.remove(out)


@case
def a_refusal_by_the_frozen_plugin_is_reported_with_its_place(folder):
    done = run(WEIR, "emit", "-g", "g", "a=1", WEIR_CONFIG=config_of(folder, "frozen", limit="8B"))
    assert "handlers.old.limit: 8 is not a limit; allowed: 16B and more" in done.stderr, done


def start_source(folder, kind, **options):
    return sourced.Sourced(folder, {"type": kind, "plugin": SOURCE_PLUGIN, "about": {"name": "g"}, **options})


@sourced.case
def source_plugins_with_frozen_shorter_and_longer_structs_load_and_add(folder):
    for kind in ("frozen", "frozen_short", "frozen_long"):
        place = os.path.join(folder, kind)
        os.mkdir(place)
        program = start_source(place, kind, list=["a", "b"])
        program.await_log("in: its input has ended")
        assert "in: all is delivered" in program.log() and "not at once" in program.log(), (kind, program.log())
        counts = program.end()
        assert (counts["added"], counts["refused"], counts["lines"], counts["bad_lines"]) == (5, 3, 2, 0), (kind, counts)
        got = [(line["group"], line["name"], line["value"]) for line in program.written()]
        assert got == [("g", "level", 2.5), ("g", "length", 2), ("in", "total", 7), ("in", "of_block", 0.5), ("parsed", "value", 3)], got


@sourced.case
def a_refusal_by_the_frozen_source_is_reported_with_its_place(folder):
    program = start_source(folder, "frozen", level=-1)
    program.await_log("sources.in.level: -1 is not a level; allowed: 0 and more")


@sourced.case
def a_source_plugin_of_another_number_is_refused_with_both(folder):
    code, plugin = os.path.join(folder, "other.c"), os.path.join(folder, "other.source.so")
    with open(code, "w", encoding="utf-8") as file:
        file.write("#include <weir/source.h>\nstatic const weir_source_type type = {.size = sizeof type, .abi = WEIR_SOURCE_ABI + 1};\n"
                   "const weir_source_type *weir_source_type_at(uint32_t index)\n{\n    return index ? 0 : &type;\n}\n")
    subprocess.run([*CC, "-shared", "-fPIC", "-I", os.path.join(SOURCE, "include"), code, "-o", plugin], check=True)
    os.chmod(folder, 0o755)
    config = {"sources": {"in": {"type": "other", "plugin": plugin}}, "handlers": {"null": {"type": "null"}}, "groups": {"*": "null"}}
    with open(os.path.join(folder, "weir.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    done = run(WEIR, "check", file.name)
    assert done.returncode and f"{plugin}: made for source ABI 2, but this weir has source ABI 1" in done.stderr + done.stdout, done


@case
def a_plugin_of_an_earlier_abi_is_refused_with_both_numbers(folder):
    headers = os.path.join(folder, "weir")
    os.mkdir(headers)
    for name in HEADERS:
        with open(os.path.join(FROZEN_HEADERS, "weir", name), encoding="utf-8") as file:
            text = file.read().replace("#define WEIR_ABI 1", "#define WEIR_ABI 0")
        with open(os.path.join(headers, name), "w", encoding="utf-8") as file:
            file.write(text)
    plugin = os.path.join(folder, "null.so")
    subprocess.run([*CC, "-shared", "-fPIC", "-I", folder, os.path.join(SOURCE, "plugins", "null", "null.c"), "-o", plugin], check=True)
    os.chmod(folder, 0o755)
    config = {"handlers": {"old": {"type": "null", "plugin": plugin}}, "groups": {"*": "old"}}
    done = run(WEIR, "emit", "-g", "g", "a=1", WEIR_CONFIG=config)
    assert f"{plugin}: made for ABI 0, but this weir has ABI 1" in done.stderr, done


main()
