"""The socket handler with real receivers: each kind of socket and format, datagrams, processes, and configurations."""

import json
import os
import re
import socket
import time

from fifos import ScriptedApp
from harness import ADDER, BUILD, WEIR, assert_ledgers, main, run, skip_fork_under_sanitizers, wait_for, without_waits
from sockets import CLOSED, LINE_FORMATS, REJECTED, TOO_LARGE, add, case, config_of, ledger_of, receive, send_between_restarts, start, \
    values_of


# ---- Delivering ------------------------------------------------------------------------------------------------


def deliver_over(kind, folder):
    with receive(kind, folder) as receiver:
        count = 500 if kind.startswith("udp") else 50000
        ledger, log = add(config_of(receiver.to), count)
        assert ledger["delivered"] == count and without_waits(log) == "", (ledger, log)
        receiver.wait_for_lines(count)
        assert values_of(receiver.lines()) == list(range(count))
        if receiver.has_datagrams:
            sizes = [len(piece) for piece in receiver.pieces]
            assert max(sizes) <= 1432 and len(sizes) < count / 10, "several events are in a datagram"
        else:
            assert receiver.connections == 1, receiver.connections


@case
def values_arrive_in_order_over_udp(folder):
    deliver_over("udp", folder)


@case
def values_arrive_in_order_over_udp_with_ipv6(folder):
    deliver_over("udp6", folder)


@case
def values_arrive_in_order_over_tcp(folder):
    deliver_over("tcp", folder)


@case
def values_arrive_in_order_over_tcp_with_ipv6(folder):
    deliver_over("tcp6", folder)


@case
def values_arrive_in_order_over_a_unix_socket(folder):
    deliver_over("unix", folder)


@case
def values_arrive_in_order_over_a_unix_datagram_socket(folder):
    deliver_over("unix-dgram", folder)


@case
def every_format_of_lines_can_be_used(folder):
    for kind in ("udp", "tcp", "unix", "unix-dgram"):
        for name in LINE_FORMATS:
            with receive(kind, folder) as receiver:
                ledger, log = add(config_of(receiver.to, format=name), 20)
                assert ledger["delivered"] == 20 and without_waits(log) == "", (kind, name, ledger, log)
                receiver.wait_for_lines(20)
                assert len(receiver.lines()) == 20 and "19" in receiver.lines()[-1], (kind, name, receiver.lines())


@case
def a_program_without_standard_streams_sends_nothing_else(folder):
    for kind in ("udp", "tcp", "unix", "unix-dgram"):
        with receive(kind, folder) as receiver:
            done = run(*CLOSED, ADDER, "-n", 50, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(receiver.to), WEIR_LOG="debug")
            assert done.returncode == 0, done
            receiver.wait_for_lines(50)
            assert values_of(receiver.lines()) == list(range(50))


# ---- Datagrams -------------------------------------------------------------------------------------------------


@case
def events_are_not_divided_between_datagrams(folder):
    with receive("udp", folder) as receiver:
        ledger, _ = add(config_of(receiver.to, datagram_bytes="200B"), 350, "-e", 7)
        assert ledger["delivered"] == 350, ledger
        receiver.wait_for_lines(350)
        assert values_of(receiver.lines()) == list(range(350))
        for piece in receiver.pieces:
            assert len(piece) <= 200 and piece.count(b"\n") % 7 == 0, piece


@case
def an_event_that_is_too_long_is_sent_in_several_datagrams_of_whole_lines(folder):
    for name, split in (("statsd", ":"), ("bai", ", "), ("influx", ",")):
        with receive("unix-dgram", folder) as receiver:
            app = ScriptedApp(config_of(receiver.to, format=name), folder)
            assert app.do("event", 300)["code"] == 0 and app.do("flush", -1)["code"] == 0
            ledger = app.ledger()
            app.end()
            assert ledger["delivered"] == 300 and without_waits(app.stderr_text()) == "", (ledger, app.stderr_text())
            wait_for(lambda: b"n299" in receiver.data(), "the last value")
            assert len(receiver.pieces) >= 2 and max(map(len, receiver.pieces)) <= 1432, receiver.pieces
            text = "\n".join(receiver.lines())
            assert sorted(set(re.findall(r"\bn(\d+)\b", text)), key=int) == [str(i) for i in range(300)], (name, split, text)


