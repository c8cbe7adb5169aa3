"""Objects in routes: whole programs with files, reloads, a tee, a spool, a sender and a receiver, and what `weir check` says."""

import json
import os

from harness import (ADDER, BUILD, WEIR, assert_handler_ledger, assert_ledgers, case, lines_of, main, run, size_of,
                     skip_fork_under_sanitizers, start, wait_for, whole_lines, without_waits)

STEPS = os.path.join(BUILD, "tests", "support", "steps")
FILTERED = 11  # enum weir_drop
FACTOR = int(os.environ.get("WEIR_TEST_FACTOR", "1"))


def sink(folder, name, **more):
    return {"type": "file", "path": os.path.join(folder, name), "format": "json", "block_timeout": "1h", **more}


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)
    return path


def records_in(folder, name):
    path = os.path.join(folder, name)
    return [json.loads(line) for line in lines_of(path)] if os.path.exists(path) else []


def names_in(folder, name):
    return [(record["group"], record["name"], record["value"]) for record in records_in(folder, name)]


@case
def a_hundred_reloads_with_changing_objects_lose_and_repeat_nothing(folder):
    """Four threads add while the routes change. What a handler does not get is filtered, and counted."""
    values = 20000 * FACTOR
    objects = [{"to": "disk", "rename": {"t*": "a.*"}}, {"to": "disk", "labels": {"b": "1"}}, "disk", {"to": "disk", "except": ["t3"]},
               {"to": "disk", "sample": 0.5, "rename": {"*": "c.*"}}, {"to": "disk", "only": ["t0", "t1", "t2"], "drop_labels": ["x"]}]
    files = [write(folder, f"{number}.json", {"handlers": {"disk": sink(folder, "out")}, "groups": {"*": item}})
             for number, item in enumerate(objects)]
    arguments = [word for path in files for word in ("-c", path)]
    done = run(ADDER, *arguments, "-r", 100, "-t", 4, "-n", values, "-p", 20000, "-f", -1, "-H", "disk")
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    stats = report["handlers"]["disk"]
    process = report["process"]  # what is added before the first configuration has no route
    assert process["added"] == 4 * values and stats["offered"] == 4 * values - process["unrouted"], report
    assert stats["delivered"] + stats["dropped"][FILTERED] == stats["offered"], stats
    assert sum(stats["dropped"]) == stats["dropped"][FILTERED], stats
    rows = {}
    for record in records_in(folder, "out"):
        name = record["name"].removeprefix("c.")
        rows.setdefault(name if name.startswith("t") else "t" + name.removeprefix("a."), []).append(record["value"])
    assert sum(map(len, rows.values())) == stats["delivered"]
    for name, row in rows.items():
        assert row == sorted(set(row)), f"{name} is repeated or out of order"


@case
def a_spool_keeps_what_the_route_has_made_of_the_values(folder):
    """The pipe has no reader: all goes to the spool, and is read back by a second program without objects in its routes."""
    pipe = os.path.join(folder, "pipe")
    handler = {"type": "fifo", "path": pipe, "format": "json", "spool": os.path.join(folder, "spool")}
    config = {"settings": {"shutdown_timeout": "0s"}, "handlers": {"out": handler},
              "groups": {"*": {"to": "out", "except": ["t0"], "rename": {"t*": "new.*"}, "labels": {"site": "x"}}}}
    done = run(ADDER, "-t", 3, "-n", 1000, "-H", "out", "-f", 100, WEIR_CONFIG=config)
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"]["out"]["dropped"][FILTERED] == 1000, report
    config = {"handlers": {"out": dict(handler, type="file", path=os.path.join(folder, "out"))}, "groups": {"*": "out"}}
    done = run(ADDER, "-g", "later", "-n", 1, "-f", -3, "-H", "out", WEIR_CONFIG=config)
    stats = json.loads(done.stdout)["handlers"]["out"]
    assert_handler_ledger(stats)
    records = [record for record in records_in(folder, "out") if record["group"] != "later"]
    assert len(records) == 2000 and {record["name"] for record in records} == {"new.1", "new.2"}, (len(records), stats)
    assert all(record["labels"] == {"site": "x"} for record in records)


@case
def a_tee_and_the_program_may_both_have_objects(folder):
    config = {"handlers": {"own": sink(folder, "own")}, "groups": {"*": {"to": "own", "rename": {"x": "own.x"}}, "a": ["inherit", "null"]}}
    tee = {"handlers": {"teed": sink(folder, "teed")},
           "groups": {"*": {"to": "teed", "labels": {"pid": "${PID}"}}, "a.b": ["inherit"], "c": {"to": "teed", "only": ["y"]}}}
    done = run(STEPS, "add", "a", "x", 1, "add", "a.b", "x", 2, "add", "c", "x", 3, "add", "c", "y", 4, WEIR_CONFIG=config, WEIR_TEE=tee)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done
    assert_ledgers(json.loads(done.stdout))
    assert names_in(folder, "own") == [("a", "own.x", 1), ("a.b", "own.x", 2), ("c", "own.x", 3), ("c", "y", 4)]
    assert names_in(folder, "teed") == [("a", "x", 1), ("a.b", "x", 2), ("c", "y", 4)]
    assert ["pid" in record["labels"] for record in records_in(folder, "teed")[:2]] == [True, True]


