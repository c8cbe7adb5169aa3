"""The documents agree with the software: names, defaults, options, snippets, links."""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess

from header import Header, normal
from harness import BUILD, SOURCE, SOURCE_PLUGINS, WEIR, Skip, case, main, run, skip_with_coverage
from markdown import Text, find_all, spans
from mdoc import Page
from scripted import Scripted

CC = shlex.split(os.environ.get("WEIR_TEST_CC", "cc"))
SANITIZED = shlex.split(os.environ.get("WEIR_TEST_SANITIZED", ""))
CONSOLE = {"groups": {"*": "console"}}

API = Header(SOURCE)
PAGE_1, PAGE_3, PAGE_5 = (Page(os.path.join(SOURCE, "doc", name)) for name in ("weir.1", "weir.3", "weir.json.5"))
README = Text(os.path.join(SOURCE, "README.md"))
CONFIG = Text(os.path.join(SOURCE, "doc", "config.md"))
TESTING = Text(os.path.join(SOURCE, "doc", "testing.md"))
FOLDERS = sorted({os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(SOURCE, "plugins", "*", "*.c"))})
for shared in ("database", "forwarding", "listening", "sampling", "patterns"):  # code of several types, and a parser
    FOLDERS.remove(shared)
PLUGINS = [name for name in FOLDERS if not name.startswith("source_")]
BUILT = [name for name in PLUGINS if os.path.exists(os.path.join(BUILD, "plugins", ".libs", name + ".so"))]
PLUGIN_READMES = {name: Text(os.path.join(SOURCE, "plugins", name, "README.md")) for name in PLUGINS}


def assert_same(documented, real, where):
    """Compares lists or sets, and reports only the differences."""
    missing, wrong = [x for x in real if x not in documented], [x for x in documented if x not in real]
    assert not missing and not wrong, f"{where}: missing {missing}, wrong {wrong}"


def ask(*arguments):
    done = run(WEIR, *arguments)
    assert done.returncode == 0 and done.stderr == "", (arguments, done.stderr)
    return done.stdout


def read_sources(*patterns):
    text = ""
    for path in (path for pattern in patterns for path in sorted(glob.glob(os.path.join(SOURCE, *pattern.split("/"))))):
        with open(path, encoding="utf-8") as file:
            text += file.read()
    return text


# ---- weir(3) and <weir/weir.h> ------------------------------------------------------------------------


@case
def weir_3_names_every_function_and_macro_and_no_other():
    assert_same(PAGE_3.names(), ["weir", *API.prototypes(), *API.macros()], "weir.3, NAME")


@case
def weir_3_declares_every_function_as_the_header_does():
    declared = {name: normal(text) for name, text in PAGE_3.prototypes().items()}
    macros = {name: declared.pop(name, "") for name in API.macros()}
    assert all(macros.values()), f"weir.3, SYNOPSIS: a macro is missing: {macros}"
    assert_same(declared.values(), API.prototypes().values(), "weir.3, SYNOPSIS")


@case
def weir_3_describes_every_constant_and_no_other():
    real = API.constants()
    assert {"WEIR_ERR_BUSY", "WEIR_DROPPED_FULL", "WEIR_REFUSED_NAME", "WEIR_DROPPED_MAX", "WEIR_LOG_INFO", "WEIR_VERSION_MAJOR"} <= real
    explained = [arguments[0] for arguments in PAGE_3.items("Dv")]
    assert len(explained) == len(set(explained)), sorted(explained)
    assert_same(explained, real, "weir.3, .It Dv")


@case
def weir_3_shows_every_structure_with_its_fields_in_order():
    structures = API.structures()
    assert {"weir_stats", "weir_label", "weir_prof"} <= set(structures), structures
    assert_same(PAGE_3.subsections("STRUCTURES"), structures, "weir.3, STRUCTURES")
    for name, fields in structures.items():
        documented = [normal(" ".join(arguments)) for arguments in PAGE_3.items("Fa", "STRUCTURES", name)]
        assert documented == fields, f"weir.3, {name}: {documented} != {fields}"


