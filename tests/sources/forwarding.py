"""The handler and the source `forward`: what one process adds arrives in another one, once, however often either of them ends."""

import json
import os
import select
import signal
import socket
import struct
import subprocess

import harness
from harness import ADDER, WEIR, Skip, assert_ledgers, environment, free_port, lines_of, main, run, skip_fork_under_sanitizers, start, wait_for
from sourced import Sourced, case

MAGIC = b"WEIRFWD\n"
HELLO, WELCOME, SERIES, BLOCK, ACK, REFUSE, BYE, PATH, WEIGHTS = range(1, 10)
CHILDREN = int(100 * max(1, min(10, float(os.environ.get("WEIR_TEST_FACTOR") or 1))))


def path_of(folder):
    return os.path.join(folder, "s")


def receive(folder, listen=None, handler=None, journal=True, status=None, **options):
    settings = {"journal": os.path.join(folder, "journal")} if journal else {}
    settings.update({"status": status} if status else {})
    program = Sourced(folder, {"type": "forward", "listen": [listen or "unix:" + path_of(folder)], **options}, handler, **settings)
    program.await_log("listens at")
    return program


def sender_config(to, beside=None, **options):
    """The file `beside` gets what is forwarded, too."""
    up = {"type": "forward", "to": to, "retry_min": "5ms", "retry_max": "100ms", "block_timeout": "1h", **options}
    handlers = {"up": up}
    if beside:
        handlers["beside"] = {"type": "file", "path": beside, "format": "json"}
    return {"settings": {"shutdown_timeout": "5m", "status": "off"}, "handlers": handlers, "groups": {"*": list(handlers)}}


def add(config, count, *more):
    """Returns the ledger of the handler of a program that has added that many values."""
    done = run(ADDER, "-n", count, "-f", -1, "-H", "up", *more, WEIR_CONFIG=config, timeout=1800)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert report["handlers"]["up"], done.stderr
    assert_ledgers(report)
    return report["handlers"]["up"]


def assert_all_there(program, count):
    values = [value for _, value in program.values()]
    assert sorted(values) == list(range(count)), (len(values), len(set(values)), count)


# ---- Values ------------------------------------------------------------------------------------


@case
def values_with_all_they_have_arrive_as_they_were_added(folder):
    program = receive(folder)
    direct = os.path.join(folder, "direct")
    lines = [{"group": "a.b", "name": "loss", "value": 0.1, "labels": {"rank": "0", "ü": "\u20ac \" \\"}},
             {"group": "a.b", "name": "steps", "value": 9223372036854775807},
             {"group": "a.b", "name": "steps", "value": -9223372036854775808},
             {"group": "c", "name": "tiny", "value": 5e-324, "timestamp": 1700000000.123456}, {"group": "c", "name": "huge", "value": 1.7976931348623157e308},
             {"group": "c", "name": "noted", "value": 1, "metadata": "n\u00f6te \t" * 40},
             {"x": 1.5, "y": 2, "z": -0.0},
             {"group": "c", "name": "long", "value": 2, "metadata": "x" * 3000}]
    config = sender_config("unix:" + path_of(folder), direct)
    with open(os.path.join(folder, "in"), "w", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines) * 300)
    with open(os.path.join(folder, "in"), "rb") as file:
        done = run(WEIR, "emit", "-g", "none", "-", stdin=file, WEIR_CONFIG=config)
    assert done.returncode == 0, done
    counts = program.end()
    assert counts["added"] == 300 * 10, (counts, done)
    sent, come = ([json.loads(line) for line in lines_of(path)] for path in (direct, os.path.join(folder, "out")))
    assert len(sent) == len(come)
    by_group = [{group: [line for line in side if line["group"] == group] for group in ("a.b", "c", "none")} for side in (sent, come)]
    assert by_group[0] == by_group[1]


@case
def the_ledgers_of_both_ends_agree(folder):
    program = receive(folder)
    up = add(sender_config("unix:" + path_of(folder)), 100000, "-e", 7)
    assert (up["delivered"], up["retries"]) == (100000, 0), up
    assert program.end()["added"] == 100000
    assert_all_there(program, 100000)


@case
def an_event_of_many_values_and_long_metadata_pass(folder):
    program = receive(folder)
    assert add(sender_config("unix:" + path_of(folder)), 20000, "-e", 1000)["delivered"] == 20000
    program.end()
    assert_all_there(program, 20000)


# ---- Acknowledgements --------------------------------------------------------------------------


@case
def without_a_journal_values_are_acknowledged_when_they_are_delivered(folder):
    for ack in ("stored", "taken"):
        here = os.path.join(folder, ack)
        os.mkdir(here)
        program = receive(here, journal=False)
        assert add(sender_config("unix:" + path_of(here), ack=ack), 5000)["delivered"] == 5000
        program.end()
        assert_all_there(program, 5000)