@case
def forked_children_have_the_objects_of_both(folder):
    skip_fork_under_sanitizers()
    config = {"handlers": {"own": sink(folder, "own.${PID}")}, "groups": {"*": {"to": "own", "labels": {"pid": "${PID}"}, "except": ["no"]}}}
    tee = {"handlers": {"teed": sink(folder, "teed.${PID}")}, "groups": {"*": {"to": "teed", "labels": {"teed": "${PID}"}}}}
    done = run(STEPS, "add", "a", "x", 1, "add", "a", "no", 2, "fork", "add", "a", "x", 3, "add", "a", "no", 4, WEIR_CONFIG=config, WEIR_TEE=tee)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done
    for kind, label, count in (("own", "pid", 1), ("teed", "teed", 2)):
        files = [name for name in os.listdir(folder) if name.startswith(kind)]
        assert len(files) == 2, files
        for name in files:
            records = records_in(folder, name)
            assert len(records) == count and all(record["labels"][label] == name.split(".")[1] for record in records), (name, records)


@case
def a_receiver_does_not_miss_what_its_senders_routes_leave_out(folder):
    """The ledgers of both sides agree: what was filtered was never to be sent."""
    socket, status = os.path.join(folder, "socket"), os.path.join(folder, "status")
    os.mkdir(status, 0o700)
    relay = {"settings": {"status": status, "journal": os.path.join(folder, "journal")}, "sources": {"in": {"type": "forward", "listen": ["unix:" + socket]}},
             "handlers": {"disk": sink(folder, "out")}, "groups": {"*": "disk"}}
    program = start(WEIR, "relay", "-c", write(folder, "relay.json", relay))
    wait_for(lambda: os.path.exists(socket), "the relay")
    sender = {"handlers": {"link": {"type": "forward", "to": "unix:" + socket}}, "groups": {"*": {"to": "link", "only": ["t1"]}}}
    done = run(ADDER, "-t", 2, "-n", 500, "-f", -1, "-H", "link", WEIR_CONFIG=sender)
    assert done.returncode == 0, done
    stats = json.loads(done.stdout)["handlers"]["link"]
    assert stats["dropped"][FILTERED] == 500 and stats["delivered"] == 500, stats
    wait_for(lambda: whole_lines(os.path.join(folder, "out")) == 500, "values")

    def senders():
        processes = json.loads(run(WEIR, "status", "--json", "--folder", status).stdout)
        return [one for process in processes for source in process["sources"] for one in source.get("senders", [])]

    wait_for(lambda: senders() and senders()[0].get("added") == 500, "the sender's ledger")
    program.terminate()
    assert program.wait(240) == 0


@case
def weir_check_shows_what_becomes_of_a_name(folder):
    config = write(folder, "config", {
        "handlers": {"disk": sink(folder, "out"), "push": sink(folder, "more")},
        "groups": {"*": ["push", {"to": "disk", "only": ["db.*"], "except": ["*.debug"], "rename": {"db.*": "database.*"}, "labels": {"site": "x"},
                                  "drop_labels": ["user"], "sample": 0.1}],
                   "app": ["inherit", {"to": "push", "keep_labels": []}]}})
    shown = run(WEIR, "check", config).stdout
    what = 'only "db.*", except "*.debug", rename "db.*": "database.*", labels "site": "x", drop_labels "user", sample 0.1'
    assert f"* -> push, disk ({what})\n" in " ".join(shown.split(" ")).replace("*              ->", "* ->"), shown
    shown = run(WEIR, "check", config, "-g", "app.x", "-n", "db.calls").stdout
    assert shown == (f'app.x -> disk ({what}) (inherited from "*"), push (keep_labels none)\n  by the route of its parent "app"\n'
                     'db.calls: as the program declares it: no entry of "metrics" matches\n'
                     '  disk: as "database.calls", labels "site": "x", drop_labels "user", sample 0.1, by the route of "*"\n'
                     '  push: as "db.calls", keep_labels none, by the route of "app"\n'), shown
    shown = run(WEIR, "check", config, "-g", "b", "-n", "db.debug").stdout
    assert shown.endswith('\n  disk: not sent, counted as filtered, by the route of "*"\n'), shown


@case
def filtered_values_are_not_logged_as_lost(folder):
    config = {"handlers": {"disk": sink(folder, "out")}, "groups": {"*": {"to": "disk", "only": ["b"]}}}
    done = run(STEPS, "add", "a", "a", 1, "add", "a", "b", 2, WEIR_CONFIG=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "" and size_of(os.path.join(folder, "out")), done
    stats = json.loads(done.stdout)["handlers"]["disk"]
    assert (stats["offered"], stats["delivered"], stats["dropped"][FILTERED]) == (2, 1, 1), stats


main()
