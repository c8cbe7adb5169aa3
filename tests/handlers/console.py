"""The console when it is no good: full, gone, or made non-blocking by others."""

import fcntl
import json
import os
import re
import struct
import subprocess
import termios

from harness import ADDER, assert_ledgers, case, environment, main, wait_for


def config(to="stdout", shutdown_timeout="10s", **options):
    return {"settings": {"shutdown_timeout": shutdown_timeout},
            "handlers": {"c": {"type": "console", "to": to, **options}}, "groups": {"*": "c"}}


def run_into(stdout, stderr, *arguments, **how):
    return subprocess.run([ADDER, *map(str, arguments)], env=environment(WEIR_CONFIG=config(**how)), stdout=stdout, stderr=stderr,
                          text=True, timeout=60)


class Pipe:
    """A pipe whose writing end others have made non-blocking, as terminals and pipes that are shared can be."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        self.size = fcntl.fcntl(self.writer, fcntl.F_GETPIPE_SZ)

    def is_full(self):
        """Pages that are not filled up count as a whole one."""
        filled = struct.unpack("i", fcntl.ioctl(self.reader, termios.FIONREAD, b"\0\0\0\0"))[0]
        return filled > self.size - 4096

    def read(self):
        os.close(self.writer)
        with os.fdopen(self.reader, encoding="utf-8") as file:
            return file.read()


def values_in(text):
    return [int(re.search(r"t0=(\d+)$", line).group(1)) for line in text.splitlines()]


def first_warning(stdout):
    """What weir says first when standard output does not take a value."""
    running = subprocess.Popen([ADDER, "-q", "-x", "sleep"], env=environment(WEIR_CONFIG=config()), stdout=stdout, stderr=subprocess.PIPE,
                               text=True)
    try:
        return running.stderr.readline()
    finally:
        running.kill()
        running.communicate()


def assert_nothing_delivered(stderr):
    """The ledger of three values for a standard error that takes none."""
    done = run_into(subprocess.PIPE, stderr, "-n", 3, "-f", 0, "-H", "c", to="stderr", shutdown_timeout="0s")
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"]["c"]["offered"] == 3 and report["handlers"]["c"]["delivered"] == 0, report


@case
def a_full_disk_is_said_and_nothing_is_taken_for_delivered():
    with open("/dev/full", "w", encoding="utf-8") as full:
        said = first_warning(full)
        assert said == "weir: warning: c: write to standard output: No space left on device; retrying, 1 queued\n", said
        assert_nothing_delivered(full)


@case
def a_reader_that_has_gone_raises_no_signal_and_nothing_is_taken_for_delivered():
    reader, writer = os.pipe()
    os.close(reader)
    said = first_warning(writer)
    assert said == "weir: warning: c: write to standard output: Broken pipe; retrying, 1 queued\n", said
    assert_nothing_delivered(writer)
    os.close(writer)


@case
def a_non_blocking_pipe_that_is_full_is_waited_for_and_gets_everything():
    pipe, count = Pipe(), 20000
    running = subprocess.Popen([ADDER, "-n", str(count), "-f", "-1", "-H", "c"], env=environment(WEIR_CONFIG=config(to="stderr", linger="1s")),
                               stdout=subprocess.PIPE, stderr=pipe.writer, text=True)
    wait_for(pipe.is_full, "a full pipe")
    shown = values_in(pipe.read())
    report = json.loads(running.communicate(timeout=60)[0])
    assert running.returncode == 0 and shown == list(range(count)), len(shown)
    assert_ledgers(report)
    assert report["flush"] == 0 and report["handlers"]["c"]["delivered"] == count, report


@case
def a_non_blocking_pipe_that_stays_full_does_not_hold_up_the_end_and_no_value_is_missing_in_the_count():
    pipe, count = Pipe(), 5000
    done = run_into(pipe.writer, subprocess.PIPE, "-q", "-n", count, shutdown_timeout="500ms")
    assert done.returncode == 0, done
    whole = values_in(pipe.read().rpartition("\n")[0])
    dropped = int(re.search(r"(\d+) dropped\n$", done.stderr).group(1))
    # as many as do not fit; more, if the handler could not tell in time how many are out
    assert whole == list(range(len(whole))) and count - len(whole) <= dropped <= count, (len(whole), done.stderr)


main()
