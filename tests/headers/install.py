"""What is installed is all that a stranger needs: headers, libraries, pkg-config file, plugins, command, man pages."""

import os
import shlex
import subprocess

from judge import BUILD, SOURCE, Skip, case, environment, main

CC = shlex.split(os.environ.get("WEIR_TEST_CC", "cc"))
PROGRAM = os.path.join(SOURCE, "examples", "first_metric.c")


def install(folder):
    if os.environ.get("WEIR_TEST_SANITIZED"):
        raise Skip("a sanitized library is not for others to link with")
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-C", BUILD, "-s", "install", f"DESTDIR={folder}"], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return os.path.join(folder, pkg_config_variable("prefix").lstrip("/"))


def pkg_config_variable(name):
    done = subprocess.run(["pkg-config", f"--variable={name}", os.path.join(BUILD, "lib", "weir.pc")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def pkg_config(folder, *arguments):
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(folder, pkg_config_variable("libdir").lstrip("/"), "pkgconfig"),
               PKG_CONFIG_SYSROOT_DIR=folder)
    done = subprocess.run(["pkg-config", *arguments, "weir"], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    # the sysroot is for what we have installed, not for what weir itself is built on
    return [flag.replace(folder + "/usr/include", "/usr/include") for flag in shlex.split(done.stdout)]


def build(folder, program, *flags):
    done = subprocess.run([*CC, "-Wall", "-Wextra", "-Werror", PROGRAM, "-o", program, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def show(program, folder, **env):
    done = subprocess.run([program], capture_output=True, text=True, timeout=60,
                          env=dict(environment(WEIR_CONFIG={"groups": {"*": "console"}}), **env))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


@case
def a_program_links_with_pkg_config_and_finds_the_installed_plugins(folder):
    install(folder)
    libdir = folder + pkg_config_variable("libdir")
    program = os.path.join(folder, "first")
    build(folder, program, *pkg_config(folder, "--cflags", "--libs"))
    shown = show(program, folder, LD_LIBRARY_PATH=libdir, WEIR_PLUGIN_PATH=folder + pkg_config_variable("plugindir"))
    assert shown.endswith("][my_app]: calculate_latency=12.375\n"), shown


@case
def the_plugin_folder_is_what_pkg_config_says(folder):
    install(folder)
    plugins = folder + pkg_config_variable("plugindir")
    assert {"null.so", "console.so", "file.so", "fifo.so"} <= set(os.listdir(plugins)), os.listdir(plugins)
    assert not [name for name in os.listdir(plugins) if name.endswith(".la")]


@case
def a_static_program_has_the_plain_handlers_inside(folder):
    install(folder)
    program = os.path.join(folder, "first")
    try:
        build(folder, program, *pkg_config(folder, "--static", "--cflags", "--libs"), "-static", "-Wno-error")
    except AssertionError as problem:
        if "libjson-c.a" in str(problem) or "cannot find -ljson-c" in str(problem):
            raise Skip("json-c is installed without its static library") from problem
        raise
    shown = show(program, folder, WEIR_PLUGIN_PATH="/nowhere")
    assert shown.endswith("][my_app]: calculate_latency=12.375\n"), shown


def exported(path):
    done = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    return [line.split()[-1].split("@")[0] for line in done.stdout.splitlines()]


@case
def libweir_exports_only_weir_and_each_plugin_only_its_entry_point(folder):
    install(folder)
    libdir, plugins = folder + pkg_config_variable("libdir"), folder + pkg_config_variable("plugindir")
    names = [name for name in exported(os.path.join(libdir, "libweir.so")) if not name.startswith("WEIR_")]
    assert names and all(name.startswith("weir_") for name in names), names
    for plugin in os.listdir(plugins):
        assert exported(os.path.join(plugins, plugin)) == ["weir_handler_type_at"], plugin


@case
def every_function_of_the_header_is_exported_and_no_other(folder):
    import re
    install(folder)
    with open(os.path.join(SOURCE, "include", "weir", "weir.h"), encoding="utf-8") as file:
        declared = set(re.findall(r"WEIR_API [^;(]*?(weir_\w+)\(", file.read()))
    names = {name for name in exported(folder + pkg_config_variable("libdir") + "/libweir.so") if name.startswith("weir_")}
    assert declared == names, declared ^ names


@case
def uninstalling_leaves_nothing(folder):
    install(folder)
    subprocess.run(["make", "-C", BUILD, "-s", "uninstall", f"DESTDIR={folder}"], check=True, capture_output=True)
    left = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
    assert not left, left


main()
