"""`weir new-handler`: the handlers and sources it creates build against the installed weir, pass their tests, and can be installed."""

import os
import shutil
import subprocess

from installed import environment_of, install, variable
from harness import BUILD, SOURCE, WEIR, Skip, case, main, run

INCLUDES = f"-I{SOURCE}/include -I{BUILD}/include"


def make(folder, stage, *arguments):
    """Runs make with the weir installed below `stage`."""
    env = {k: v for k, v in environment_of(stage).items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "WEIR_PLUGIN_PATH")}
    return subprocess.run(["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=600)


STRICT = "CFLAGS=-O2 -Wall -Wextra -Wpedantic -Wconversion -Werror"


def create(folder, *arguments):
    """Returns the command of an installed weir, where that is, and the folder that it has created."""
    stage = os.path.join(folder, "stage")
    weir = os.path.join(install(stage), "bin", "weir")
    done = run(weir, "new-handler", "probe", *arguments, cwd=folder)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout == "probe/probe.c\nprobe/Makefile\nprobe/check.sh\nprobe/README.md\n\nNext: cd probe && make check\n", done.stdout
    return weir, stage, os.path.join(folder, "probe")


def assert_installs(folder, stage, probe, plugin, shown):
    """`shown`: a command and the begin of what it prints about the installed plugin."""
    into = f"{folder}/package{variable('plugindir')}"
    done = make(probe, stage, "install", f"DESTDIR={folder}/package", f"plugindir={variable('plugindir')}")
    assert done.returncode == 0 and os.listdir(into) == [plugin], (done, os.listdir(into))
    done = run(*shown[0], WEIR_PLUGIN_PATH=into)
    assert done.returncode == 0 and done.stdout.startswith(shown[1]), done
    assert make(probe, stage, "uninstall", f"DESTDIR={folder}/package", f"plugindir={variable('plugindir')}").returncode == 0
    assert os.listdir(into) == []
    assert make(probe, stage, "clean").returncode == 0 and not os.path.exists(os.path.join(probe, plugin))


@case
def a_new_handler_builds_passes_its_tests_and_is_installed(folder):
    weir, stage, probe = create(folder)
    done = make(probe, stage, "check", f"WEIR={weir}", STRICT)
    assert done.returncode == 0 and done.stderr == "", done
    assert done.stdout.count("\n  ok ") == 28 and " FAIL " not in done.stdout.replace("0 FAIL", ""), done.stdout
    assert done.stdout.endswith("== good\n") and "out: 2 delivered\n" in done.stdout, done.stdout
    assert_installs(folder, stage, probe, "probe.so", ((weir, "handlers", "probe"), "probe - appends lines to a file\n"))


@case
def a_new_source_builds_passes_its_tests_and_is_installed(folder):
    weir, stage, probe = create(folder, "--source")
    done = make(probe, stage, "check", f"WEIR={weir}", STRICT)
    assert done.returncode == 0, done
    assert done.stdout.count("\n  ok ") == 18 and " FAIL " not in done.stdout.replace("0 FAIL", ""), done.stdout
    assert done.stdout.endswith("== good\n") and "source: 2 delivered\n" in done.stdout, done.stdout
    shown = "probe - reads lines from a Unix datagram socket\n"
    assert_installs(folder, stage, probe, "probe.source.so", ((weir, "sources", "probe"), shown))


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
def the_test_of_a_source_fails_when_it_is_broken(folder):
    if os.environ.get("WEIR_TEST_SANITIZED"):
        raise Skip("a plugin built without the sanitizer cannot be loaded by a sanitized weir")
    assert run(WEIR, "new-handler", "-s", "probe", cwd=folder).returncode == 0
    path = os.path.join(folder, "probe", "probe.c")
    with open(path, encoding="utf-8") as file:
        source = file.read()
    for right, wrong in (("bind(source->fd, ", "-connect(source->fd, "), ("(size_t)length + 1) ? ADDED", "1) ? ADDED"),
                         ("    unlink(source->address.sun_path);\n    close(", "    close(")):
        assert right in source, right
        with open(path, "w", encoding="utf-8") as file:
            file.write(source.replace(right, wrong))
        done = make(os.path.join(folder, "probe"), folder, "check", f"WEIR={WEIR}", f"weir_cflags={INCLUDES}", "plugindir=", "WAIT=2")
        assert done.returncode != 0 and "== good" not in done.stdout and "probe.source.so" in done.stdout, (right, done)


@case
def the_types_are_short(folder):
    for option, most in ((), 100), (("--source",), 170):
        assert run(WEIR, "new-handler", "probe", *option, cwd=folder).returncode == 0
        files = {}
        for name in os.listdir(os.path.join(folder, "probe")):
            with open(os.path.join(folder, "probe", name), encoding="utf-8") as file:
                files[name] = file.read()
        assert files["probe.c"].count("\n") < most and "@" not in files["probe.c"], files["probe.c"]
        for text in files.values():
            assert not any(word in text for word in ("@NAME@", "@KIND@", "@PLUGIN@")), text
        shutil.rmtree(os.path.join(folder, "probe"))


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
    done = run(WEIR, "new-handler", "--source", "stdin", cwd=folder)
    assert done.returncode == 1 and 'a source type of this name exists already' in done.stderr, done
    assert os.listdir(folder) == []


main()