@case
def every_environment_variable_is_described():
    pattern = r'(?:getenv|wr_config_has_variable)\("(\w+)"\)'
    variables = set(re.findall(pattern, read_sources("lib/*/*.c")))
    variables |= set(re.findall(r'"(BENCHMARK_AI\w*)"', read_sources("lib/config/benchmarkai.c")))
    assert {"WEIR_CONFIG", "WEIR_PLUGIN_PATH", "WEIR_LOG", "BENCHMARK_AI"} <= variables
    assert_same([arguments[0] for arguments in PAGE_3.items("Ev", "ENVIRONMENT")], variables, "weir.3, ENVIRONMENT")
    sources = read_sources("tools/*.c", "tools/*/*.c", "plugins/forwarding/forward_default.c")
    variables = set(re.findall(pattern, sources)) | ({"BENCHMARK_AI"} if "wr_benchmarkai_is_set(" in sources else set())
    assert_same([arguments[0] for arguments in PAGE_1.items("Ev", "ENVIRONMENT")], variables, "weir.1, ENVIRONMENT")
    for name, readme in PLUGIN_READMES.items():
        for variable in re.findall(pattern, read_sources(f"plugins/{name}/*.c")):
            assert f"`{variable}`" in readme.text, f"{readme.path}: {variable} is missing"


# ---- weir(1) and `weir --help` ------------------------------------------------------------------------


def options_of_help(text):
    """(short or None, long, takes an argument) for each option that a help text shows."""
    return [(short or None, long, bool(argument))
            for short, long, argument in re.findall(r"^ {2,}(?:(-\w), )?(--[\w-]+)( [A-Z=]+|\[=[A-Z]+\])?  ", text, re.M)]


def options_of_page(subsection):
    found = []
    for arguments in PAGE_1.items("Fl", "DESCRIPTION", subsection):
        words = [word for word in arguments if word not in (",", "Fl", "Ns", "Op", "=")]
        flags = ["-" + word for word in (words[:words.index("Ar")] if "Ar" in words else words)]
        found.append((flags[0] if len(flags) == 2 else None, flags[-1], "Ar" in words))
    return found


@case
def weir_1_describes_every_command_and_option_and_no_other():
    overview = ask("--help")
    commands = re.findall(r"^  ([\w-]+) +[A-Z]", overview, re.M)
    assert {"check", "emit"} <= set(commands), overview
    assert_same(PAGE_1.subsections("DESCRIPTION"), [f"weir {command}" for command in commands], "weir.1, commands")
    assert_same(re.findall(r"^\.Cm ([\w-]+)$", read_sources("doc/weir.1").split(".Sh DESCRIPTION")[0], re.M), commands, "weir.1, SYNOPSIS")
    shown = {"": options_of_help(overview), **{f"weir {c}": options_of_help(ask(c, "--help")) for c in commands}}
    for subsection, options in shown.items():
        assert ("-h", "--help", False) in options, (subsection, options)
        assert_same(options_of_page(subsection), options, f"weir.1, {subsection or 'options'}")
    taken = {"--" + name for name in re.findall(r'\{"([\w-]+)", (?:no|required|optional)_argument', read_sources("tools/*.c", "tools/*/*.c"))}
    assert_same({option[1] for options in shown.values() for option in options} - {"--version"}, taken, "the options that help shows")


def synopsis_of_page():
    """The usage of each command in the SYNOPSIS, in the notation of its help: underlined arguments become capitals."""
    if not shutil.which("mandoc"):
        raise Skip("mandoc is not installed")
    shown = subprocess.run(["mandoc", "-T", "ascii", PAGE_1.path], capture_output=True, text=True, check=True).stdout
    plain = re.sub(r"(.)\x08\1", r"\1", re.sub(r"_\x08(.)", lambda found: found.group(1).upper(), shown))
    synopsis = re.search(r"^SYNOPSIS\n(.*?)^DESCRIPTION\n", plain, re.M | re.S).group(1)
    return {command: usage for command, usage in re.findall(r"^ {5}weir ([a-z][a-z-]*) ?(.*(?:\n {6,}.*)*)", synopsis, re.M)}


