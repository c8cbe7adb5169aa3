"""Projects that are built by CMake or Meson find an installed weir, wherever it has been put."""

import os
import re
import shutil
import subprocess

from installed import environment_of, install, pkg_config
from harness import SOURCE, Skip, case, main

CONSOLE = {"groups": {"*": "console"}}
EXAMPLES = os.path.join(SOURCE, "examples")


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def shell(folder, *command, **env):
    return subprocess.run(command, cwd=folder, env=environment_of(folder, **env), timeout=300, capture_output=True, text=True)


def succeed(folder, *command, **env):
    done = shell(folder, *command, **env)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def show_first_metric(folder, program):
    shown = succeed(folder, program, WEIR_CONFIG=CONSOLE)
    assert re.fullmatch(r"\[\d+\.\d{6}\]\[my_app\]: calculate_latency=12\.375\n", shown), shown


@case
def the_cmake_project_in_examples_is_built_with_what_was_installed(folder):
    need("cmake")
    prefix = install(folder)
    assert re.fullmatch(r"\d+\.\d+\.\d+", installed_version(folder))
    succeed(folder, "cmake", "-S", EXAMPLES, "-B", "work", "-Werror=dev", f"-DCMAKE_PREFIX_PATH={prefix}")
    succeed(folder, "cmake", "--build", "work")
    show_first_metric(folder, os.path.join(folder, "work", "first_metric"))


def installed_version(folder):
    return pkg_config(folder, "--modversion")[0]


# Asks for weir in many ways in one run, each in a function of its own: none sees what another has found, nor what else the machine has.
ASKING = """
cmake_minimum_required(VERSION 3.19)
project(asking LANGUAGES NONE)
function(ask label)
    unset(weir_DIR CACHE)
    find_package(weir ${ARGN} NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_PACKAGE_REGISTRY)
    message(STATUS "asked ${label}: ${weir_FOUND}")
endfunction()
"""


def ask_cmake(folder, prefix, questions):
    """What find_package says to each: CMake's run, with a line "asked ..." for each that it has come to."""
    work = os.path.join(folder, "asking")
    os.makedirs(work)
    with open(os.path.join(work, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(ASKING + "".join(f'ask("{question}" {question})\n' for question in questions))
    return shell(folder, "cmake", "-S", work, "-B", os.path.join(work, "build"), f"-DCMAKE_PREFIX_PATH={prefix}")


@case
def cmake_gets_the_version_that_it_asks_for_or_none(folder):
    need("cmake")
    prefix = install(folder)
    major, minor, patch = map(int, installed_version(folder).split("."))
    newer = f"{major}.{minor + 1}"
    wanted = {"": True, f"{major}": True, f"{major}.{minor}": True, f"{major}.{minor}.{patch}": True, f"{major}.{minor}.{patch} EXACT": True,
              f"{major}.{minor}.{patch + 1}": False, newer: False, f"{major + 1}": False, f"{major}.{minor + 10}": False,
              f"{major}.{minor} EXACT": patch == 0, f"{major}.{minor}...{major + 1}": True, f"{major}.{minor}...<{newer}": True,
              f"{newer}...{major + 2}": False}
    done = ask_cmake(folder, prefix, wanted)
    assert done.returncode == 0, done.stderr
    answers = {question: answer in ("1", "TRUE") for question, answer in re.findall(r"asked (.*): (\w*)$", done.stdout, re.M)}
    assert answers == wanted, {question: answers.get(question) for question in wanted if answers.get(question) != wanted[question]}


@case
def cmake_says_what_is_missing_of_an_installation(folder):
    need("cmake")
    prefix = install(folder)
    os.remove(os.path.join(prefix, "include", "weir", "weir.h"))
    done = ask_cmake(folder, prefix, ["REQUIRED"])
    assert done.returncode != 0 and "asked" not in done.stdout, done.stdout
    words = " ".join(done.stderr.split())
    assert os.path.realpath(prefix) + "/include/weir/weir.h does not exist, which was installed" in words, done.stderr


@case
def the_meson_project_in_examples_is_built_with_what_was_installed(folder):
    need("meson", "ninja")
    install(folder)
    succeed(folder, "meson", "setup", "--wrap-mode=nofallback", "--fatal-meson-warnings", "work", EXAMPLES)
    succeed(folder, "meson", "compile", "-C", "work")
    show_first_metric(folder, os.path.join(folder, "work", "first_metric"))


@case
def the_wrap_for_meson_is_of_this_version_and_provides_what_the_project_asks_for(folder):
    install(folder)
    version = installed_version(folder)
    with open(os.path.join(EXAMPLES, "subprojects", "weir.wrap"), encoding="utf-8") as file:
        wrap = dict(line.split(" = ") for line in file.read().splitlines() if " = " in line)
    assert (wrap["directory"], wrap["source_filename"]) == (f"weir-{version}", f"weir-{version}.tar.gz"), wrap
    with open(os.path.join(EXAMPLES, "subprojects", "packagefiles", wrap["patch_directory"], "meson.build"), encoding="utf-8") as file:
        build = file.read()
    assert f"version: '{version}'" in build and f"\n{wrap['weir']} = " in build, build


main()
