"""configure: the parts that it leaves out, and the reasons that it lists at its end. Nothing is built."""

import os
import re
import subprocess

from harness import SOURCE, Skip, case, main

CONFIGURE = os.path.join(SOURCE, "configure")
PARTS = {"tools": "the weir command", "compression": "compression of old files", "http": "the handler type http",
         "kafka": "the handler type kafka", "nats": "the handler type nats",
         "prometheus": "the handler type prometheus, source type http", "sqlite": "the handler types sqlite and store",
         "collector": "the source type collector", "pages": "the pages of the collector", "patterns": "the parser patterns",
         "tests": "the tests"}
OF_TESTS = ("tests of the weir command", "tests with Criterion", "test of fork with libcurl busy", "test of fork with libpq busy")


def configure(folder, *arguments):
    """Runs configure in a new folder in `folder`. Returns its exit status and output."""
    if os.path.exists(os.path.join(SOURCE, "config.status")):
        raise Skip("the source tree itself is configured")
    os.makedirs(os.path.join(folder, "build"))
    done = subprocess.run([CONFIGURE, *arguments], cwd=os.path.join(folder, "build"), env={**os.environ, "CONFIG_SHELL": "/bin/sh"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


def results(folder, *arguments):
    """The lines that configure prints at its end, as a dictionary, and what it prints before."""
    code, output = configure(folder, *arguments)
    assert code == 0, output[-2000:]
    assert "command not found" not in output and ": not found\n" not in output, output
    checks, listed = output.rsplit("\nweir ", 1)
    return dict(re.findall(r"^  (\S.*?) +((?:yes|no)\b.*)$", listed, re.M)), checks


def make(folder, *arguments):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "TESTS")}
    return subprocess.run(["make", "-s", *arguments], cwd=os.path.join(folder, "build"), env=env, capture_output=True, text=True, timeout=300)


def pkg_config_without(folder, module):
    """A pkg-config that does not find the module."""
    path = os.path.join(folder, "pkg-config")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncase "$*" in *"{module}"*) exit 1 ;; esac\nexec pkg-config "$@"\n')
    os.chmod(path, 0o755)
    return f"PKG_CONFIG={path}"


@case
def parts_that_are_disabled_are_listed_so_and_named_where_they_are_needed(folder):
    listed, checks = results(folder, "--disable-static", "--disable-prometheus", "--disable-tests")
    disabled = ("static library", PARTS["prometheus"], PARTS["tests"])
    assert {listed[what] for what in disabled} == {"no (disabled)"}, listed
    assert re.fullmatch(r"no \(needs prometheus(, sqlite)?: left out\)", listed[PARTS["collector"]]), listed
    assert listed[PARTS["pages"]] == "no (needs collector: left out)", listed
    assert all("needs tests" in listed[what] for what in OF_TESTS), listed
    assert not re.search("criterion|libpq|python3", checks), checks
    done = make(folder, "check-local")
    assert done.returncode == 0 and "without its tests" in done.stdout, (done.stdout, done.stderr)


@case
def without_any_library_the_core_alone_is_built(folder):
    listed, _ = results(folder, "PKG_CONFIG=false")
    assert {what: listed[what] for what in (*PARTS.values(), *OF_TESTS) if not listed[what].startswith("no (needs ")} == {}, listed
    assert listed[PARTS["http"]] == "no (needs libcurl >= 7.87, zlib: not found; Debian: libcurl4-openssl-dev zlib1g-dev)", listed
    assert listed["static library"] == "yes", listed


@case
def json_c_is_only_needed_by_the_command_the_tests_and_types_that_use_it(folder):
    listed, _ = results(folder, pkg_config_without(folder, "json-c"))
    wanting = {name for name, what in PARTS.items() if "json-c" in listed[what]}
    assert {"tools", "kafka", "nats", "tests"} <= wanting <= {"tools", "kafka", "nats", "tests", "collector"}, listed
    assert listed[PARTS["collector"]].startswith("no (needs "), listed


@case
def a_part_that_is_demanded_and_lacks_a_library_is_an_error(folder):
    code, output = configure(folder, "--enable-tools", pkg_config_without(folder, "json-c"))
    assert code != 0 and output.endswith("error: --enable-tools: the weir command: needs json-c >= 0.15: not found; Debian: libjson-c-dev\n"), output


@case
def the_readme_lists_the_parts_that_configure_can_leave_out(_folder):
    shown = subprocess.run([CONFIGURE, "--help"], capture_output=True, text=True, timeout=60).stdout
    assert set(re.findall(r"^ +--disable-(\S+) +leave out ", shown, re.M)) == set(PARTS), shown
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        table = file.read().split("| part | needs |\n")[1].split("\n\n")[0]
    listed = {name for row in table.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split(":")[0])}
    assert listed == set(PARTS), listed


main()
