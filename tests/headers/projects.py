"""CMake and Meson projects find an installed weir in any prefix."""

import os
import re
import shutil
import subprocess

from installed import environment_of, install, pkg_config
from harness import SOURCE, Skip, case, main, skip_with_coverage

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
def the_cmake_project_in_examples_builds_with_the_installed_weir(folder):
    need("cmake")
    prefix = install(folder)
    assert re.fullmatch(r"\d+\.\d+\.\d+", installed_version(folder))
    succeed(folder, "cmake", "-S", EXAMPLES, "-B", "work", "-Werror=dev", f"-DCMAKE_PREFIX_PATH={prefix}")
    succeed(folder, "cmake", "--build", "work")
    show_first_metric(folder, os.path.join(folder, "work", "first_metric"))


TESTED = """
cmake_minimum_required(VERSION 3.13)
project(tested LANGUAGES C)
find_package(weir REQUIRED)
add_executable(tested test.c)
target_link_libraries(tested PRIVATE weir::testing)
"""
TEST = """
#include <weir/testing.h>
int main(void)
{
    return weir_testing_start() || weir_testing_count(NULL, NULL);
}
"""


@case
def a_cmake_project_links_its_tests_with_the_kit(folder):
    skip_with_coverage()
    need("cmake")
    prefix = install(folder)
    os.makedirs(os.path.join(folder, "sources"))
    for name, text in (("CMakeLists.txt", TESTED), ("test.c", TEST)):
        with open(os.path.join(folder, "sources", name), "w", encoding="utf-8") as file:
            file.write(text)
    succeed(folder, "cmake", "-S", "sources", "-B", "work", "-Werror=dev", f"-DCMAKE_PREFIX_PATH={prefix}")
    succeed(folder, "cmake", "--build", "work")
    assert succeed(folder, os.path.join(folder, "work", "tested")) == ""


def installed_version(folder):
    return pkg_config(folder, "--modversion")[0]


# Calls find_package in many ways in one run, each in a function: no call sees the result of another, nor the system's packages.
FINDING = """
cmake_minimum_required(VERSION 3.19)
project(versions LANGUAGES NONE)
function(find label)
    unset(weir_DIR CACHE)
    find_package(weir ${ARGN} NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_PACKAGE_REGISTRY)
    message(STATUS "requested ${label}: ${weir_FOUND}")
endfunction()
"""


def run_cmake(folder, prefix, requests):
    """Runs CMake, which calls find_package with each request and prints a line "requested ..." for it."""
    work = os.path.join(folder, "versions")
    os.makedirs(work)
    with open(os.path.join(work, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(FINDING + "".join(f'find("{request}" {request})\n' for request in requests))
    return shell(folder, "cmake", "-S", work, "-B", os.path.join(work, "build"), f"-DCMAKE_PREFIX_PATH={prefix}")


@case
def cmake_finds_the_requested_version_or_none(folder):
    need("cmake")
    prefix = install(folder)
    major, minor, patch = map(int, installed_version(folder).split("."))
    newer = f"{major}.{minor + 1}"
    wanted = {"": True, f"{major}": True, f"{major}.{minor}": True, f"{major}.{minor}.{patch}": True, f"{major}.{minor}.{patch} EXACT": True,
              f"{major}.{minor}.{patch + 1}": False, newer: False, f"{major + 1}": False, f"{major}.{minor + 10}": False,
              f"{major}.{minor} EXACT": patch == 0, f"{major}.{minor}...{major + 1}": True, f"{major}.{minor}...<{newer}": True,
              f"{newer}...{major + 2}": False}
    done = run_cmake(folder, prefix, wanted)
    assert done.returncode == 0, done.stderr
    results = {request: found in ("1", "TRUE") for request, found in re.findall(r"requested (.*): (\w*)$", done.stdout, re.M)}
    assert results == wanted, {request: results.get(request) for request in wanted if results.get(request) != wanted[request]}


@case
def cmake_reports_a_missing_file_of_the_installation(folder):
    need("cmake")
    prefix = install(folder)
    os.remove(os.path.join(prefix, "include", "weir", "weir.h"))
    done = run_cmake(folder, prefix, ["REQUIRED"])
    assert done.returncode != 0 and "requested" not in done.stdout, done.stdout
    words = " ".join(done.stderr.split())
    assert os.path.realpath(prefix) + "/include/weir/weir.h does not exist, which was installed" in words, done.stderr


@case
def the_meson_project_in_examples_builds_with_the_installed_weir(folder):
    need("meson", "ninja")
    install(folder)
    succeed(folder, "meson", "setup", "--wrap-mode=nofallback", "--fatal-meson-warnings", "work", EXAMPLES)
    succeed(folder, "meson", "compile", "-C", "work")
    show_first_metric(folder, os.path.join(folder, "work", "first_metric"))


@case
def the_meson_wrap_has_this_version_and_provides_the_dependency(folder):
    install(folder)
    version = installed_version(folder)
    with open(os.path.join(EXAMPLES, "subprojects", "weir.wrap"), encoding="utf-8") as file:
        wrap = dict(line.split(" = ") for line in file.read().splitlines() if " = " in line)
    assert (wrap["directory"], wrap["source_filename"]) == (f"weir-{version}", f"weir-{version}.tar.gz"), wrap
    with open(os.path.join(EXAMPLES, "subprojects", "packagefiles", wrap["patch_directory"], "meson.build"), encoding="utf-8") as file:
        build = file.read()
    assert f"version: '{version}'" in build and f"\n{wrap['weir']} = " in build, build


main()
