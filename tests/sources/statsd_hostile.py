"""The source type statsd with senders that mean no good, and with more than its handler can take."""

import json
import os
import random
import re
import socket
import threading

from fifos import Reader, make_fifo
from harness import SANITIZED, main, wait_for, wait_until_still
from sourced import Sourced, case

UDP, TCP = "udp://127.0.0.1:0", "tcp://127.0.0.1:0"
MIB = 1 << 20
MOST_MEMORY = 96 * MIB  # the program itself needs about 15 MiB


def start(folder, *listen, handler=None, **options):
    return Sourced(folder, {"type": "statsd", "listen": list(listen), **options}, handler)


def connect(program):
    return socket.create_connection(("127.0.0.1", program.port("tcp://127.0.0.1")))


def assert_small(program):
    if not SANITIZED:
        assert program.memory() < MOST_MEMORY, program.memory()


def count_in(path, text):
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as file:
        return file.read().count(text)


def is_closed(client):
    """By the peer. For a client without a timeout."""
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@case
def bytes_that_make_no_sense_do_no_harm(folder):
    program = start(folder, UDP, "unix-dgram:" + os.path.join(folder, "socket"), TCP)
    program.await_log("listens at tcp")
    chosen = random.Random(20)
    hostile = [b"", b"\n", b"\0" * 70000, b":|", b"|" * 60000, b"a:" * 30000 + b"|h", b"a:1|c|#" + b"x:y," * 10000, b"\xff" * 60000,
               b"a" * 60000 + b":1|c", b"a:" + b"9" * 60000 + b"|c", b"_e{1,1}:" * 5000, b"a:1|c|@1e-400", b"a:1|s|" * 9000]
    hostile += [chosen.randbytes(chosen.randrange(1, 2000)) for _ in range(500)]
    hostile += [chosen.randbytes(60000) for _ in range(20)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:  # which waits while there is no room
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MIB)
        for text in hostile:
            sender.sendto(text, os.path.join(folder, "socket"))
        sender.sendto(b"good:1|c", os.path.join(folder, "socket"))
    with connect(program) as client:
        for text in hostile:
            client.sendall(text + b"\n")
        client.sendall(b"good:2|c\n")
        wait_for(lambda: count_in(os.path.join(folder, "out"), b'"name":"good"') == 2, "the good values")
    assert_small(program)
    counts = program.end()
    assert counts["bad_lines"] > 1000 and counts["added"] >= 2, counts


@case
def connections_beyond_the_limit_wait_for_their_turn(folder):
    program = start(folder, TCP, connections=100)
    rounds, at_once = (2, 150) if SANITIZED else (17, 300)
    for number in range(rounds):
        clients = [connect(program) for _ in range(at_once)]
        if number == 0:
            program.await_log("100 connections are open")
        for client in clients:
            client.sendall(b"a:1|c\n")
        for client in clients:
            client.close()
        program.await_stats(lines=(number + 1) * at_once)
    assert_small(program)
    counts = program.end()
    assert (counts["lines"], counts["added"]) == (rounds * at_once, rounds * at_once), counts
    assert "100 connections are open, as many as the option connections allows; others wait" in program.log(), program.log()


@case
def connections_that_send_no_whole_line_are_closed(folder):
    program = start(folder, TCP, connections=20, idle_timeout="300ms")
    slow = [connect(program) for _ in range(20)]
    with connect(program) as good:
        good.sendall(b"good:1|c\n")
        for client in slow:
            client.setblocking(False)
        left = set(slow)

        def drip():
            """A byte each, for ever."""
            for client in list(left):
                try:
                    client.send(b"x")
                except (BlockingIOError, ConnectionError):
                    pass
                if is_closed(client):
                    left.discard(client)
            return not left and program.stats()["added"]

        wait_for(drip, "the slow connections' end, and the good one's turn")
    for client in slow:
        client.close()
    counts = program.end()
    assert counts["added"] == 1 and counts["bad_lines"] <= 20, counts


@case
def a_line_without_an_end_needs_no_memory(folder):
    program = start(folder, TCP)
    clients = [connect(program) for _ in range(100)]
    for _ in range(8):
        for client in clients:
            client.sendall(b"x" * (64 << 10))
    for client in clients:
        client.sendall(b"\na:1|c\n")
    program.await_stats(lines=200)
    assert_small(program)
    for client in clients:
        client.close()
    counts = program.end()
    assert (counts["added"], counts["bad_lines"]) == (100, 100), counts


@case
def series_of_strangers_are_limited(folder):
    program = start(folder, TCP, series_limit=100)
    with connect(program) as client:
        client.sendall(b"".join(b"n%d:1|c\n" % i for i in range(1000)) + b"n0:1|c\n")
        program.await_stats(lines=1001)
    counts = program.end()
    assert (counts["added"], counts["refused"]) == (101, 900), counts


class SlowReader:
    """Reads the handler's pipe once it is released."""

    def __init__(self, path):
        self.reader = Reader(path)
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def release(self):
        self.thread.start()

    def _run(self):
        while not self.ends.wait(0.01):
            self.reader.read()

    def end(self):
        self.ends.set()
        self.thread.join()
        self.reader.read()
        return self.reader.data.count(b"\n")


def slow_handler(path):
    return {"type": "fifo", "path": path, "format": "json", "queue": "64KiB", "overflow": "block", "block_timeout": "1h", "linger": "5ms"}


