"""The sqlite handler with real databases: killed programs, locks, full disks, damage, other writers, forks."""

import contextlib
import json
import os
import select
import signal
import sqlite3
import subprocess
import time

from fifos import ScriptedApp
from harness import ADDER, BUILD, PLUGINS, SOURCE, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, environment, main, run, without_waits, \
    skip_fork_under_sanitizers, start, wait_for
from markdown import Text

REPORTER = os.path.join(BUILD, "tests", "support", "reporter")
SANITIZED = bool(os.environ.get("WEIR_TEST_SANITIZED"))
FAILED = 3


def config_of(path, labels=None, shutdown="10s", **options):
    handler = {"type": "sqlite", "path": path, "retry_min": "5ms", "retry_max": "20ms", **options}
    return {"settings": {"labels": labels or {}, "shutdown_timeout": shutdown}, "handlers": {"db": handler}, "groups": {"*": "db"}}


def query_all(path, query, *arguments):
    with contextlib.closing(sqlite3.connect(path, timeout=240)) as db:
        return db.execute(query, arguments).fetchall()


def values_of(path, name="v"):
    return [value for value, in query_all(path, "SELECT value FROM samples JOIN series ON id = series WHERE name = ? ORDER BY samples.rowid", name)]


def assert_sound(path):
    assert query_all(path, "PRAGMA integrity_check") == [("ok",)] and query_all(path, "PRAGMA foreign_key_check") == []


def text_of(time_ns):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time_ns // 10**9)) + f".{time_ns % 10**9:09d}"


def ledger_of(app):
    stats = app.do("ledger", "db")
    assert_handler_ledger(stats)
    return stats


# ---- What is in the database ------------------------------------------------------------------------------------


@case
def values_are_stored_with_series_labels_time_and_metadata(folder):
    path = os.path.join(folder, "m.db")
    config = config_of(path, labels={"host": 'a"b', "route": "hidden"})
    for _ in range(2):  # two processes, which use the same series
        done = run(WEIR, "emit", "-g", "my_app", "-l", "route=/x\\", "latency=49.5", "n=3", WEIR_CONFIG=config)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    assert query_all(path, "SELECT group_name, name, cumulative FROM series ORDER BY id") == [("my_app", "latency", 0), ("my_app", "n", 0)]
    text = query_all(path, "SELECT DISTINCT labels FROM series")
    assert len(text) == 1 and list(json.loads(text[0][0]).items()) == [("host", 'a"b'), ("route", "/x\\")], text
    view_rows = query_all(path, 'SELECT time, name, value FROM "values"')
    stored = query_all(path, "SELECT time_ns, name, value FROM samples JOIN series ON id = series")
    assert sorted(row[1:] for row in view_rows) == [("latency", 49.5)] * 2 + [("n", 3)] * 2, view_rows
    assert all(abs(time_ns - time.time_ns()) < 3600 * 10**9 for time_ns, _, _ in stored), stored
    assert sorted((text_of(time_ns), *row) for time_ns, *row in stored) == sorted(view_rows), (stored, view_rows)
    assert_sound(path)


@case
def integers_doubles_and_metadata_keep_their_types(folder):
    path = os.path.join(folder, "m.db")
    assert run(REPORTER, "db", 2**53, 2, WEIR_CONFIG=config_of(path, prefix="weir_")).returncode == 0
    app = ScriptedApp(config_of(path, prefix="weir_"), folder)
    for words in (("add", "x", 5), ("add", "x", "nan"), ("note", 10)):
        assert app.do(*words)["code"] == 0
    app.end()
    rows = query_all(path, "SELECT value, typeof(value), metadata FROM weir_samples ORDER BY rowid")
    assert rows == [(2**53, "integer", None), (2**53 + 1, "integer", None), (5.0, "real", None), (None, "null", None),
                    (1.0, "real", "x" * 10)], rows


@case
def labels_of_a_new_configuration_make_new_series(folder):
    path, file = os.path.join(folder, "m.db"), os.path.join(folder, "new.json")
    app = ScriptedApp("", folder)
    for number in ("1", "2", "1"):
        with open(file, "w", encoding="utf-8") as out:
            json.dump(config_of(path, labels={"run": number}), out)
        assert app.do("configure", file)["code"] == 0
        assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
    assert ledger_of(app)["delivered"] == 3
    app.end()
    rows = query_all(path, "SELECT labels, count(*) FROM samples JOIN series ON id = series GROUP BY id ORDER BY id")
    assert rows == [('{"run":"1"}', 2), ('{"run":"2"}', 1)], rows


@case
def the_queries_of_the_readme_work(folder):
    path = os.path.join(folder, "m.db")
    done = run(WEIR, "emit", "-g", "my_app", "-l", "route=/x", "latency=49.5", WEIR_CONFIG=config_of(path))
    assert done.returncode == 0, done.stderr
    queries = Text(os.path.join(SOURCE, "plugins", "sqlite", "README.md")).snippets("sql")
    assert len(queries) == 5, queries
    for query in queries:
        rows = query_all(path, query)
        assert rows if query.startswith("SELECT") else rows == [], query
    assert values_of(path, "latency") == [49.5]


