"""Sources with more than they should be sent: WEIR_TEST_FACTOR=10 is a line of 1 GB, 100,000 connections with 1,000 at once, 1,000 connections
that are all active at once, and 1,000,000 datagrams."""

import os
import random
import re
import resource
import socket

from fifos import make_fifo
from harness import SANITIZED, main, wait_for
from sourced import Sourced, case

FACTOR = float(os.environ.get("WEIR_TEST_FACTOR") or 1)
MB = 1000 * 1000
MOST_MEMORY = 64 << 20  # of the whole program, with a longest line of 1 MiB


def assert_small(program):
    memory = program.memory()
    print(f"# at most {memory >> 20} MiB of memory")
    assert SANITIZED or memory < MOST_MEMORY, memory


@case
def a_line_without_end_and_bytes_that_are_no_text_need_little_memory(folder):
    chosen = random.Random(7)
    for parse in ("auto", "bai", "json", "influx", "csv"):
        path = make_fifo(folder, "in-" + parse)
        program = Sourced(folder, {"type": "fifo", "path": path, "parse": parse})
        good = {"csv": b"name,value\nx,1\n"}.get(parse, b'{"name":"x","value":1}\n' if parse in ("auto", "json") else b'{"x":1}\n')
        good = b"m x=1\n" if parse == "influx" else good
        size = int(100 * MB * FACTOR) if parse == "auto" else 5 * MB
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(good)
            part = b"a" * MB
            for _ in range(size // MB):
                pipe.write(part)
            pipe.write(b"\n")
            pipe.write(chosen.randbytes(5 * MB))
            pipe.write(b"\n" + b"\xc3\n\xe2\x82\nx\xf0\x9f\x98=1\n" * 1000 + b"\0\n")
            pipe.write(good)
        program.await_stats(added=2)
        assert_small(program)
        counts = program.end()
        assert counts["bad_lines"] >= 3000 and counts["lines"] > 3000, (parse, counts)
        assert [value for name, value in program.values()][-1] == 1 and counts["added"] >= 2, (parse, counts)


@case
def very_many_connections_in_turn_beside_slow_ones_are_all_answered(folder):
    turns, slow = int(10000 * FACTOR) // (5 if SANITIZED else 1), 200 if FACTOR < 5 else 999
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    program = Sourced(folder, {"type": "http", "listen": "127.0.0.1:0", "connections": slow + 1, "idle_timeout": "1h", "request_timeout": "1h",
                               "series_limit": 10})
    port = program.port("http://127.0.0.1")
    drips = [socket.create_connection(("127.0.0.1", port), 240) for _ in range(slow)]
    request = b"POST /?parse=text HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 4\r\n\r\nx=1\n"
    for number in range(turns):
        drips[number % slow].send(b"G" if number < slow else b"")  # a head that never ends
        with socket.create_connection(("127.0.0.1", port), 240) as client:
            client.sendall(request)
            answer = client.recv(100)
            assert answer.startswith(b"HTTP/1.1 200 "), (number, answer)
    assert_small(program)
    for drip in drips:
        drip.close()
    counts = program.end()
    assert counts["added"] == turns and counts["refused"] == counts["bad_lines"] == 0, counts


def read_answer(client, rest):
    """Returns what comes behind the next answer, which has to be 200."""
    while b"\r\n\r\n" not in rest:
        part = client.recv(65536)
        assert part, rest
        rest += part
    head, _, body = rest.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
    while len(body) < length:
        body += client.recv(65536)
    return body[length:]


@case
def many_connections_that_are_all_active_at_once_are_all_answered(folder):
    count, turns = int(100 * FACTOR), 10
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    program = Sourced(folder, {"type": "http", "listen": "127.0.0.1:0", "connections": count, "idle_timeout": "1h", "request_timeout": "1h"})
    port = program.port("http://127.0.0.1")
    clients = [socket.create_connection(("127.0.0.1", port), 240) for _ in range(count)]
    rests = [b""] * count
    body = b"".join(b"v%d=%d\n" % (number % 7, number) for number in range(100))
    request = b"POST /?parse=text HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body)
    for _ in range(turns):
        for part in (request, body[:300], body[300:]):  # each has begun before any of them is complete
            for client in clients:
                client.sendall(part)
        rests = [read_answer(client, rest) for client, rest in zip(clients, rests)]
    assert_small(program)
    for client in clients:
        client.close()
    counts = program.end()
    assert counts["added"] == 100 * turns * count and counts["refused"] == counts["bad_lines"] == 0, counts
    assert rests == [b""] * count


def read_end(path):
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 4096))
        return file.read()


def number_in(log, pattern):
    match = re.search(pattern, log)
    return int(match[1]) if match else 0


@case
def each_of_very_many_datagrams_is_added_or_counted_and_the_source_lives(folder):
    sent = int(100000 * FACTOR) // (5 if SANITIZED else 1)
    program = Sourced(folder, {"type": "statsd", "listen": ["udp://127.0.0.1:0"], "group": "g", "recv_buffer": "64KiB"})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", program.port("udp://127.0.0.1")))
        for number in range(sent):
            sender.send(b"a.b:%d|g" % number)

        def is_heard():
            nonlocal sent
            sender.send(b"still.there:1|c")
            sent += 1
            return b"still.there" in read_end(os.path.join(folder, "out"))
        wait_for(is_heard, "a value sent after the flood")
    assert_small(program)
    counts, log = program.end(), program.log()
    dropped = number_in(log, r"the kernel has dropped (\d+) datagrams in all")
    unread = number_in(log, r"(\d+) datagrams were not read in time")
    print(f"# {sent} datagrams: {counts['added']} added, {dropped} dropped by the kernel, {unread} not read at the end")
    assert counts["lines"] == counts["added"] and counts["added"] + dropped + unread == sent, (sent, counts, dropped, unread)


if __name__ == "__main__":
    main()
