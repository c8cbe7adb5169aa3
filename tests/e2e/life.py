"""All the ways a program can end, and handlers that block."""

import contextlib
import json
import os
import sqlite3

from exits import assert_only_weir_registers, preload
from harness import ADDER, assert_ledgers, case, free_port, lines_of, main, run, start_in_steps, wait_for, whole_lines, without_waits
from https import Server
from receivers import Receiver


def file_config(path, **settings):
    return {"settings": settings, "handlers": {"disk": {"type": "file", "path": path, "block_timeout": "1m"}},
            "groups": {"*": "disk"}}


@case
def return_exit_and_shutdown_deliver_everything(folder):
    for end in ("return", "exit", "shutdown"):
        path = os.path.join(folder, end)
        done = run(ADDER, "-q", "-t", 3, "-n", 50000, "-x", end, WEIR_CONFIG=file_config(path, shutdown_timeout="1h"))
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        assert len(lines_of(path)) == 150000, end


@case
def values_that_later_exit_handlers_add_are_delivered(folder):
    path = os.path.join(folder, "out")
    done = run(ADDER, "-q", "-n", 100, "-x", "late", WEIR_LOG="info", WEIR_CONFIG=file_config(path, shutdown_timeout="1h"))
    assert done.returncode == 0 and ": 103 values added, 0 of them unrouted, 0 refused\n" in done.stderr, done.stderr
    assert "more values refused" not in done.stderr, done.stderr
    assert [json.loads(line)["value"] for line in lines_of(path) if '"late"' in line] == [0, 1, 2]
    assert len(lines_of(path)) == 103


@contextlib.contextmanager
def library_config(folder):
    """Handlers of the types whose libraries leave the end of the program alone, all with a destination. Yields it with the two servers."""
    server, receiver = Server(folder), Receiver("tcp")
    handlers = {"tls": {"type": "http", "url": server.url, "ca_file": server.certificate},
                "db": {"type": "sqlite", "path": os.path.join(folder, "db")},
                "store": {"type": "store", "path": os.path.join(folder, "store")},
                "page": {"type": "prometheus", "listen": f"127.0.0.1:{free_port()}"},
                "peer": {"type": "socket", "to": f"tcp://localhost:{receiver.port}"}}
    try:
        yield {"settings": {"shutdown_timeout": "1h"}, "handlers": handlers, "groups": {"*": list(handlers)}}, server, receiver
    finally:
        server.close()
        receiver.stop()


@case
def so_are_those_for_handlers_whose_libraries_leave_the_end_of_the_program_alone(folder):
    with library_config(folder) as (config, server, receiver):
        done = run(ADDER, "-q", "-n", 100, "-x", "late", WEIR_LOG="info", WEIR_CONFIG=config)
        assert done.returncode == 0 and ": 103 values added, 0 of them unrouted, 0 refused\n" in done.stderr, done.stderr
        assert "more values refused" not in done.stderr, done.stderr
        for handler in config["handlers"]:
            assert f'handler "{handler}": 103 offered, 103 delivered, 0 dropped, 0 queued, 0 spooled,' in done.stderr, done.stderr
        assert server.lines == 103
        with contextlib.closing(sqlite3.connect(os.path.join(folder, "db"))) as db:
            assert db.execute("SELECT count(*) FROM samples").fetchone() == (103,)
        receiver.wait_for_lines(103)
        assert len(receiver.lines()) == 103


@case
def these_libraries_register_no_exit_handlers(folder):
    """It is what their types promise. The program has used each of them when it ends: everything is delivered."""
    with library_config(folder) as (config, server, _):
        done = run(ADDER, "-q", "-n", 100, LD_PRELOAD=preload(), WEIR_CONFIG=config)
        assert done.returncode == 0 and server.lines == 100, done.stderr
        assert_only_weir_registers(done.stderr)


