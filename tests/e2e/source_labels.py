"""settings.labels are those of the process' own values: nothing that came through a source gets them, on any way."""

import json
import os
import sqlite3
import urllib.request

from harness import WEIR, Skip, case, free_port, lines_of, main, run, start, wait_for, whole_lines

COUNT = 2000
OURS = {"host": "relay"}


def write_config(folder, sources, handlers, routes=None, **settings):
    path = os.path.join(folder, "relay.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"settings": {"labels": OURS, "shutdown_timeout": "2m", **settings}, "sources": sources, "handlers": handlers,
                   "groups": routes or {"*": list(handlers)}}, file)
    return path


def write_input(folder):
    """Every second value has a label of its sender with the key of settings.labels."""
    path = os.path.join(folder, "input")
    with open(path, "w", encoding="utf-8") as file:
        for i in range(COUNT):
            labels = {"host": "sender", "a": "b"} if i % 2 else {}
            file.write(json.dumps({"group": "g", "name": "x", "value": i, "labels": labels}) + "\n")
    return path


def relay(folder, config, stdin=os.devnull, **env):
    with open(stdin, encoding="utf-8") as file:
        return run(WEIR, "relay", "-c", config, "-v", stdin=file, WEIR_LOG="info", **env)


def output(folder, name="out", **options):
    return {"type": "file", "path": os.path.join(folder, name), "block_timeout": "1h", **options}


def assert_theirs(lines):
    """What arrived as JSON lines is what was sent, with the senders' labels alone."""
    records = [json.loads(line) for line in lines]
    assert sorted(record["value"] for record in records) == list(range(COUNT))
    for record in records:
        expected = {"host": "sender", "a": "b"} if record["value"] % 2 else None
        assert record.get("labels") == expected, record


@case
def what_was_read_has_the_labels_of_its_sender(folder):
    handlers = {"out": output(folder), "line": output(folder, "influx", format={"type": "influx"})}
    config = write_config(folder, {"in": {"type": "stdin", "parse": "json"}}, handlers)
    done = relay(folder, config, write_input(folder))
    assert done.returncode == 0 and f"{COUNT} values added, 0 refused" in done.stderr, done
    for name in ("out", "line"):
        assert f"{name}: {COUNT} delivered" in done.stderr, done
    assert_theirs(lines_of(os.path.join(folder, "out")))
    assert {line.split(" ")[0] for line in lines_of(os.path.join(folder, "influx"))} == {"g", "g,a=b,host=sender"}


@case
def the_relays_own_values_have_its_labels_and_what_it_was_sent_has_not(folder):
    if any(run(WEIR, "handlers", name).returncode for name in ("sqlite", "prometheus")):
        raise Skip("built without the handlers sqlite and prometheus")
    database, pipe, port = os.path.join(folder, "db"), os.path.join(folder, "pipe"), free_port()
    handlers = {"db": {"type": "sqlite", "path": database, "block_timeout": "1h"},
                "scrape": {"type": "prometheus", "listen": f"127.0.0.1:{port}", "aggregate": "50ms"}}
    config = write_config(folder, {"in": {"type": "fifo", "path": pipe, "parse": "json"}}, handlers, {"*": list(handlers), "weir": "scrape"},
                          stats_interval="10ms")
    program = start(WEIR, "relay", "-c", config, "-v")
    wait_for(lambda: os.path.exists(pipe), "the pipe")
    with open(write_input(folder), "rb") as lines, open(pipe, "wb") as to:
        to.write(lines.read())

    def scrape():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                page = answer.read().decode().splitlines()
        except OSError:
            return []
        return [line for line in page if line.startswith("g_x_last")]

    wait_for(lambda: sorted(scrape()) == ["g_x_last 1998", 'g_x_last{a="b",host="sender"} 1999'], "the last values")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        own = [line for line in answer.read().decode().splitlines() if line.startswith("weir_offered_total")]
    assert own and all('host="relay"' in line for line in own), own
    program.terminate()
    log = program.communicate(timeout=240)[1]
    assert program.returncode == 0 and f"db: {COUNT} delivered" in log and f"in: stopped, {COUNT} lines (0 invalid), {COUNT} values" in log, log
    with sqlite3.connect(database) as connection:
        rows = [json.loads(row[0]) for row in connection.execute("SELECT DISTINCT labels FROM series")]
    assert sorted(rows, key=len) == [{}, {"a": "b", "host": "sender"}], rows


