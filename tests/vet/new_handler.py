"""`weir new-handler`: the handler it creates builds against the installed weir, passes its tests, and can be installed."""

import os
import subprocess

from installed import environment_of, install, variable
from harness import BUILD, SOURCE, WEIR, Skip, case, main, run

INCLUDES = f"-I{SOURCE}/include -I{BUILD}/include"


def make(folder, stage, *arguments):
    """Runs make with the weir installed below `stage`."""
    env = {k: v for k, v in environment_of(stage).items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "WEIR_PLUGIN_PATH")}
    return subprocess.run(["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@case
def a_new_handler_builds_passes_its_tests_and_is_installed(folder):
    stage = os.path.join(folder, "stage")
    prefix = install(stage)
    weir = os.path.join(prefix, "bin", "weir")
    done = run(weir, "new-handler", "probe", cwd=folder)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout == "probe/probe.c\nprobe/Makefile\nprobe/check.sh\nprobe/README.md\n\nNext: cd probe && make check\n", done.stdout
    probe = os.path.join(folder, "probe")
    done = make(probe, stage, "check", f"WEIR={weir}", "CFLAGS=-O2 -Wall -Wextra -Wpedantic -Wconversion -Werror")
    assert done.returncode == 0 and done.stderr == "", done
    assert done.stdout.count("\n  ok ") == 29 and " FAIL " not in done.stdout.replace("0 FAIL", ""), done.stdout
    assert done.stdout.endswith("== good\n") and "out: 2 delivered\n" in done.stdout, done.stdout
    done = make(probe, stage, "install", f"DESTDIR={folder}/package", f"plugindir={variable('plugindir')}")
    assert done.returncode == 0, done
    assert os.listdir(f"{folder}/package{variable('plugindir')}") == ["probe.so"]
    done = run(weir, "handlers", "probe", WEIR_PLUGIN_PATH=f"{folder}/package{variable('plugindir')}")
    assert done.returncode == 0 and done.stdout.startswith("probe - appends lines to a file\n"), done
    assert make(probe, stage, "uninstall", f"DESTDIR={folder}/package", f"plugindir={variable('plugindir')}").returncode == 0
    assert os.listdir(f"{folder}/package{variable('plugindir')}") == []
    assert make(probe, stage, "clean").returncode == 0 and not os.path.exists(os.path.join(probe, "probe.so"))


@case
def its_test_fails_when_the_handler_is_broken(folder):
    if os.environ.get("WEIR_TEST_SANITIZED"):
        raise Skip("a plugin built without the sanitizer cannot be loaded by a sanitized weir")
    assert run(WEIR, "new-handler", "probe", cwd=folder).returncode == 0
    path = os.path.join(folder, "probe", "probe.c")
    with open(path, encoding="utf-8") as file:
        source = file.read()
    for right, wrong, found in (("        close(handler->fd);\n", "        (void)handler;\n", "  FAIL     descriptors  "),
                                ("outcome->done += encoder->settled", "outcome->done = encoder->settled", "  FAIL     "),
                                ("    outcome->done = 0;\n", "", "  FAIL     read  ")):
        assert right in source
        with open(path, "w", encoding="utf-8") as file:
            file.write(source.replace(right, wrong))
        done = make(os.path.join(folder, "probe"), folder, "check", f"WEIR={WEIR}", f"weir_cflags={INCLUDES}", "plugindir=")
        assert done.returncode != 0 and found in done.stdout and "== good" not in done.stdout, (right, done)


@case
def the_handler_has_fewer_than_100_lines(folder):
    assert run(WEIR, "new-handler", "probe", cwd=folder).returncode == 0
    with open(os.path.join(folder, "probe", "probe.c"), encoding="utf-8") as file:
        text = file.read()
    assert text.count("\n") < 100 and "@" not in text, text


@case
def nothing_is_overwritten(folder):
    os.mkdir(os.path.join(folder, "probe"))
    done = run(WEIR, "new-handler", "probe", cwd=folder)
    assert done.returncode == 1 and done.stderr == "weir: probe: File exists; nothing is overwritten\n", done
    assert os.listdir(os.path.join(folder, "probe")) == []


@case
def bad_names_are_refused_with_the_rule(folder):
    for name in ("", "Probe", "2probe", "pro-be", "pro/be", "../probe", "x" * 64):
        done = run(WEIR, "new-handler", name, cwd=folder)
        assert done.returncode == 2 and "is not a valid name; allowed: a-z, then a-z, 0-9 and _, at most 63" in done.stderr, done
    assert run(WEIR, "new-handler", cwd=folder).returncode == 2
    done = run(WEIR, "new-handler", "file", cwd=folder)
    assert done.returncode == 1 and 'a handler type of this name exists already' in done.stderr, done
    assert os.listdir(folder) == []


main()