@case
def a_journal_is_replayed_to_a_receiver_without_a_limit_of_time(folder):
    config, journal = sender_config("unix:" + path_of(folder)), os.path.join(folder, "sender")
    config["settings"]["journal"] = journal
    path = os.path.join(folder, "sender.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    done = run(WEIR, "emit", "-g", "a", "x=1", "y=2", "-t", "10ms", WEIR_CONFIG=path)
    assert done.returncode == 1, done
    program = receive(folder)
    done = run(WEIR, "journal", "replay", journal, "-c", path)
    assert done.returncode == 0, done
    assert program.end()["added"] == 2


@case
def a_sender_whose_acknowledgements_wait_for_an_interval_names_the_cause_and_the_remedy(folder):
    def log_of(name, texts=(), aggregate="1d", journal=True, **more):
        """What a sender logs until all these texts are there, or until it has ended by itself."""
        here = os.path.join(folder, name)
        os.mkdir(here)
        handler = {"type": "file", "path": os.path.join(here, "out"), "format": "json", **({"aggregate": aggregate} if aggregate else {})}
        program = receive(here, handler=handler, journal=journal)
        path = os.path.join(here, "log")
        with open(path, "w", encoding="utf-8") as log:
            sender = subprocess.Popen([WEIR, "emit", "-g", "g", "n=1"], stderr=log, env=environment(WEIR_CONFIG=sender_config("unix:" + path_of(here), **more)))
            wait_for(lambda: sender.poll() is not None or (texts and all(any(text in line for line in lines_of(path)) for text in texts)), "the log")
            sender.kill()
            sender.wait()
        program.program.kill()
        return lines_of(path)

    cause = 'the receiver has no journal and acknowledges at the end of its interval of "aggregate"'
    remedy = 'set settings.journal there, or "ack": "taken" here'
    log = log_of("late", (", which a process that ends waits for", "not acknowledged yet"), journal=False, ack_timeout="10ms")
    assert all(cause in line and remedy in line for line in log[:2]) and "weir: warning: up: " in log[0], log
    assert log_of("journal") == log_of("taken", ack="taken", journal=False) == log_of("single", aggregate=None, journal=False) == []


@case
def a_receiver_that_aggregates_with_a_journal_acknowledges_before_the_interval_ends(folder):
    out = os.path.join(folder, "out")
    sums = {"type": "file", "path": out, "format": "json", "aggregate": "1d"}
    config = sender_config("unix:" + path_of(folder))
    program = receive(folder, handler=sums)
    for is_killed in (True, False):
        done = run(WEIR, "emit", "-g", "g", "n=1", "n=2", WEIR_CONFIG=config)
        assert done.returncode == 0, done
        if is_killed:
            assert not os.path.exists(out) or not lines_of(out)
            program.program.kill()
            program.program.wait()
            program = receive(folder, handler=sums)
    report, _ = program.program.communicate(timeout=300)
    assert_ledgers(json.loads(report.splitlines()[-1]))
    handler = json.loads(report.splitlines()[-1])["handlers"]["out"]
    assert (handler["recovered"], handler["offered"], handler["delivered"]) == (2, 2, 4), handler
    samples = [json.loads(line) for line in lines_of(out)]
    assert sum(sample["value"] for sample in samples if sample["name"] == "n.sum") == 6, samples


@case
def a_receiver_that_is_restarted_loses_and_repeats_nothing(folder):
    program = receive(folder)
    sender = start(ADDER, "-n", 20000, "-p", 20000, "-f", -1, "-H", "up", WEIR_CONFIG=sender_config("unix:" + path_of(folder)))
    for _ in range(4):
        before = program.stats()["added"]
        wait_for(lambda: program.stats()["added"] > before or sender.poll() is not None, "values")  # pylint: disable=cell-var-from-loop
        program.end()
        program = receive(folder)
    out, log = sender.communicate(timeout=600)
    assert sender.returncode == 0, log
    assert_ledgers(json.loads(out))
    program.end()
    assert_all_there(program, 20000)


@case
def a_receiver_that_is_killed_loses_and_repeats_nothing(folder):
    program = receive(folder)
    sender = start(ADDER, "-n", 20000, "-p", 20000, "-f", -1, "-H", "up", WEIR_CONFIG=sender_config("unix:" + path_of(folder)))
    for _ in range(4):
        before = program.stats()["added"]
        wait_for(lambda: program.stats()["added"] > before or sender.poll() is not None, "values")  # pylint: disable=cell-var-from-loop
        program.program.kill()
        program.program.wait()
        program = receive(folder)
    out, log = sender.communicate(timeout=600)
    assert sender.returncode == 0, log
    assert_ledgers(json.loads(out))
    program.program.communicate(timeout=300)
    assert program.program.returncode == 0, program.log()
    # the file may have a line twice that was written and not yet recorded as delivered, and the part of one that was being written when the
    # receiver was killed: see doc/reliability.md
    values, torn = [], 0
    for line in lines_of(os.path.join(folder, "out")):
        try:
            values.append(json.loads(line)["value"])
        except json.JSONDecodeError:
            torn += 1
    assert torn <= 4
    assert set(values) == set(range(20000)), (len(values), len(set(values)))


@case
def a_receiver_that_is_away_for_long_gets_everything_later(folder):
    config = sender_config("unix:" + path_of(folder), spool=os.path.join(folder, "spool"), queue="64KiB")
    done = run(ADDER, "-n", 50000, "-H", "up", WEIR_CONFIG={**config, "settings": {"shutdown_timeout": "1s", "status": "off"}})
    assert done.returncode == 0, done
    program = receive(folder)
    up = add(config, 1, "-f", -3, "-g", "later")
    assert (up["recovered"], up["delivered"]) == (50000, 50001), up
    program.end()
    assert sorted(line["value"] for line in program.written() if line["group"] != "later") == list(range(50000))


@case
def a_slow_receiver_holds_up_the_sender_and_nothing_is_lost(folder):
    fifo = os.path.join(folder, "pipe")
    os.mkfifo(fifo)
    slow = {"type": "fifo", "path": fifo, "format": "json", "queue": "64KiB", "block_timeout": "1h"}
    program = receive(folder, handler=slow, journal=False)
    config = sender_config("unix:" + path_of(folder), ack_timeout="50ms", queue="64KiB")
    sender = start(ADDER, "-n", 30000, "-f", -1, "-H", "up", WEIR_CONFIG=config)
    wait_for(lambda: program.stats()["added"] > 0, "values")
    before = -1
    while before != program.stats()["added"]:
        before = program.stats()["added"]
    with open(fifo, encoding="utf-8") as file:
        values = [json.loads(file.readline())["value"] for _ in range(30000)]
        out, log = sender.communicate(timeout=600)
        assert sender.returncode == 0, log
        assert_ledgers(json.loads(out))
        program.end()
    assert values == list(range(30000))


# ---- Many senders, and several hops ------------------------------------------------------------


@case
def each_of_many_processes_with_one_value_is_there(folder):
    program = receive(folder)
    config = sender_config("unix:" + path_of(folder))
    for first in range(0, CHILDREN, 20):
        senders = [start(ADDER, "-n", 1, "-f", -1, "-H", "up", "-g", f"g{first + i}", WEIR_CONFIG=config) for i in range(20)]
        for sender in senders:
            out, log = sender.communicate(timeout=300)
            assert sender.returncode == 0, log
            assert_ledgers(json.loads(out))
    assert program.end()["added"] == CHILDREN
    assert sorted(line["group"] for line in program.written()) == sorted(f"g{i}" for i in range(CHILDREN))


@case
def a_thousand_forked_workers_hand_over_to_the_relay_of_the_example(folder):
    skip_fork_under_sanitizers()
    examples = os.path.join(harness.SOURCE, "examples", "config")
    places = {"FORWARD_SOCKET": path_of(folder), "RELAY_JOURNAL": os.path.join(folder, "journal"), "RELAY_FILE": os.path.join(folder, "out"),
              "FORWARD_SPOOL": os.path.join(folder, "spool")}
    relay = start(WEIR, "relay", "-c", os.path.join(examples, "forward_relay.json"), **places)
    try:
        wait_for(lambda: os.path.exists(path_of(folder)) or relay.poll() is not None, "the socket")
        done = run(os.path.join(harness.BUILD, "examples", "prefork"), 1000, WEIR_CONFIG=os.path.join(examples, "forward.json"), timeout=600, **places)
        assert done.returncode == 0, done
        relay.terminate()
        _, log = relay.communicate(timeout=300)
        assert relay.returncode == 0, log
    finally:
        if relay.poll() is None:
            relay.kill()
            relay.communicate()
    lines = [json.loads(line) for line in lines_of(os.path.join(folder, "out"))]
    numbers = sorted((int(line["labels"]["worker"]), line["value"]) for line in lines if line["name"] == "request.number")
    assert numbers == [(worker, request) for worker in range(1000) for request in range(100)], len(numbers)
    assert len(lines) == 1000 * 300 + 2, len(lines)


@case
def values_pass_through_two_relays(folder):
    last = os.path.join(folder, "last")
    os.mkdir(last)
    end = receive(last)
    middle = receive(folder, handler={"type": "forward", "to": "unix:" + path_of(last), "block_timeout": "1h"})
    assert add(sender_config("unix:" + path_of(folder)), 30000, "-e", 3)["delivered"] == 30000
    assert middle.end()["added"] == 30000
    assert end.end()["added"] == 30000
    assert_all_there(end, 30000)


@case
def the_group_weir_is_passed_on_only_if_both_ends_route_it(folder):
    for asks in (False, True):
        here = os.path.join(folder, str(asks))
        os.mkdir(here)
        program = receive(here, journal=False)
        config = sender_config("unix:" + path_of(here))
        config["settings"]["stats_interval"] = "1ms"
        config["groups"].update({"weir": "up"} if asks else {})
        count = add(config, 20000, "-p", 1000)["delivered"]
        out, _ = program.program.communicate(timeout=300)
        report = json.loads(out.splitlines()[-1])
        assert_ledgers(report)
        process = report["process"]  # the sender adds its last metrics of itself when it has printed its ledger
        assert count >= 20000 and process["added"] == report["sources"]["in"]["added"] == 20000 + process["unrouted"], (count, report)
        assert (process["unrouted"] > 0) == asks, report
        assert {line["group"] for line in program.written()} == {"my_app"}


@case
def a_relay_that_forwards_to_itself_is_refused(folder):
    program = receive(folder, handler={"type": "forward", "to": "unix:" + path_of(folder), "retry_min": "5ms", "retry_max": "50ms"}, journal=False)
    with greeted(folder) as sender:
        describe(sender)
        sender.sendall(block(0, [1.0]))
        program.await_log("the values would come back to where they come from: a loop")
    program.program.kill()


@case
def a_loop_over_several_relays_is_refused_wherever_it_closes(folder):
    count = 3
    folders = [os.path.join(folder, str(number)) for number in range(count)]
    programs = []
    for number, here in enumerate(folders):
        os.mkdir(here)
        onward = {"type": "forward", "to": "unix:" + path_of(folders[(number + 1) % count]), "retry_min": "5ms", "retry_max": "50ms"}
        programs.append(receive(here, handler=onward, journal=False))
    with greeted(folders[0]) as sender:
        describe(sender)
        sender.sendall(block(0, [1.0]))
        wait_for(lambda: any("come back to where they come from: a loop" in program.log() for program in programs), "a refusal")
    added = [program.stats()["added"] for program in programs]
    assert max(added) <= 2, added  # the value went round at most once before all knew of each other
    for program in programs:
        program.program.kill()


# ---- The ledger of both ends -------------------------------------------------------------------


def senders_of(folder, program, wanted):
    """What `weir status` shows of the senders, once as many processes as wanted have ended."""
    def find():
        done = run(WEIR, "status", "--folder", os.path.join(folder, "status"), program.program.pid, "--json")
        found = json.loads(done.stdout or "[]")
        return found[0]["sources"][0]["senders"] if found and found[0]["sources"] else []
    wait_for(lambda: sum(sender["processes"] for sender in find() if sender["state"] != "connected") == wanted, "the senders")
    return find()


@case
def the_status_shows_that_both_ends_agree(folder):
    program = receive(folder, status=os.path.join(folder, "status"))
    config = sender_config("unix:" + path_of(folder))
    for count in (1000, 2000, 3004):
        assert add(config, count)["delivered"] == count
    lines = run(WEIR, "emit", "-g", "g", "a=1", "b=2", WEIR_CONFIG=config)
    assert lines.returncode == 0, lines
    senders = {sender.pop("name"): sender for sender in senders_of(folder, program, 4)}
    machine = socket.gethostname()[:30]
    expected = {"state": "ended", "waiting": 0, "recovered": 0, "lost": 0, "repeats": 0, "missing": 0}
    assert senders == {f"adder on {machine}, handler up": {**expected, "processes": 3, "added": 6004, "delivered": 6004, "received": 6004},
                       f"weir on {machine}, handler up": {**expected, "processes": 1, "added": 2, "delivered": 2, "received": 2}}, senders
    shown = run(WEIR, "status", "--folder", os.path.join(folder, "status"), program.program.pid).stdout
    assert "all senders 6006 added = 6006 delivered + 0 lost there; 6006 received here\n" in shown, shown
    assert program.end()["added"] == 6006


@case
def the_status_names_who_has_lost_what_and_who_has_vanished(folder):
    program = receive(folder, status=os.path.join(folder, "status"))
    config = sender_config("unix:" + path_of(folder), queue="4KiB", overflow="drop_newest")
    sender = start(ADDER, "-n", 100000, "-f", -1, "-H", "up", WEIR_CONFIG=config)
    out, log = sender.communicate(timeout=600)
    assert sender.returncode == 0, log
    up = json.loads(out)["handlers"]["up"]
    with greeted(folder) as other:
        other.sendall(series() + block(0, [1.0, 2.0]))
        assert read_frame(other)[0] == ACK
    gone, ended = senders_of(folder, program, 2)
    if ended["state"] == "vanished":
        gone, ended = ended, gone
    assert gone["state"] == "vanished" and gone["name"].startswith(f"test[{os.getpid()}] on machine"), gone
    assert (gone["received"], gone["processes"]) == (2, 1), gone
    assert (ended["added"], ended["delivered"], ended["lost"]) == (100000, up["delivered"], sum(up["dropped"])), (ended, up)
    assert ended["received"] == up["delivered"] and ended["waiting"] == ended["missing"] == 0, (ended, up)
    assert program.end()["added"] == up["delivered"] + 2


def row_of(folder, program):
    """What is shown of the only sender, once it has ended."""
    return senders_of(folder, program, 1)[0]


@case
def the_status_agrees_in_values_when_the_sender_aggregates_and_the_receiver_is_killed(folder):
    status = os.path.join(folder, "status")
    program = receive(folder, status=status)
    config = sender_config("unix:" + path_of(folder), aggregate="20ms")
    config["metrics"] = {"g": {"requests": "counter", "latency": "histogram"}}
    sender = subprocess.Popen([WEIR, "emit", "-g", "g", "-"], env=environment(WEIR_CONFIG=config), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    count = 0
    try:
        for receivers_left in (3, 2, 1, 0):
            before = program.stats()["added"]
            for _ in range(20):
                sender.stdin.write('{"requests": 1, "latency": 0.25}\n' * 50)
                sender.stdin.flush()
                count += 50
            wait_for(lambda: program.stats()["added"] > before, "parts")  # pylint: disable=cell-var-from-loop
            if receivers_left:
                program.program.kill()
                program.program.wait()
                program = receive(folder, status=status)
        _, log = sender.communicate(timeout=600)
        assert sender.returncode == 0, log
    finally:
        if sender.poll() is None:
            sender.kill()
            sender.communicate()
    row = row_of(folder, program)
    assert [row[key] for key in ("state", "added", "recovered", "delivered", "waiting", "lost", "received", "missing")] == \
        ["ended", 2 * count, 0, 2 * count, 0, 0, 2 * count, 0], (row, count)
    shown = run(WEIR, "status", "--folder", status, program.program.pid).stdout
    assert f"{2 * count} added = {2 * count} delivered + 0 lost there; {2 * count} received here" in shown, shown
    program.program.communicate(timeout=300)
    totals = {}
    for line in lines_of(os.path.join(folder, "out")):
        try:
            sample = json.loads(line)
        except json.JSONDecodeError:
            continue  # what a killed receiver was writing
        totals[sample["name"]] = sample["value"]
    assert (totals["requests"], totals["latency.count"], totals["latency.sum"]) == (count, count, count / 4), totals


class EarlierReceiver:
    """A receiver of version 1.0: acknowledges all blocks of one connection, and keeps the types of the frames."""

    def __init__(self, folder):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.settimeout(240)
        self.listener.bind(path_of(folder))
        self.listener.listen(1)
        self.kinds = []

    def serve(self):
        """Until the sender has ended."""
        sender, _ = self.listener.accept()
        sender.settimeout(240)
        with sender, self.listener:
            while found := read_frame(sender):
                kind, payload = found
                self.kinds.append(kind)
                if kind == HELLO:
                    sender.sendall(frame(WELCOME, MAGIC + struct.pack("<HH", 1, 0) + b"\x09" * 16))
                elif kind == BLOCK:
                    first, count = struct.unpack("<16xQ40xI", payload[:68])
                    sender.sendall(frame(ACK, payload[:16] + struct.pack("<QQIB", first, first + count, 0, 2)))


@case
def a_receiver_of_the_version_before_gets_no_frame_that_it_does_not_know(folder):
    receiver = EarlierReceiver(folder)
    config = sender_config("unix:" + path_of(folder), aggregate="20ms")
    sender = start(ADDER, "-n", 5000, "-f", -1, "-H", "up", WEIR_CONFIG=config)
    receiver.serve()
    out, log = sender.communicate(timeout=600)
    assert sender.returncode == 0, log
    assert_ledgers(json.loads(out))
    assert json.loads(out)["handlers"]["up"]["delivered"] == 5000, out
    assert receiver.kinds[0] == HELLO and BLOCK in receiver.kinds and WEIGHTS not in receiver.kinds, receiver.kinds


@case
def what_is_shown_as_received_counts_each_value_once_on_whatever_connection_it_comes(folder):
    program = receive(folder, status=os.path.join(folder, "status"))
    totals = struct.pack("<5Q", 0, 20, 0, 7, 0)  # 7 were acknowledged by an earlier receiver
    for sent, count in (((series(), weights(0, 5), block(0, [1.0, 2.0]), block(2, [3.0])), 2),
                        ((series(), block(2, [3.0]), weights(7, 0), block(3, [4.0, 5.0]), weights(0, 5), block(0, [1.0, 2.0]),
                          block(10, [6.0]), weights(2), block(8, [7.0])), 5)):  # the last one out of order, and new
        with greeted(folder, totals=totals) as sender:
            sender.sendall(b"".join(sent))
            for _ in range(count):
                assert read_frame(sender)[0] == ACK
    wait_for(lambda: row_of(folder, program)["repeats"] == 6, "what came again")
    wait_for(lambda: row_of(folder, program)["received"] == 7 + 5 + 1 + 7 + 1 + 2, "what came")
    assert row_of(folder, program)["repeats"] == 6, row_of(folder, program)
    assert program.end()["added"] == 7


@case
def a_sender_that_connects_again_takes_the_place_of_its_lost_connection(folder):
    program = receive(folder, status=os.path.join(folder, "status"))
    with greeted(folder) as lost, greeted(folder) as other:
        assert read_frame(lost) is None
        other.sendall(series() + block(0, [1.0]))
        assert read_frame(other)[0] == ACK
    row = row_of(folder, program)
    assert (row["processes"], row["received"]) == (1, 1), row
    assert program.end()["added"] == 1


@case
def handlers_of_one_process_are_told_apart_by_their_whole_names(folder):
    program = receive(folder)
    with greeted(folder, handler=b"h" * 200 + b"1") as one, greeted(folder, handler=b"h" * 200 + b"2") as other:
        for number, sender in enumerate((one, other)):
            sender.sendall(series() + block(0, [1.0], origin=bytes([number]) * 16))
            assert read_frame(sender)[0] == ACK
    assert program.end()["added"] == 2


@case
def over_tcp_a_receiver_without_room_is_waited_for_on_one_connection(folder):
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    held = {"type": "fifo", "path": pipe, "format": "json", "queue": "64KiB", "block_timeout": "1h"}
    program = receive(folder, "tcp://127.0.0.1:0", handler=held, journal=False, status=os.path.join(folder, "status"))
    config = sender_config(f"tcp://127.0.0.1:{program.port('tcp://127.0.0.1')}", ack_timeout="100ms")
    config["settings"]["status"] = os.path.join(folder, "sending")
    count = 100000
    sender = start(ADDER, "-n", count, "-f", -1, "-H", "up", WEIR_CONFIG=config)

    def retries():
        found = json.loads(run(WEIR, "status", "--folder", config["settings"]["status"], sender.pid, "--json").stdout or "[]")
        return found[0]["handlers"][0]["retries"] if found else 0
    try:
        wait_for(lambda: retries() > 20, "attempts without room")
        with open(pipe, encoding="utf-8") as file:
            assert [json.loads(file.readline())["value"] for _ in range(count)] == list(range(count))
            out, _ = sender.communicate(timeout=600)
            assert_ledgers(json.loads(out))
            row = row_of(folder, program)
            assert (row["processes"], row["received"], row["repeats"], row["missing"]) == (1, count, 0, 0), row
            assert program.end()["added"] == count
    finally:
        if sender.poll() is None:
            sender.kill()
            sender.communicate()


def write_sending_relay(folder, ack_timeout):
    """A configuration of a relay that forwards what comes through a pipe."""
    path, pipe = os.path.join(folder, "sending.json"), os.path.join(folder, "pipe")
    config = sender_config("unix:" + path_of(folder), ack_timeout=ack_timeout)
    config["sources"] = {"in": {"type": "fifo", "path": pipe, "group": "g"}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path, pipe


@case
def a_handler_that_is_replaced_before_anything_is_delivered_reports_its_values_once(folder):
    away = {"type": "http", "url": f"http://127.0.0.1:{free_port()}/", "format": "influx", "retry_min": "5ms", "retry_max": "50ms", "overflow": "block"}
    program = receive(folder, journal=False, status=os.path.join(folder, "status"), handler=away)
    config, pipe = write_sending_relay(folder, "1h")
    relay = start(WEIR, "relay", "-c", config)
    wait_for(lambda: os.path.exists(pipe), "the pipe")
    with open(pipe, "w", encoding="ascii") as file:
        file.write('{"x": 1}\n' * 100)
    program.await_stats(added=100)
    write_sending_relay(folder, "59m")
    relay.send_signal(signal.SIGHUP)
    ended, now = sorted(senders_of(folder, program, 1), key=lambda sender: sender["state"] == "connected")
    counts = [[sender[key] for key in ("added", "recovered", "delivered", "waiting", "lost")] for sender in (ended, now)]
    assert counts == [[100, 0, 0, 100, 0], [0, 100, 0, 100, 0]], counts
    for process in (relay, program.program):
        process.kill()
        process.communicate()


def write_held_relay(folder, pipe, idle_timeout):
    """A configuration of a relay without journal whose destination is a pipe, which may have no reader."""
    path = os.path.join(folder, "held.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"settings": {"shutdown_timeout": "4m", "status": os.path.join(folder, "status")},
                   "sources": {"in": {"type": "forward", "listen": ["unix:" + path_of(folder)], "idle_timeout": idle_timeout}},
                   "handlers": {"out": {"type": "fifo", "path": pipe, "format": "json", "overflow": "block"}}, "groups": {"*": "out"}}, file)
    return path


def senders_of_relay(folder, relay):
    done = run(WEIR, "status", "--folder", os.path.join(folder, "status"), relay.pid, "--json")
    found = json.loads(done.stdout or "[]")
    return [sender for source in (found[0]["sources"] if found else []) for sender in source["senders"]]


@case
def a_repeat_that_comes_to_another_source_waits_until_what_the_first_one_added_is_delivered(folder):
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    relay = start(WEIR, "relay", "-c", write_held_relay(folder, pipe, "30s"), WEIR_LOG="info")
    try:
        wait_for(lambda: os.path.exists(path_of(folder)), "the socket")
        with greeted(folder) as sender:
            sender.sendall(series() + block(0, [1.0, 2.0]))
            wait_for(lambda: any(row["received"] == 2 for row in senders_of_relay(folder, relay)), "the values")
            write_held_relay(folder, pipe, "31s")
            relay.send_signal(signal.SIGHUP)
            assert read_frame(sender) is None  # it was not acknowledged, and the source is another one
        with greeted_again(folder) as sender:
            sender.sendall(series() + block(0, [1.0, 2.0]))
            # shown after what is settled was acknowledged
            wait_for(lambda: any((row["state"], row["received"]) == ("connected", 2) for row in senders_of_relay(folder, relay)), "the repeats")
            assert not select.select([sender], [], [], 0)[0], "acknowledged while it was in memory only"
            with open(pipe, encoding="utf-8") as file:
                assert [json.loads(file.readline())["value"] for _ in range(2)] == [1, 2]
                kind, payload = read_frame(sender)
                assert (kind, payload[36]) == (ACK, 2), (kind, payload)
                relay.terminate()
                assert file.read() == ""
        _, log = relay.communicate(timeout=300)
        assert relay.returncode == 0 and "2 offered, 2 delivered, 0 dropped" in log, log
    finally:
        if relay.poll() is None:
            relay.kill()
            relay.communicate()


# ---- Hostile senders ---------------------------------------------------------------------------


def frame(kind, payload):
    return struct.pack("<IB3x", len(payload), kind) + payload


def text(value):
    return struct.pack("<H", len(value)) + value + b"\0"


def hello(major=1, ack=0, depth=0, path=0, token=b"", totals=bytes(40), handler=b"up"):
    return frame(HELLO, MAGIC + struct.pack("<HHB", major, 0, ack) + b"\x01" * 16 + struct.pack("<BB", depth, path) + b"\x07" * 16 * path + struct.pack("<I", os.getpid())
                 + text(b"test") + text(b"machine") + text(handler) + text(token) + totals)


def series(number=0, name=b"v", instrument=0):
    return frame(SERIES, struct.pack("<IBBH", number, instrument, 0, 0) + text(b"g") + text(name) + text(b"") + text(b""))


def block(sequence, values, number=0, count=None, origin=b"\x02" * 16, metadata=b""):
    samples = b"".join(struct.pack("<IBBHqdI", number, 0, 0, 0, 1, value, len(metadata)) + metadata for value in values)
    return frame(BLOCK, origin + struct.pack("<6QI", sequence, 0, 0, 0, 0, 0, len(values) if count is None else count) + samples)


def weights(*values):
    return frame(WEIGHTS, struct.pack(f"<I{len(values)}Q", len(values), *values))


def connect(folder):
    sender = socket.socket(socket.AF_UNIX)
    sender.settimeout(120)
    sender.connect(path_of(folder))
    return sender


def read_frame(sender):
    """None: the receiver has closed the connection."""
    data = b""
    while len(data) < 8 or len(data) < 8 + struct.unpack("<I", data[:4])[0]:
        try:
            part = sender.recv(1 if len(data) < 8 else 8 + struct.unpack("<I", data[:4])[0] - len(data))
        except ConnectionResetError:
            return None
        if not part:
            return None
        data += part
    return data[4], data[8:]


def greeted(folder, **options):
    sender = connect(folder)
    sender.sendall(hello(**options))
    assert read_frame(sender)[0] == WELCOME
    return sender


def greeted_again(folder):
    """As greeted, while the source of the relay may be replaced."""
    found = []

    def try_once():
        sender = socket.socket(socket.AF_UNIX)
        sender.settimeout(240)
        try:
            sender.connect(path_of(folder))
            sender.sendall(hello())
            answer = read_frame(sender)
        except (FileNotFoundError, ConnectionRefusedError, BrokenPipeError):
            answer = None
        found.extend([sender] if answer else [])
        if not answer:
            sender.close()
        return found
    wait_for(try_once, "a welcome")
    return found[0]


def describe(sender):
    sender.sendall(series())


def refusal(folder, *parts):
    """What the receiver says to a sender that sends this."""
    with connect(folder) as sender:
        for part in parts:
            sender.sendall(part)
        while (answer := read_frame(sender)) and answer[0] != REFUSE:
            pass
        return answer and answer[1][2:-1].decode()


@case
def what_is_not_allowed_is_refused_with_the_reason(folder):
    program = receive(folder)
    assert refusal(folder, hello(major=2)) == "the sender has version 2.0 of the link, and this is version 1.2"
    assert refusal(folder, hello(path=65)) == "HELLO is cut, or has a text that is not allowed"
    assert refusal(folder, hello(), frame(PATH, b"\1\1")) == "PATH is cut, or has more than 64 processes"
    assert refusal(folder, hello(), frame(PATH, b"\x08\0")) == refusal(folder, hello(depth=8)) == "the values have come through 8 processes, which is the most that is allowed"
    assert refusal(folder, hello(ack=7)) == "HELLO has a number that is not allowed"
    assert "is the sender a handler" in refusal(folder, b"GET / HTTP/1.1\r\n\r\n")
    assert "is the sender a handler" in refusal(folder, frame(BLOCK, b"x" * 100))
    assert "longer than allowed" in refusal(folder, hello(), struct.pack("<IB3x", 0xffffffff, BLOCK))
    assert "bits in its header" in refusal(folder, hello(), b"\x01\0\0\0\x04\x01\0\0x")
    assert "a type that this version does not know" in refusal(folder, hello(), frame(99, b""))
    assert "not described" in refusal(folder, hello(), block(0, [1.0]))
    assert "not described" in refusal(folder, hello(), series(), block(0, [1.0], number=1))
    assert "BLOCK" in refusal(folder, hello(), series(), block(0, [1.0], count=2))
    assert "BLOCK" in refusal(folder, hello(), series(), block(0, [1.0, 2.0], count=1))
    assert "BLOCK" in refusal(folder, hello(), series(), block(0, [], count=0))
    assert "BLOCK" in refusal(folder, hello(), series(), block(0, [], count=0xffffffff))
    assert "BLOCK" in refusal(folder, hello(), series(), block((1 << 64) - 1, [1.0]))
    assert "UTF-8" in refusal(folder, hello(), series(), block(0, [1.0], metadata=b"\xff"))
    assert "SERIES" in refusal(folder, hello(), series(number=100000))
    assert "WEIGHTS is cut" in refusal(folder, hello(), frame(WEIGHTS, struct.pack("<I", 1001)))
    assert "WEIGHTS has other" in refusal(folder, hello(), frame(WEIGHTS, struct.pack("<IQ", 2, 1)))
    assert "WEIGHTS are of another number" in refusal(folder, hello(), series(), weights(1, 2), block(0, [1.0]))
    assert program.stats()["added"] == 0
    with greeted(folder) as sender:
        describe(sender)
        sender.sendall(block(0, [1.0]))
        kind, payload = read_frame(sender)
        assert kind == ACK and payload[:16] == b"\x02" * 16
    assert program.end()["added"] == 1


@case
def connections_that_are_refused_for_one_reason_are_logged_together(folder):
    program = receive(folder)
    for _ in range(50):
        assert "is the sender a handler" in refusal(folder, b"GET / HTTP/1.1\r\n\r\n")
    assert "version 2.0" in refusal(folder, hello(major=2))
    program.end()
    log = program.log()
    assert (log.count("is the sender a handler"), log.count("version 2.0")) == (2, 1), log
    assert "49 more connections were refused: " in log, log


@case
def names_that_are_not_allowed_are_refused_and_counted_and_the_others_are_taken(folder):
    program = receive(folder)
    with greeted(folder) as sender:
        sender.sendall(series() + series(1, b"bad name\n") + block(0, [1.0, 2.0]) + block(2, [3.0], number=1) + block(3, [4.0]))
        refused = [struct.unpack("<QQIB", read_frame(sender)[1][16:])[2] for _ in range(3)]
        assert refused == [0, 1, 0], refused
    counts = program.end()
    assert (counts["added"], counts["refused"]) == (3, 1), counts


@case
def a_sender_with_too_many_series_leaves_room_for_the_others(folder):
    program = receive(folder, series_limit=5, sender_series=2)
    for prefix in (b"a", b"b"):
        with greeted(folder) as sender:
            sender.sendall(b"".join(series(i, prefix + b"%d" % i) for i in (0, 1, 2, 1))
                           + b"".join(block(i, [1.0] * (i // 2 + 1), number=i, origin=prefix * 16) for i in (0, 1, 2)))
            refused = [struct.unpack("<QQIB", read_frame(sender)[1][16:])[2] for _ in range(3)]
            assert refused == [0, 0, 2], refused
    counts = program.end()
    assert (counts["added"], counts["refused"]) == (4, 4), counts
    assert "values of more series than sender_series allows a sender" in program.log(), program.log()


@case
def values_that_the_receiver_refuses_within_a_block_are_acknowledged_as_refused(folder):
    program = receive(folder)
    with greeted(folder) as sender:
        sender.sendall(series(instrument=1) + block(0, [1.0, -1.0, 2.0]) + block(3, [-3.0]))  # a counter
        refused = [struct.unpack("<QQIB", read_frame(sender)[1][16:])[2] for _ in range(2)]
        assert refused == [1, 1], refused
    counts = program.end()
    assert (counts["added"], counts["refused"]) == (2, 2), counts


@case
def values_of_another_instrument_than_their_name_s_are_acknowledged_as_refused(folder):
    program = receive(folder)
    for number, instrument, values, expected in ((2, 1, [1.0, 2.0], 0), (3, 2, [5.0], 1), (4, 0, [4.0], 0), (5, 3, [6.0, 7.0], 2), (6, 1, [8.0], 0)):
        with greeted(folder, handler=b"sender %d" % number) as sender:
            sender.sendall(series(instrument=instrument) + block(0, values, origin=bytes([number]) * 16))
            assert struct.unpack("<QQIB", read_frame(sender)[1][16:])[2] == expected, number
    counts = program.end()
    assert program.values() == [("v", 1), ("v", 2), ("v", 4), ("v", 8)]
    assert (counts["added"], counts["refused"]) == (4, 3), counts


@case
def refused_values_that_come_again_are_counted_once(folder):
    program = receive(folder)
    for number in range(3):
        with greeted(folder) as sender:
            sender.sendall(series() + series(1, b"bad name\n") + block(0, [1.0]) + block(1, [3.0] * (2 + number), number=1))
            refused = [struct.unpack("<QQIB", read_frame(sender)[1][16:])[2] for _ in range(2)]
            assert refused == [0, 2 + number], refused
    counts = program.end()
    assert (counts["added"], counts["refused"]) == (1, 4), counts


@case
def a_block_that_comes_again_is_acknowledged_and_not_added(folder):
    program = receive(folder)
    for _ in range(3):
        with greeted(folder) as sender:
            sender.sendall(series() + block(0, [1.0, 2.0]) + block(1, [2.0, 3.0]) + block(0, [1.0]))
            assert [read_frame(sender)[0] for _ in range(3)] == [ACK] * 3
    assert program.end()["added"] == 3
    assert program.values() == [("v", 1), ("v", 2), ("v", 3)]


@case
def the_numbers_of_a_sender_that_leaves_nothing_behind_are_forgotten(folder):
    program = receive(folder)
    for added in (2, 1):  # with a value left, and with none
        for _ in range(2):
            with greeted(folder) as sender:
                sender.sendall(series() + block(0, [1.0]))
                assert read_frame(sender)[0] == ACK
                sender.sendall(frame(BYE, struct.pack("<5Q", 1, added, 0, 1, 0)))
                assert read_frame(sender) is None
    # the first time, and the last time, after a leave with none
    assert program.end()["added"] == 2


@case
def bytes_without_sense_and_torn_frames_do_no_harm(folder):
    program = receive(folder)
    random = os.urandom
    whole = hello() + series() + block(0, [1.0, 2.0, 3.0])
    for i in range(200):
        with connect(folder) as sender:
            try:
                sender.sendall(random(100 + i) if i % 2 else whole[:i % len(whole)])
                if i % 4 == 0:
                    sender.sendall(hello() + frame(1 + i % 9, random(i)))
            except (BrokenPipeError, ConnectionResetError):
                pass
    with greeted(folder) as sender:
        sender.sendall(series() + block(100, [4.0]))
        assert read_frame(sender)[0] == ACK
    program.stop()
    out = program.program.stdout.read()
    assert program.program.wait(300) == 0, program.log()
    assert_ledgers(json.loads(out.splitlines()[-1]))
    assert ("v", 4) in program.values()


@case
def connections_beyond_the_limit_wait_and_idle_ones_are_closed(folder):
    program = receive(folder, connections=100, idle_timeout="300ms")
    idle = [connect(folder) for _ in range(300)]
    up = add(sender_config("unix:" + path_of(folder)), 1000)
    assert up["delivered"] == 1000, up
    for sender in idle:
        sender.close()
    assert program.end()["added"] == 1000


@case
def a_frame_that_comes_byte_by_byte_for_too_long_is_closed(folder):
    program = receive(folder, idle_timeout="300ms")
    with connect(folder) as greeting, greeted(folder) as sender:
        for drips in greeting, sender:
            drips.sendall(struct.pack("<IB3x", 4000, HELLO if drips is greeting else BLOCK))
            is_closed = False
            for _ in range(3000):
                is_closed = select.select([drips], [], [], 0.05)[0] and read_frame(drips) is None
                if is_closed:
                    break
                try:
                    drips.send(b"\0")
                except (BrokenPipeError, ConnectionResetError):
                    pass
            assert is_closed
    assert program.end()["added"] == 0


@case
def another_user_is_refused_unless_it_or_its_group_is_allowed(folder):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    os.chmod(folder, 0o755)
    script = ("import os,socket,sys; os.setgroups([42]); os.setgid(65534); os.setuid(65534); s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
              "s.sendall(bytes.fromhex(sys.argv[2])); d=s.recv(4096); print(d[4], d[10:].decode('latin1'))")
    for options, answer in (({}, "6 "), ({"allow_uids": ["65534"]}, "2 "), ({"allow_group": "65534", "mode": "0600"}, "2 "), ({"allow_group": "42", "mode": "0600"}, "2 "),
                            ({"allow_group": "41"}, "6 ")):
        program = receive(folder, **{"mode": "0666", **options})
        done = subprocess.run(["python3", "-c", script, path_of(folder), hello().hex()], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.startswith(answer), done
        assert answer == "2 " or "the user 65534 is not one of allow_uids" in done.stdout, done
        status = os.stat(path_of(folder))
        assert not options.get("allow_group") or (str(status.st_gid), status.st_mode & 0o060) == (options["allow_group"], 0o060), status
        program.end()


@case
def a_group_that_is_not_known_is_named(folder):
    program = Sourced(folder, {"type": "forward", "listen": ["unix:" + path_of(folder)], "allow_group": "nobody of this name"})
    program.await_log('allow_group "nobody of this name" is not known')
    program.program.kill()
    assert "is not known:" not in program.log(), program.log()


@case
def a_default_path_that_is_too_long_is_refused(folder):
    for config in ({"groups": {"*": "forward"}}, {"sources": {"in": {"type": "forward"}}, "groups": {"*": "null"}}):
        for length in (107, 108, 109, 300):
            place = "/" + "x" * (length - 1 - len("/weir/forward.sock"))
            path = os.path.join(folder, "config.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config, file)
            done = run(WEIR, "check", path, XDG_RUNTIME_DIR=place)
            assert (done.returncode == 0) == (length == 107), (length, done)


# ---- TCP and tokens ----------------------------------------------------------------------------


def write_token(folder, name, token):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(token + "\n")
    os.chmod(path, 0o600)
    return path


@case
def tcp_takes_values_with_the_right_token_only(folder):
    right, wrong = write_token(folder, "right", "0123456789"), write_token(folder, "wrong", "0123456780")
    program = receive(folder, "tcp://127.0.0.1:0", token_file=right)
    address = f"tcp://127.0.0.1:{program.port('tcp://127.0.0.1')}"
    assert add(sender_config(address, token_file=right), 10000)["delivered"] == 10000
    for options, reason in (({"token_file": wrong}, "the token is not known"), ({}, "there is no token; set token_file")):
        said = os.path.join(folder, "said")
        with open(said, "wb") as file:
            sender = subprocess.Popen([ADDER, "-n", "1", "-H", "up"], stdout=subprocess.DEVNULL, stderr=file,
                                      env=environment(WEIR_CONFIG=sender_config(address, **options)))
        wait_for(lambda: reason in " ".join(lines_of(said)), reason)  # pylint: disable=cell-var-from-loop
        sender.kill()  # it tries again until then
        sender.wait()
    program.end()
    assert_all_there(program, 10000)


@case
def other_machines_need_a_token_at_both_ends(folder):
    port = free_port()
    for config, reason in ((sender_config(f"tcp://192.0.2.1:{port}"), 'is another machine: set the receiver\'s "token_file"'),
                           (sender_config("udp://127.0.0.1:1"), "allowed: tcp://HOST:PORT, unix:/PATH")):
        done = run(WEIR, "check", WEIR_CONFIG=config)
        assert done.returncode != 0 and reason in done.stdout + done.stderr, done
    path = os.path.join(folder, "relay.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"sources": {"in": {"type": "forward", "listen": [f"tcp://0.0.0.0:{port}"]}}, "groups": {"*": "null"}}, file)
    done = run(WEIR, "check", path)
    assert done.returncode != 0 and "is not a loopback address" in done.stdout + done.stderr, done


main()
