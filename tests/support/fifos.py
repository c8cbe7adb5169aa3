"""Shared by the tests of the fifo handler: a reader that reads on request, and a program that executes commands one by one."""

import array
import fcntl
import json
import os
import select
import stat
import subprocess
import sys
import tempfile
import termios

from harness import BUILD, assert_handler_ledger, environment, wait_for, without_waits

SCRIPTED_APP = os.path.join(BUILD, "tests", "support", "scripted_app")
PIPE_BUF = 4096
FULL, REJECTED, SHUTDOWN = 0, 1, 5  # in "dropped"
TIMEOUT, TOO_LARGE, NOT_CREATED = -8, -13, -14


def config_of(path, shutdown="10s", **options):
    handler = {"type": "fifo", "path": path, "block_timeout": "1m", "retry_min": "10ms", "retry_max": "50ms",
               "wait_step": "10ms", **options}
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"pipe": handler}, "groups": {"*": "pipe"}}


def make_fifo(folder, name="fifo"):
    path = os.path.join(folder, name)
    os.mkfifo(path)
    return path


def without_slow_reader_warnings(log):
    """The log without the warnings that a busy machine can cause when a reader comes late or is not scheduled for a while."""
    expected = ("its reader reads nothing", "has no reader; retrying", "back after")
    return "".join(line for line in without_waits(log).splitlines(True) if not any(text in line for text in expected))


def assert_ends_silently(program):
    """Of a program that start() has started, and whose reader is the test's."""
    out, err = program.communicate(timeout=240)
    assert (out, without_slow_reader_warnings(err)) == ("", ""), (out, err)


def is_full(fd):
    """Whether the pipe contains so much that its writer waits, or soon will. A page of the pipe accepts a write only if all of it
    fits, so two neighbouring pages contain more than one page of data, and 16 pages more than half of their capacity."""
    held = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, held)
    return held[0] > 31 * 1024


class Reader:
    """Has a named pipe open for reading, and reads only when called."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.data = bytearray()  # bytes would be copied as a whole with each part

    def read(self):
        """Reads all available data. Returns True at the end of the file."""
        while True:
            try:
                part = os.read(self.fd, 65536)
            except BlockingIOError:
                return False
            if not part:
                return True
            self.data += part

    def read_until(self, condition, what):
        """Reads all that was in the pipe when the condition began to hold."""
        def holds():
            select.select([self.fd], [], [], 0.01)
            self.read()
            return condition()
        wait_for(holds, what)
        self.read()

    def read_lines(self, count):
        self.read_until(lambda: self.data.count(b"\n") >= count, f"{count} lines")
        return self.events()

    def read_to_end_of(self, program):
        """Reads until a program has ended and everything it wrote was read."""
        while program.poll() is None:
            select.select([self.fd], [], [], 0.01)
            self.read()
        self.read()
        return self.events()

    def events(self):
        assert not self.data or self.data.endswith(b"\n"), self.data[-100:]
        return [json.loads(line) for line in self.data.decode("ascii").splitlines()]

    def close(self):
        os.close(self.fd)


class ScriptedApp:
    """Runs tests/support/scripted_app, which executes one command at a time."""

    def __init__(self, config, folder, user=None, **env):
        with tempfile.NamedTemporaryFile("w", prefix="errors", dir=folder, delete=False) as errors:
            self.errors = errors.name
            self.program = subprocess.Popen([SCRIPTED_APP], env=environment(WEIR_CONFIG=config, **env), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=user)
        self.pid = self.program.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.program.poll() is None:
            self.end()

    def send(self, *words):
        self.program.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.program.stdin.flush()

    def reply(self):
        assert select.select([self.program.stdout], [], [], 240)[0], "no reply"
        return json.loads(self.program.stdout.readline())

    def do(self, *words):
        self.send(*words)
        return self.reply()

    def ledger(self):
        stats = self.do("ledger", "pipe")
        assert_handler_ledger(stats)
        return stats

    def stderr_text(self):
        with open(self.errors, encoding="utf-8") as file:
            return file.read()

    def end(self):
        self.program.stdin.close()
        assert self.program.wait(240) == 0, (self.program.returncode, self.stderr_text())

    def pipes(self):
        """The named pipes it has open: {descriptor: inode}."""
        return pipes_of(self.program.pid)


def pipes_of(pid):
    """The descriptors of a process that are named pipes open for writing: {descriptor: inode}."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            place, status = os.readlink(f"/proc/{pid}/fd/{name}"), os.stat(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue  # closed in the meantime
        if place.startswith("/") and stat.S_ISFIFO(status.st_mode):
            found[int(name)] = status.st_ino
    return found


def values_of(events, name="t0"):
    return [event[name] for event in events if name in event]


# Reads as much as the pipe holds, parses every line, and writes one line per read: whether it was whole, its first and last value.
CHECKING_READER = r"""
import json, os, sys
pipe = os.open(sys.argv[1], os.O_RDONLY)
notes = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
while True:
    data = os.read(pipe, 1 << 20)
    if not data:
        break
    values = [json.loads(line)["t0"] for line in data.decode().splitlines()]
    whole = data.endswith(b"\n") and values == list(range(int(values[0]), int(values[0]) + len(values)))
    os.write(notes, b"%d %d %d\n" % (whole, values[0], values[-1]))
"""


def start_checking_reader(path, notes):
    return subprocess.Popen([sys.executable, "-c", CHECKING_READER, path, notes], stderr=subprocess.PIPE)


def notes_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        return [tuple(int(word) for word in line.split()) for line in file if line.endswith("\n")]
