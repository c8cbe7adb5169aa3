"""A program that closes all descriptors, as daemons do, and opens others, which get their numbers: each source opens its own again, and neither
reads, writes nor closes those of the program."""

import os
import socket

from harness import ADDER, SANITIZED, Skip, main, run, wait_for
from sourced import Sourced, case

STRANGERS = 60


def close_descriptors(program):
    """Returns after the source has opened its own again."""
    if "thread" in SANITIZED:
        raise Skip("to close a descriptor that another thread uses is a data race, which the sanitizer ends the program for")
    running = program.stats()["state"]
    program.program.stdin.write("close\n")
    program.program.stdin.flush()
    program.await_log(r"in: .*has closed its descriptors?; trying again")
    wait_for(lambda: program.stats()["state"] == running, "the source")


def end(program, names):
    program.await_stats(added=len(names))
    assert program.ask("strangers") == STRANGERS, "those of the program are as it has made them"
    program.end()
    assert [name for name, _ in program.values()] == names


def port_of(program, scheme):
    """The one that was logged last."""
    return int(program.log().rsplit(f"listens at {scheme}://127.0.0.1:", 1)[1].split("\n", 1)[0])


@case
def fifo(folder):
    path = os.path.join(folder, "fifo")
    program = Sourced(folder, {"type": "fifo", "path": path, "parse": "text"})
    wait_for(lambda: os.path.exists(path), "the pipe")

    def write(text):
        with open(path, "w", encoding="ascii") as pipe:
            pipe.write(text)
    write("before=1\n")
    program.await_stats(added=1)
    close_descriptors(program)
    write("after=2\n")
    end(program, ["before", "after"])


@case
def file(folder):
    paths = [os.path.join(folder, name) for name in ("a.txt", "b.txt")]
    program = Sourced(folder, {"type": "file", "path": os.path.join(folder, "*.txt"), "parse": "text", "start": "beginning",
                               "state": os.path.join(folder, "state")})

    def write(path, text):
        with open(path, "a", encoding="ascii") as lines:
            lines.write(text)
    write(paths[0], "before=1\n")
    program.await_stats(added=1)
    write(paths[0], "to")
    close_descriptors(program)
    write(paths[0], "gether=2\n")
    program.await_stats(added=2)
    write(paths[1], "other=3\n")
    end(program, ["before", "together", "other"])


@case
def statsd(folder):
    path = os.path.join(folder, "socket")
    program = Sourced(folder, {"type": "statsd", "listen": ["udp://127.0.0.1:0", "tcp://127.0.0.1:0", "unix-dgram:" + path]})
    program.port("udp://127.0.0.1")
    with socket.create_connection(("127.0.0.1", port_of(program, "tcp"))) as connection:
        connection.sendall(b"before:1|c\ntorn")
        program.await_stats(added=1)
        close_descriptors(program)
        assert connection.recv(1) == b""
    with socket.create_connection(("127.0.0.1", port_of(program, "tcp"))) as connection:
        connection.sendall(b"tcp:1|c\n")
        program.await_stats(added=2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"udp:1|c", ("127.0.0.1", port_of(program, "udp")))
    program.await_stats(added=3)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"unix:1|c", path)
    end(program, ["before", "tcp", "udp", "unix"])


@case
def http(folder):
    # a server whose descriptors are the program's now is leaked
    program = Sourced(folder, {"type": "http", "listen": "127.0.0.1:0", "parse": "text"}, env={"ASAN_OPTIONS": "detect_leaks=0"})

    def post(body):
        done = run("curl", "-sS", "--fail", "--max-time", 240, "--data-binary", body, f"http://127.0.0.1:{port_of(program, 'http')}/")
        assert done.returncode == 0, done.stderr
    program.port("http://127.0.0.1")
    with socket.create_connection(("127.0.0.1", port_of(program, "http"))) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: 9\r\n\r\n")
        post("before=1")
        close_descriptors(program)
        assert connection.recv(1) == b""
    post("after=2")
    end(program, ["before", "after"])


@case
def forward(folder):
    path = os.path.join(folder, "socket")
    program = Sourced(folder, {"type": "forward", "listen": ["unix:" + path]})
    program.await_log("listens at")

    def add_one():
        handler = {"type": "forward", "to": "unix:" + path, "retry_min": "5ms", "retry_max": "50ms"}
        done = run(ADDER, "-n", 1, "-f", -1, WEIR_CONFIG={"settings": {"status": "off"}, "handlers": {"up": handler}, "groups": {"*": "up"}})
        assert done.returncode == 0, done
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        add_one()
        close_descriptors(program)
        assert connection.recv(1) == b""
    add_one()
    end(program, ["t0", "t0"])


main()
