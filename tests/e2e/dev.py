"""./dev in a source tree that is itself configured, with a small project that has the make targets that ./dev uses."""

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


@case
def commands_that_write_into_a_configured_source_tree_are_refused(folder):
    project = make_project(folder)
    done = call(folder, "./dev", "abi", "--record")
    assert done.returncode == 1 and "make distclean" in done.stderr, done
    assert not os.path.exists(os.path.join(project, "build-copy"))


main()