# ---- Killed ------------------------------------------------------------------------------------------------------


def last_report(text):
    """The number of delivered values in the last complete line."""
    lines = text.split(b"\n")[:-1]
    return int(lines[-1]) if lines else 0


def run_until(path, begin, end, goal):
    """Runs a program that adds the values from begin to end and kills it once it has reported `goal`. Returns its last report."""
    program = subprocess.Popen([REPORTER, "db", str(begin), str(end - begin)], env=environment(WEIR_CONFIG=config_of(path, block_timeout="1h")),
                               stdout=subprocess.PIPE)
    log = b""
    while goal is None or last_report(log) < goal:
        assert select.select([program.stdout], [], [], 120)[0], "no report"
        more = os.read(program.stdout.fileno(), 1 << 16)
        if not more:
            break
        log += more
    if goal is not None:
        program.send_signal(signal.SIGKILL)
    log += program.stdout.read()
    program.stdout.close()
    program.wait(120)
    return last_report(log)


@case
def a_million_values_survive_kills_and_delivered_values_are_there(folder):
    path, total, begin = os.path.join(folder, "m.db"), 100000 if SANITIZED else 1000000, 0
    for part in (1, 3, 2, 4):
        reported = run_until(path, begin, total, total // 20 * part)
        count, largest = query_all(path, "SELECT count(*), max(value) FROM samples")[0]
        assert count == largest + 1 >= begin + reported > begin, (count, largest, begin, reported)
        assert_sound(path)
        begin = count
    reported = run_until(path, begin, total, None)
    assert reported == total - begin, (reported, begin)
    assert query_all(path, "SELECT count(*), count(DISTINCT value), min(value), max(value) FROM samples") == [(total, total, 0, total - 1)]
    assert_sound(path)


# ---- Errors ------------------------------------------------------------------------------------------------------


@case
def a_locked_database_is_waited_for_and_nothing_is_lost(folder):
    path = os.path.join(folder, "m.db")
    app = ScriptedApp(config_of(path, busy_timeout="10ms"), folder)
    assert app.do("add", "v", 0)["code"] == 0 and app.do("flush", -1)["code"] == 0
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert app.do("add", "v", 1)["code"] == 0
        wait_for(lambda: f"write {path}: database is locked" in app.stderr_text(), "the warning")
        assert ledger_of(app)["queued"] == 1
        other.execute("COMMIT")
    assert app.do("flush", -1)["code"] == 0 and ledger_of(app)["delivered"] == 2
    app.end()
    assert values_of(path) == [0, 1]


@case
def a_program_ends_in_time_although_its_database_is_locked(folder):
    path = os.path.join(folder, "m.db")
    assert run(REPORTER, "db", 0, 1, WEIR_CONFIG=config_of(path)).returncode == 0
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = run(ADDER, "-n", 10, "-f", 0, "-H", "db", WEIR_CONFIG=config_of(path, shutdown="100ms", busy_timeout="1m"))
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"]["db"]["delivered"] == 0 and "10 dropped" in done.stderr, done.stderr
    assert values_of(path) == [0]


FULL_DISK = r"""
mount -t tmpfs -o size=256k tmpfs "$1/disk"
"$2" -n 20000 -f 5000 -H db
cp "$1"/disk/m.db* "$1"
"""


@case
def a_full_disk_is_logged_and_leaves_complete_batches(folder):
    os.mkdir(os.path.join(folder, "disk"))
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        raise Skip("not allowed to mount a tmpfs")
    path = os.path.join(folder, "disk", "m.db")
    config = config_of(path, shutdown="100ms", batch=500, queue="8MiB")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", FULL_DISK, "sh", folder, ADDER], env=environment(WEIR_CONFIG=config),
                          capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert_ledgers(report)
    stats = report["handlers"]["db"]
    assert "database or disk is full" in done.stderr and stats["retries"] > 0, done.stderr
    copy = os.path.join(folder, "m.db")
    assert_sound(copy)
    assert values_of(copy, "t0") == list(range(stats["delivered"])) and 0 < stats["delivered"] < 20000, stats


@case
def a_file_that_is_not_a_database_is_logged_and_not_changed(folder):
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="utf-8") as file:
        file.write("this is not a database, and it is longer than the head of one\n" * 100)
    before = os.stat(text)
    done = run(ADDER, "-n", 5, "-f", -1, "-H", "db", WEIR_CONFIG=config_of(text))
    assert f"db: open {text}: file is not a database" in done.stderr, done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"]["db"]["dropped"][FAILED] == 5, report
    assert (os.stat(text).st_mtime_ns, os.stat(text).st_size) == (before.st_mtime_ns, before.st_size)