@case
def a_source_that_measures_this_machine_has_the_labels_of_the_process(folder):
    config = write_config(folder, {"self": {"type": "process", "interval": "10ms", "labels": {"job": "j"}}}, {"out": output(folder)})
    program = start(WEIR, "relay", "-c", config, "-v")
    wait_for(lambda: whole_lines(os.path.join(folder, "out")), "a measurement")
    program.terminate()
    out, log = program.communicate(timeout=240)
    assert program.returncode == 0 and out == "", log
    records = [json.loads(line) for line in lines_of(os.path.join(folder, "out"))]
    assert f"out: {len(records)} delivered" in log, log
    assert all(record["labels"]["host"] == "relay" and record["labels"]["job"] == "j" for record in records), records


@case
def values_that_a_spool_kept_have_the_labels_of_their_sender(folder):
    place = os.path.join(folder, "later")
    handlers = {"out": output(place, spool=os.path.join(folder, "spool"))}
    config = write_config(folder, {"in": {"type": "stdin", "parse": "json"}}, handlers)
    done = relay(folder, config, write_input(folder))
    assert done.returncode == 0 and f"out: 0 delivered, {COUNT} on disk" in done.stderr, done
    os.mkdir(place)
    done = relay(folder, config)
    assert done.returncode == 0 and f"out: {COUNT} delivered ({COUNT} recovered from disk)" in done.stderr, done
    assert_theirs(lines_of(os.path.join(place, "out")))


@case
def values_of_a_killed_relay_have_the_labels_of_their_sender(folder):
    place = os.path.join(folder, "later")
    status = os.path.join(folder, "status")
    config = write_config(folder, {"in": {"type": "fifo", "path": os.path.join(folder, "pipe"), "parse": "json"}}, {"out": output(place)},
                          journal=os.path.join(folder, "journal"), status=status)
    program = start(WEIR, "relay", "-c", config)
    pipe = os.path.join(folder, "pipe")
    wait_for(lambda: os.path.exists(pipe), "the pipe")
    with open(write_input(folder), "rb") as lines, open(pipe, "wb") as to:
        to.write(lines.read())

    def is_queued():
        done = run(WEIR, "status", program.pid, "--json", "--folder", status)
        shown = json.loads(done.stdout) if done.returncode == 0 else []
        return shown and shown[0]["handlers"] and shown[0]["handlers"][0]["queued"] == COUNT

    wait_for(is_queued, "all values in the queue")
    program.kill()
    program.communicate(timeout=240)
    os.mkdir(place)
    config = write_config(folder, {"in": {"type": "stdin"}}, {"out": output(place)}, journal=os.path.join(folder, "journal"))
    done = relay(folder, config)
    assert done.returncode == 0 and f"out: {COUNT} delivered ({COUNT} recovered" in done.stderr, done
    assert_theirs(lines_of(os.path.join(place, "out")))


@case
def summaries_of_what_was_read_have_the_instance_that_made_them_and_nothing_else(folder):
    handlers = {"out": output(folder, format={"type": "influx"}, aggregate="1h")}
    config = write_config(folder, {"in": {"type": "stdin", "parse": "json"}}, handlers, instance="this")
    done = relay(folder, config, write_input(folder))
    assert done.returncode == 0 and f"{COUNT} values added, 0 refused" in done.stderr, done
    lines = lines_of(os.path.join(folder, "out"))
    assert sorted(line.split(" ")[0] for line in lines) == ["g,a=b,host=sender,instance=this", "g,instance=this"], lines
    assert all(f"x.count={COUNT // 2}" in line for line in lines), lines


@case
def a_program_with_values_of_its_own_labels_these_alone(folder):
    """`weir emit` starts no sources; a forwarded value has the labels that its program gave it, and not the receiver's."""
    address = os.path.join(folder, "socket")
    received = write_config(folder, {"in": {"type": "forward", "listen": ["unix:" + address]}}, {"out": output(folder)})
    program = start(WEIR, "relay", "-c", received, "-v")
    wait_for(lambda: os.path.exists(address), "the socket")
    sender = {"settings": {"labels": {"from": "program"}}, "handlers": {"to": {"type": "forward", "to": "unix:" + address, "ack": "taken"}},
              "groups": {"*": "to"}}
    done = run(WEIR, "emit", "-v", "-g", "g", "x=1", WEIR_CONFIG=sender)
    assert done.returncode == 0, done
    wait_for(lambda: whole_lines(os.path.join(folder, "out")), "the value")
    program.terminate()
    out, log = program.communicate(timeout=240)
    assert program.returncode == 0 and out == "" and "out: 1 delivered" in log, log
    assert [json.loads(line)["labels"] for line in lines_of(os.path.join(folder, "out"))] == [{"from": "program"}]


main()
