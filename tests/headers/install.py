"""The installed files are complete: headers, libraries, pkg-config file, plugins, command, man pages."""

import glob
import os
import re
import shlex
import socket
import subprocess

from installed import environment_of, install, pkg_config, uninstall, variable
from harness import SOURCE, WEIR, case, environment, main  # WEIR: without the command the script skips

CC = shlex.split(os.environ.get("WEIR_TEST_CC", "cc"))
CONSOLE = {"groups": {"*": "console"}}
PROGRAM = os.path.join(SOURCE, "examples", "first_metric.c")
TEST = """
#include <weir/testing.h>
int main(void)
{
    weir_testing_sample sample;
    if (weir_testing_start())
        return 1;
    weir_testing_set_time(7);
    weir_add_value(weir_get_stream("my_app"), "size", 512);
    return weir_testing_get("my_app", "size", 0, &sample, sizeof sample) && sample.value == 512 && sample.time_ns == 7 ? 0 : 2;
}
"""


def build(program, *flags, source=PROGRAM):
    done = subprocess.run([*CC, "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def show(program, env):
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


@case
def a_program_links_with_pkg_config_and_finds_the_installed_plugins(folder):
    install(folder)
    program = os.path.join(folder, "first")
    build(program, *pkg_config(folder, "--cflags", "--libs"))
    shown = show(program, environment_of(folder, WEIR_CONFIG=CONSOLE))
    assert shown.endswith("][my_app]: calculate_latency=12.375\n"), shown


@case
def a_test_is_linked_with_the_kit_and_either_form_of_the_library(folder):
    install(folder)
    source, program = os.path.join(folder, "test.c"), os.path.join(folder, "test")
    with open(source, "w", encoding="utf-8") as file:
        file.write(TEST)
    build(program, *pkg_config(folder, "--cflags", "--libs", package="weir-testing"), source=source)
    assert show(program, environment_of(folder)) == ""
    build(program, *pkg_config(folder, "--static", "--cflags", "--libs", package="weir-testing"), "-static", "-Wno-error", source=source)
    assert show(program, environment()) == ""


@case
def the_plugin_folder_is_that_of_the_pkg_config_file(folder):
    install(folder)
    plugins = folder + variable("plugindir")
    assert {"null.so", "console.so", "file.so", "fifo.so", "socket.so"} <= set(os.listdir(plugins)), os.listdir(plugins)
    assert not [name for name in os.listdir(plugins) if name.endswith(".la")]


@case
def the_unit_of_the_relay_starts_the_installed_command(folder):
    prefix = install(folder)
    with open(os.path.join(prefix, "lib", "systemd", "system", "weir-relay.service"), encoding="utf-8") as file:
        unit = file.read()
    command = re.search(r"^ExecStart=(\S+) relay -c /etc/weir/relay\.json$", unit, re.M).group(1)
    assert os.access(folder + command, os.X_OK), unit
    assert "@" not in unit.replace("@system-service", ""), unit
    assert {"Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "DynamicUser=yes", "StateDirectory=weir"} <= set(unit.splitlines()), unit


@case
def the_unit_of_the_collector_starts_the_installed_command(folder):
    prefix = install(folder)
    with open(os.path.join(prefix, "lib", "systemd", "system", "weir-serve.service"), encoding="utf-8") as file:
        unit = file.read()
    command = re.search(r"^ExecStart=(\S+) serve --forward-group weir$", unit, re.M).group(1)
    assert os.access(folder + command, os.X_OK) and "@" not in unit.replace("@system-service", ""), unit
    assert {"Type=notify", "DynamicUser=yes", "StateDirectory=weir-serve", "StateDirectoryMode=0700", "SupplementaryGroups=weir"} <= set(unit.splitlines()), unit
    with open(os.path.join(prefix, "lib", "sysusers.d", "weir.conf"), encoding="utf-8") as file:
        assert "g weir -" in file.read().splitlines(), "the group of the unit"


@case
def a_static_program_contains_the_builtin_handlers(folder):
    install(folder)
    program = os.path.join(folder, "first")
    build(program, *pkg_config(folder, "--static", "--cflags", "--libs"), "-static", "-Wno-error")
    shown = show(program, environment(WEIR_CONFIG=CONSOLE, WEIR_PLUGIN_PATH="/nowhere"))
    assert shown.endswith("][my_app]: calculate_latency=12.375\n"), shown


@case
def a_static_program_sends_over_the_network_without_plugins(folder):
    install(folder)
    program = os.path.join(folder, "first")
    build(program, *pkg_config(folder, "--static", "--cflags", "--libs"), "-static", "-Wno-error")
    for host in ("127.0.0.1", "localhost"):
        with socket.create_server(("127.0.0.1", 0)) as server:
            sends = {"type": "socket", "to": f"tcp://{host}:{server.getsockname()[1]}", "format": "statsd"}
            config = {"handlers": {"peer": sends}, "groups": {"*": "peer"}}
            assert show(program, environment(WEIR_CONFIG=config, WEIR_PLUGIN_PATH="/nowhere")) == ""
            server.settimeout(60)
            with server.accept()[0] as connection, connection.makefile("rb") as stream:
                assert stream.read() == b"my_app.calculate_latency:12.375|g\n"


def names_in(folder, library, which):
    """The global names that an installed static library defines, or does not."""
    path = os.path.join(folder + variable("libdir"), library)
    done = subprocess.run(["nm", "-g", which, path], capture_output=True, text=True, check=True)
    return {words[-1] for line in done.stdout.splitlines() if len(words := line.split()) in (2, 3)}


@case
def the_static_libraries_take_no_names_of_programs(folder):
    """Those of the handler types are in libweir.a, too."""
    install(folder)
    names = names_in(folder, "libweir.a", "--defined-only")
    assert "wr_builtin_socket_type_at" in names
    foreign = [name for name in names | names_in(folder, "libweir-testing.a", "--defined-only") if not name.startswith(("weir_", "wr_"))]
    assert not foreign, foreign


def exported(path):
    done = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    return [line.split()[-1].split("@")[0] for line in done.stdout.splitlines()]


@case
def libweir_exports_only_weir_and_each_plugin_only_its_entry_point(folder):
    install(folder)
    libdir, plugins = folder + variable("libdir"), folder + variable("plugindir")
    names = [name for name in exported(os.path.join(libdir, "libweir.so")) if not name.startswith("WEIR_")]
    assert names and all(name.startswith("weir_") for name in names), names
    for plugin in os.listdir(plugins):
        kind = plugin.split(".")[1]
        entry = {"source": "weir_source_type_at", "parser": "weir_parse_plugin", "so": "weir_handler_type_at"}[kind]
        assert exported(os.path.join(plugins, plugin)) == [entry], plugin


def read_header(name="weir.h"):
    with open(os.path.join(SOURCE, "include", "weir", name), encoding="utf-8") as file:
        return file.read()


def declared(name="weir.h"):
    return set(re.findall(r"WEIR_API [^;(]*?(weir_\w+)\(", read_header(name)))


@case
def every_function_of_the_headers_is_exported_and_no_other(folder):
    install(folder)
    names = {name for name in exported(folder + variable("libdir") + "/libweir.so") if name.startswith("weir_")}
    private = {name for name in names if name.startswith("weir_private_")}
    assert declared() == names - private, declared() ^ (names - private)
    defined = names_in(folder, "libweir-testing.a", "--defined-only")
    kit = {name for name in defined if name.startswith("weir_")}
    assert declared("testing.h") == kit, declared("testing.h") ^ kit
    needed = {name for name in names_in(folder, "libweir-testing.a", "--undefined-only") if name.startswith(("weir_", "wr_"))} - defined
    assert private <= needed <= names, (needed - names, private - needed)


@case
def every_function_and_macro_has_a_manual_page(folder):
    install(folder)
    pages = os.path.dirname(glob.glob(os.path.join(folder, "**", "man3"), recursive=True)[0])
    assert os.listdir(os.path.join(pages, "man1")) == ["weir.1"] and os.listdir(os.path.join(pages, "man5")) == ["weir.json.5"]
    assert sorted(os.listdir(os.path.join(pages, "man7"))) == ["weir-handler.7", "weir-source.7"]
    macros = set(re.findall(r"#define (WEIR_\w+)\(", read_header() + read_header("types.h")))
    names = {name[:-2] for name in os.listdir(os.path.join(pages, "man3"))}
    expected = declared() | macros | {"weir"}
    assert macros and names == expected, names ^ expected
    for name in names - {"weir"}:
        with open(os.path.join(pages, "man3", name + ".3"), encoding="utf-8") as file:
            source = re.fullmatch(r"\.so (man3/.*)\n", file.read()).group(1)
        assert os.path.samefile(os.path.join(pages, source), os.path.join(pages, "man3", "weir.3"))


@case
def guides_that_messages_and_pages_name_are_installed(folder):
    install(folder)
    for kind in ("handler", "source"):
        assert len(glob.glob(os.path.join(folder, "**", "share", "doc", "weir", f"{kind}-guide.md"), recursive=True)) == 1, kind


@case
def uninstalling_leaves_nothing(folder):
    install(folder)
    uninstall(folder)
    left = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
    assert not left, left


main()
