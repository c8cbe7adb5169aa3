"""The handlers in examples/ are built by their own Makefiles against an installed weir, and used."""

import atexit
import contextlib
import csv
import json
import os
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import tempfile

import certificates
from fifos import ScriptedApp
from installed import environment_of, install, pkg_config
from harness import ADDER, SANITIZED, SOURCE, WEIR, Skip, assert_ledgers, case, main, wait_for, without_waits
from peers import PostgreSQL

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
    assert folders >= {"stdout_handler", "syslog_handler", "sqlite_handler", "postgres_handler", "cxx_handler"}, folders


# ---- Plugin, registered, static ---------------------------------------------------------------------------------

PRINTED = r"\[\d{10}\]\[my_app\]: latency=12\.5\n\[\d{10}\]\[my_app\]: requests=3\n"


@case
def one_handler_source_works_as_a_plugin_registered_and_linked_statically(folder):
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


main()
