"""The console handler if its output is full, closed, or in non-blocking mode."""

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
    """A pipe whose write end is in non-blocking mode, as shared terminals and pipes can be."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        self.size = fcntl.fcntl(self.writer, fcntl.F_GETPIPE_SZ)

    def is_full(self):
        """A partially filled page counts as full."""
        filled = struct.unpack("i", fcntl.ioctl(self.reader, termios.FIONREAD, b"\0\0\0\0"))[0]
        return filled > self.size - 4096

    def read(self):
        os.close(self.writer)
        with os.fdopen(self.reader, encoding="utf-8") as file:
            return file.read()


def values_in(text):
    return [int(re.search(r"t0=(\d+)$", line).group(1)) for line in text.splitlines()]


def first_warning(stdout):
    """weir's first message if standard output rejects a value."""
    running = subprocess.Popen([ADDER, "-q", "-x", "sleep"], env=environment(WEIR_CONFIG=config()), stdout=stdout, stderr=subprocess.PIPE,
                               text=True)
    try:
        return running.stderr.readline()
    finally:
        running.kill()
        running.communicate()


def assert_nothing_delivered(stderr):
    """Checks the ledger of three values if standard error rejects all."""
    done = run_into(subprocess.PIPE, stderr, "-n", 3, "-f", 0, "-H", "c", to="stderr", shutdown_timeout="0s")
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"]["c"]["offered"] == 3 and report["handlers"]["c"]["delivered"] == 0, report


@case
def a_full_disk_is_logged_and_nothing_counts_as_delivered():
    with open("/dev/full", "w", encoding="utf-8") as full:
        message = first_warning(full)
        assert message == "weir: warning: c: write to standard output: No space left on device; retrying, 1 queued\n", message
        assert_nothing_delivered(full)


@case
def a_closed_reader_raises_no_signal_and_nothing_counts_as_delivered():
    reader, writer = os.pipe()
    os.close(reader)
    message = first_warning(writer)
    assert message == "weir: warning: c: write to standard output: Broken pipe; retrying, 1 queued\n", message
    assert_nothing_delivered(writer)
    os.close(writer)


@case
def a_full_non_blocking_pipe_is_waited_for_and_gets_everything():
    pipe, count = Pipe(), 20000
    running = subprocess.Popen([ADDER, "-n", str(count), "-f", "-1", "-H", "c"], env=environment(WEIR_CONFIG=config(to="stderr", linger="1s")),
                               stdout=subprocess.PIPE, stderr=pipe.writer, text=True)
    wait_for(pipe.is_full, "a full pipe")
    values = values_in(pipe.read())
    report = json.loads(running.communicate(timeout=60)[0])
    assert running.returncode == 0 and values == list(range(count)), len(values)
    assert_ledgers(report)
    assert report["flush"] == 0 and report["handlers"]["c"]["delivered"] == count, report


@case
def a_non_blocking_pipe_that_stays_full_does_not_delay_the_exit_and_all_values_are_counted():
    pipe, count = Pipe(), 5000
    done = run_into(pipe.writer, subprocess.PIPE, "-q", "-n", count, shutdown_timeout="500ms")
    assert done.returncode == 0, done
    written = values_in(pipe.read().rpartition("\n")[0])
    dropped = int(re.search(r"(\d+) dropped\n$", done.stderr).group(1))
    # at least the values that do not fit; more if the handler could not report in time how many were written
    assert written == list(range(len(written))) and count - len(written) <= dropped <= count, (len(written), done.stderr)


main()
