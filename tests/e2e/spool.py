"""Values that a handler cannot deliver in time are spooled to disk, and delivered in order later, by this process or the next."""

import fcntl
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

from fifos import TIMEOUT, ScriptedApp, Reader, config_of, make_fifo, notes_of, start_checking_reader, values_of
from harness import ADDER, BUILD, SANITIZED, SOURCE, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, environment, main, run, \
    skip_fork_under_sanitizers, start, wait_for

SHIM = os.path.join(BUILD, "tests", "support", "preload", ".libs", "shim.so")
DROPPED, SPOOLED = -9, -10
FULL, REMOVED, CORRUPT = 0, 4, 6


def spool_config(folder, path, shutdown="300ms", **options):
    return config_of(path, shutdown=shutdown, spool=os.path.join(folder, "spool"), **{"queue": "64KiB", **options})


def replay(folder):
    """All values on disk, in delivery order."""
    done = run(WEIR, "spool", "replay", os.path.join(folder, "spool"))
    return [json.loads(line)["value"] for line in done.stdout.splitlines()]


def boxes(folder):
    return sorted(glob.glob(os.path.join(folder, "spool", "*.*.*.*[0-9]")))


def segments(folder):
    return sorted(glob.glob(os.path.join(folder, "spool", "*", "*.seg")))


def adder(folder, path, count, *more, **options):
    """Runs a program. Returns the ledger of its handler, the result of its flush, and its log."""
    done = run(ADDER, "-n", count, "-H", "pipe", *more, WEIR_CONFIG=spool_config(folder, path, **options))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]["pipe"], report["flush"], done.stderr


def fill_spool(folder, path, count, *more, **options):
    """Runs a program whose destination is unavailable the whole time."""
    account, _, log = adder(folder, path, count, *more, **options)
    assert account["delivered"] == 0 and " spooled" in log and " dropped" not in log, log


def drain(folder, reader, path, count=1, **options):
    """Runs a program whose destination is available; it also delivers what others spooled. Returns the ledger of its handler."""
    program = start(ADDER, "-n", count, "-f", -1, "-H", "pipe", WEIR_CONFIG=spool_config(folder, path, shutdown="1m", **options))
    reader.read_to_end_of(program)
    out, err = program.communicate()
    assert program.returncode == 0, err
    report = json.loads(out)
    assert_ledgers(report)
    assert report["flush"] == (DROPPED if report["handlers"]["pipe"]["dropped"][CORRUPT] else 0), (report, err)
    return report["handlers"]["pipe"]


# ---- The end of a program, and the next one ----------------------------------------------------------------------


@case
def values_left_when_a_program_ends_are_delivered_first_and_in_order_by_the_next(folder):
    path = make_fifo(folder)
    fill_spool(folder, path, 100000)
    assert replay(folder) == list(range(100000))
    reader = Reader(path)
    account = drain(folder, reader, path, 1000)
    assert account["recovered"] == 100000 and account["delivered"] == 101000
    assert values_of(reader.events()) == list(range(100000)) + list(range(1000))
    assert os.listdir(os.path.join(folder, "spool")) == [], "delivered values are removed"


@case
def a_few_values_are_kept_as_well(folder):
    path = make_fifo(folder)
    fill_spool(folder, path, 3)
    fill_spool(folder, path, 2)
    reader = Reader(path)
    account = drain(folder, reader, path)
    assert account["recovered"] == 5 and values_of(reader.events()) == [0, 1, 2, 0, 1, 0]


RECORDS = [
    {"group": "my_app", "name": "hits", "value": 3, "instrument": "counter", "unit": "By"},
    {"group": "my_app", "name": "hits", "value": 4, "labels": {"a": "b"}, "instrument": "counter", "unit": "By"},
    {"group": "my_app", "name": "hits", "value": 5, "instrument": "counter", "unit": "By"},
    {"group": "my_app", "name": "lat", "value": 7.5, "instrument": "histogram", "unit": "ms", "help": "of \"all\""},
    {"group": "my_app", "name": "level", "value": -2, "instrument": "gauge", "help": "of the tank"},
    {"group": "my_app", "name": "plain", "value": 7, "metadata": "a note"},
    {"group": "my_app", "name": "total", "value": 9, "cumulative": True},
]


def emit(folder, lines, config):
    path = os.path.join(folder, "lines")
    with open(path, "w+", encoding="utf-8") as file:
        file.write(lines)
        file.seek(0)
        return run(WEIR, "emit", "-", stdin=file, WEIR_CONFIG=config)


