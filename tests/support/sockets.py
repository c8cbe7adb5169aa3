"""Shared by the tests of the socket handler."""

import json
import re
import socket

import harness
from fifos import ScriptedApp
from harness import ADDER, Skip, assert_ledgers, run, wait_for
from receivers import Receiver

REJECTED = 1  # in "dropped"
TOO_LARGE = -13
STREAMS = ("tcp", "tcp6", "unix")
LINE_FORMATS = ("text", "json", "bai", "csv", "influx", "graphite", "statsd")
CLOSED = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]


def config_of(to, shutdown="20s", **options):
    handler = {"type": "socket", "to": to, "format": "statsd", "overflow": "block", "block_timeout": "1h", "linger": "20ms",
               "retry_min": "5ms", "retry_max": "50ms", **options}
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"pipe": handler}, "groups": {"*": "pipe"}}


def needs(kind):
    if kind.endswith("6"):
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
        except OSError:
            raise Skip("the machine has no IPv6") from None


def receive(kind, folder, **more):
    needs(kind)
    return Receiver(kind, folder if kind.startswith("unix") else None, **more)


def values_of(lines):
    """The values of statsd's lines of "t0"."""
    found = [re.fullmatch(r"my_app\.t0:(\d+)\|g", line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found) if not match][:5]
    return [int(match[1]) for match in found]


def add(config, count, *arguments, **env):
    """Adds values, flushes, checks that the ledgers balance. Returns (the handler's ledger, messages)."""
    done = run(ADDER, "-n", count, "-f", -1, "-H", "pipe", *arguments, WEIR_CONFIG=config, **env)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["flush"] == 0, report
    return report["handlers"]["pipe"], done.stderr


def ledger_of(program):
    """Of an adder that was started with -H pipe -f -1: (the handler's ledger, messages)."""
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0, (program.returncode, err)
    report = json.loads(out)
    assert_ledgers(report)
    assert report["flush"] == 0, report
    return report["handlers"]["pipe"], err


_programs = []


def start(*command, **env):
    """As harness.start, for a program that ends with its case at the latest."""
    _programs.append(harness.start(*command, **env))
    return _programs[-1]


def case(function):
    """As harness.case. A case that fails leaves no program behind."""
    def run_case(folder):
        try:
            function(*[folder][:function.__code__.co_argcount])
        finally:
            for program in _programs:
                if program.poll() is None:
                    program.kill()
                    program.wait()
            _programs.clear()
    run_case.__name__ = function.__name__
    return harness.case(run_case)


def send_between_restarts(receiver, folder):
    """Restarts the receiver after each of five values: each arrives once."""
    app = ScriptedApp(config_of(receiver.to), folder)
    for value in range(5):
        assert app.do("add", "t0", value)["code"] == 0 and app.do("flush", -1)["code"] == 0
        wait_for(lambda: len(receiver.lines()) == value + 1, "the value")
        receiver.stop()
        receiver.start()
    ledger = app.ledger()
    app.end()
    assert ledger["delivered"] == 5 and values_of(receiver.lines()) == list(range(5)), ledger