def normal_usage(text):
    return re.sub(r"\s*\|\s*", "|", re.sub(r"\s+", " ", text.replace("...", "").strip()))


@case
def the_synopsis_of_weir_1_equals_the_usage_of_each_command():
    shown = {command: re.match(r"usage: weir [\w-]+ ?(.*)\n", ask(command, "--help")).group(1)
             for command in re.findall(r"^  ([\w-]+) +[A-Z]", ask("--help"), re.M)}
    documented = synopsis_of_page()
    assert_same({(command, normal_usage(usage)) for command, usage in documented.items()},
         {(command, normal_usage(usage)) for command, usage in shown.items()}, "weir.1, SYNOPSIS")


@case
def weir_help_prints_the_same_as_the_option_of_each_command():
    assert ask("help") == ask("--help") == ask("-h")
    for command in re.findall(r"^  ([\w-]+) +[A-Z]", ask("--help"), re.M):
        assert ask("help", command) == ask(command, "--help") == ask(command, "-h"), command


@case
def weir_1_describes_every_check_of_vet_in_order():
    def checks_of(*plugin):
        report = ask("vet", os.path.join(*plugin), "--json")
        return [check["check"] for check in json.loads(report)["checks"]]
    # those of sources follow, and checks of the same meaning are described once
    shared = {"load", "type", "options", "create", "values", "state", "descriptors", "threads", "memory", "abandon"}
    sources = checks_of(SOURCE_PLUGINS, "stdin.source.so")
    expected = checks_of(BUILD, "plugins", ".libs", "null.so") + [check for check in sources if check not in shared]
    assert shared <= set(sources), sources
    assert [arguments[0] for arguments in PAGE_1.items("Cm", "DESCRIPTION", "weir vet")] == expected, expected


@case
def the_source_guide_names_every_check_of_vet():
    report = ask("vet", os.path.join(SOURCE_PLUGINS, "stdin.source.so"), "--json")
    rows = [row for table in Text(os.path.join(SOURCE, "doc", "source-guide.md")).tables("check") for row in table]
    named = [name.strip("` ") for row in rows for name in row["check"].split(",")]
    assert sorted(named) == sorted(check["check"] for check in json.loads(report)["checks"]), named


# ---- Options, settings, formats, handler types --------------------------------------------------------


def row_of(option):
    default = "required" if option["required"] else option["default"]
    if option["type"] == "list" and default == "":
        default = "[]"
    return option["name"], option["type"], default, option["allowed"] or ""


def handler_rows(name):
    """(own options, common options) of a handler type. "format" is a common option of types that write formats."""
    about = json.loads(ask("handlers", name, "--json"))
    common = [row_of(option) for option in about["common_options"]]
    if about["format"]:
        common.insert(0, ("format", "name", about["format"], ""))
    return [row_of(option) for option in about["options"]], common


def plain_common_rows():
    """The common options of types that change no default: those of null, and the format of file."""
    return [handler_rows("file")[1][0], *handler_rows("null")[1]]


@case
def common_options_are_documented_correctly():
    real = plain_common_rows()
    assert ("queue", "size", "1MiB", "1KiB..1TiB") in real and real[0][0] == "format", real
    assert_same(list(PAGE_5.rows("COMMON OPTIONS")), real, "weir.json.5, COMMON OPTIONS")
    assert_same(list(CONFIG.rows("option")), real, "doc/config.md")