def spool_records(folder, **options):
    """Adds RECORDS for a pipe without a reader. Returns what `weir spool replay` prints."""
    config = spool_config(folder, make_fifo(folder), max_wait="10ms", **options)
    added = emit(folder, "".join(json.dumps(record) + "\n" for record in RECORDS), config)
    assert added.returncode == 1 and "7 spooled" in added.stderr, added
    done = run(WEIR, "spool", "replay", os.path.join(folder, "spool"))
    assert done.returncode == 0, done
    return done.stdout


def send_replayed(folder, lines, **options):
    """Adds printed values to a file. Returns its lines."""
    path = os.path.join(folder, "sent")
    config = {"handlers": {"file": {"type": "file", "path": path, "format": {"type": "json", "help": True}, **options}}, "groups": {"*": "file"}}
    done = emit(folder, lines, config)
    assert done.returncode == 0 and not done.stderr, done
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@case
def replayed_values_that_are_added_again_mean_the_same(folder):
    printed = spool_records(folder)
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [{key: line[key] for key in line if key != "timestamp"} for line in lines] == RECORDS, lines
    assert send_replayed(folder, printed) == lines


@case
def replayed_counters_that_are_added_again_are_counted(folder):
    sent = send_replayed(folder, spool_records(folder), aggregate="1h")
    totals = [line for line in sent if line["name"] == "hits"]
    assert {str(line.get("labels")): line["value"] for line in totals} == {"None": 8, "{'a': 'b'}": 4}, totals
    assert all(line["cumulative"] for line in totals), totals


@case
def summaries_are_replayed_as_their_parts(folder):
    """Parts of a histogram stay parts of one when they are added again."""
    printed = spool_records(folder, aggregate="1h")
    lines = [json.loads(line) for line in printed.splitlines()]
    values = {(line["name"], *line.get("labels", {}).values()): line for line in lines}
    assert values["hits",]["value"] == 8 and values["hits", "b"]["value"] == 4 and values["level",]["value"] == -2, values
    assert values["plain.last",]["value"] == 7 and values["total",]["value"] == 9, values
    assert values["lat.bucket", "5"]["value"] == 0 and values["lat.bucket", "10"]["value"] == values["lat.count",]["value"] == 1, values
    assert all(line["instrument"] == "histogram" and line["cumulative"] for line in lines if line["name"] in ("lat.bucket", "lat.count", "lat.sum"))
    assert send_replayed(folder, printed) == lines


@case
def the_example_configuration_spools_and_replays(folder):
    path, config = make_fifo(folder), os.path.join(SOURCE, "examples", "config", "spool.json")
    env = {"WEIR_CONFIG": config, "METRICS_FIFO": path, "METRICS_SPOOL": os.path.join(folder, "spool")}
    program = os.path.join(BUILD, "examples", "first_metric")
    assert "1 spooled" in run(program, **env).stderr
    assert '"daemon"' in run(WEIR, "spool", "list", os.path.join(folder, "spool")).stdout
    reader = Reader(path)
    assert reader.read_to_end_of(start(program, **env)) == [{"calculate_latency": 12.375}] * 2


@case
def shutdown_reports_values_that_are_on_disk_only(folder):
    path = make_fifo(folder)
    app = ScriptedApp(spool_config(folder, path), folder)
    app.do("add", "a", 1)
    result = app.do("shutdown", 200)
    assert result["code"] == SPOOLED and "1 values are on disk only" in result["error"], result
    assert app.ledger()["spooled"] == 1
    app.end()
    assert replay(folder) == [1]


@case
def with_a_shutdown_timeout_of_zero_everything_is_still_spooled(folder):
    path = make_fifo(folder)
    fill_spool(folder, path, 10000, shutdown="0s", queue="4MiB")
    assert replay(folder) == list(range(10000))


@case
def values_of_a_handler_that_hangs_are_spooled(folder):
    """Its worker never returns; the thread that shuts down spools them."""
    config = {
        "settings": {"shutdown_timeout": "300ms"},
        "handlers": {"stuck": {"type": "blocker", "in": "emit", "queue": "4MiB", "spool": os.path.join(folder, "spool")}},
        "groups": {"*": "stuck"},
    }
    done = run(ADDER, "-n", 10000, "-H", "stuck", WEIR_CONFIG=config)
    assert done.returncode == 0 and "10000 spooled" in done.stderr, done.stderr
    assert_ledgers(json.loads(done.stdout))
    assert replay(folder) == list(range(10000))


