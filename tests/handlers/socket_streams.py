"""The socket handler with servers that are slow, missing, restarted or killed: no line is torn, and what was not acknowledged is sent again."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

from fifos import ScriptedApp
from harness import ADDER, assert_ledgers, free_port, main, run, wait_for, wait_until_still, without_waits
from sockets import STREAMS, case, config_of, ledger_of, receive, send_between_restarts, start, values_of


@case
def a_server_that_was_restarted_while_nothing_was_sent_misses_nothing(folder):
    for kind in STREAMS:
        with receive(kind, folder) as receiver:
            send_between_restarts(receiver, folder)
            assert receiver.connections == 5, receiver.connections


@case
def a_server_that_starts_late_gets_everything(folder):
    for kind in STREAMS:
        receiver = receive(kind, folder)
        receiver.stop()
        program = start(ADDER, "-n", 5000, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(receiver.to))
        peer = receiver.path or receiver.to.split("/")[2]
        assert f"pipe: connect {peer}: Connection refused; retrying" in program.stderr.readline()
        receiver.start()
        ledger, _ = ledger_of(program)
        receiver.wait_for_lines(5000)
        assert ledger["delivered"] == 5000 and values_of(receiver.lines()) == list(range(5000)), ledger
        receiver.stop()


# Reads so many bytes and appends the whole lines of them to a file.
SERVER = r"""
import os, socket, sys, time
port, path, left = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
listener.bind(("127.0.0.1", port))
listener.listen()
notes = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
while True:
    stream, _ = listener.accept()
    rest = b""
    while True:
        try:
            data = stream.recv(30011)
        except ConnectionError:
            break
        if not data:
            break
        whole, newline, rest = (rest + data).rpartition(b"\n")
        if whole:
            os.write(notes, whole + newline)
        left -= len(data)
        if left <= 0:
            time.sleep(3600)
"""


def wait_for_size(path, size, what):
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > size, what)


@case
def servers_killed_ten_times_see_no_torn_line_and_lose_only_what_they_had_not_read(folder):
    """A killed server loses what its system has acknowledged and it has not recorded: at most a receive buffer and one read."""
    port = free_port()
    count, notes = 500000, [os.path.join(folder, f"notes{turn}") for turn in range(11)]

    def serve(turn):
        most = "150000" if turn < 10 else "1000000000"
        return subprocess.Popen([sys.executable, "-c", SERVER, str(port), notes[turn], most], stdout=subprocess.DEVNULL)
    server = serve(0)
    program = start(ADDER, "-n", count, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(f"tcp://127.0.0.1:{port}", shutdown="1m"))
    try:
        for turn in range(10):
            wait_for_size(notes[turn], 100000, f"server {turn} to read")
            server.kill()
            server.wait()
            server = serve(turn + 1)
        ledger, log = ledger_of(program)
        wait_for(lambda: open(notes[10], "rb").read().endswith(b":%d|g\n" % (count - 1)), "the last value")
    finally:
        program.kill()
        server.kill()
        server.wait()
    assert ledger["delivered"] == count and sum(ledger["dropped"]) == 0, (ledger, log)
    # the kill may cut off what a server was recording
    received = [values_of(open(path, encoding="ascii").read().rpartition("\n")[0].splitlines()) for path in notes]
    for values in received:
        assert values == list(range(values[0], values[0] + len(values))), "a line is torn, missing or repeated within a connection"
    for values, after in zip(received, received[1:]):
        assert after[0] <= values[-1] + 1 + (2 * 65536 + 30011) // len("my_app.t0:0|g\n"), (values[-1], after[0])
    assert received[0][0] == 0 and received[-1][-1] == count - 1


def stop_process(pid):
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: open(f"/proc/{pid}/stat", encoding="ascii").read().rpartition(")")[2].split()[0] == "T", "the program to stop")


def read_unread(stream):
    """What the system has received, without taking it."""
    stream.setblocking(False)
    try:
        return stream.recv(1 << 26, socket.MSG_PEEK)
    except BlockingIOError:  # nothing has come yet
        return b""


def listen_with_small_buffers():
    """A TCP server whose buffer is small, and whose segments end within lines. Returns (the listener, its URL)."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1001)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener, f"tcp://127.0.0.1:{listener.getsockname()[1]}"


def stop_when_full(program, stream):
    """Waits until the buffers of both systems are full, and stops the program, so that they stay as they are. Returns the data not read."""
    def count_unread():
        return len(read_unread(stream))
    wait_until_still(program.pid, count_unread, "full buffers")
    stop_process(program.pid)
    wait_until_still(program.pid, count_unread, "the last data")  # it may have sent more before it stopped
    return read_unread(stream).decode()