@case
def settings_are_documented_correctly():
    real = [row_of(setting) for setting in json.loads(ask("settings", "--json"))]
    assert ("shutdown_timeout", "duration", "5s", "0s..1d") in real, real
    assert_same(list(PAGE_5.rows("SETTINGS")), real, "weir.json.5, SETTINGS")
    assert_same(list(CONFIG.rows("setting")), real, "doc/config.md")


@case
def objects_in_routes_are_documented_correctly():
    described = json.loads(ask("schema"))["definitions"]["transform"]["properties"]
    page = read_sources("doc/weir.json.5").split(".Sh GROUPS")[1].split(".Sh ")[0]
    rows = list(CONFIG.rows("route option"))
    assert_same(sorted(row[0] for row in rows), sorted(set(described) - {"to"}), "doc/config.md")
    for row in rows:
        assert re.search(rf"^\.It Cm .*\b{row[0]}\b", page, re.M), f"weir.json.5, GROUPS: {row[0]}"


@case
def the_readme_of_each_handler_type_lists_its_options_and_changed_defaults():
    plain = {row[0]: row for row in plain_common_rows()}
    for name in BUILT:  # types whose library is missing are not built
        readme = PLUGIN_READMES[name]
        assert readme.text.startswith(f"# {name}\n"), readme.path
        own, common = handler_rows(name)
        documented = list(readme.rows("option"))
        assert_same([row for row in documented if row[0] not in plain], own, readme.path)
        for row in documented:
            assert row[0] not in plain or row in common, f"{readme.path}: wrong {row}"
        for row in common:
            if row[0] == "format" or row != plain[row[0]]:
                assert row in documented, f"{readme.path}: missing {row}"


@case
def options_of_sources_are_documented_correctly():
    about = {one["name"]: one for one in json.loads(ask("sources", "--json"))}
    shipped = [name.removeprefix("source_") for name in FOLDERS if name.startswith("source_")]
    assert {"fifo", "stdin"} <= set(shipped)
    plain = [row_of(option) for option in about["stdin"]["common_options"]]
    assert_same(list(PAGE_5.rows("SOURCE OPTIONS")), plain, "weir.json.5, SOURCE OPTIONS")
    assert_same(list(CONFIG.rows("source option")), plain, "doc/config.md")
    reserved = dict.fromkeys(arguments[0] for arguments in Page(os.path.join(SOURCE, "doc", "weir-source.7")).macros("Ql", "OPTIONS"))
    assert list(reserved) == ["type", "plugin", *(row[0] for row in plain)], f"weir-source.7, OPTIONS: {list(reserved)}"
    assert_same([arguments[0] for arguments in PAGE_5.items("Ic", "SOURCES")], shipped, "weir.json.5, SOURCES")
    for name in shipped:
        readme = Text(os.path.join(SOURCE, "plugins", "source_" + name, "README.md"))
        assert readme.text.startswith(f"# {name} (source)\n"), readme.path
        own = [row_of(option) for option in about[name]["options"]]
        changed = [row for row in map(row_of, about[name]["common_options"]) if row not in plain]
        assert_same(list(readme.rows("option")), own + changed, readme.path)
        assert f".It Ic {name}\n{about[name]['summary']}\n" in read_sources("doc/weir.json.5"), name


@case
def options_of_formats_are_documented():
    page = read_sources("doc/weir.json.5").split(".Sh FORMATS")[1].split(".Sh ")[0]
    for form in json.loads(ask("formats", "--json")):
        for option in form["options"]:
            assert re.search(rf"^\.Ql {option['name']}\b", page, re.M), f"weir.json.5, FORMATS: {form['name']}: {option['name']}"
            assert f'`{option["name"]}`' in CONFIG.text or f'"{option["name"]}":' in CONFIG.text, f"doc/config.md: {option['name']}"