def add_to_stuck(place, **options):
    """Adds 300,000 values for a handler that never returns. Returns its ledger and the log."""
    handler = {"type": "blocker", "queue": "64KiB", "block_timeout": "1m", "spool": os.path.join(place, "spool"), **options}
    config = {"settings": {"shutdown_timeout": "300ms"}, "handlers": {"stuck": handler}, "groups": {"*": "stuck"}}
    os.mkdir(place)
    done = run(ADDER, "-n", 300000, "-H", "stuck", WEIR_CONFIG=config)
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert done.returncode == 0, done
    return report["handlers"]["stuck"], done.stderr


@case
def a_handler_that_never_returns_loses_nothing_while_its_spool_has_room(folder):
    """Another thread than the handler's spools, in the middle of the program, whichever callback is stuck."""
    for where in ("open", "emit"):
        for overflow in ("block", "drop_newest", "drop_oldest"):
            place = os.path.join(folder, f"{where}.{overflow}")
            account, log = add_to_stuck(place, overflow=overflow, **{"in": where})
            assert sum(account["dropped"]) == 0 and account["spooled"] > 100000, (where, overflow, account)
            assert "300000 spooled" in log, log
            assert replay(place) == list(range(300000))


@case
def a_full_spool_drops_by_the_overflow_policy_while_a_handler_never_returns(folder):
    for overflow in ("drop_newest", "drop_oldest"):
        place = os.path.join(folder, overflow)
        account, log = add_to_stuck(place, overflow=overflow, spool_limit="1MiB", batch=1)
        assert account["dropped"][FULL] > 100000 and account["spooled"] > 10000, (account, log)
        kept = replay(place)
        assert kept == sorted(set(kept)), (kept[:3], kept[-3:])
        if overflow == "drop_newest":
            # the handler has one in hand, for which there need not be room at the end
            assert kept[0] <= 1 and kept[-1] < 299999, (kept[:3], kept[-3:])
        else:
            assert kept[-1] == 299999, kept[-3:]


@case
def the_queue_of_a_removed_handler_that_never_returns_is_spooled(folder):
    """The handler has at most one value in hand, its batch; the others are on disk."""
    path, settings = os.path.join(folder, "weir.json"), {"shutdown_timeout": "300ms"}
    stuck = {"type": "blocker", "queue": "4MiB", "batch": 1, "spool": os.path.join(folder, "spool")}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"settings": settings, "handlers": {"pipe": stuck}, "groups": {"*": "pipe"}}, file)
    app = ScriptedApp(path, folder)
    for value in range(10):
        app.do("add", "a", value)
    wait_for(lambda: app.ledger()["queued"] == 10, "the values in the queue")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"settings": settings, "groups": {"*": "null"}}, file)
    assert app.do("reload")["code"] == 0
    wait_for(lambda: app.ledger()["queued"] == 0, "the removed handler's end")
    account = app.ledger()
    in_hand = account["dropped"][REMOVED]
    assert in_hand <= 1 and sum(account["dropped"]) == in_hand and account["spooled"] == 10 - in_hand, account
    app.end()
    assert replay(folder) == list(range(in_hand, 10))