@case
def what_a_server_had_not_acknowledged_when_it_died_is_sent_again():
    """All that is missing lay unread in the server's buffer, and TCP had acknowledged it."""
    count = 300000
    listener, to = listen_with_small_buffers()
    program = start(ADDER, "-n", count, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(to, shutdown="1m", queue="1GiB"))
    dead, _ = listener.accept()
    unread = stop_when_full(program, dead)
    dead.close()
    program.send_signal(signal.SIGCONT)
    stream, _ = listener.accept()
    stream.settimeout(240)
    data = b""
    while not data.endswith(b":%d|g\n" % (count - 1)):
        part = stream.recv(1 << 20)
        assert part, "the handler has closed the connection"
        data += part
    ledger, log = ledger_of(program)
    assert ledger["delivered"] == count, (ledger, log)
    lost = unread.splitlines()
    received, lost = values_of(data.decode().splitlines()), values_of(lost if unread.endswith("\n") else lost[:-1])
    assert lost == list(range(len(lost))) and received == list(range(received[0], count)), (lost[-1:], received[:1], received[-1:])
    assert received[0] == len(lost), f"{len(lost)} values were received before, the next one is {received[0]}"


@case
def the_message_about_a_lost_connection_has_the_number_of_bytes_to_be_sent_again(folder):
    """The server does not come back, so these are lost when the program ends."""
    listener, to = listen_with_small_buffers()
    app = ScriptedApp(config_of(to, shutdown="100ms", queue="1GiB"), folder)
    app.do("event", 1000)
    dead, _ = listener.accept()
    for _ in range(400):
        app.do("event", 1000)
    stop_when_full(app.program, dead)
    listener.close()
    dead.close()
    app.program.send_signal(signal.SIGCONT)
    wait_for(lambda: "retrying" in app.stderr_text(), "the loss of the connection")
    app.ledger()
    app.end()
    assert re.search(rf"pipe: send {to[6:]}: Connection reset by peer; [1-9]\d+ bytes to be sent again; retrying", app.stderr_text()), \
        app.stderr_text()


@case
def an_event_that_a_closed_connection_has_torn_is_sent_again_whole(folder):
    """The peer closes its side of a connection whose buffer is full, and reads it to its end."""
    path = os.path.join(folder, "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    program = start(ADDER, "-n", 100000, "-e", 10, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(f"unix:{path}", shutdown="1m"))
    streams, values, torn = [], set(), 0
    while len(values) < 100000:
        stream, _ = listener.accept()
        stream.settimeout(240)
        data = b""
        while len(data) < 120001 and not data.endswith(b":99999|g\n"):
            part = stream.recv(1009)
            assert part, "the handler has closed the connection"
            data += part
        stream.shutdown(socket.SHUT_WR)
        while part := stream.recv(65536):
            data += part
        stream.close()
        whole, _, rest = data.decode().rpartition("\n")
        torn += len(rest) > 0
        streams.append(values_of(whole.splitlines()))
        values |= set(streams[-1])
    ledger, log = ledger_of(program)
    assert ledger["delivered"] == 100000 and values == set(range(100000)), (ledger, log)
    assert len(streams) > 2 and torn > 0, (len(streams), torn)
    for part in streams:
        assert part[0] % 10 == 0 and part == list(range(part[0], part[0] + len(part))), part[:20]


@case
def a_peer_that_takes_nothing_is_given_up_after_send_timeout(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer = f"127.0.0.1:{listener.getsockname()[1]}"
        done = run(ADDER, "-n", 500000, "-f", 2000, "-H", "pipe", WEIR_CONFIG=config_of(
            f"tcp://{peer}", shutdown="100ms", send_timeout="100ms", overflow="drop_oldest", block_timeout="100ms"))
    assert re.search(rf"pipe: send {peer}: (no data taken for 100 ms|Connection timed out); [1-9]\d+ bytes to be sent again; retrying",
                     done.stderr), done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["process"]["added"] == 500000, report


@case
def a_slow_reader_gets_whole_lines_over_one_connection(folder):
    for kind in ("tcp", "unix"):
        family, address = (socket.AF_INET, ("127.0.0.1", 0)) if kind == "tcp" else (socket.AF_UNIX, os.path.join(folder, "slow"))
        with socket.socket(family) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            listener.bind(address)
            listener.listen()
            to = f"tcp://127.0.0.1:{listener.getsockname()[1]}" if kind == "tcp" else f"unix:{address}"
            program = start(ADDER, "-n", 400000, "-e", 4, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(to, shutdown="1m", batch=100000, batch_bytes="16MiB"))
            stream, _ = listener.accept()
            stream.settimeout(240)
            data, slow_until = bytearray(), time.monotonic() + 2
            while not data.endswith(b":399999|g\n"):
                part = stream.recv(4099 if time.monotonic() < slow_until else 1 << 16)
                assert part, "the handler has closed the connection"
                data += part
                if time.monotonic() < slow_until:
                    time.sleep(0.3)  # long enough that emit returns with a part of a line sent
            ledger, log = ledger_of(program)
            assert ledger["delivered"] == 400000 and without_waits(log) == "", (ledger, log)
            assert values_of(data.decode().splitlines()) == list(range(400000))


main()