@case
def a_line_that_is_too_long_is_refused_and_the_others_are_sent(folder):
    with receive("udp", folder) as receiver:
        app = ScriptedApp(config_of(receiver.to, format="json", delivery="sync"), folder)
        assert app.do("add", "before", 1)["code"] == 0
        result = app.do("note", 2000)
        assert result["code"] == TOO_LARGE, result
        assert re.search(r"\d+ bytes of lines are more than the 1432 that a datagram may have: \{\"timestamp\":", result["error"]), result
        assert app.do("add", "after", 2)["code"] == 0
        ledger = app.ledger()
        app.end()
        assert ledger["delivered"] == 2 and ledger["dropped"][REJECTED] == 1, ledger
        wait_for(lambda: len(receiver.lines()) >= 2, "two lines")
        assert [json.loads(line)["name"] for line in receiver.lines()] == ["before", "after"]


@case
def a_slow_receiver_of_unix_datagrams_loses_nothing(folder):
    """The system's queue holds some ten datagrams."""
    path = os.path.join(folder, "slow")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as slow:
        slow.bind(path)
        program = start(ADDER, "-n", 20000, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(f"unix-dgram:{path}"))
        received, slow_until = [], time.monotonic() + 1
        slow.settimeout(240)
        while len(received) < 20000:
            received += values_of(slow.recv(65536).decode().splitlines())
            if time.monotonic() < slow_until:
                time.sleep(0.02)
    ledger, log = ledger_of(program)
    assert received == list(range(20000)) and ledger["delivered"] == 20000 and without_waits(log) == "", (ledger, log)


@case
def a_receiver_of_unix_datagrams_that_takes_nothing_is_reported(folder):
    path = os.path.join(folder, "stuck")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stuck:
        stuck.bind(path)
        program = start(ADDER, "-n", 20000, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(f"unix-dgram:{path}", send_timeout="50ms"))
        assert f"pipe: send {path}: no data taken for 50 ms; retrying" in program.stderr.readline()
        received = []
        stuck.settimeout(240)
        while len(received) < 20000:
            received += values_of(stuck.recv(65536).decode().splitlines())
    ledger, _ = ledger_of(program)
    assert received == list(range(20000)) and ledger["delivered"] == 20000, ledger


@case
def a_refused_datagram_of_this_machine_is_reported_and_sent_again(folder):
    for kind in ("udp", "udp6"):
        receiver = receive(kind, folder)
        receiver.stop()
        program = start(ADDER, "-n", 500, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(receiver.to))
        assert f"pipe: send {receiver.to.split('/')[2]}: Connection refused; retrying" in program.stderr.readline()
        receiver.start()
        ledger, _ = ledger_of(program)
        receiver.wait_for_lines(500)
        assert ledger["delivered"] == 500 and values_of(receiver.lines()) == list(range(500)), ledger
        receiver.stop()


@case
def receivers_of_unix_datagrams_are_found_again_after_a_restart(folder):
    with receive("unix-dgram", folder) as receiver:
        send_between_restarts(receiver, folder)


# ---- The process -----------------------------------------------------------------------------------------------


@case
def a_program_that_closes_all_descriptors_continues_with_new_ones_and_other_files_are_untouched(folder):
    for kind in ("udp", "tcp", "unix", "unix-dgram"):
        strangers = os.path.join(folder, "strangers-" + kind)
        with receive(kind, folder) as receiver:
            done = run(os.path.join(BUILD, "tests", "support", "closer"), strangers, WEIR_CONFIG=config_of(receiver.to))
            assert done.returncode == 0 and without_waits(done.stderr) == "", (kind, done)
            receiver.wait_for_lines(2)
            assert receiver.lines() == ["my_app.before:1|g", "my_app.after:2|g"], (kind, receiver.lines())
        assert os.path.getsize(strangers) == 0, kind


def sockets_of(pid):
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            place = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue  # closed in the meantime
        if place.startswith("socket:"):
            found.add(place)
    return found