@case
def values_that_exit_handlers_add_after_the_end_are_reported(folder):
    """With a handler whose libraries may have exit handlers, and with a log function, weir has ended before."""
    path = os.path.join(folder, "out")
    foreign = file_config(path, shutdown_timeout="1h")
    foreign["handlers"]["foreign"] = {"type": "blocker"}
    for config, extra, level in ((foreign, (), "warning"), (file_config(path, shutdown_timeout="1h"), ("-l",), "info")):
        done = run(ADDER, "-q", "-n", 100, "-x", "late", *extra, WEIR_LOG="info", WEIR_CONFIG=config)
        assert done.returncode == 0 and ": 100 values added, 0 of them unrouted, 0 refused\n" in done.stderr, done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith(f"weir: {level}: ") and last.endswith(": 3 more values refused, which were added after the end"), last
        assert len(lines_of(path)) == 100
        os.unlink(path)
    done = run(ADDER, "-q", "-n", 100, "-x", "late", WEIR_CONFIG=foreign)
    assert without_waits(done.stderr).endswith(": 3 more values refused, which were added after the end\n"), done.stderr


@case
def _exit_loses_at_most_the_undelivered_values(folder):
    path = os.path.join(folder, "out")
    done = run(ADDER, "-q", "-n", 1000000, "-x", "_exit", WEIR_CONFIG=file_config(path))
    assert done.returncode == 0
    lines = lines_of(path)
    # ring: 4096 values; queue: 1 MiB of 32-byte samples, and the values in the rings when it became full
    assert 1000000 - len(lines) <= 4096 + 32768 + 4096 + 5000, len(lines)


def blocker_config(folder, where, **options):
    """The blocking handler is waited for until the end of shutdown_timeout."""
    return {
        "settings": {"shutdown_timeout": "300ms"},
        "handlers": {
            "stuck": {"type": "blocker", "in": where, "block_timeout": "100ms", "queue": "64KiB", **options},
            "disk": {"type": "file", "path": os.path.join(folder, "out"), "block_timeout": "1h"},
        },
        "groups": {"*": ["stuck", "disk"]},
    }


def run_until_written(folder, count, *arguments, config):
    """Runs an adder in steps, which ends only when the file has so many lines. Returns (its output, its messages)."""
    program = start_in_steps(*arguments, WEIR_CONFIG=config)
    wait_for(lambda: whole_lines(os.path.join(folder, "out")) == count, "the lines")
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and whole_lines(os.path.join(folder, "out")) == count, err
    return out, err


@case
def a_handler_that_blocks_forever_stops_neither_the_others_nor_the_program(folder):
    for where in ("open", "emit"):
        out, err = run_until_written(folder, 200000, "-t", 2, "-n", 100000, "-i", 100000, "-H", "stuck", "-H", "disk",
                                     config=blocker_config(folder, where))
        assert "stuck: shutting down while the handler is busy; not delivered in time" in err, err
        report = json.loads(out)
        assert_ledgers(report)
        assert report["process"]["added"] == 200000
        assert report["handlers"]["stuck"]["delivered"] == 0
        os.unlink(os.path.join(folder, "out"))


@case
def a_handler_that_blocks_in_close_is_abandoned_at_the_deadline(folder):
    run_until_written(folder, 1000, "-q", "-n", 1000, "-i", 1000, config=blocker_config(folder, "close"))


@case
def a_handler_that_blocks_in_flush_makes_flush_time_out_and_names_it(folder):
    done = run(ADDER, "-n", 1000, "-f", 300, "-H", "stuck", "-H", "disk", WEIR_CONFIG=blocker_config(folder, "flush"))
    report = json.loads(done.stdout)
    assert report["flush"] == -8 and done.returncode == 0, report
    assert_ledgers(report)


@case
def with_drop_policies_no_call_waits(folder):
    for policy in ("drop_newest", "drop_oldest"):
        config = blocker_config(folder, "emit", overflow=policy, block_timeout="1h")
        done = run(ADDER, "-n", 100000, "-H", "stuck", "-H", "disk", WEIR_CONFIG=config)
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["handlers"]["stuck"]["dropped"][0] > 0
        assert report["process"]["added"] == 100000


main()