@case
def the_handler_types_that_come_with_weir_are_listed():
    assert {"null", "console", "file"} <= set(BUILT)
    assert_same([arguments[0] for arguments in PAGE_5.items("Ic", "HANDLERS")], PLUGINS, "weir.json.5, HANDLERS")
    page = read_sources("doc/weir.json.5")
    for name in PLUGINS:
        assert f"plugins/{name}/README.md" in README.links(), f"README.md: {name} is missing"
    for name in BUILT:
        summary = json.loads(ask("handlers", name, "--json"))["summary"]
        assert f".It Ic {name}\n{summary}\n" in page, f"weir.json.5: {name}: {summary}"


def samples_of_page():
    """The first literal block after each format's name."""
    text = read_sources("doc/weir.json.5").split(".Sh FORMATS")[1].split(".Sh ")[0]
    found = re.findall(r"\.It Ic (\w+)\n.*?\.Bd -literal\n(.*?)\.Ed", text, re.S)
    return {name: "".join(line.strip() for line in block.splitlines()) for name, block in found}


def samples_of_config():
    return {spans(row["format"])[0]: spans(row["one value"])[-1 if spans(row["format"]) == ["otlp"] else 0] for table in CONFIG.tables("format") for row in table}


def without_time(line):
    line = re.sub(r"[0-9a-f]{32}-", "ORIGIN-", line)
    return re.sub(r"\b\d{10}(\d{9}|\.\d+)?\b|date=[^&]*|\d{4}-\d\d-\d\dT[\d:.]*Z", lambda found: re.sub(r"\d", "9", found.group()), line)


@case
def formats_are_listed_and_their_samples_equal_the_output():
    formats = [(f["name"], f["makes"]) for f in json.loads(ask("formats", "--json"))]
    for samples, values in ((samples_of_page(), ("latency=49.403", "throughput=100")), (samples_of_config(), ("latency=49.403",))):
        assert_same(samples, [name for name, _ in formats], "formats")
        for name in (name for name, makes in formats if makes == "lines"):
            config = {"handlers": {"c": {"type": "console", "format": name}}, "groups": {"*": "c"}}
            done = run(WEIR, "emit", "-g", "my_app", "-l", "route=/x", *values, WEIR_CONFIG=config)
            assert done.returncode == 0, done.stderr
            lines = done.stdout.splitlines()
            if name == "elastic":  # a pair of lines is one value; the table shows the second
                lines = ["".join(lines) if samples[name].startswith('{"create"') else lines[1]]
            assert without_time(samples[name]) == without_time(lines[0]), (name, samples[name], done.stdout)


@case
def samples_of_the_document_formats_equal_the_output():
    if "http" not in BUILT:
        raise Skip("the handler type http was not built")
    for name, options in (("prometheus", {}), ("openmetrics", {}), ("otlp", {"encoding": "json", "service_name": "demo"}),
                          ("mlbench", {"run_id": "7"})):
        with Scripted() as server:
            config = {"handlers": {"s": {"type": "http", "url": server.url, "format": {"type": name, **options}}}, "groups": {"*": "s"}}
            done = run(WEIR, "emit", "-g", "my_app", "-l", "route=/x", "latency=49.403", WEIR_CONFIG=config)
            assert done.returncode == 0 and len(server.requests) == 1, (done, server.requests)
            lines = server.requests[0].body.decode().splitlines()
        assert without_time(samples_of_page()[name]) == without_time("".join(lines)), (name, lines)
        assert without_time(samples_of_config()[name]) == without_time([line for line in lines if line != "# EOF"][-1]), (name, lines)


# ---- Snippets -----------------------------------------------------------------------------------------


def compile_snippet(folder, text, *libraries_first):
    """Compiles a program, which is linked with libweir. Returns its path and the folder of that library."""
    source, program = os.path.join(folder, "snippet.c"), os.path.join(folder, "snippet")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    libraries = os.path.join(BUILD, "lib", ".libs")
    done = subprocess.run([*CC, *SANITIZED, "-Wall", "-Wextra", "-Werror", source, "-o", program,
                           "-I", os.path.join(SOURCE, "include"), "-I", os.path.join(BUILD, "include"), *libraries_first, "-L", libraries, "-lweir"],
                          capture_output=True, text=True)
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    return program, libraries


