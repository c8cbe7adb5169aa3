"""Values that other programs send: `weir relay` beside daemons of the same kind."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

from database import find_port
from programs import TIMEOUT_S, Void, write_config

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "support"))

START, LIMIT = 20000, 50000000  # lines a second
SETTINGS = {"status": "off", "shutdown_timeout": "1m"}


def wait_until(is_true, process, what):
    end = time.monotonic() + TIMEOUT_S
    while not is_true():
        if process.poll() is not None or time.monotonic() > end:
            raise Void("no " + what)
        time.sleep(0.002)


# ---- weir --------------------------------------------------------------------------------------


class Relay:
    def __init__(self, workspace, source, handler):
        config = workspace.file("relay.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"settings": SETTINGS, "sources": {"in": source}, "handlers": {"out": handler}, "groups": {"*": "out"}}, file)
        self.process = subprocess.Popen([os.path.join(workspace.build, "tools", "weir"), "relay", "-c", config], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, env=workspace.environment(), text=True)

    def end(self):
        """Stops it; it delivers what it has read."""
        self.process.send_signal(signal.SIGTERM)
        log = self.process.communicate(timeout=TIMEOUT_S)[1]
        if self.process.returncode:
            raise Void("weir relay: " + log.strip())


def measure_forward(workspace, scale, **task):
    """A program hands its values over to a relay, which writes them to a file. Each is acknowledged when it is in the file."""
    socket, out = workspace.file("socket"), workspace.file("out")
    relay = Relay(workspace, {"type": "forward", "listen": ["unix:" + socket]},
                  {"type": "file", "path": out, "format": "text", "block_timeout": "10m"})
    wait_until(lambda: os.path.exists(socket), relay.process, "socket of weir relay")
    config = write_config(workspace, [{"type": "forward", "to": "unix:" + socket, "block_timeout": "10m"}])
    task = {"way": "name", "handlers": 1, **scale.sizes(task), **task}
    figures = workspace.measure("weir/adding", config=config, **task)
    relay.end()
    workspace.verify(out, figures, {**task, "format": "text"})
    return figures


class WeirStatsd:
    def __init__(self, workspace):
        self.out, self.port = workspace.file("out"), find_port()
        source = {"type": "statsd", "listen": [f"udp://127.0.0.1:{self.port}"]}
        self.relay = Relay(workspace, source, {"type": "file", "path": self.out, "format": "text", "aggregate": "1h"})
        wait_until(lambda: is_bound(self.port), self.relay.process, "socket of weir relay")

    def count(self, expected):
        del expected
        self.relay.end()
        with open(self.out, encoding="utf-8") as file:
            return sum(float(line.rpartition("=")[2]) for line in file if "]: requests=" in line)

    def stop(self):
        if self.relay.process.poll() is None:
            self.relay.end()


def is_bound(port):
    with open("/proc/net/udp", encoding="ascii") as file:
        return f"0100007F:{port:04X}" in file.read()


# ---- Other servers -----------------------------------------------------------------------------


class Peer:
    """A server of the tests' support."""

    def __init__(self, name, read, quiet_s):
        import peers  # pylint: disable=import-outside-toplevel
        from harness import Skip  # pylint: disable=import-outside-toplevel
        self.folder = tempfile.TemporaryDirectory(prefix="weir-bench-")
        self.read, self.quiet_s = read, quiet_s
        try:
            self.server = getattr(peers, name)(self.folder.name)
        except Skip as reason:
            raise Void(str(reason)) from None
        self.port = self.server.port

    def count(self, expected):
        """Returns how many arrived: all of them, or as many as there are after some time without new ones."""
        count, since = -1, time.monotonic()
        while count < expected and time.monotonic() - since < self.quiet_s:
            now = self.read(self.server).get("requests", 0)
            if now != count:
                count, since = now, time.monotonic()
            time.sleep(0.02)
        return count

    def stop(self):
        self.server.stop()
        self.folder.cleanup()


def start_statsd(_):
    return Peer("Statsd", lambda server: server.read("counters"), 1)


def start_collectd(_):
    return Peer("Collectd", lambda server: server.read_counters(), 4)


# ---- Rates without loss ------------------------------------------------------------------------


def measure_statsd(workspace, scale, start):
    """The highest rate at which all lines of half a second arrive: doubled while they do, then approached in two steps."""
    def takes(rate):
        """Returns the rate at which all lines were sent and arrived, or 0."""
        for _ in range(2):
            server = start(workspace)
            try:
                task = {"port": server.port, "rate": int(rate), "values": max(int(rate * scale.datagrams_s) // 20, 1) * 20}
                sent = workspace.measure("support/datagrams", **task)
                if server.count(sent["values"]) == sent["values"]:
                    return sent["rate"]
            finally:
                server.stop()
        return 0

    rate, best = START, 0
    while rate <= LIMIT:
        reached = takes(rate)
        best = max(best, reached)
        if reached < 0.8 * rate:  # lost, or the sender is not faster
            break
        rate *= 2
    low, high = rate / 2, rate
    for _ in range(scale.datagrams_steps if best and not reached else 0):
        middle = (low + high) / 2
        reached = takes(middle)
        best = max(best, reached)
        low, high = (middle, high) if reached else (low, middle)
    if not best:
        raise Void(f"not even {START} lines a second arrived")
    return {"rate": best}


# ---- Lines of JSON -----------------------------------------------------------------------------


def write_lines(path, count):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f'{{"loss": {number / 4}, "epoch": {number}}}\n' for number in range(count))


def is_empty(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0] == 0


def open_pipe(path, process):
    """Once a reader has it open."""
    fd = []

    def opens():
        try:
            fd.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        os.set_blocking(fd[0], True)
        return True
    wait_until(opens, process, "reader of the pipe")
    return fd[0]


def feed(pipe, path):
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            while part:
                part = part[os.write(pipe, part):]


def measure_fifo(workspace, scale, way):
    """From the first line into the pipe until all are in the output and the daemon has ended."""
    count = scale.lines if way == "weir" else max(scale.lines // 20, 1)
    lines, pipe, out = workspace.file("lines"), workspace.file("pipe"), workspace.file("out")
    write_lines(lines, count)
    os.mkfifo(pipe)
    if way == "weir":
        relay = Relay(workspace, {"type": "fifo", "path": pipe, "parse": "bai"}, {"type": "file", "path": out, "block_timeout": "10m"})
    else:
        script = os.path.join(ROOT, "bench", "peers", "pusher.py")
        with open(out, "wb") as file:
            daemon = subprocess.Popen([sys.executable, script, pipe], stdin=subprocess.DEVNULL, stdout=file)
    fd = open_pipe(pipe, relay.process if way == "weir" else daemon)
    start = time.monotonic()
    feed(fd, lines)
    if way == "weir":
        wait_until(lambda: is_empty(fd), relay.process, "empty pipe")
        relay.end()
        os.close(fd)
    else:
        os.close(fd)
        daemon.wait(TIMEOUT_S)
    elapsed = time.monotonic() - start
    with open(out, "rb") as file:
        arrived = file.read().count(b"\n") // (2 if way == "weir" else 1)
    if arrived != count:
        raise Void(f"{way}: {arrived} of {count} lines arrived")
    return {"rate": count / elapsed, "lines": count}