@case
def foreign_tables_and_missing_folders_are_logged(folder):
    other = os.path.join(folder, "other.db")
    query_all(other, "CREATE TABLE series (title TEXT)")
    done = run(ADDER, "-n", 5, "-f", -1, "-H", "db", WEIR_CONFIG=config_of(other))
    assert f"db: open {other}: " in done.stderr and "no column named" in done.stderr, done.stderr
    assert query_all(other, "SELECT name FROM pragma_table_info('series')") == [("title",)]
    assert run(ADDER, "-n", 5, "-f", -1, "-H", "db", WEIR_CONFIG=config_of(other, prefix="weir_")).returncode == 0
    assert query_all(other, "SELECT count(*) FROM weir_samples") == [(5,)]
    missing = os.path.join(folder, "missing", "m.db")
    done = run(ADDER, "-n", 5, "-q", WEIR_CONFIG=config_of(missing, shutdown="3s"))
    assert f"open {missing}: unable to open database file" in done.stderr, done.stderr
    done = run(WEIR, "emit", "-g", "g", "x=1", WEIR_CONFIG=config_of(other, prefix="a b"))
    assert 'handlers.db.prefix: "a b" is not a valid prefix; allowed: ' in done.stderr, done.stderr


@case
def a_moved_database_is_created_again(folder):
    path = os.path.join(folder, "m.db")
    app = ScriptedApp(config_of(path), folder)
    assert app.do("add", "v", 0)["code"] == 0 and app.do("flush", -1)["code"] == 0
    for suffix in ("", "-wal", "-shm"):
        os.rename(path + suffix, os.path.join(folder, "moved.db" + suffix))
    assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
    assert ledger_of(app)["delivered"] == 2
    app.end()
    assert values_of(path) == [1] and values_of(os.path.join(folder, "moved.db")) == [0]


@case
def several_processes_write_to_one_database(folder):
    path, count = os.path.join(folder, "m.db"), 3
    programs = [start(ADDER, "-g", f"g{i}", "-n", 3000, "-f", -1, "-H", "db", WEIR_CONFIG=config_of(path, batch=100)) for i in range(count)]
    for program in programs:
        out, err = program.communicate(timeout=240)
        assert program.returncode == 0, err
        assert_ledgers(json.loads(out))
        assert json.loads(out)["handlers"]["db"]["delivered"] == 3000
    for i in range(count):
        rows = query_all(path, "SELECT value FROM samples JOIN series ON id = series WHERE group_name = ? ORDER BY samples.rowid", f"g{i}")
        assert [value for value, in rows] == list(range(3000)), i
    assert_sound(path)


# ---- Forks -------------------------------------------------------------------------------------------------------


@case
def a_forked_child_does_not_open_its_parents_database_and_logs_this(folder):
    skip_fork_under_sanitizers()
    path = os.path.join(folder, "m.db")
    app = ScriptedApp(config_of(path), folder)
    assert app.do("add", "v", 0)["code"] == 0 and app.do("flush", -1)["code"] == 0
    assert app.do("fork", "of_child")["code"] > 0 and app.do("reap")["code"] == 0
    log = app.stderr_text()
    assert f"db: open {path}: the parent process has it open" in log and "${PID}" in log, log
    assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
    assert ledger_of(app)["delivered"] == 2
    app.end()
    assert values_of(path) == [0, 1] and values_of(path, "of_child") == []
    assert_sound(path)


@case
def a_program_that_closes_all_descriptors_keeps_its_own_files(folder):
    path, strangers = os.path.join(folder, "m.db"), os.path.join(folder, "strangers")
    done = run(os.path.join(BUILD, "tests", "support", "closer"), strangers, WEIR_CONFIG=config_of(path), WEIR_LOG="info")
    assert f"db: {path}: the program has closed all descriptors" in done.stderr, done.stderr
    assert 'handler "db": 2 offered, 1 delivered, 1 dropped (1 failed), 0 queued, 0 spooled' in done.stderr, done.stderr
    assert os.path.getsize(strangers) == 0
    assert values_of(path, "before") == [1] and values_of(path, "after") == []
    assert_sound(path)


@case
def with_the_process_id_in_the_path_each_child_has_its_own_database(folder):
    skip_fork_under_sanitizers()
    app = ScriptedApp(config_of(os.path.join(folder, "m.${PID}.db")), folder)
    assert app.do("add", "v", 0)["code"] == 0 and app.do("flush", -1)["code"] == 0
    child = app.do("fork", "of_child")["code"]
    assert app.do("reap")["code"] == 0
    assert ledger_of(app)["delivered"] == 1
    parent = app.program.pid
    app.end()
    assert without_waits(app.stderr_text()) == ""
    assert values_of(os.path.join(folder, f"m.{parent}.db")) == [0] and values_of(os.path.join(folder, f"m.{child}.db"), "of_child") == [1]


@case
def the_handler_passes_vetting(folder):
    if SANITIZED:
        raise Skip("vet counts memory")
    done = run(WEIR, "vet", os.path.join(PLUGINS, "sqlite.so"), "--options", json.dumps({"path": os.path.join(folder, "m.db")}), "--deadline", "5m", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


main()
