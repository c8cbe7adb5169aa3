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
                          text=True, timeout=240)


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


def assert_gives_up(stream, error):
    """The first of three values ends the handler; a flush returns, and the end is not delayed."""
    done = run_into(subprocess.PIPE, stream, "-n", 3, "-f", -1, "-H", "c", to="stderr", shutdown_timeout="1h")
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"]["c"]["offered"] == 3 and sum(report["handlers"]["c"]["dropped"]) == 3, report
    message = first_warning(stream)
    assert message == f"weir: error: c: write to standard output: {error}; gives up, 1 dropped; all further values are dropped\n", message


@case
def a_device_that_is_always_full_ends_the_handler():
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert_gives_up(full, "No space left on device")


@case
def a_full_disk_is_retried(folder):
    path = os.path.join(folder, "out")
    command = 'ulimit -f 1; exec "$0" -q -n 2000 >"$1"'
    done = subprocess.run(["bash", "-c", f"trap '' XFSZ; {command}", ADDER, path], env=environment(WEIR_CONFIG=config(shutdown_timeout="3s")),
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and os.path.getsize(path) == 1024, done
    assert "File too large; retrying" in done.stderr and "gives up" not in done.stderr, done.stderr


@case
def a_closed_reader_raises_no_signal_and_ends_the_handler():
    reader, writer = os.pipe()
    os.close(reader)
    assert_gives_up(writer, "Broken pipe")
    os.close(writer)


@case
def a_stream_that_is_closed_or_read_only_ends_the_handler():
    for how in (">&-", "1</dev/null"):
        done = subprocess.run(["sh", "-c", f'exec "$0" -q -n 3 {how}', ADDER], env=environment(WEIR_CONFIG=config(shutdown_timeout="1h")),
                              capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done
        assert "write to standard output: Bad file descriptor; gives up" in done.stderr, (how, done.stderr)


@case
def a_program_whose_reader_stops_ends_with_its_own_status():
    done = subprocess.run(["bash", "-c", 'set -o pipefail; "$0" -q -n 20000 | head -n 1', ADDER],
                          env=environment(WEIR_CONFIG=config(shutdown_timeout="1h")), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1, done
    assert done.stderr.count("Broken pipe; gives up") == 1, done.stderr


@case
def a_full_non_blocking_pipe_is_waited_for_and_gets_everything():
    pipe, count = Pipe(), 20000
    running = subprocess.Popen([ADDER, "-n", str(count), "-f", "-1", "-H", "c"], env=environment(WEIR_CONFIG=config(to="stderr", linger="1s")),
                               stdout=subprocess.PIPE, stderr=pipe.writer, text=True)
    wait_for(pipe.is_full, "a full pipe")
    values = values_in(pipe.read())
    report = json.loads(running.communicate(timeout=240)[0])
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
