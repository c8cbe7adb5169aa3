"""A destination that takes nothing: whoever writes to a source waits, whatever the handler's `overflow`, and nothing is dropped."""

import json
import os
import re
import signal
import socket
import tempfile
import threading

from harness import WEIR, case, free_port, main, start, wait_for

POLICIES = ({"overflow": "block", "block_timeout": "0s"}, {"overflow": "drop_newest"}, {"overflow": "drop_oldest"})
COUNT = 20000  # some ten queues


def json_lines():
    return "".join(f'{{"x":{i}}}\n' for i in range(COUNT)).encode()


class Relay:
    """A running relay with one source "in". Its handler "dead" writes to a pipe that nobody reads yet."""

    def __init__(self, folder, source, policy, more=None):
        folder = tempfile.mkdtemp(dir=folder)
        self.pipe, self.health = os.path.join(folder, "pipe"), os.path.join(folder, "health.jsonl")
        os.mkfifo(self.pipe)
        dead = {"type": "fifo", "path": self.pipe, "format": "json", "queue": "64KiB", "retry_min": "5ms", "retry_max": "20ms", **policy}
        handlers = {"dead": dead, "health": {"type": "file", "path": self.health, "linger": "0s"}, **(more or {})}
        config = {"settings": {"shutdown_timeout": "2m", "stats_interval": "20ms"}, "handlers": handlers,
                  "sources": {"in": {"group": "g", "retry_min": "5ms", "retry_max": "20ms", **source}},
                  "groups": {"*": ["dead", *(more or {})], "weir": "health"}}
        path = os.path.join(folder, "relay.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        reader, self.input = os.pipe()
        self.process = start(WEIR, "relay", "-c", path, stdin=reader, WEIR_LOG="info")
        os.close(reader)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def total(self, name, **labels):
        """A running total of the group weir: its last value, or 0."""
        found = [line["value"] for line in lines_as_json(self.health) if line["name"] == name and
                 labels.items() <= line["labels"].items()]
        return found[-1] if found else 0

    def await_hold(self):
        """Waits until the source finds no room. The handler has no chance to make any."""
        wait_for(lambda: self.process.poll() is not None or self.total("waits", source="in") > 0, "the source to wait")
        assert self.process.poll() is None, self.process.communicate()
        assert self.total("dropped", handler="dead") == 0 and self.total("delivered", handler="dead") == 0

    def read_pipe(self, count):
        """The values of so many lines."""
        with open(self.pipe, encoding="ascii") as pipe:
            return [json.loads(pipe.readline())["value"] for _ in range(count)]

    def end(self):
        """Returns the ledger lines of its log: {"process": [added, ...], "dead": [offered, delivered, dropped, queued, spooled]}."""
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=240)
        ledgers = {name: [int(number) for number in re.findall(r"\d+", rest)] for name, rest in
                   re.findall(r'ledger: handler "?(\w+)"?: (.*)', log)}
        ledgers["process"] = int(re.search(r"ledger: process \d+: (\d+) values added", log)[1])
        return ledgers, log


def lines_as_json(path):
    """What a file has that may be written to at this moment."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().split("\n")[:-1]]


class Writer(threading.Thread):
    """Writes as fast as it is let."""

    def __init__(self, write):
        super().__init__(daemon=True)
        self.write = write
        self.start()

    def run(self):
        self.write()


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def write_and_close(fd, data):
    write_all(fd, data)
    os.close(fd)


def expect_all(relay, writer):
    """Nothing is lost, and everything comes in its order, once there is a reader."""
    relay.await_hold()
    assert relay.read_pipe(COUNT) == list(range(COUNT))
    if writer:
        writer.join(240)
        assert not writer.is_alive()
    ledgers, log = relay.end()
    assert ledgers["dead"][:5] == [COUNT, COUNT, 0, 0, 0], log


@case
def standard_input_waits(folder):
    for policy in POLICIES:
        with Relay(folder, {"type": "stdin"}, policy) as relay:
            expect_all(relay, Writer(lambda to=relay.input: write_and_close(to, json_lines())))


@case
def a_pipe_waits(folder):
    for policy in POLICIES:
        path = os.path.join(folder, "in")
        with Relay(folder, {"type": "fifo", "path": path}, policy) as relay:
            os.close(relay.input)
            wait_for(lambda: os.path.exists(path), "the pipe")
            expect_all(relay, Writer(lambda: write_and_close(os.open(path, os.O_WRONLY), json_lines())))


@case
def a_file_waits(folder):
    for i, policy in enumerate(POLICIES):
        path = os.path.join(folder, f"log.{i}")
        with open(path, "wb") as file:
            file.write(json_lines())
        source = {"type": "file", "path": path, "start": "beginning", "state": os.path.join(folder, f"state.{i}")}
        with Relay(folder, source, policy) as relay:
            os.close(relay.input)
            expect_all(relay, None)


def connect(port):
    clients = []

    def try_it():
        client = socket.socket()
        if client.connect_ex(("127.0.0.1", port)) != 0:
            return client.close()
        clients.append(client)
        return True

    wait_for(try_it, "the source to listen")
    return clients[0]


@case
def a_connection_waits(folder):
    for policy in POLICIES:
        port = free_port()
        with Relay(folder, {"type": "statsd", "listen": [f"tcp://127.0.0.1:{port}"]}, policy) as relay:
            os.close(relay.input)

            def send():
                with connect(port) as client:
                    client.sendall("".join(f"x:{i}|g\n" for i in range(COUNT)).encode())

            expect_all(relay, Writer(send))


@case
def a_dead_handler_drops_beside_one_that_takes_values(folder):
    for i, policy in enumerate(POLICIES):
        alive = {"type": "file", "path": os.path.join(folder, f"out.{i}"), "format": "json", "linger": "1ms"}
        with Relay(folder, {"type": "stdin"}, policy, {"alive": alive}) as relay:
            Writer(lambda to=relay.input: write_all(to, json_lines())).join(240)
            wait_for(lambda: len(lines_as_json(alive["path"])) == COUNT, "the values of the other handler")
            wait_for(lambda: relay.total("offered", handler="dead") == COUNT, "all to be offered")
            kept = relay.read_pipe(COUNT - int(relay.total("dropped", handler="dead", reason="full")))
            ledgers, log = relay.end()
            os.close(relay.input)
        assert [line["value"] for line in lines_as_json(alive["path"])] == list(range(COUNT))
        assert ledgers["alive"][:5] == [COUNT, COUNT, 0, 0, 0], log
        offered, delivered, lost = ledgers["dead"][:3]
        assert offered == COUNT == delivered + lost and delivered == len(kept) and lost > COUNT / 2, log


if __name__ == "__main__":
    main()
