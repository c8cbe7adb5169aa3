"""./dev with a small project that has the make targets that ./dev uses: in a source tree that is itself configured, and with tests that
fail."""

import os
import shutil
import subprocess

from harness import SOURCE, Skip, case, main

CONFIGURE = """#!/bin/sh
top=$(dirname "$0")
touch config.status
printf 'all examples:\\n\\tcat %s/*.c >built\\n' "$top" >Makefile
"""
DISTDIR = """distdir:
	mkdir -p $(distdir) && cp -p dev configure configure.ac one.c two.c $(distdir)
"""
FILES = {"configure.ac": "", "configure": CONFIGURE, "one.c": "one\n", "two.c": "two\n"}
NOT_SOURCES = {"config.status": "the user's\n", "Makefile": DISTDIR, "object.c": "built from one.c\n"}


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(os.path.join(folder, name), 0o755)


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def call(folder, *command):
    """Runs a command in the project. dpkg-query reports every package as installed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "MAKE", "MFLAGS"))}
    env["PATH"] = os.path.join(folder, "path") + ":" + env["PATH"]
    return subprocess.run(command, cwd=os.path.join(folder, "project"), env=env, capture_output=True, text=True, timeout=240)


def make_project(folder, configured=True, git=True):
    project = os.path.join(folder, "project")
    os.makedirs(project)
    os.makedirs(os.path.join(folder, "path"))
    write(os.path.join(folder, "path"), "dpkg-query", "#!/bin/sh\necho install ok installed\n")
    shutil.copy(os.path.join(SOURCE, "dev"), project)
    for name, text in FILES.items():
        write(project, name, text)
    os.utime(os.path.join(project, "configure.ac"), (0, 0))
    if git:
        if not shutil.which("git"):
            raise Skip("git is not installed")
        assert call(folder, "git", "init", "-q").returncode == 0
        assert call(folder, "git", "add", ".").returncode == 0
    for name, text in NOT_SOURCES.items() if configured else ():
        write(project, name, text)
    return project


def build(folder):
    done = call(folder, "./dev", "build")
    assert done.returncode == 0, done
    return done


@case
def a_tree_that_is_not_configured_is_built_in_build(folder):
    project = make_project(folder, configured=False)
    done = build(folder)
    assert done.stderr == "", done
    assert read(project, "build", "built") == "one\ntwo\n"
    assert not os.path.exists(os.path.join(project, "build-copy"))


@case
def a_configured_tree_is_built_in_a_copy_and_not_changed(folder):
    project = make_project(folder)
    before = sorted(os.listdir(project))
    done = build(folder)
    assert "is configured" in done.stderr and "build-copy/" in done.stderr, done
    assert read(project, "build-copy", "build", "built") == "one\ntwo\n"
    assert sorted(os.listdir(project)) == sorted([*before, "build-copy"])
    for name, text in NOT_SOURCES.items():
        assert read(project, name) == text, name


@case
def the_copy_follows_the_sources(folder):
    project = make_project(folder)
    build(folder)
    write(project, "one.c", "changed\n")
    os.utime(os.path.join(project, "one.c"), (0, 0))
    os.remove(os.path.join(project, "two.c"))
    build(folder)
    assert read(project, "build-copy", "build", "built") == "changed\n"
    assert os.path.getmtime(os.path.join(project, "build-copy", "one.c")) > 0, "make would not build it again"


@case
def a_configured_release_archive_is_built_in_a_copy(folder):
    project = make_project(folder, git=False)
    build(folder)
    assert read(project, "build-copy", "build", "built") == "one\ntwo\n"
    assert [name for name in os.listdir(project) if name.startswith("build")] == ["build-copy"]


# Keeps Debian from starting services.
POLICY = "/usr/sbin/policy-rc.d"


@case
def a_build_installs_what_it_needs_and_no_test_needs_and_no_policy(folder):
    """On a machine without any of the packages."""
    make_project(folder, configured=False)
    tools = os.path.join(folder, "path")
    write(tools, "dpkg-query", "#!/bin/sh\n")
    write(tools, "id", "#!/bin/sh\necho 0\n")
    write(tools, "apt-get", f'#!/bin/sh\necho "$* $(ls {POLICY} 2>/dev/null)" >>../calls\n')
    before = os.path.exists(POLICY)
    done = build(folder)
    assert done.stderr == "", done
    update, install = read(folder, "calls").splitlines()
    words = set(install.split())
    assert update.split()[0] == "update" and {"install", "gcc", "libtool", "libcurl4-openssl-dev"} <= words, install
    assert not words & {"libcriterion-dev", "python3", "chromium", "nginx-light", "postgresql", "valgrind", "clang-tidy-14"}, install
    assert (POLICY in words) == before and os.path.exists(POLICY) == before, install


@case
def commands_that_write_into_a_configured_source_tree_are_refused(folder):
    project = make_project(folder)
    done = call(folder, "./dev", "abi", "--record")
    assert done.returncode == 1 and "make distclean" in done.stderr, done
    assert not os.path.exists(os.path.join(project, "build-copy"))


# A `make check` whose tests are lines of the file `plan`: a file of tests, and the results of its cases in one run after the other. It notes
# how it was called in `calls`.
CHECK = """import os, re, sys
jobs, names = sys.argv[1], sys.argv[2:]
plan = dict(line.split(" ", 1) for line in open("plan"))
with open("calls", "a") as calls:
    calls.write(jobs + " " + " ".join(names) + "\\n")