def number_in(log, pattern):
    match = re.search(pattern, log)
    return int(match[1]) if match else 0


@case
def each_datagram_of_a_flood_is_added_or_counted_as_dropped(folder):
    reader = SlowReader(make_fifo(folder))
    program = start(folder, UDP, handler=slow_handler(os.path.join(folder, "fifo")), recv_buffer="64KiB")
    sent = 20000 if SANITIZED else 100000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", program.port("udp://127.0.0.1")))
        for number in range(sent):
            sender.send(b"n:%d|g" % number)
    reader.release()
    program.await_log("the kernel has dropped .* datagrams, which no ledger counts")
    counts = program.end()
    dropped = number_in(program.log(), r"the kernel has dropped (\d+) datagrams in all")
    unread = number_in(program.log(), r"(\d+) datagrams were not read in time")
    assert counts["lines"] == counts["added"] + counts["refused"], counts
    assert counts["lines"] + dropped + unread == sent and dropped > 0 and counts["added"] > 1000, (counts, dropped, unread)
    assert reader.end() == counts["added"]


@case
def connections_and_unix_sockets_wait_for_a_slow_handler_and_lose_nothing(folder):
    reader = SlowReader(make_fifo(folder))
    path = os.path.join(folder, "socket")
    program = start(folder, TCP, "unix-dgram:" + path, handler=slow_handler(os.path.join(folder, "fifo")))
    program.await_log("listens at unix-dgram")
    each = 5000 if SANITIZED else 50000

    def stream():
        with connect(program) as client:
            client.sendall(b"".join(b"tcp:%d|g\n" % i for i in range(each)))

    def datagrams():
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for number in range(0, each, 10):
                sender.sendto(b"".join(b"unix:%d|g\n" % i for i in range(number, number + 10)), path)

    senders = [threading.Thread(target=send) for send in (stream, stream, datagrams)]
    for sender in senders:
        sender.start()
    program.await_stats(lines=1000)
    assert_small(program)
    reader.release()
    for sender in senders:
        sender.join()
    program.await_stats(lines=3 * each)
    counts = program.end()
    assert (counts["lines"], counts["added"]) == (3 * each, 3 * each), counts
    assert reader.end() == counts["added"]


def ask_health(port):
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"health\n")
        return client.recv(100)


@case
def admin_commands_are_run_while_there_is_no_room(folder):
    reader = SlowReader(make_fifo(folder))
    program = start(folder, TCP, handler=slow_handler(os.path.join(folder, "fifo")), admin="tcp://127.0.0.1:0")
    admin = int(program.await_log(r"admin commands at tcp://127\.0\.0\.1:(\d+)\n")[1])
    with connect(program) as client:
        sender = threading.Thread(target=client.sendall, args=(b"n:1|g\n" * 50000,))
        sender.start()
        wait_until_still(program.program.pid, lambda: program.stats()["lines"], "the queue to be full")
        assert program.stats()["lines"] < 50000
        for _ in range(20):
            assert ask_health(admin) == b"health: up\n"
        reader.release()
        sender.join()
        program.await_stats(lines=50000)
    assert program.end()["added"] == 50000
    assert reader.end() == 50000


@case
def what_finds_no_room_before_a_stop_is_counted(folder):
    reader = SlowReader(make_fifo(folder))
    program = start(folder, TCP, handler=slow_handler(os.path.join(folder, "fifo")))
    with connect(program) as client:
        client.setblocking(False)
        text, sent = b"a:1|c\n" * 10000, 0
        try:
            while sent < 100 * MIB:
                sent += client.send(text[sent % 6:])
        except BlockingIOError:
            pass
        wait_until_still(program.program.pid, lambda: program.stats()["lines"], "the queue to be full")
        program.stop()
        program.await_log("there was no room for it before the end")
        reader.release()
        counts = program.end()
    assert counts["lines"] == counts["added"] + counts["refused"] and counts["refused"] > 0, counts
    assert counts["bad_lines"] <= 1, counts
    assert reader.end() == counts["added"]


@case
def counts_of_sets_and_repeated_timers_wait_for_room_and_are_added_once(folder):
    reader = SlowReader(make_fifo(folder))
    program = start(folder, TCP, handler=slow_handler(os.path.join(folder, "fifo")), set_interval="1ms", series_limit=100000)
    sets, rounds = (300, 2) if SANITIZED else (3000, 3)

    def send():
        with connect(program) as client:
            for _ in range(rounds):
                client.sendall(b"".join(b"s%d:a|s\nt:1|ms|@0.1\n" % i for i in range(sets)))

    sender = threading.Thread(target=send)
    sender.start()
    program.await_stats(lines=100)
    reader.release()
    sender.join()
    program.await_stats(lines=2 * rounds * sets)
    counts = program.end()
    assert counts["refused"] == counts["bad_lines"] == 0, counts
    reader.end()
    lines = reader.reader.data.splitlines()
    assert len(lines) == counts["added"], (len(lines), counts)
    assert sum(b'"name":"t"' in line for line in lines) == 10 * rounds * sets
    for i in range(0, sets, 97):
        values = [json.loads(line)["value"] for line in lines if b'"name":"s%d"' % i in line]
        assert 1 <= sum(values) <= rounds and set(values) <= {0, 1}, (i, values)


if __name__ == "__main__":
    main()