@case
def weir_emit_spools_its_value_and_the_next_call_delivers_it(folder):
    path, config = make_fifo(folder), os.path.join(folder, "weir.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(spool_config(folder, path, max_wait="20ms"), file)
    done = run(WEIR, "emit", "-c", config, "-g", "my_app", "-v", "-t", "1m", "t0=1")
    assert done.returncode == 1 and done.stdout == "pipe: 0 delivered, 1 on disk, failing\n", done
    reader = Reader(path)
    done = run(WEIR, "emit", "-c", config, "-g", "my_app", "-v", "t0=2")
    assert done.returncode == 0 and done.stdout == "pipe: 2 delivered (1 recovered from disk)\n", done
    reader.read()
    assert values_of(reader.events()) == [1, 2]


@case
def weir_spool_reports_usage_errors(folder):
    assert run(WEIR, "spool", "list", folder).stdout == ""
    missing = run(WEIR, "spool", "list", os.path.join(folder, "none"))
    assert missing.returncode == 1 and "No such file or directory" in missing.stderr
    for wrong in (("list",), ("list", folder, folder), ("lists", folder)):
        done = run(WEIR, "spool", *wrong)
        assert done.returncode == 2 and "usage: weir spool" in done.stderr, done
    assert '"lists" is not allowed; allowed: list, verify, replay' in done.stderr


@case
def what_cannot_be_read_as_a_folder_of_a_process_is_an_error(folder):
    open(os.path.join(folder, "pipe.01234567.4711.0"), "w").close()
    for verb, out in (("list", "stdout"), ("verify", "stdout"), ("replay", "stderr")):
        done = run(WEIR, "spool", verb, folder)
        assert done.returncode == 1 and "pipe.01234567.4711.0: " in getattr(done, out) and "Not a directory" in getattr(done, out), done


@case
def a_folder_that_cannot_be_read_to_its_end_is_an_error(folder):
    if "thread" in SANITIZED:
        raise Skip("ThreadSanitizer does not work with a preloaded library")
    for command in ("spool", "journal"):
        done = run(WEIR, command, "verify", folder, LD_PRELOAD=SHIM, WEIR_SHIM="unlisted")
        assert done.returncode == 1 and folder + ": Input/output error" in done.stderr, done


# ---- In a running program ----------------------------------------------------------------------------------------


@case
def a_synchronous_call_reports_a_timeout_or_that_its_value_was_spooled(folder):
    path = make_fifo(folder)
    app = ScriptedApp(spool_config(folder, path, delivery="sync", max_wait="50ms"), folder)
    assert app.do("add", "a", 1)["code"] == TIMEOUT, "the pipe has no reader"
    assert app.do("flush", -1)["code"] == SPOOLED
    app.do("add", "a", 2)
    assert app.do("flush", -1)["code"] == SPOOLED and app.ledger()["spooled"] == 2
    reader = Reader(path)
    wait_for(lambda: app.do("add", "a", 3)["code"] == 0, "a call that delivers")
    reader.read()
    assert [event["a"] for event in reader.events()][:2] == [1, 2] and app.ledger()["spooled"] == 0
    app.end()


@case
def a_flush_that_cannot_deliver_reports_spooled_values(folder):
    path = make_fifo(folder)
    app = ScriptedApp(spool_config(folder, path, max_wait="50ms"), folder)
    app.do("add", "a", 1)
    result = app.do("flush", -1)
    assert result["code"] == SPOOLED, result
    assert result["error"].startswith(f'handler "pipe": 1 values are on disk only: the named pipe {path} has no reader'), result
    reader = Reader(path)
    assert app.do("flush", -1)["code"] == 0
    assert reader.read_lines(1) == [{"a": 1}]
    account = app.ledger()
    assert account["delivered"] == 1 and account["spooled"] == 0
    app.end()


@case
def a_destination_that_is_available_again_receives_old_values_first(folder):
    path = make_fifo(folder)
    program = start(ADDER, "-n", 30000, "-p", 1000, "-f", -1, "-H", "pipe",
                    WEIR_CONFIG=spool_config(folder, path, shutdown="1m", max_wait="20ms"))
    wait_for(lambda: len(segments(folder)) > 0, "something on disk")
    reader = Reader(path)
    events = reader.read_to_end_of(program)
    out, err = program.communicate()
    account = json.loads(out)["handlers"]["pipe"]
    assert_handler_ledger(account)
    assert values_of(events) == list(range(30000)), err
    assert account["delivered"] == 30000 and "spooling to" in err and re.search(r"the spool is empty again; [1-9]\d* replayed", err), err


@case
def a_million_values_survive_ten_kills_of_the_reader_and_no_call_waits(folder):
    """Each kill follows values on disk. A killed reader loses what it has read and not yet recorded: at most one read."""
    path, count = make_fifo(folder), 1000000
    config = spool_config(folder, path, shutdown="1m", queue="1MiB", max_wait="10ms", block_timeout="1h")
    program = start(ADDER, "-n", count, "-f", -3, "-H", "pipe", WEIR_CONFIG=config)
    wait_for(lambda: segments(folder), "values on disk")
    notes = [os.path.join(folder, f"notes{turn}") for turn in range(11)]
    for turn in range(11):
        reader = start_checking_reader(path, notes[turn])
        wait_for(lambda: len(notes_of(notes[turn])) >= 3, f"reader {turn} to read")
        if turn < 10:
            reader.kill()
            assert reader.communicate()[1] == b""
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and reader.communicate(timeout=240)[1] == b"", err
    report = json.loads(out)
    assert_ledgers(report)
    account = report["handlers"]["pipe"]
    assert report["flush"] in (0, SPOOLED) and account["delivered"] + account["spooled"] == count == account["offered"], report
    reads = [note for path in notes for note in notes_of(path)]
    assert all(whole for whole, _, _ in reads), "a torn line or read"
    ends = [-1] + [last for _, _, last in reads]
    gaps = [first - 1 - end for end, (_, first, _) in zip(ends, reads)]
    assert min(gaps) == 0 and ends[-1] == count - 1, "a value is duplicated or out of order, or the last ones are missing"
    assert sum(gap > 0 for gap in gaps) <= 10 and max(gaps) <= 65536 / len('{"t0": 0.0}\n'), gaps
    assert segments(folder) == []


# ---- kill -9 -----------------------------------------------------------------------------------------------------


@case
def after_each_of_many_kills_the_sequence_on_disk_is_exact(folder):
    """The program adds 0, 1, 2, ..., so the disk must hold exactly that, up to the block being written, which is not damaged but was never
    there."""
    path, seed = make_fifo(folder), int.from_bytes(os.urandom(4), "little")
    chance, lengths, turns = random.Random(seed), [], 40 if SANITIZED else 200
    drained = range(0, turns, turns // 4)
    for turn in range(turns):
        place = os.path.join(folder, str(turn))
        os.mkdir(place)
        program = subprocess.Popen([ADDER, "-q", "-n", "100000000", "-e", "100", "-p", "100000"], stderr=subprocess.DEVNULL,
                                   env=environment(WEIR_CONFIG=spool_config(place, path, max_wait="1ms")))
        enough = 0 if turn % 10 else 300000
        wait_for(lambda: size_of(place) > enough, "values on disk")
        time.sleep(chance.random() * 0.02)  # at a random point of writing
        program.send_signal(signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL
        values = replay(place)
        assert values == list(range(len(values))), f"seed {seed}, turn {turn}: not an exact sequence"
        verified = run(WEIR, "spool", "verify", os.path.join(place, "spool"))
        assert verified.returncode == 0, f"seed {seed}, turn {turn}: {verified}"
        lengths.append(len(values))
        if turn not in drained:
            shutil.rmtree(place)
    assert max(lengths) > 5000, lengths
    for turn in drained:
        reader = Reader(path)
        account = drain(os.path.join(folder, str(turn)), reader, path, format="json")
        values = [event["value"] for event in reader.events()]
        wanted = list(range(lengths[turn])) + [0]
        assert values == wanted, (len(values), [pair for pair in zip(values, wanted) if pair[0] != pair[1]][:5], len(wanted), account)
        assert account["recovered"] == lengths[turn] and account["dropped"][CORRUPT] == 0, account
        assert os.listdir(os.path.join(folder, str(turn), "spool")) == [], "nothing is kept as damaged"
        reader.close()


# ---- Several processes -------------------------------------------------------------------------------------------


def assert_empty_folders_are_described(folder, name):
    """As of a process that runs and has delivered all. name: of a folder of the handler "pipe"."""
    place = os.path.join(folder, "empty")
    handler, checksum, pid, number = name.split(".")
    other = f"long_name.{checksum}.{pid}.{number}"
    for made in (name, other):
        os.makedirs(os.path.join(place, made))
        with open(os.path.join(place, made, "lock"), "wb"):
            pass
        os.utime(os.path.join(place, made, "lock"), (1000000000, 1000000000))
    with open(os.path.join(place, name, "lock"), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        listed = run(WEIR, "spool", "list", place).stdout
    rest = "0 values in 0 files, 0 bytes, since 2001-09-09T01:46:40Z\n"
    assert listed == f'{other}: handler like "long_name", process {pid}, {rest}{name}: handler "{handler}", process {pid} (running), {rest}', listed


@case
def each_process_has_its_own_folder_and_the_next_adopts_those_of_dead_processes(folder):
    path = make_fifo(folder)
    first, second = [ScriptedApp(spool_config(folder, path, max_wait="20ms"), folder) for _ in range(2)]
    for app, value in ((first, 1), (second, 2)):
        app.do("add", "a", value)
        assert app.do("flush", -1)["code"] == SPOOLED and app.ledger()["spooled"] == 1
    assert len(boxes(folder)) == 2
    listed = run(WEIR, "spool", "list", os.path.join(folder, "spool")).stdout
    assert listed.count("(running)") == 2, listed
    assert_empty_folders_are_described(folder, os.path.basename(boxes(folder)[0]))
    first.program.kill()
    first.program.wait()
    reader = Reader(path)
    account = drain(folder, reader, path)
    assert account["recovered"] == 1, "the folder of a running process is not adopted"
    assert second.do("flush", -1)["code"] == 0
    reader.read()
    assert sorted(event.get("a", "own") for event in reader.events() if "a" in event) == [1, 2]
    second.end()
    assert boxes(folder) == []


@case
def a_forked_child_has_its_own_folder_and_does_not_touch_its_parents(folder):
    skip_fork_under_sanitizers()
    path = make_fifo(folder)
    app = ScriptedApp(spool_config(folder, path, max_wait="20ms"), folder)
    app.do("add", "parent", 1)
    assert app.do("flush", -1)["code"] == SPOOLED and app.ledger()["spooled"] == 1
    app.do("fork", "child")
    assert app.do("reap")["code"] == 0
    assert len(boxes(folder)) == 2
    app.do("add", "parent", 2)
    reader = Reader(path)
    assert app.do("flush", -1)["code"] == 0
    assert app.ledger()["delivered"] == 2 and app.ledger()["recovered"] == 0
    reader.read()
    assert reader.events() == [{"parent": 1}, {"parent": 2}]
    app.end()
    account = drain(folder, reader, path)
    assert account["recovered"] == 1 and {"child": 1} in reader.events()
    assert boxes(folder) == []


@case
def handlers_that_share_a_folder_do_not_adopt_from_each_other(folder):
    path = make_fifo(folder)
    config = spool_config(folder, path)
    config["handlers"]["other"] = {**config["handlers"]["pipe"], "path": make_fifo(folder, "other")}
    config["groups"]["*"] = ["pipe", "other"]
    assert run(ADDER, "-q", "-n", 100, WEIR_CONFIG=config).returncode == 0
    assert len(boxes(folder)) == 2
    reader = Reader(path)
    account = drain(folder, reader, path)
    assert account["recovered"] == 100 and len(boxes(folder)) == 1


# ---- Limits ------------------------------------------------------------------------------------------------------


def size_of(folder):
    return sum(os.path.getsize(path) for path in segments(folder))


@case
def at_the_limit_the_overflow_policy_applies(folder):
    limit = 256 * 1024
    for policy, queue in (("block", "64KiB"), ("drop_newest", "64KiB"), ("drop_oldest", "8MiB")):
        place = os.path.join(folder, policy)
        os.mkdir(place)
        path = make_fifo(place)
        done = run(ADDER, "-n", 100000, "-f", 300, "-H", "pipe",
                   WEIR_CONFIG=spool_config(place, path, spool_limit="256KiB", overflow=policy, queue=queue, block_timeout="3s", max_wait="20ms"))
        report = json.loads(done.stdout)
        assert_ledgers(report)
        values = replay(place)
        assert 0 < size_of(place) <= limit and 1000 < len(values) < 10000 and values == sorted(set(values))
        if policy == "drop_oldest":
            assert values == list(range(100000 - len(values), 100000)), (values[0], values[-1])
            continue
        assert values[0] == 0 and (policy == "drop_newest" or values == list(range(len(values)))), values[:10]
        assert report["handlers"]["pipe"]["dropped"][FULL] > 50000, report


@case
def with_block_callers_wait_at_the_limit_until_there_is_room(folder):
    path = make_fifo(folder)
    config = spool_config(folder, path, shutdown="1m", spool_limit="256KiB", block_timeout="1h", max_wait="20ms")
    program = start(ADDER, "-n", 50000, "-f", -1, "-H", "pipe", WEIR_CONFIG=config)
    wait_for(lambda: size_of(folder) > 200 * 1024, "a full spool")
    reader = Reader(path)
    assert values_of(reader.read_to_end_of(program)) == list(range(50000))
    out, err = program.communicate()
    assert json.loads(out)["handlers"]["pipe"]["delivered"] == 50000, (out, err)


class Disk:
    """A small tmpfs."""

    def __init__(self, folder, size):
        self.place = os.path.join(folder, "disk")
        os.mkdir(self.place)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "weir-test", self.place], capture_output=True,
                              check=False)
        if done.returncode:
            raise Skip("not permitted to mount")

    def __enter__(self):
        return self.place

    def __exit__(self, *ignored):
        subprocess.run(["umount", self.place], check=True)


@case
def a_full_disk_loses_nothing_that_is_already_spooled(folder):
    path = make_fifo(folder)
    with Disk(folder, "512k") as place:
        done = run(ADDER, "-n", 100000, "-H", "pipe", WEIR_CONFIG=spool_config(place, path, queue="8MiB", max_wait="20ms"))
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert re.search("cannot spool: .*: No space left on device", done.stderr), done.stderr
        values = replay(place)
        assert len(values) > 5000 and values == list(range(len(values)))
        account = report["handlers"]["pipe"]
        assert account["dropped"] == [0] * len(account["dropped"]), "values that do not fit stay in memory until the program ends"
        assert run(WEIR, "spool", "verify", os.path.join(place, "spool")).returncode == 0, "no torn record is left"
        reader = Reader(path)
        account = drain(place, reader, path)
        assert account["recovered"] == len(values) and values_of(reader.events())[:-1] == values


@case
def what_a_full_disk_drops_is_not_called_a_full_spool(folder):
    with Disk(folder, "512k") as place:
        account, log = add_to_stuck(os.path.join(place, "a"), overflow="drop_newest")
        assert account["dropped"][FULL] > 10000, account
        said = re.search(r"the queue is full, and nothing can be spooled: (\S+): No space left on device, with \d+\S* on disk; \d+ values dropped", log)
        assert said and said.group(1) == os.path.join(place, "a", "spool"), log


@case
def an_unusable_spool_does_not_change_the_order(folder):
    """Values that could not be spooled are delivered when the destination is available again."""
    path = make_fifo(folder)
    with open(os.path.join(folder, "spool"), "w", encoding="utf-8"):
        pass  # a file in place of the folder
    program = start(ADDER, "-n", 20000, "-f", -1, "-H", "pipe",
                    WEIR_CONFIG=spool_config(folder, path, shutdown="1m", block_timeout="1h", max_wait="20ms"))
    lines = iter(program.stderr.readline, "")
    assert any("spooled values: " in line for line in lines), "the message that the spool cannot be used"
    reader = Reader(path)
    assert values_of(reader.read_to_end_of(program)) == list(range(20000))
    out, _ = program.communicate()
    assert json.loads(out)["handlers"]["pipe"]["delivered"] == 20000


# ---- Damage ------------------------------------------------------------------------------------------------------


def overwrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        file.write(data)


@case
def damaged_records_are_skipped_and_counted_and_the_file_is_kept(folder):
    path = make_fifo(folder)
    fill_spool(folder, path, 20000)
    [segment] = segments(folder)
    overwrite(segment, os.path.getsize(segment) // 2, b"damage!!")
    verified = run(WEIR, "spool", "verify", os.path.join(folder, "spool"))
    lost = int(re.search(r"(\d+) lost, damaged", verified.stdout).group(1))
    assert verified.returncode == 1 and lost > 0, verified
    reader = Reader(path)
    account = drain(folder, reader, path)
    assert account["recovered"] == 20000 and account["dropped"][CORRUPT] == lost
    values = values_of(reader.events())[:-1]
    assert len(values) == 20000 - lost and values == sorted(values) and values[0] == 0 and values[-1] == 19999
    kept = os.listdir(os.path.join(folder, "spool"))
    assert len(kept) == 1 and kept[0].endswith(".seg.bad"), kept
    assert drain(folder, reader, path)["recovered"] == 0, "the kept file is not read again"


@case
def the_last_file_of_a_running_process_may_be_incomplete(folder):
    fill_spool(folder, make_fifo(folder), 20000)
    [segment] = segments(folder)
    overwrite(segment, os.path.getsize(segment) // 2, b"damage!!")
    with open(os.path.join(os.path.dirname(segment), "lock"), "rb") as lock:
        for is_running in (False, True):
            if is_running:
                fcntl.flock(lock, fcntl.LOCK_EX)
            for verb in ("verify", "replay"):
                done = run(WEIR, "spool", verb, os.path.join(folder, "spool"))
                assert (done.returncode == 0) == is_running and ("damaged" in done.stdout + done.stderr) != is_running, (is_running, verb, done)


@case
def a_file_that_is_deleted_while_the_folder_is_read_is_not_damaged(folder):
    if "thread" in SANITIZED:
        raise Skip("ThreadSanitizer does not work with a preloaded library")
    fill_spool(folder, make_fifo(folder), 1000)
    done = run(WEIR, "spool", "verify", os.path.join(folder, "spool"), LD_PRELOAD=SHIM, WEIR_SHIM="gone")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and not segments(folder), done


@case
def a_missing_end_is_not_damage_and_a_file_of_garbage_is(folder):
    """As if the program had been killed while it wrote the last block."""
    path = make_fifo(folder)
    fill_spool(folder, path, 20000)
    [segment] = segments(folder)
    os.truncate(segment, os.path.getsize(segment) - 1)
    with open(os.path.join(os.path.dirname(segment), "00000000000000099999.seg"), "wb") as file:
        file.write(os.urandom(5000))
    shown = replay(folder)
    reader = Reader(path)
    account = drain(folder, reader, path)
    values = values_of(reader.events())[:-1]
    assert values == shown == list(range(len(values))) and 0 < len(values) < 20000
    assert account["recovered"] == len(values) and account["dropped"][CORRUPT] == 0, account
    assert len(glob.glob(os.path.join(folder, "spool", "*.bad"))) == 1


# ---- Configurations ----------------------------------------------------------------------------------------------


@case
def an_invalid_configuration_does_not_touch_the_spool(folder):
    path = make_fifo(folder)
    fill_spool(folder, path, 1000)
    before = {p: (os.stat(p).st_mtime_ns, os.path.getsize(p)) for p in segments(folder)}
    wrong = spool_config(folder, path, no_such_option=1)
    done = run(ADDER, "-q", "-n", 10, WEIR_CONFIG=wrong)
    assert "no_such_option" in done.stderr
    file = os.path.join(folder, "wrong.json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump(wrong, out)
    assert run(WEIR, "check", file).returncode == 1
    assert {p: (os.stat(p).st_mtime_ns, os.path.getsize(p)) for p in segments(folder)} == before
    assert replay(folder) == list(range(1000))


@case
def a_reload_that_changes_the_handler_keeps_spooled_values(folder):
    path, other = make_fifo(folder), make_fifo(folder, "other")
    first = os.path.join(folder, "first.json")
    with open(first, "w", encoding="utf-8") as out:
        json.dump(spool_config(folder, path, max_wait="20ms"), out)
    app = ScriptedApp("", folder)
    assert app.do("configure", first)["code"] == 0
    app.do("add", "a", 1)
    assert app.do("flush", -1)["code"] == SPOOLED
    file = os.path.join(folder, "new.json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump(spool_config(folder, other, max_wait="20ms"), out)
    assert app.do("configure", file)["code"] == 0
    app.do("add", "a", 2)
    reader = Reader(other)
    assert app.do("flush", -1)["code"] == 0
    reader.read()
    assert reader.events() == [{"a": 1}, {"a": 2}]
    app.end()


@case
def a_folder_that_others_may_write_is_refused(folder):
    path, place = make_fifo(folder), os.path.join(folder, "spool")
    os.mkdir(place)
    os.chmod(place, 0o777)
    account, _, log = adder(folder, path, 100, "-f", "0")
    assert account["spooled"] == 0 and "refused" in log and os.listdir(place) == [], log


@case
def nothing_is_spooled_while_the_destination_accepts_everything(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    drain(folder, reader, path, 10000, queue="4MiB")
    assert not os.path.exists(os.path.join(folder, "spool"))


@case
def threads_that_add_do_no_disk_work(folder):
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    path, trace = make_fifo(folder), os.path.join(folder, "trace")
    done = run("strace", "-f", "-qq", "-y", "-e", "trace=write,pwrite64,open,openat,mkdir,unlink,flock", "-o", trace, ADDER, "-q", "-n", 50000,
               WEIR_CONFIG=spool_config(folder, path), ASAN_OPTIONS="detect_leaks=0")
    assert done.returncode == 0, done.stderr
    with open(trace, encoding="utf-8") as file:
        calls = file.read().splitlines()
    adding, at_disk = calls[0].split()[0], {call.split()[0] for call in calls if ".seg" in call}
    assert 1 <= len(at_disk) <= 2 and adding not in at_disk, at_disk  # the handler's thread and its spool's
    assert replay(folder) == list(range(50000))


main()