failed = 0
for name in names:
    results = plan[name].split()
    base = name.rsplit(".", 1)[0]
    runs = len(open(base + ".runs").read()) if os.path.exists(base + ".runs") else 0
    with open(base + ".runs", "a") as file:
        file.write(".")
    good = results[min(runs, len(results) - 1)] == "good"
    with open(base + ".log", "w") as log:
        log.write("ok 1 - it waits\\nPASS: " + name + " 1 - it waits\\n")
        log.write("ok 2 - it ends\\n" if good else "# it did not end\\nnot ok 2 - it ends\\n")
    with open(base + ".trs", "w") as trs:
        trs.write(":test-result: PASS\\n:test-result: " + ("PASS" if good else "FAIL") + "\\n")
    if not good:
        failed = 1
        print("FAIL: " + name + " 2 - it ends")
sys.exit(failed)
"""
CHECK_MAKEFILE = """TESTS = tests/one.py tests/two.py tests/three.py
alone_tests = tests/two.py tests/absent.py
all examples:
check check-TESTS:
\tpython3 check.py '$(MAKEFLAGS)' $(TESTS)
"""


def run_checks(folder, plan, *command):
    """Runs a command of ./dev whose tests have the results in `plan` in one run after the other, and good ones otherwise."""
    project = make_project(folder, configured=False, git=False)
    os.makedirs(os.path.join(project, "build", "tests"))
    for name, text in {"configure": "#!/bin/sh\n", "build/Makefile": CHECK_MAKEFILE, "build/check.py": CHECK, "build/config.status": ""}.items():
        write(project, name, text)
    names = ["tests/one.py", "tests/two.py", "tests/three.py"]
    write(project, "build/plan", "".join(f"{name} {plan.get(name, 'good')}\n" for name in names))
    for name in ("configure", "configure.ac"):
        os.utime(os.path.join(project, name), (0, 0))
    done = call(folder, "./dev", *command)
    with open(os.path.join(project, "build", "calls"), encoding="utf-8") as file:
        return done, file.read().splitlines()


@case
def tests_that_are_listed_as_such_run_after_the_others_one_at_a_time(folder):
    done, calls = run_checks(folder, {}, "test")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "6 passed, 0 failed", done
    assert len(calls) == 2 and calls[0].endswith(" tests/one.py tests/three.py") and calls[1].endswith(" tests/two.py"), calls
    several = f" -j{len(os.sched_getaffinity(0)) + 1} "
    assert several in calls[0] and several not in calls[1], calls


@case
def tests_that_pass_at_the_second_try_pass_and_are_printed(folder):
    done, calls = run_checks(folder, {"tests/one.py": "bad good", "tests/two.py": "bad good"}, "test")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-2:] == ["2 flaky", "6 passed, 0 failed"], done
    assert "FLAKY tests/one.py: it ends: it did not end" in lines and "FLAKY tests/two.py: it ends: it did not end" in lines, done
    assert [call.split()[-1] for call in calls[2:]] == ["tests/one.py", "tests/two.py"], calls


@case
def tests_that_fail_twice_fail(folder):
    done, _ = run_checks(folder, {"tests/three.py": "bad bad good"}, "test")
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == "5 passed, 1 failed" and "flaky" not in done.stdout, done
    assert "not ok 2 - it ends" in done.stdout and "it did not end" in done.stdout, done


@case
def without_second_tries_one_failure_fails(folder):
    done, calls = run_checks(folder, {"tests/one.py": "bad good"}, "test", "--no-retry")
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == "5 passed, 1 failed" and len(calls) == 2, (done, calls)


@case
def repeated_runs_list_tests_that_failed_with_their_rate(folder):
    done, calls = run_checks(folder, {"tests/one.py": "good bad good bad good", "tests/three.py": "bad good"}, "flaky", "--runs", "4", "--load", "1")
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(calls) == 8, done
    assert lines[-2:] == ["2 of 4 runs: tests/one.py: it ends: it did not end", "1 of 4 runs: tests/three.py: it ends: it did not end"], done


@case
def repeated_runs_without_failures_say_so(folder):
    done, calls = run_checks(folder, {}, "flaky", "--runs", "2", "--pinned")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "none" and len(calls) == 4, done
    assert all((" -j2 " in call) == (index % 2 == 0) for index, call in enumerate(calls)), calls


@case
def all_checks_run_and_end_in_a_table(folder):
    done, _ = run_checks(folder, {"tests/one.py": "bad"}, "verify", "test --no-retry", "build")
    table = done.stdout.splitlines()[-2:]
    assert done.returncode == 1 and table[0].startswith("test --no-retry") and "FAILED" in table[0], done
    assert table[0].endswith("5 passed, 1 failed") and table[1].startswith("build") and "good" in table[1], done


main()
