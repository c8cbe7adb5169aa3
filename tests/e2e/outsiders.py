"""The handlers and sources in examples/ are built by their own Makefiles against an installed weir, and used."""

import atexit
import contextlib
import csv
import json
import os
import random
import re
import select
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import certificates
from fifos import ScriptedApp
from installed import environment_of, install, pkg_config
from harness import ADDER, SANITIZED, SOURCE, WEIR, Skip, assert_ledgers, case, main, skip_with_coverage, wait_for, without_waits
from peers import Mosquitto, PostgreSQL, Redis
from sourced import Sourced
from sourced import case as source_case

CXX = shlex.split(os.environ.get("WEIR_TEST_CXX", "c++"))
REJECTED = 1  # in "dropped"
FACTOR = float(os.environ.get("WEIR_TEST_FACTOR", "1"))  # 12.5: a million values


# ---- Building ---------------------------------------------------------------------------------------------------


_prefixes = []


def installed():
    """The folder where weir is installed, once for all cases."""
    if not _prefixes:
        folder = tempfile.mkdtemp(prefix="weir-test-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        install(folder)
        _prefixes.append(folder)
    return _prefixes[0]


def build(folder, name, **variables):
    """Copies an example out of the tree and builds it there. Returns its folder and its environment."""
    weir = installed()
    place = shutil.copytree(os.path.join(SOURCE, "examples", name), os.path.join(folder, name))
    env = environment_of(weir)
    # the sysroot applies to weir only, not to libraries in the system's folders
    flags = {"WEIR_CFLAGS": " ".join(pkg_config(weir, "--cflags")), "WEIR_LIBS": " ".join(pkg_config(weir, "--libs"))}
    flags["WEIR_STATIC_LIBS"] = " ".join(pkg_config(weir, "--static", "--libs"))
    command = ["make", "-C", place, "CFLAGS=-O1 -g -Wall -Wextra -Werror", "CXXFLAGS=-O1 -g -Wall -Wextra -Wpedantic -Wold-style-cast -Werror"]
    env = {key: value for key, value in env.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run([*command, *(f"{k}={v}" for k, v in {**flags, **variables}.items())], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    env["WEIR_PLUGIN_PATH"] = place
    return place, env


def need(package):
    if subprocess.run(["pkg-config", "--exists", package]).returncode:
        raise Skip(f"{package} is not installed")


def run(env, *command, config=None, timeout=240, **more):
    if config is not None:
        env = {**env, "WEIR_CONFIG": json.dumps(config)}
    return subprocess.run([str(part) for part in command], env={**env, **more}, capture_output=True, text=True, timeout=timeout)


def assert_open(env, config, other=None, words=""):
    """The destination of a configuration can be reached, and that of the other one cannot, for a reason with these words."""
    done = run(env, WEIR, "check", "--open", config=config)
    assert done.returncode == 0 and "stopped" not in done.stdout, done
    if other:
        done = run(env, WEIR, "check", "--open", config=other)
        assert done.returncode == 1 and words in done.stdout, done


def deliver(env, config, count, handler, *more):
    """Runs a program that adds `count` values, and checks its ledger. Returns its report."""
    done = run(env, ADDER, "-n", count, "-f", -1, "-H", handler, *more, config=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"][handler]["delivered"] == count, report
    return report


@case
def every_example_handler_is_built_here():
    folders = {entry.name for entry in os.scandir(os.path.join(SOURCE, "examples")) if entry.is_dir()} - {"config"}
    assert folders >= {"stdout_handler", "syslog_handler", "sqlite_handler", "postgres_handler", "redis_handler", "cxx_handler",
                       "mqtt_source"}, folders


# ---- Plugin, registered, static ---------------------------------------------------------------------------------

PRINTED = r"\[\d{10}\]\[my_app\]: latency=12\.5\n\[\d{10}\]\[my_app\]: requests=3\n"


@case
def one_handler_source_works_as_a_plugin_registered_and_linked_statically(folder):
    skip_with_coverage()
    place, env = build(folder, "stdout_handler")
    config = {"groups": {"*": "stdout_handler"}}
    done = run(env, os.path.join(place, "program"), config=config)
    assert done.returncode == 0 and re.fullmatch(PRINTED, done.stdout) and without_waits(done.stderr) == "", done
    os.remove(os.path.join(place, "stdout_handler.so"))
    assert run(env, os.path.join(place, "program"), config=config).stdout == ""
    for program in ("registered", "static"):
        done = run(env, os.path.join(place, program), config=config)
        assert done.returncode == 0 and re.fullmatch(PRINTED, done.stdout) and without_waits(done.stderr) == "", (program, done)
    needed = subprocess.run(["readelf", "-d", os.path.join(place, "static")], capture_output=True, text=True, check=True).stdout
    assert "libweir" not in needed and "libc.so" in needed, needed
    done = subprocess.run(["sh", "-c", f'exec "{place}/registered" >/dev/full'], env={**env, "WEIR_CONFIG": json.dumps(config)},
                          capture_output=True, text=True)
    assert done.returncode == 1 and "standard output: write failed" in done.stderr, done


# ---- syslog -----------------------------------------------------------------------------------------------------

LISTEN = r"""
mount --bind "$1" /dev
shift
exec "$@"
"""


@case
def syslog_receives_one_line_per_value(folder):
    place, env = build(folder, "syslog_handler")
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        raise Skip("not permitted to mount a /dev of its own")
    devices = os.path.join(folder, "dev")
    os.mkdir(devices)
    open(os.path.join(devices, "null"), "w", encoding="utf-8").close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(os.path.join(devices, "log"))
        log.settimeout(60)
        config = {"handlers": {"log": {"type": "syslog_handler", "ident": "app", "facility": "local3", "level": "notice"}},
                  "groups": {"*": "log"}}
        done = run({**env, "WEIR_CONFIG": json.dumps(config)}, "unshare", "-rm", "sh", "-c", LISTEN, "sh", devices,
                   WEIR, "emit", "-g", "my_app", "a=1", "b=2.5")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        lines = [log.recv(4096).decode().rstrip("\0") for _ in range(2)]
    for line, words in zip(lines, ("a=1", "b=2.5")):
        assert line.startswith(f"<{19 * 8 + 5}>") and re.search(r"app: \[\d+\.\d{6}\]\[my_app\]: " + re.escape(words) + "$", line), line
    done = run(env, WEIR, "emit", "-g", "g", "a=1", config={"handlers": {"log": {"type": "syslog_handler", "level": "loud"}}, "groups": {"*": "log"}})
    assert 'handlers.log.level: "loud"' in done.stderr and "debug|info|notice|warning" in done.stderr.replace(", ", "|"), done.stderr


# ---- sqlite -----------------------------------------------------------------------------------------------------


@case
def sqlite_is_built_out_of_tree_from_the_source_of_the_plugin(folder):
    need("sqlite3")
    _, env = build(folder, "sqlite_handler", SOURCE=os.path.join(SOURCE, "plugins", "sqlite"))
    path = os.path.join(folder, "m.db")
    deliver(env, {"handlers": {"db": {"type": "sqlite", "path": path}}, "groups": {"*": "db"}}, 1000, "db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*), max(value) FROM samples").fetchall() == [(1000, 999)]


# ---- C++ --------------------------------------------------------------------------------------------------------


@case
def the_handler_in_cxx_writes_whole_events(folder):
    _, env = build(folder, "cxx_handler")
    path = os.path.join(folder, "m.csv")
    config = {"handlers": {"csv": {"type": "cxx_handler", "path": path}}, "groups": {"*": "csv"}}
    deliver(env, config, 3000, "csv", "-e", 10)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert [int(value) for _, _, _, value in rows] == list(range(3000)) and {row[1] for row in rows} == {"my_app"}, rows[:3]
    done = run(env, ADDER, "-n", 10, "-f", 2000, "-H", "csv",
               config={**config, "settings": {"shutdown_timeout": "1s"}, "handlers": {"csv": {"type": "cxx_handler", "path": "/dev/full"}}})
    assert_ledgers(json.loads(done.stdout))
    assert "write /dev/full: No space left on device" in done.stderr and "10 dropped" in done.stderr, done.stderr


THROWING = """
#include <fcntl.h>
#include <stdexcept>
#include <weir/handler.hpp>
#include <weir/weir.h>

enum { REFUSED, REFUSED_ALL, OPEN, EMIT, ODD, MEMORY, SETTLED, DROP, REJECTED, FAILED, CLOSE, CODED, NONE };
struct ThrowerOptions { const char *path; int64_t mode; };
const weir_option rows[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED, nullptr, nullptr, "the file", ThrowerOptions, path),
    WEIR_OPTION_ROW("mode", ENUM, 0, "none", "refused|refused_all|open|emit|odd|memory|settled|drop|rejected|failed|close|coded|none", "what is thrown, once",
                    ThrowerOptions, mode),
    weir_option(),
};
class Thrower {
public:
    typedef ThrowerOptions Options;
    Thrower(const weir_host &, const Options &options) : options_(options)
    {
        if (options.mode == REFUSED)
            throw weir::refusal("mode", "\\"refused\\" is not wanted");
        if (options.mode == REFUSED_ALL)
            throw std::runtime_error("no such device");
    }
    void open()
    {
        file_.reset(::open(options_.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
        if (options_.mode == OPEN && !has_thrown_++)
            throw weir::reopen("the door is shut").retry_after(1);
    }
    void close()
    {
        file_.reset();
        if (options_.mode == CLOSE)
            throw std::runtime_error("the door is stuck");
    }
    void abandon() noexcept { ::close(file_.get()); }
    std::string probe(int64_t) { return options_.mode == NONE ? "it is quiet" : throw weir::failed("nobody is there"); }
    void emit(weir::batch &batch)
    {
        if (options_.mode == EMIT && !has_thrown_++)
            throw weir::retry("not now").retry_after(1);
        if (options_.mode == CODED)
            throw weir::retry("no pipe").error(WEIR_ERR_FIFO_NOT_CREATED);
        if (options_.mode == ODD && !has_thrown_++)
            throw 7;
        if (options_.mode == MEMORY && !has_thrown_++)
            throw std::bad_alloc();
        for (const weir_sample &sample : batch) {
            uint32_t index = static_cast<uint32_t>(&sample - batch.begin());
            if (options_.mode == SETTLED && index == 4 && !has_thrown_++) {
                batch.settle(4);
                throw std::runtime_error("torn");
            }
            if (options_.mode == DROP && index == 4) {
                batch.settle(4);
                throw weir::drop("no more of these");
            }
            if (options_.mode == REJECTED && index == 6) {
                batch.settle(batch.size(), batch.size() - 6);
                return;
            }
            if (options_.mode == FAILED)
                throw weir::failed("never again");
            std::string line = std::to_string(static_cast<int>(sample.value.f64)) + "\\n";
            if (::write(file_.get(), line.data(), line.size()) < 0)
                throw weir::reopen("write");
        }
    }
private:
    const Options &options_;
    weir::descriptor file_;
    int has_thrown_ = 0;
};
const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    static const weir_handler_type type = weir::handler_type<Thrower>("thrower", "throws", rows);
    return index == 0 ? &type : nullptr;
}
"""


@case
def what_a_handler_in_cxx_throws_is_its_outcome(folder):
    place, env = build(folder, "cxx_handler")
    os.remove(os.path.join(place, "cxx_handler.so"))
    with open(os.path.join(place, "thrower.cc"), "w", encoding="utf-8") as file:
        file.write(THROWING)
    flags = pkg_config(installed(), "--cflags")
    subprocess.run([*CXX, "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags, "-fPIC", "-shared", "-fvisibility=hidden",
                    "-o", os.path.join(place, "thrower.so"), os.path.join(place, "thrower.cc")], check=True, env=env)

    def config_of(mode):
        handler = {"type": "thrower", "path": os.path.join(folder, mode), "mode": mode, "retry_min": "1ms", "batch": 10, "linger": "1m"}
        return {"handlers": {"h": handler}, "groups": {"*": "h"}}

    for mode, words in (("refused", 'h.mode: "refused" is not wanted'), ("refused_all", "handlers.h: no such device")):
        done = run(env, WEIR, "check", config=config_of(mode))
        assert done.returncode == 1 and words in done.stdout + done.stderr, (mode, done)
    for mode, words, code in (("none", "it is quiet", 0), ("open", "nobody is there", 1)):
        done = run(env, WEIR, "check", "--open", config=config_of(mode))
        assert done.returncode == code and words in done.stdout + done.stderr, (mode, done)

    everything = list(range(10))
    for mode, words, written, rejected in (
            ("open", "the door is shut", everything, 0), ("emit", "not now", everything, 0),
            ("odd", "an exception that is no std::exception", everything, 0), ("memory", "out of memory", everything, 0),
            ("settled", "torn", everything, 0), ("drop", "no more of these", everything[:4], 6), ("rejected", "", everything[:6], 4),
            ("failed", "never again", [], 10), ("close", "close: the door is stuck", everything, 0), ("none", "", everything, 0)):
        done = run(env, ADDER, "-n", 10, "-f", -1, "-H", "h", config=config_of(mode))
        report = json.loads(done.stdout)
        assert_ledgers(report)
        stats = report["handlers"]["h"]
        with open(os.path.join(folder, mode), encoding="utf-8") as file:
            found = [int(line) for line in file]
        assert found == written and stats["delivered"] == len(written) and sum(stats["dropped"]) == rejected, (mode, found, stats)
        assert words in done.stderr, (mode, done.stderr)
        assert report["flush"] == {"drop": -9, "rejected": -9, "failed": -9}.get(mode, 0), (mode, report)
    done = run(env, ADDER, "-n", 10, "-f", -1, "-H", "h", config=config_of("coded"))
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["flush"] == -14 and report["handlers"]["h"]["delivered"] == 0 and "no pipe" in done.stderr, (report, done.stderr)


DIRECT = """
#include <cstdio>
#include <fcntl.h>
#include <weir/handler.hpp>

struct DirectOptions { const char *path; };
const weir_option rows[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED, nullptr, nullptr, "the file", DirectOptions, path),
    weir_option(),
};
class Direct {
public:
    typedef DirectOptions Options;
    Direct(const weir_host &, const Options &options) : options_(options) {}
    void open() { file_.reset(::open(options_.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)); }
    void emit(weir::batch &batch)
    {
        for (const weir_sample &sample : batch)
            write("emit", sample);
    }
    bool emit_now(weir::batch &batch) noexcept
    {
        for (const weir_sample &sample : batch) {
            if (static_cast<int>(sample.value.f64) % 2)
                return false;
            write("now", sample);
            batch.settle(1);
        }
        return true;
    }
private:
    void write(const char *by, const weir_sample &sample) noexcept
    {
        char line[64];
        int length = std::snprintf(line, sizeof line, "%s %d\\n", by, static_cast<int>(sample.value.f64));
        if (::write(file_.get(), line, static_cast<std::size_t>(length)) != length)
            ::_exit(1);
    }
    const Options &options_;
    weir::descriptor file_;
};
const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    static const weir_handler_type type = weir::handler_type<Direct>("direct", "writes lines", rows);
    return index == 0 ? &type : nullptr;
}
"""


def compile_direct(place, env, text):
    with open(os.path.join(place, "direct.cc"), "w", encoding="utf-8") as file:
        file.write(text)
    return subprocess.run([*CXX, "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *pkg_config(installed(), "--cflags"), "-fPIC",
                           "-shared", "-fvisibility=hidden", "-o", os.path.join(place, "direct.so"), os.path.join(place, "direct.cc")],
                          env=env, capture_output=True, text=True)


@case
def a_handler_in_cxx_delivers_on_the_caller_s_thread_or_leaves_it_to_the_worker(folder):
    place, env = build(folder, "cxx_handler")
    done = compile_direct(place, env, DIRECT)
    assert done.returncode == 0, done.stderr
    path = os.path.join(folder, "out")
    config = {"handlers": {"h": {"type": "direct", "path": path, "delivery": "sync"}}, "groups": {"*": "h"}}
    done = run(env, ADDER, "-n", 300, "-H", "h", config=config)
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"]["h"]["delivered"] == 300, (report, done.stderr)
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    assert [int(value) for _, value in lines] == list(range(300)), lines
    direct = [int(value) for by, value in lines if by == "now"]
    assert direct and not any(value % 2 for value in direct), lines
    done = compile_direct(place, env, DIRECT.replace("emit_now(weir::batch &batch) noexcept", "emit_now(weir::batch &batch)"))
    assert done.returncode != 0 and "emit_now must be noexcept" in done.stderr, done


# ---- PostgreSQL -------------------------------------------------------------------------------------------------


def database_of(folder):
    """The server runs as another user, who needs a way to its folder."""
    need("libpq")
    return PostgreSQL(folder, certificates.make(folder, "server", host="127.0.0.1"))


def build_postgres(folder):
    flags = subprocess.run(["pkg-config", "--cflags", "libpq"], capture_output=True, text=True, check=True).stdout.strip()
    return build(folder, "postgres_handler", LIBPQ_CFLAGS=flags)


def postgres_options(server, **options):
    return {"host": "127.0.0.1", "port": server.port, "database": "postgres", "user": "weir", "password": server.password, **options}


def postgres_config(server, **options):
    handler = {"type": "postgres_handler", "retry_min": "5ms", "retry_max": "100ms", "block_timeout": "10m", **postgres_options(server, **options)}
    return {"settings": {"shutdown_timeout": "4m", "labels": {"host": 'a"b\\c'}}, "handlers": {"db": handler}, "groups": {"*": "db"}}


@case
def postgres_stores_values_with_identity_time_and_labels(folder):
    with database_of(folder) as server:
        _, env = build_postgres(folder)
        config = postgres_config(server)
        done = run(env, WEIR, "emit", "-g", "my_app", "-l", "route=/x", "latency=49.5", "n=-3", "nothing=nan", config=config)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        rows = server.query("SELECT group_name, name, value, labels->>'route', labels->>'host', sequence FROM weir_samples ORDER BY sequence")
        assert rows == ['my_app|latency|49.5|/x|a"b\\c|0', 'my_app|n|-3|/x|a"b\\c|1', 'my_app|nothing|NaN|/x|a"b\\c|2'], rows
        assert server.query("SELECT count(*) FROM weir_samples WHERE abs(extract(epoch FROM time - now())) < 3600") == ["3"]
        assert len(server.query("SELECT DISTINCT origin FROM weir_samples")) == 1
        done = run(env, WEIR, "emit", "-g", "g", "a=1", config=postgres_config(server, table="weir; DROP"))
        assert 'handlers.db.table: "weir; DROP" is not a table; allowed: letters a to z' in done.stderr, done.stderr
        assert_open(env, config)


@case
def postgres_has_each_value_once_although_the_server_is_killed_three_times(folder):
    each = int(20000 * FACTOR)
    with database_of(folder) as server:
        _, env = build_postgres(folder)
        config = json.dumps(postgres_config(server, batch=1000))
        command = [ADDER, "-t", "4", "-n", str(each), "-f", "-1", "-H", "db"]
        with subprocess.Popen(command, env={**env, "WEIR_CONFIG": config}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as app:
            for part in (1, 2, 3):
                wait_for(lambda: server.count_rows() >= 4 * each * part // 5, f"{part} fifths to be stored", 600 * FACTOR)
                server.crash()
                server.start()
            output, errors = app.communicate(timeout=600 * FACTOR)
        assert app.returncode == 0, errors
        report = json.loads(output)
        assert_ledgers(report)
        stats = report["handlers"]["db"]
        assert stats["delivered"] == 4 * each and sum(stats["dropped"]) == 0, stats
        rows = server.query("SELECT name, count(*), sum(value)::bigint FROM weir_samples GROUP BY name ORDER BY name")
        assert rows == [f"t{k}|{each}|{each * (each - 1) // 2}" for k in range(4)], rows
        assert "retrying" in errors and "back after" in errors, errors


@case
def postgres_refuses_only_the_value_that_the_table_cannot_hold(folder):
    with database_of(folder) as server:
        _, env = build_postgres(folder)
        config = postgres_config(server)
        assert run(env, WEIR, "emit", "-g", "g", "ok=1", config=config).returncode == 0
        server.query("ALTER TABLE weir_samples ADD CHECK (name <> 'bad')")
        with ScriptedApp(config, folder, WEIR_PLUGIN_PATH=env["WEIR_PLUGIN_PATH"]) as app:
            for name in ("a", "bad", "b"):
                assert app.do("add", name, 1)["code"] == 0
            app.do("flush", -1)
            stats = app.do("ledger", "db")
            assert stats["delivered"] == 2 and stats["dropped"][REJECTED] == 1, stats
            assert "violates check constraint" in app.stderr_text(), app.stderr_text()
            app.end()
        assert server.query("SELECT name FROM weir_samples ORDER BY name") == ["a", "b", "ok"]


@case
def postgres_ignores_a_batch_that_was_stored_before_the_reply_was_lost(folder):
    with database_of(folder) as server:
        _, env = build_postgres(folder)
        with ScriptedApp(postgres_config(server, timeout="500ms"), folder, WEIR_PLUGIN_PATH=env["WEIR_PLUGIN_PATH"]) as app:
            assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
            # the commit waits for a standby that does not exist: it is done, and its reply never comes
            server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            server.query("SELECT pg_reload_conf()")
            wait_for(lambda: server.query("SHOW synchronous_standby_names") == ["nobody"], "the setting")
            assert app.do("add", "v", 2)["code"] == 0
            wait_for(lambda: "no reply of the server" in app.stderr_text(), "the warning")
            server.query("ALTER SYSTEM RESET synchronous_standby_names")
            server.query("SELECT pg_reload_conf()")
            assert app.do("flush", -1)["code"] == 0
            assert app.do("ledger", "db")["delivered"] == 2
            app.end()
        assert server.query("SELECT value FROM weir_samples ORDER BY value") == ["1", "2"]


@case
def postgres_passes_vetting(folder):
    if SANITIZED:
        raise Skip("vet counts memory")
    with database_of(folder) as server:
        place, env = build_postgres(folder)
        query = f'psql -X -At -F= -c "SELECT name, value FROM weir_samples" "{server.uri}"'
        done = run(env, WEIR, "vet", os.path.join(place, "postgres_handler.so"), "--options", json.dumps(postgres_options(server)), "--read", query,
                   timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr


# ---- Redis ------------------------------------------------------------------------------------------------------


def build_redis(folder):
    need("hiredis")
    flags = subprocess.run(["pkg-config", "--cflags", "hiredis"], capture_output=True, text=True, check=True).stdout.strip()
    return build(folder, "redis_handler", HIREDIS_CFLAGS=flags)


def redis_options(server, **options):
    return {"address": server.url, "password": server.password, **options}


def redis_config(server, **options):
    handler = {"type": "redis_handler", "retry_min": "5ms", "retry_max": "100ms", "block_timeout": "10m", **redis_options(server, **options)}
    return {"settings": {"shutdown_timeout": "4m", "labels": {"host": 'a"b', "route": "overridden"}}, "handlers": {"db": handler}, "groups": {"*": "db"}}


@case
def redis_stores_values_with_identity_time_and_labels(folder):
    with Redis(folder) as server:
        _, env = build_redis(folder)
        config = redis_config(server, stream="s")
        done = run(env, WEIR, "emit", "-g", "my_app", "-l", "route=/x", "latency=49.5", "n=-3", "nothing=nan", config=config)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        rows = server.read("s")
        shared = {"group": "my_app", "label.route": "/x", "label.host": 'a"b', "origin": rows[0]["origin"]}
        times = [int(row.pop("time")) for row in rows]
        assert rows == [{**shared, "sequence": str(i), "name": name, "value": value}
                        for i, (name, value) in enumerate((("latency", "49.5"), ("n", "-3"), ("nothing", "NaN")))], rows
        assert times == sorted(times) and abs(times[0] / 1e9 - int(server.do("TIME")[0])) < 3600, times
        assert server.do("GET", "weir:origin:" + rows[0]["origin"]) == "0-3" and server.do("PTTL", "weir:origin:" + rows[0]["origin"]) > 0
        for options, words in (({"address": "127.0.0.1"}, 'handlers.db.address: "127.0.0.1"'), ({"password": "wrong"}, "WRONGPASS")):
            done = run(env, WEIR, "emit", "-g", "g", "a=1", config={**redis_config(server, **options), "settings": {"shutdown_timeout": "1s"}})
            assert words in done.stderr and server.password not in done.stderr, done.stderr
        assert_open(env, redis_config(server), redis_config(server, password="wrong"), "WRONGPASS")


@case
def redis_has_each_value_once_although_the_server_is_killed_three_times(folder):
    each = int(25000 * FACTOR)
    with Redis(folder) as server:
        _, env = build_redis(folder)
        config = json.dumps(redis_config(server, batch=1000))
        command = [ADDER, "-t", "4", "-n", str(each), "-f", "-1", "-H", "db"]
        with subprocess.Popen(command, env={**env, "WEIR_CONFIG": config}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as app:
            for part in (1, 2, 3):
                wait_for(lambda: server.count() >= 4 * each * part // 5, f"{part} fifths to be stored", 600 * FACTOR)
                server.kill()
                server.start()
            output, errors = app.communicate(timeout=600 * FACTOR)
        assert app.returncode == 0, errors
        report = json.loads(output)
        assert_ledgers(report)
        stats = report["handlers"]["db"]
        assert stats["delivered"] == 4 * each and sum(stats["dropped"]) == 0, stats
        found = {f"t{k}": [] for k in range(4)}
        rows = server.read()
        for row in rows:
            found[row["name"]].append(int(row["value"]))
        assert all(sorted(values) == list(range(each)) for values in found.values()), {name: len(values) for name, values in found.items()}
        assert len({(row["origin"], row["sequence"]) for row in rows}) == 4 * each
        assert "retrying" in errors and "back after" in errors, errors


@case
def redis_ignores_a_batch_that_was_stored_before_the_reply_was_lost(folder):
    with Redis(folder) as server:
        _, env = build_redis(folder)
        with ScriptedApp(redis_config(server, timeout="500ms"), folder, WEIR_PLUGIN_PATH=env["WEIR_PLUGIN_PATH"]) as app:
            assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
            server.process.send_signal(signal.SIGSTOP)  # what is sent to it now it reads and executes later
            assert app.do("add", "v", 2)["code"] == 0
            wait_for(lambda: "no reply of the server" in app.stderr_text(), "the warning")
            server.process.send_signal(signal.SIGCONT)
            assert app.do("flush", -1)["code"] == 0
            assert app.do("ledger", "db")["delivered"] == 2
            app.end()
        rows = server.read()
        assert [row["value"] for row in rows] == ["1", "2"], rows
        stats = re.search(r"cmdstat_evalsha:calls=(\d+),.*failed_calls=(\d+)", server.do("INFO", "commandstats"))
        assert int(stats[1]) - int(stats[2]) == 3, stats[0]  # the script has run for the second value twice


@case
def redis_appends_what_is_new_in_whatever_order_the_values_of_an_origin_come(folder):
    """As when a process takes over a spool, and another one a journal of the same handler."""
    with open(os.path.join(SOURCE, "examples", "redis_handler", "store.lua"), encoding="ascii") as file:
        script = file.read()
    dice, known = random.Random(1), set()
    with Redis(folder) as server:
        for _ in range(500):
            first, count = dice.randrange(300), dice.randrange(1, 20)
            values = [word for i in range(count) for word in (0, 1, "g", "n", first + i, "")]
            repeats = server.do("EVAL", script, 2, "s", "ranges", first, "o", 10 ** 9, 60000, *values)
            numbers = set(range(first, first + count))
            assert repeats == len(numbers & known), (first, count, repeats)
            known |= numbers
            ranges = [tuple(map(int, text.split("-"))) for text in server.do("GET", "ranges").split()]
            assert {n for low, high in ranges for n in range(low, high)} == known, (ranges, known)
            assert all(before[1] < after[0] for before, after in zip(ranges, ranges[1:])), ranges
        rows = server.read("s")
        assert sorted(int(row["sequence"]) for row in rows) == sorted(known) and all(row["sequence"] == row["value"] for row in rows)
        for first in range(1000, 4000, 2):
            server.do("EVAL", script, 2, "s", "ranges", first, "o", 10 ** 9, 60000, 0, 1, "g", "n", 1, "")
        ranges = server.do("GET", "ranges").split()
        assert len(ranges) == 1000 and ranges[-1] == "3998-3999" and ranges[0] == "2000-2001", (len(ranges), ranges[0], ranges[-1])


@case
def redis_passes_vetting(folder):
    if SANITIZED:
        raise Skip("vet counts memory")
    with Redis(folder) as server:
        place, env = build_redis(folder)
        reader = os.path.join(folder, "reader.py")
        with open(reader, "w", encoding="ascii") as file:
            file.write("import json, sys\nfor id, fields in json.load(sys.stdin):\n    row = dict(zip(fields[::2], fields[1::2]))\n"
                       "    print(row['name'] + '=' + row['value'])\n")
        # the latest ones
        query = f"redis-cli -s {server.socket} -a {server.password} --no-auth-warning --json XREVRANGE weir + - COUNT 5000"
        done = run(env, WEIR, "vet", os.path.join(place, "redis_handler.so"), "--options", json.dumps(redis_options(server)), "--read",
                   f"{query} | python3 {reader}", timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr


# ---- MQTT -------------------------------------------------------------------------------------------------------


def build_mqtt(folder):
    return build(folder, "mqtt_source")


def mqtt_options(address, place, **options):
    return {"type": "mqtt_source", "plugin": os.path.join(place, "mqtt_source.source.so"), "broker": address, "topics": ["t/#"],
            "client_id": "weir", "group": "g", **options}


def start_mqtt(folder, source, handler=None, **settings):
    """Returns the program once it is subscribed."""
    program = Sourced(folder, source, handler, **settings)
    program.await_log("is subscribed")
    return program


def dead_handler(folder):
    """Its folder does not exist: what comes is kept in a queue for some thousand values."""
    return {"type": "file", "path": os.path.join(folder, "away", "out"), "format": "json", "queue": "64KiB", "retry_min": "5ms",
            "retry_max": "50ms", "block_timeout": "1h"}


def values_in(path):
    """Of lines that are complete: a killed program may leave a part of one."""
    with open(path, encoding="utf-8") as file:
        return [int(value) for value in re.findall(r'^\{.*"value":(\d+).*\}$', file.read(), re.MULTILINE)]


@source_case
def mqtt_names_values_by_their_topic(folder):
    with Mosquitto(folder) as broker:
        place, _ = build_mqtt(folder)
        broker.publish("t/old", [], "-r", "-m", "v=99")
        program = start_mqtt(folder, mqtt_options(broker.address, place, topics=["t/#", "u"]))
        broker.publish("t/a", ["v=1"])
        broker.publish("u", ["v=2"], qos=0)
        broker.publish("t/a/b", [], "-m", "v=3\nw=4")
        broker.publish("not", ["v=5"])
        program.await_stats(added=4)
        program.end()
        found = [(line["group"], line["labels"]["topic"], line["name"], line["value"]) for line in program.written()]
        assert found == [("g", "t/a", "v", 1), ("g", "u", "v", 2), ("g", "t/a/b", "v", 3), ("g", "t/a/b", "w", 4)], found
        broker.publish("/t/a", ["v=5"])  # kept for it: it was subscribed to "t/#", not to this
        os.remove(os.path.join(folder, "out"))
        program = start_mqtt(folder, mqtt_options(broker.address, place, topics=["/t/#"], topic="group"))
        broker.publish("/t/a", ["v=6"])
        program.await_stats(added=1)
        program.end()
        found = [(line["group"], line.get("labels"), line["value"]) for line in program.written()]
        assert found == [("t.a.g", None, 6)], found


@source_case
def mqtt_values_come_although_the_broker_is_killed_and_the_destination_is_dead(folder):
    each, path = 5000, os.path.join(folder, "away", "out")  # Mosquitto mixes up more than 65,535 messages of a client
    with Mosquitto(folder) as broker:
        place, _ = build_mqtt(folder)
        program = start_mqtt(folder, mqtt_options(broker.address, place), dead_handler(folder))
        for part in range(6):
            if part == 3:
                assert program.stats()["added"] < 3 * each, "it reads more than there is room for"
                os.mkdir(os.path.join(folder, "away"))
            broker.publish(f"t/{part}", [f"v={i}" for i in range(part * each, (part + 1) * each)])
            program.await_stats(added=1 if part < 3 else part * each)
            broker.save()
            broker.kill()
            broker.start()
        program.await_stats(added=6 * each)
        wait_for(lambda: set(values_in(path)) == set(range(6 * each)), "all values")
        counts = program.end()
        assert counts["added"] == len(values_in(path)) and counts["bad_lines"] == counts["refused"] == 0, counts


@source_case
def mqtt_values_come_although_the_program_is_killed(folder):
    """With a journal: what was acknowledged is in it."""
    count = 20000
    out = {"type": "file", "path": os.path.join(folder, "out"), "format": "json", "queue": "64KiB", "block_timeout": "1h"}
    with Mosquitto(folder) as broker:
        place, _ = build_mqtt(folder)
        settings = {"journal": os.path.join(folder, "journal")}
        program = start_mqtt(folder, mqtt_options(broker.address, place), out, **settings)
        for part in range(4):
            lines = [f"v={i}" for i in range(part * count // 4, (part + 1) * count // 4)]
            with ThreadPoolExecutor() as publisher:
                published = publisher.submit(broker.publish, "t", lines)
                program.await_stats(added=count // 50)
                program.program.kill()
                program.program.wait()
                published.result()
            program = Sourced(folder, mqtt_options(broker.address, place), out, **settings)
        wait_for(lambda: set(values_in(out["path"])) == set(range(count)), "all values")
        text, _ = program.program.communicate(timeout=300)
        report = json.loads(text.splitlines()[-1])
        assert_ledgers(report)
        stats = report["handlers"]["out"]
        assert stats["offered"] == report["sources"]["in"]["added"] and sum(stats["dropped"]) == 0, report
        assert stats["delivered"] == stats["offered"] + stats["recovered"], stats


@source_case
def mqtt_says_why_it_cannot_read(folder):
    with Mosquitto(folder) as broker:
        place, _ = build_mqtt(folder)
        broker.kill()
        program = Sourced(folder, mqtt_options(broker.address, place))
        program.await_log(r"connect 127\.0\.0\.1:\d+: Connection refused")
        broker.start()
        program.await_log("is subscribed")
        broker.publish("t/a", ["v=1"])
        program.await_stats(added=1)
        program.end()


@source_case
def mqtt_connects_to_a_path_and_a_name_and_says_why_it_is_refused(folder):
    passwords, path = os.path.join(folder, "passwords"), os.path.join(folder, "socket")
    place, _ = build_mqtt(folder)
    if not shutil.which("mosquitto_passwd"):
        raise Skip("mosquitto_passwd is not installed (Debian: mosquitto)")
    subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "hall", "right one"], check=True, capture_output=True)
    with Mosquitto(folder, "allow_anonymous false", f"password_file {passwords}", f"listener 0 {path}") as broker:
        for login in ({}, {"user": "hall", "password": "wrong one"}, {"password": "right one"}):
            program = Sourced(folder, mqtt_options(broker.address, place, **login))
            program.await_log("the broker refuses the connection: (user or password|not authorized)")
            program.end()
        for count, address in enumerate((broker.address, f"unix:{path}", f"tcp://localhost:{broker.port}"), 1):
            program = start_mqtt(folder, mqtt_options(address, place, user="hall", password="right one"))
            broker.publish("t/a", [], "-u", "hall", "-P", "right one", "-m", f"v={count}")
            program.await_stats(added=1)
            program.end()
            assert program.values()[-1] == ("v", count) and "right one" not in program.log(), program.log()
    with Mosquitto(folder, "allow_anonymous true", "max_qos 0") as broker:
        program = Sourced(folder, mqtt_options(broker.address, place))
        program.await_log("the broker does not grant QoS 1: t/#")
        program.end()


@source_case
def mqtt_takes_a_message_that_is_larger_than_any_buffer(folder):
    count, path = 150000, os.path.join(folder, "message")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(f"v={i}" for i in range(count)))
    assert os.path.getsize(path) > 2 ** 20
    with Mosquitto(folder) as broker:
        place, _ = build_mqtt(folder)
        program = start_mqtt(folder, mqtt_options(broker.address, place))
        broker.publish("t/a", [], "-f", path)
        program.await_stats(added=count)
        counts = program.end()
        assert counts["added"] == counts["lines"] == count, counts
        assert [value for _, value in program.values()] == list(range(count))


@source_case
def mqtt_gets_a_message_again_that_a_stop_has_interrupted(folder):
    count = 30000
    with Mosquitto(folder) as broker:
        place, _ = build_mqtt(folder)
        program = start_mqtt(folder, mqtt_options(broker.address, place), dead_handler(folder))
        broker.publish("t/a", [f"v={i}" for i in range(count)], "-s")
        program.await_stats(added=1)
        program.stop()
        wait_for(lambda: "Client weir disconnected" in broker.read_log(), "the end of the connection")
        os.mkdir(os.path.join(folder, "away"))
        counts = program.end()
        assert 0 < counts["added"] < count and counts["bad_lines"] == counts["refused"] == 0, counts
        program = start_mqtt(folder, mqtt_options(broker.address, place), dead_handler(folder))
        program.await_stats(added=count)
        program.end()
        program = start_mqtt(folder, mqtt_options(broker.address, place), dead_handler(folder))
        broker.publish("t/a", ["v=0"])
        program.await_stats(added=1)
        assert program.end()["added"] == 1, "it was acknowledged, and came again"
        assert set(values_in(os.path.join(folder, "away", "out"))) == set(range(count))


# A broker that is a script.
WELCOME, GRANTED = b"\x20\2\0\0", b"\x90\3\0\1\1"
MESSAGE = b"\x32\x0e\0\3t/a\0\7v=1\nv=2"  # QoS 1, number 7


def mqtt_read(connection):
    """Returns a packet: its first byte, and its body."""
    first, length, shift, body = connection.recv(1, socket.MSG_WAITALL), 0, 0, b""
    more = 128
    while more & 128:
        more = connection.recv(1, socket.MSG_WAITALL)[0]
        length |= (more & 127) << shift
        shift += 7
    while len(body) < length:
        part = connection.recv(length - len(body))
        assert part, "it has closed the connection"
        body += part
    return first[0], body


def mqtt_accept(listener, *texts):
    """Lets a client in that sends these texts in its CONNECT, and subscribes it, byte by byte."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    flags = (0, 0x80, 0xc0)[len(texts) - 1]
    given = b"".join(len(text).to_bytes(2, "big") + text for text in texts)
    assert mqtt_read(connection) == (0x10, b"\0\4MQTT\4" + bytes([flags]) + b"\0\0" + given)
    mqtt_send(connection, WELCOME)
    assert mqtt_read(connection) == (0x82, b"\0\1\0\3t/#\1")
    mqtt_send(connection, GRANTED)
    return connection


def mqtt_send(connection, packet):
    for byte in packet:
        connection.sendall(bytes([byte]))


def mqtt_listen():
    """Returns the broker's socket and address. It has room for little that is not read."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener, f"tcp://127.0.0.1:{listener.getsockname()[1]}"


@source_case
def mqtt_parses_a_message_while_it_comes_and_acknowledges_it_when_it_is_taken(folder):
    place, _ = build_mqtt(folder)
    listener, address = mqtt_listen()
    with listener:
        program = Sourced(folder, mqtt_options(address, place))
        with mqtt_accept(listener, b"weir") as connection:
            mqtt_send(connection, MESSAGE[:-1])
            program.await_stats(added=1)
            assert not select.select([connection], [], [], 0)[0], connection.recv(100)
            mqtt_send(connection, MESSAGE[-1:])
            assert mqtt_read(connection) == (0x40, b"\0\7")
            mqtt_send(connection, MESSAGE[:-1])
            program.await_stats(added=3)
        with mqtt_accept(listener, b"weir") as connection:  # the connection was lost: the message comes again
            mqtt_send(connection, b"\x3a" + MESSAGE[1:])
            assert mqtt_read(connection) == (0x40, b"\0\7")
            mqtt_send(connection, b"\x33" + MESSAGE[1:])  # a retained one
            assert mqtt_read(connection) == (0x40, b"\0\7")
            mqtt_send(connection, MESSAGE[:-1])
            program.await_stats(added=6)
            program.stop()
            assert mqtt_read(connection) == (0xe0, b"") and not connection.recv(1)
        counts = program.end()
        assert counts["added"] == 6 and counts["bad_lines"] == counts["refused"] == 0, counts


@source_case
def mqtt_sends_texts_of_any_length_that_is_allowed(folder):
    place, _ = build_mqtt(folder)
    listener, address = mqtt_listen()
    with listener:
        texts = {"client_id": "x" * 65535, "user": "y" * 65535, "password": "z" * 65535}
        program = Sourced(folder, mqtt_options(address, place, **texts))
        with mqtt_accept(listener, *(text.encode() for text in texts.values())) as connection:
            program.await_log("is subscribed")
            mqtt_send(connection, b"\x30\x0a\0\3t/av=1\nv")
            program.await_stats(added=1)
        program.await_stats(bad_lines=1)  # QoS 0: it does not come again
        program.end()
        program = Sourced(folder, mqtt_options(address, place, client_id="x" * 65536))
        program.await_log("a topic, client_id, user or password is longer than 65,535 bytes")
        program.end()


NOT_ALLOWED = (
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not one of MQTT 3.1.1"), (b"\x20\3\0\0\0", "not one of MQTT 3.1.1"), (MESSAGE, "not one of MQTT 3.1.1"),
    (b"\x20\2\0\1", "refuses the connection: protocol version"), (b"\x20\2\0\5", "refuses the connection: not authorized"),
    (b"\x20\2\0\6", "refuses the connection: unknown reason"), (WELCOME + WELCOME, "a packet that is not expected"),
    (WELCOME + b"\x90\3\0\1\x80", "does not grant QoS 1: t/#"), (WELCOME + b"\x90\3\0\1\0", "does not grant QoS 1: t/#"),
    (WELCOME + b"\x90\2\0\1", "length does not fit"), (WELCOME + b"\x90\4\0\1\1\1", "length does not fit"),
    (WELCOME + GRANTED + GRANTED, "a packet that is not expected"), (WELCOME + b"\x34" + MESSAGE[1:], "a packet that is not expected"),
    (WELCOME + b"\x36" + MESSAGE[1:], "a packet that is not expected"), (WELCOME + b"\0\0", "a packet that is not expected"),
    (WELCOME + b"\xd0\1\0", "length does not fit"), (WELCOME + b"\x30\0", "length does not fit"), (WELCOME + b"\x30\1\0", "length does not fit"),
    (WELCOME + b"\x30\4\0\xfft/", "length does not fit"), (WELCOME + b"\x30\4\xff\xfft/", "length does not fit"),
    (WELCOME + b"\x32\4\0\1t\0", "length does not fit"), (WELCOME + b"\x30\xff\xff\xff\xff\1", "length does not fit"),
)


@source_case
def mqtt_ends_a_connection_with_a_packet_that_is_not_allowed(folder):
    place, _ = build_mqtt(folder)
    for sent, reason in NOT_ALLOWED:
        listener, address = mqtt_listen()
        with listener:
            program = Sourced(folder, mqtt_options(address, place))
            with listener.accept()[0] as connection:
                connection.sendall(sent)
                program.await_log(reason)
        counts = program.end()
        assert counts["added"] == counts["bad_lines"] == counts["refused"] == 0, (sent, counts)


@case
def mqtt_passes_vetting(folder):
    if SANITIZED:
        raise Skip("vet counts memory")
    with Mosquitto(folder) as broker:
        place, env = build_mqtt(folder)
        options = {key: value for key, value in mqtt_options(broker.address, place).items() if key not in ("type", "plugin", "group")}
        publish = f"printf 'v=1\\nv=2\\nv=3\\n' | mosquitto_pub -h 127.0.0.1 -p {broker.port} -q 1 -t t/x -l"
        done = run(env, WEIR, "vet", "--strict", os.path.join(place, "mqtt_source.source.so"), "--options", json.dumps(options), "--write",
                   publish, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr


main()