@case
def a_forked_child_has_its_own_connection_and_none_of_the_parents(folder):
    skip_fork_under_sanitizers()
    for kind in ("udp", "tcp", "unix", "unix-dgram"):
        with receive(kind, folder) as receiver:
            app = ScriptedApp(config_of(receiver.to), folder)
            assert app.do("add", "parent", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
            own = sockets_of(app.program.pid)
            assert len(own) == 1, own
            idle = app.do("fork")["code"]
            wait_for(lambda: sockets_of(idle) == set(), "the child to close the inherited connection")
            app.do("fork", "child")
            assert app.do("reap")["code"] == 0
            assert app.do("add", "parent", 2)["code"] == 0 and app.do("flush", -1)["code"] == 0
            assert sockets_of(app.program.pid) == own and app.ledger()["delivered"] == 2
            app.end()
            receiver.wait_for_lines(3)
            assert sorted(receiver.lines()) == ["my_app.child:1|g", "my_app.parent:1|g", "my_app.parent:2|g"], receiver.lines()


@case
def forks_while_the_handler_waits_for_a_peer_succeed_and_the_child_delivers(folder):
    """The parent's handler waits for a full peer, and the child's values go to another one."""
    skip_fork_under_sanitizers()
    path = os.path.join(folder, "full")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full:
        full.bind(path)
        app = ScriptedApp(config_of(f"unix-dgram:{path}"), folder)
        for value in range(40):
            assert app.do("add", "t0", value)["code"] == 0
            app.do("flush", 20)
        for _ in range(3):
            assert app.do("fork", "child")["code"] > 0
            full.settimeout(240)
            app.send("reap")
            lines = []
            while not any("child" in line for line in lines):
                lines += full.recv(65536).decode().splitlines()
            assert app.reply()["code"] == 0
            for line in lines:
                assert line.startswith(("my_app.t0:", "my_app.child:")), line
        app.send("flush", -1)
        assert app.reply()["code"] == 0
        ledger = app.ledger()
        app.end()
        assert ledger["delivered"] == 40, ledger


@case
def a_reload_with_another_destination_loses_nothing(folder):
    with receive("tcp", folder) as first, receive("unix", folder) as second:
        files = []
        for number, receiver in enumerate((first, second)):
            files += ["-c", os.path.join(folder, f"{number}.json")]
            with open(files[-1], "w", encoding="utf-8") as file:
                json.dump(config_of(receiver.to), file)
        done = run(ADDER, "-n", 8000, "-p", 20000, "-r", 20, "-f", -1, "-H", "pipe", *files, WEIR_CONFIG="")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        report = json.loads(done.stdout)
        assert_ledgers(report)
        count = report["handlers"]["pipe"]["delivered"]
        assert count == 8000 - report["process"]["unrouted"], report
        wait_for(lambda: first.data().count(b"\n") + second.data().count(b"\n") >= count, "all lines")
        values = values_of(first.lines() + second.lines())
        assert len(values) == count and sorted(values) == list(range(8000 - count, 8000)), values
        assert first.connections and second.connections


# ---- Configurations --------------------------------------------------------------------------------------------


@case
def destinations_that_are_not_valid_are_refused():
    for to, words in (("127.0.0.1:8125", "has no scheme that is known; allowed: udp://HOST:PORT"),
                      ("http://127.0.0.1:80", "has no scheme that is known"),
                      ("udp://127.0.0.1", "has no port"), ("udp://127.0.0.1:", "has no port"), ("tcp://[::1]", "has no port"),
                      ("udp://127.0.0.1:0", "something other than a port, 1..65535"), ("udp://127.0.0.1:65536", "something other than a port"),
                      ("udp://127.0.0.1:statsd", "something other than a port"), ("udp://:8125", "has no host"),
                      ("udp://::1:8125", "IPv6 address without brackets"), ("udp://[::1:8125", "has no port|a bracket that is not closed"),
                      ("tcp://127.0.0.1:2003/x", "has a path"), ("tcp://a b:2003", "a character in its host"),
                      ("tcp://me:hidden@127.0.0.1:2003", "the value names a user"),
                      ("unix:relative", "has no absolute path"), ("unix-dgram:", "has no absolute path"),
                      ("unix:/" + "x" * 107, "has a path of more than 107 bytes"), ("tcp://" + "x" * 256 + ":1", "has a host of more than 255")):
        done = run(WEIR, "check", WEIR_CONFIG=config_of(to))
        assert done.returncode == 1 and re.search(words, done.stderr) and "handlers.pipe.to" in done.stderr, (to, done)
        assert "hidden" not in done.stderr, done
    for to in ("udp://[fe80::1%eth0]:8125", "unix:/" + "x" * 106, "tcp://" + "x" * 255 + ":1"):
        assert run(WEIR, "check", WEIR_CONFIG=config_of(to)).returncode == 0, to


main()