def compile_and_run(folder, text):
    """Compiles a program and runs it, without a configuration and with everything on the console. Returns the output of the latter."""
    program, libraries = compile_snippet(folder, text)
    assert run(program, LD_LIBRARY_PATH=libraries).returncode == 0, text
    done = run(program, WEIR_CONFIG=CONSOLE, LD_LIBRARY_PATH=libraries)
    assert done.returncode == 0 and done.stderr == "", f"{text}\n{done.stderr}"
    return done.stdout


@case
def c_snippets_compile_and_run(folder):
    for where, snippets in ((PAGE_3.path, [block for block in PAGE_3.literals("EXAMPLES") if "#include" in block]),
                            (README.path, README.snippets("c"))):
        assert snippets, where
        for snippet in snippets:
            shown = compile_and_run(folder, snippet)
            assert re.search(r"^\[\d+\.\d{6}\]\[[\w.]+\]: ", shown, re.M), (where, shown)
            ledger = re.findall(r"^(\d+) (?:values added|delivered, 0 dropped)", shown, re.M)
            assert not ledger or (len(ledger) == 2 and ledger[0] == ledger[1] == str(shown.count("]: "))), shown


@case
def the_tests_in_the_guide_to_testing_pass(folder):
    skip_with_coverage()
    snippets = TESTING.snippets("c")
    assert len(snippets) == 4, snippets
    for snippet in snippets:
        program, libraries = compile_snippet(folder, snippet, os.path.join(BUILD, "lib", "libweir-testing.a"))
        done = run(program, LD_LIBRARY_PATH=libraries, WEIR_LOG="off")
        assert done.returncode == 0 and (done.stdout, done.stderr) == ("", ""), f"{snippet}\n{done.stderr}"
        assert run(program, LD_LIBRARY_PATH=libraries, WEIR_CONFIG=CONSOLE).returncode != 0, "the environment's configuration"


@case
def the_readmes_program_is_the_first_example():
    with open(os.path.join(SOURCE, "examples", "first_metric.c"), encoding="utf-8") as file:
        example = re.sub(r"^/\*.*?\*/\n", "", file.read(), flags=re.S)
    assert README.snippets("c")[0] == example


def make_included(folder):
    """The files that the example of "include" names."""
    os.makedirs(os.path.join(folder, "conf.d"), exist_ok=True)
    with open(os.path.join(folder, "common.json"), "w", encoding="utf-8") as file:
        file.write('{"handlers": {"disk": {"type": "file", "path": "metrics.jsonl"}}}')


