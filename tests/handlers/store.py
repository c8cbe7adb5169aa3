"""The handler store: what was added is in the tail or in chunks, once, whatever happens to the process, the disk and the file."""

import contextlib
import json
import math
import os
import signal
import sqlite3
import struct
import subprocess
import time

from fifos import ScriptedApp
from harness import (ADDER, BUILD, PLUGINS, SANITIZED, WEIR, Skip, assert_ledgers, case, environment, main, run, skip_fork_under_sanitizers,
                     start, wait_for, without_waits)

VERSION = 3


def config_of(path, settings=None, **options):
    handler = {"type": "store", "path": path, "retry_min": "5ms", "retry_max": "20ms", "block_timeout": "1h", **options}
    return {"settings": {"shutdown_timeout": "5m", **(settings or {})}, "handlers": {"db": handler}, "groups": {"*": "db"}}


def query(path, text, *arguments):
    with contextlib.closing(sqlite3.connect(path, timeout=240)) as db:
        return db.execute(text, arguments).fetchall()


def execute(path, text):
    with contextlib.closing(sqlite3.connect(path, timeout=240)) as db:
        db.executescript(text)


class Reader:
    """The packed form, as chunk.h describes it."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        number, shift = 0, 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return number

    def points(self):
        assert self.byte() == 1
        are_ints, count, unit = self.byte(), self.varint(), self.varint()
        times = [struct.unpack_from("<q", self.data, self.at)[0]]
        self.at += 8
        for _ in range(count - 1):
            times.append(times[-1] + self.varint() * unit)
        values, before = [], 0
        for _ in range(count):
            if are_ints:
                zigzag = self.varint()
                before += zigzag >> 1 ^ -(zigzag & 1)
                values.append(before)
                continue
            zeros = self.byte()
            for byte in range(zeros >> 4, 8 - (zeros & 15)) if zeros != 0x80 else ():
                before ^= self.byte() << 56 - 8 * byte
            values.append(struct.unpack("<d", struct.pack("<Q", before))[0])
        assert self.at == len(self.data)
        return list(zip(times, values))


def stored(path):
    """{(group, name, labels): [(time, value), ...]} in order; checks what chunks say of their values."""
    names = {row[0]: row[1:] for row in query(path, "SELECT id, group_name, name, labels FROM series")}
    found = {name: [] for name in names.values()}
    for series, first, last, count, finite, total, least, most, blob in query(
            path, "SELECT series, first_ns, last_ns, count, finite, sum, min, max, points FROM chunks ORDER BY series, first_ns, id"):
        points = Reader(blob).points()
        values = [float(value) for _, value in points if math.isfinite(value)]
        assert (first, last, count, finite) == (points[0][0], points[-1][0], len(points), len(values))
        assert not values or (least, most) == (min(values), max(values)) and math.isclose(total, math.fsum(values), abs_tol=1e-6)
        assert all(one[0] <= other[0] for one, other in zip(points, points[1:])), "in order of time"
        found[names[series]] += points
    for series, time_ns, value in query(path, "SELECT series, time_ns, value FROM tail ORDER BY id"):
        found[names[series]].append((time_ns, math.nan if value is None else value))
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
    return found


def numbers(path, name):
    return [value for key, points in stored(path).items() if key[1] == name for _, value in points]


def add(config, count, *more):
    done = run(ADDER, "-n", count, "-f", -1, "-H", "db", *more, WEIR_CONFIG=config, timeout=1800)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]["db"]


def emit_logged(folder, lines, config):
    """Returns what is logged."""
    path = os.path.join(folder, "in")
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
    with open(path, "rb") as file:
        done = run(WEIR, "emit", "-g", "g", "-", stdin=file, WEIR_CONFIG=config)
    assert done.returncode == 0, done.stderr
    return done.stderr


def emit(folder, lines, config):
    log = emit_logged(folder, lines, config)
    assert without_waits(log) == "", log


@case
def values_are_packed_and_keep_their_order_and_types(folder):
    path = os.path.join(folder, "m.db")
    db = add(config_of(path, tail=1000, batch=100), 10500, "-t", 2)
    assert db["delivered"] == 21000, db
    tail = query(path, "SELECT count(*) FROM tail")[0][0]
    assert tail < 1100, tail
    for name in ("t0", "t1"):
        assert numbers(path, name) == list(range(10500))


@case
def series_have_labels_units_instruments_and_notes(folder):
    path = os.path.join(folder, "m.db")
    config = config_of(path, {"labels": {"host": 'a"b'}}, tail=4, keep="0s")
    config["metrics"] = {"g": {"c": {"instrument": "counter", "unit": "By", "help": "bytes"}}}
    lines = [{"group": "g", "name": "c", "value": 2, "timestamp": 1700000000.5}, {"group": "g", "name": "x", "value": 9007199254740993},
             {"group": "g", "name": "x", "value": 0.5, "labels": {"k": "\u00fc"}, "metadata": "a note"}, {"group": "g", "name": "x", "value": -3}]
    emit(folder, lines, config)
    rows = query(path, "SELECT group_name, name, labels, cumulative, unit, help FROM series ORDER BY id")
    assert rows == [("g", "c", '{"host":"a\\"b"}', 0, "By", "bytes"), ("g", "x", '{"host":"a\\"b"}', 0, None, None),
                    ("g", "x", '{"host":"a\\"b","k":"\u00fc"}', 0, None, None)], rows
    kinds = query(path, "SELECT instrument FROM series ORDER BY id")
    assert kinds[0] != kinds[1] == kinds[2], kinds
    found = stored(path)
    assert found[rows[0][:3]] == [(1700000000500000000, 2)], found
    assert [value for _, value in found[rows[1][:3]]] == [9007199254740993, -3], "not rounded"
    assert query(path, "SELECT text FROM notes") == [("a note",)]


@case
def strange_numbers_are_stored(folder):
    path = os.path.join(folder, "m.db")
    app = ScriptedApp(config_of(path, tail=3), folder)
    for number in ("nan", "inf", "-inf", "-0.0", "5e-324", "1.7976931348623157e308", "1"):
        assert app.do("add", "x", number)["code"] == 0
        assert app.do("flush", -1)["code"] == 0
    app.end()
    values = numbers(path, "x")
    assert math.isnan(values[0]) and values[1:] == [math.inf, -math.inf, 0.0, 5e-324, 1.7976931348623157e308, 1], values
    assert math.copysign(1, values[3]) == -1


@case
def a_program_that_is_killed_loses_and_repeats_nothing(folder):
    path, journal = os.path.join(folder, "m.db"), os.path.join(folder, "journal")
    config = config_of(path, {"journal": journal}, tail=5000, batch=700)
    total = 0
    for kill in range(4):
        program = subprocess.Popen([ADDER, "-n", "2000000", "-g", f"g{kill}", "-f", "-1", "-H", "db"], stdout=subprocess.DEVNULL,
                                   env=environment(WEIR_CONFIG=config))
        wait_for(lambda: os.path.exists(path) and query(path, "SELECT count(*) FROM sqlite_schema")[0][0] > 5  # pylint: disable=cell-var-from-loop
                 and query(path, "SELECT ifnull(sum(next), 0) FROM origins")[0][0] > total + 20000
                 and query(path, "SELECT count(*) FROM series WHERE group_name = ?", f"g{kill}")[0][0], "values")
        program.send_signal(signal.SIGKILL)
        program.wait()
        total = query(path, "SELECT sum(next) FROM origins")[0][0]
    db = add(config, 1, "-g", "last")
    assert db["delivered"] == db["recovered"] + 1, db
    for kill in range(4):
        values = [value for key, points in stored(path).items() if key[0] == f"g{kill}" for _, value in points]
        assert values == list(range(len(values))) and len(values) > 0, (kill, len(values), len(set(values)))


@case
def what_was_stored_and_not_acknowledged_is_not_stored_again(folder):
    path = os.path.join(folder, "m.db")
    app = ScriptedApp(config_of(path, {"journal": os.path.join(folder, "journal")}), folder)
    for number in range(5):
        assert app.do("add", "x", number)["code"] == 0
    assert app.do("flush", -1)["code"] == 0
    origin, after = query(path, "SELECT origin, next FROM origins")[0]
    assert (len(origin), after) == (32, 5)
    execute(path, "UPDATE origins SET next = next + 3")  # as if the next three had been stored, and the process had not learned of it
    for number in range(5, 10):
        assert app.do("add", "x", number)["code"] == 0
    assert app.do("flush", -1)["code"] == 0
    db = app.do("ledger", "db")
    app.end()
    assert numbers(path, "x") == [0, 1, 2, 3, 4, 8, 9]
    assert db["delivered"] == 10, db


@case
def a_full_disk_loses_nothing(folder):
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], check=False).returncode:
        raise Skip("needs root and a tmpfs")
    try:
        path = os.path.join(disk, "m.db")
        sender = start(ADDER, "-n", 200000, "-f", -1, "-H", "db", WEIR_CONFIG=config_of(path, tail=20000, queue="64KiB"))
        big = os.path.join(disk, "big")
        wait_for(lambda: os.path.exists(path), "the file")
        with contextlib.suppress(OSError), open(big, "wb") as file:
            while True:
                file.write(b"x" * 4096)
                file.flush()
        time.sleep(0.5)
        os.remove(big)
        subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
        out, log = sender.communicate(timeout=600)
        assert sender.returncode == 0, log
        assert_ledgers(json.loads(out))
        assert numbers(path, "t0") == list(range(200000))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@case
def files_that_are_no_store_are_refused_and_stay_as_they_are(folder):
    foreign, earlier, later, text = (os.path.join(folder, name) for name in ("foreign.db", "earlier.db", "later.db", "text.db"))
    execute(foreign, "CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    for path, version in ((earlier, VERSION - 1), (later, VERSION + 1)):
        add(config_of(path), 1)
        execute(path, f"PRAGMA user_version = {version}")
    with open(text, "w", encoding="ascii") as file:
        file.write("this is not a database, although it is long enough to have a header of one" * 20)
    for path, problem in ((foreign, "not one of the handler store"), (earlier, f"it has version {VERSION - 1}; this weir knows version {VERSION}"),
                          (later, f"it has version {VERSION + 1}; this weir knows version {VERSION}"),
                          (text, "file is not a database")):
        with open(path, "rb") as file:
            before = file.read()
        done = run(WEIR, "emit", "-g", "g", "a=1", WEIR_CONFIG=config_of(path))
        assert done.returncode != 0 and problem in done.stderr, done.stderr
        with open(path, "rb") as file:
            assert file.read() == before, path


@case
def what_is_too_old_and_too_much_is_deleted(folder):
    path = os.path.join(folder, "m.db")
    lines = [{"group": "g", "name": name, "value": i, "timestamp": when} for name, when in (("x", 1000), ("y", time.time())) for i in range(50)]
    emit(folder, lines[:50], config_of(path, tail=50, keep="0s"))
    assert query(path, "SELECT sum(count) FROM chunks") == [(49,)], "the latest one stays in the tail"
    assert query(path, "SELECT min(id), max(id) FROM tail") == [(50, 50)], "with its id"
    emit(folder, lines[50:], config_of(path, tail=50, keep="1h"))
    assert numbers(path, "x") == [] and numbers(path, "y") == list(range(50))
    assert all(point[0] > 10**18 for points in stored(path).values() for point in points)
    small = os.path.join(folder, "small.db")
    db = add(config_of(small, tail=10000, batch=10000, size_limit="1MiB"), 2000000)
    assert db["delivered"] == 2000000, db
    values = numbers(small, "t0")
    assert values == list(range(int(values[0]), 2000000)) and values[0] > 0, (values[:1], len(values))
    assert query(small, "SELECT sum(length(points)) FROM chunks")[0][0] < 1 << 20


@case
def the_notes_of_what_is_deleted_go_with_it(folder):
    path, text = os.path.join(folder, "m.db"), "n" * 150
    lines = [{"group": "g", "name": "x", "value": i, "metadata": text, "timestamp": 1700000000 + i} for i in range(24000)]
    assert "values were deleted" in emit_logged(folder, lines, config_of(path, tail=1000, batch=200, keep="0s", size_limit="1MiB"))
    values = numbers(path, "x")
    assert values == list(range(int(values[0]), 24000)) and 1000 < len(values) < 24000, (values[:1], len(values))
    assert query(path, "SELECT min(time_ns), count(*) FROM notes") == [((1700000000 + int(values[0])) * 10**9, len(values))]


@case
def values_are_kept_if_another_table_is_too_large(folder):
    path = os.path.join(folder, "m.db")
    config = config_of(path, tail=50, keep="0s", size_limit="1MiB")
    lines = [{"group": "g", "name": "x", "value": i, "timestamp": 1000 + i} for i in range(200)]
    emit(folder, lines[:100], config)
    execute(path, "INSERT INTO runs (name, created_us, state, stdout) VALUES ('r', 1, 'started', hex(zeroblob(1 << 20)))")
    log = emit_logged(folder, lines[100:], config)
    assert 'the table "runs"' in log, log
    assert numbers(path, "x") == list(range(200))


@case
def a_file_that_was_moved_is_made_anew(folder):
    path = os.path.join(folder, "m.db")
    app = ScriptedApp(config_of(path), folder)
    for number in (1, 2):
        assert app.do("add", "x", number)["code"] == 0 and app.do("flush", -1)["code"] == 0
        os.rename(path, f"{path}{number}")
        for ending in ("-wal", "-shm"):
            os.rename(path + ending, f"{path}{number}{ending}")
    app.end()
    assert [numbers(f"{path}{number}", "x") for number in (1, 2)] == [[1], [2]]


@case
def several_processes_write_to_one_file(folder):
    path = os.path.join(folder, "m.db")
    config = config_of(path, tail=3000, batch=500, busy_timeout="1m")
    programs = [start(ADDER, "-n", 20000, "-f", -1, "-H", "db", "-g", f"g{i}", WEIR_CONFIG=config) for i in range(4)]
    for program in programs:
        out, log = program.communicate(timeout=600)
        assert program.returncode == 0, log
        assert_ledgers(json.loads(out))
    found = {key[0]: [value for _, value in points] for key, points in stored(path).items()}
    assert found == {f"g{i}": list(range(20000)) for i in range(4)}


@case
def a_forked_child_does_not_open_its_parents_file(folder):
    skip_fork_under_sanitizers()
    path = os.path.join(folder, "m.db")
    app = ScriptedApp(config_of(path), folder)
    assert app.do("add", "x", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
    assert app.do("fork", "of_child")["code"] > 0 and app.do("reap")["code"] == 0
    assert app.do("add", "x", 2)["code"] == 0 and app.do("flush", -1)["code"] == 0
    app.end()
    assert [key[1] for key in stored(path)] == ["x"] and numbers(path, "x") == [1, 2]


@case
def a_program_that_closes_all_descriptors_keeps_its_own_files(folder):
    path, strangers = os.path.join(folder, "m.db"), os.path.join(folder, "strangers")
    done = run(os.path.join(BUILD, "tests", "support", "closer"), strangers, WEIR_CONFIG=config_of(path), WEIR_LOG="info")
    assert f"{path}: the program has closed all descriptors" in done.stderr, done.stderr
    assert "2 offered, 1 delivered, 1 dropped (1 failed), 0 queued, 0 spooled" in done.stderr, done.stderr
    assert os.path.getsize(strangers) == 0
    assert [key[1] for key in stored(path)] == ["before"]


@case
def the_handler_passes_vetting(folder):
    if SANITIZED:
        raise Skip("vet counts memory")
    done = run(WEIR, "vet", os.path.join(PLUGINS, "store.so"), "--options", json.dumps({"path": os.path.join(folder, "m.db")}), "--deadline", "5m", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


main()