def check_config(folder, text, where):
    make_included(folder)
    path = os.path.join(folder, "snippet.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = run(WEIR, "check", path)
    assert done.returncode == 0, f"{where}: {text}\n{done.stderr}"
    chosen = '"*": "${' in text  # a variable selects one of the handlers
    assert "no route leads to it" not in done.stdout or '"groups"' not in text or chosen, f"{where}: {text}\n{done.stdout}"


@case
def configuration_snippets_pass_weir_check(folder):
    texts = {text.path: text.snippets("json", "jsonc") for text in find_all(SOURCE)}
    sections = PAGE_5.sections() - {"FORMATS", "DIAGNOSTICS"}
    texts[PAGE_5.path] = [block for section in sections for block in PAGE_5.literals(section) if block.startswith("{")]
    for text in (README, CONFIG, *PLUGIN_READMES.values(), PAGE_5):
        assert texts[text.path], f"{text.path}: no configuration"
    for name in set(PLUGINS) - set(BUILT):
        del texts[PLUGIN_READMES[name].path]
    if "http" not in BUILT:
        del texts[os.path.join(SOURCE, "doc", "first-steps.md")]
    if not {"http", "kafka", "prometheus"} <= set(BUILT):
        del texts[os.path.join(SOURCE, "doc", "coming-from.md")]
    for path, snippets in texts.items():
        for snippet in snippets:
            check_config(folder, snippet, path)


@case
def the_sample_error_equals_the_message_of_weir(folder):
    config, message, *_ = PAGE_5.literals("DIAGNOSTICS")
    with open(os.path.join(folder, "weir.json"), "w", encoding="utf-8") as file:
        file.write(config)
    done = run(WEIR, "check", "weir.json", cwd=folder)
    assert done.returncode == 1 and done.stderr.split() == message.split(), (done.stderr, message)


# ---- Pages, commands, links ---------------------------------------------------------------------------


@case
def manual_pages_pass_the_linter():
    if not shutil.which("mandoc"):
        raise Skip("mandoc is not installed")
    pages = sorted(glob.glob(os.path.join(SOURCE, "doc", "*.[1-9]")))
    assert len(pages) >= 3, pages
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "", done.stdout


@case
def the_commands_named_in_documents_exist():
    parts = set(re.search(r"^([a-z |]+)\)\s+\"do_\$command\"", read_sources("dev"), re.M).group(1).split(" | "))
    commands = set(re.findall(r"^  ([\w-]+) +[A-Z]", ask("--help"), re.M))
    named = set()
    for text in find_all(SOURCE):
        for part in re.findall(r"\./dev (\w+)", text.text):
            assert part in parts, f"{text.path}: ./dev {part}"
        for command in re.findall(r"`weir ([a-z-]+)", text.text):
            assert command in commands, f"{text.path}: weir {command}"
            named.add(command)
    assert {"check", "handlers", "formats", "settings"} <= named, named


@case
def links_lead_to_files_and_headings_that_exist():
    texts = list(find_all(SOURCE))
    assert sum(len(text.links()) for text in texts) >= 10
    for text in texts:
        for link in text.links():
            path, _, anchor = link.partition("#")
            target = os.path.join(os.path.dirname(text.path), path) if path else text.path
            assert os.path.exists(target), f"{text.path}: {link} does not exist"
            assert not anchor or anchor in Text(target).anchors(), f"{text.path}: {link}: no such heading"


@case
def the_examples_of_sources_compile_and_export_one_symbol(folder):
    """The first of the source guide, and that of weir-source(7)."""
    skip_with_coverage()
    guide = Text(os.path.join(SOURCE, "doc", "source-guide.md")).snippets("c")[0]
    [example] = Page(os.path.join(SOURCE, "doc", "weir-source.7")).literals("EXAMPLES")
    path, plugin = os.path.join(folder, "noise.c"), os.path.join(folder, "noise.source.so")
    for code in (guide, example):
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)
        include = ["-I", os.path.join(SOURCE, "include"), "-I", os.path.join(BUILD, "include")]
        done = run(*CC, *include, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", "-o", plugin, path)
        assert done.returncode == 0, done.stderr
        symbols = run("nm", "-D", "--defined-only", plugin).stdout
        assert [line.split()[-1] for line in symbols.splitlines()] == ["weir_source_type_at"], symbols


@case
def the_source_guide_s_unit_test_passes_without_waiting(folder):
    with open(os.path.join(SOURCE, "doc", "source-guide.md"), encoding="utf-8") as file:
        source, test = re.findall(r"```c\n(.*?)```", file.read(), re.S)
    path, program = os.path.join(folder, "test.c"), os.path.join(folder, "test")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{source}{test}\nint main(void)\n{{\n    test_ten_seconds();\n    return 0;\n}}\n")
    include = ["-I", os.path.join(SOURCE, "include"), "-I", os.path.join(BUILD, "include")]
    done = run(*CC, *include, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", program, path)
    assert done.returncode == 0, done.stderr
    done = run(program, timeout=120)
    assert done.returncode == 0, done.stderr


main()
