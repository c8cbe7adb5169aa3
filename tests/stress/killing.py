"""Programs that are killed while they add values: with a journal nothing is lost, and only values of the batch that a handler was
delivering may be delivered twice."""

import json
import os
import random
import signal
import struct
import subprocess
import threading
import time

from harness import BUILD, WEIR, Skip, case, environment, main, run, skip_fork_under_sanitizers, wait_for
from scripted import Scripted, reply
from small_disk import Disk

VICTIM = os.path.join(BUILD, "tests", "stress", "victim")
ROUNDS = int(os.environ.get("WEIR_TEST_KILLS", "24"))
THREADS = 3
BATCH = 100
SANITIZED = os.environ.get("WEIR_TEST_SANITIZED")
SLOTS = 16
RECORD = '{"timestamp":'


class Victims:
    """Programs that use one journal, one after the other; each of them dies."""

    def __init__(self, folder, config):
        self.config = config
        config.setdefault("settings", {})["journal"] = os.path.join(folder, "journal")
        config["settings"]["shutdown_timeout"] = "20s"
        config["groups"].setdefault("drain", [])
        self.journal = config["settings"]["journal"]
        self.progress = os.path.join(folder, "progress")
        self.added = {}
        self.deaths = 0
        self.log = open(os.path.join(folder, "stderr"), "w+", encoding="utf-8")

    def start(self, end="wait"):
        with open(self.progress, "wb") as file:
            file.write(bytes(8 * SLOTS))
        return subprocess.Popen([VICTIM, self.progress, str(self.deaths), str(THREADS), end], stdout=subprocess.PIPE,
                                stderr=self.log, env=environment(WEIR_CONFIG=self.config), start_new_session=True)

    @staticmethod
    def kill(process):
        """Kills the process group; returns when all its processes are gone."""
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def read_progress(self):
        with open(self.progress, "rb") as file:
            return struct.unpack(f"{SLOTS}Q", file.read())[:THREADS]

    def record_progress(self):
        """Records how many values the process that has just died had added successfully."""
        for thread, number in enumerate(self.read_progress()):
            self.added[f"t{thread}", f"r{self.deaths}"] = number
        self.deaths += 1

    def kill_working(self, end="wait"):
        """Kills a process once all its threads add values."""
        process = self.start(end)
        wait_for(lambda: min(self.read_progress()) > 300, "values")
        self.kill(process)
        self.record_progress()

    def kill_one(self, seconds, end="wait"):
        process = self.start(end)
        time.sleep(seconds)
        self.kill(process)
        self.record_progress()

    def wait_for_end(self, end, status):
        """Runs a process that ends itself. Sanitizers have their own signal handlers and exit codes."""
        process = self.start(end)
        process.communicate()
        assert process.returncode == status or SANITIZED and status < 0 and process.returncode, (end, process.returncode)
        self.record_progress()

    def drain(self, *handlers):
        """Runs a process that adds no values and ends when everything is delivered. Returns the ledgers."""
        done = run(VICTIM, self.progress, "drain", 0, "drain", *handlers, WEIR_CONFIG=self.config)
        assert done.returncode == 0, done
        self.log.write(done.stderr)
        return {row[0]: list(map(int, row[1:])) for row in map(str.split, done.stdout.splitlines())}

    def messages(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()


def read_record(line, torn):
    """Returns a line's record, or None if its writer was killed while writing and the next process terminated the line."""
    try:
        return json.loads(line)
    except ValueError:
        torn.append(line)
        assert line.startswith(RECORD[:len(line) - 1]) and not line.endswith("}\n"), line
        return None


def read_rows(path, deaths=0):
    """Returns the numbers of each thread of each run in file order. Each death may leave at most one torn line."""
    rows, torn = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = read_record(line, torn)
            if not record or record["group"] == "drain":
                continue
            rows.setdefault((record["group"], record["name"]), []).append(record["value"])
            if record["value"] % 16 == 11:
                assert json.loads(record["metadata"])["number"] == record["value"], line
    assert len(torn) <= deaths, torn
    return rows


def assert_prefixes(victims, path, repeats_allowed):
    """Each row is 0, 1, 2, ... up to at least the number of added values; a step back is a batch that was being delivered at a death.
    Returns the number of values without repetitions."""
    rows = read_rows(path, victims.deaths)
    repeats = values = 0
    for key, added in victims.added.items():
        row = rows.pop(key, [])
        expected = 0
        for number in row:
            assert number <= expected, f"{key}: {number} is followed by {expected} only later"
            repeats += expected - number
            expected = number + 1
        values += expected
        assert expected >= added, f"{key}: {added} values were added, {expected} delivered"
        assert expected <= added + 3, f"{key}: {added} values were added, but {expected} delivered"
    assert not rows, f"values of unknown threads: {list(rows)}"
    assert repeats <= repeats_allowed, f"{repeats} values were delivered twice, at most {repeats_allowed} are allowed"
    return values


def assert_balance(ledgers):
    for handler, (offered, recovered, delivered, dropped, queued, spooled) in ledgers.items():
        assert offered + recovered == delivered + dropped + queued + spooled, (handler, ledgers)
        assert not dropped and not queued and not spooled, (handler, ledgers)


def assert_gone(victims):
    left = os.listdir(victims.journal)
    assert not left, f"left in the journal: {left}\n{victims.messages()}"


def file_handler(folder, name, **more):
    return {"type": "file", "path": os.path.join(folder, name), "format": "json", "batch": BATCH, "block_timeout": "1m", **more}


def kill_times(count, longest):
    """Times to kill, the same in each run: from long before the first value until values are delivered."""
    generator = random.Random(4711)
    return [generator.uniform(0.0, longest) for _ in range(count)]


@case
def fault_06_after_many_kills_every_value_is_delivered(folder):
    config = {"handlers": {"disk": file_handler(folder, "out")}, "groups": {"*": "disk"}}
    victims = Victims(folder, config)
    for seconds in kill_times(ROUNDS, 0.12):
        victims.kill_one(seconds)
    victims.kill_working()
    assert_balance(victims.drain("disk"))
    values = assert_prefixes(victims, os.path.join(folder, "out"), BATCH * victims.deaths)
    assert_gone(victims)
    print(f"# killed {victims.deaths} times, {values} values", flush=True)


@case
def a_server_can_detect_repeated_values_by_their_origin(folder):
    may_respond = threading.Event()
    with Scripted(lambda _: may_respond.wait(240) and reply(204)) as server:
        push = {"type": "http", "url": server.url, "format": {"type": "json", "origin": True}, "batch": BATCH, "linger": "0s",
                "timeout": "60s", "overflow": "block", "block_timeout": "1m", "retry_max": "20ms", "retry_min": "10ms"}
        victims = Victims(folder, {"handlers": {"push": push}, "groups": {"*": "push"}})
        for count in range(1, ROUNDS // 3 + 1):
            process = victims.start()
            server.wait(lambda taken, count=count: len(taken.requests) >= count, "a request")
            victims.kill(process)
            victims.record_progress()
        may_respond.set()
        assert_balance(victims.drain("push"))
        records = [json.loads(line) for request in server.requests for line in request.lines()]
    places, rows = {}, {}
    for record in records:
        place = record.pop("origin"), record.pop("sequence")
        if places.setdefault(place, record) is record:
            rows.setdefault((record["group"], record["name"]), []).append(record["value"])
        assert places[place] == record, f"{place} is {places[place]} and {record}"
    assert len(records) > len(places), "no value was sent twice"
    for key, added in victims.added.items():
        row = rows.get(key, [])
        assert row == list(range(len(row))) and len(row) >= added, (key, added, row[:20])
    assert_gone(victims)


@case
def two_handlers_with_different_routes_each_get_all_their_values(folder):
    config = {"handlers": {"disk": file_handler(folder, "out"), "other": file_handler(folder, "more")},
              "groups": {"*": ["disk", "other"], "t2": "disk"}}
    victims = Victims(folder, config)
    for seconds in kill_times(ROUNDS // 2, 0.1):
        victims.kill_one(seconds)
    victims.kill_working()
    assert_balance(victims.drain("disk", "other"))
    assert_prefixes(victims, os.path.join(folder, "out"), BATCH * victims.deaths)
    for key in list(victims.added):
        if key[0] == "t2":
            del victims.added[key]
    assert_prefixes(victims, os.path.join(folder, "more"), BATCH * victims.deaths)
    assert_gone(victims)


@case
def objects_in_routes_apply_to_what_is_recovered_too(folder):
    """What a dead process had in its rings gets new names and labels, is filtered and sampled, once."""
    renamed = {"to": "other", "rename": {"r*": "run.*"}, "labels": {"via": "route"}}
    config = {"handlers": {"disk": file_handler(folder, "out"), "other": file_handler(folder, "more"), "part": file_handler(folder, "part")},
              "groups": {"*": ["disk", renamed, {"to": "part", "sample": 0.25}], "t2": ["inherit", {"to": "other", "only": ["no"]}]}}
    victims = Victims(folder, config)
    for seconds in kill_times(ROUNDS // 2, 0.1):
        victims.kill_one(seconds)
    victims.kill_working()
    ledgers = victims.drain("disk", "other", "part")
    for handler, (offered, recovered, delivered, dropped, queued, spooled) in ledgers.items():
        assert offered + recovered == delivered + dropped and not queued and not spooled, (handler, ledgers)
    assert_prefixes(victims, os.path.join(folder, "out"), BATCH * victims.deaths)
    whole, part = (read_rows(os.path.join(folder, name), victims.deaths) for name in ("out", "part"))
    taken, added = (sum(len(set(row)) for row in rows.values()) for rows in (part, whole))
    assert 0.15 * added < taken < 0.35 * added, (taken, added)  # of events, which have different numbers of values
    assert all(set(row) <= set(whole[key]) for key, row in part.items())
    victims.added = {(group, "run." + name[1:]): added for (group, name), added in victims.added.items() if group != "t2"}
    assert_prefixes(victims, os.path.join(folder, "more"), BATCH * victims.deaths)
    with open(os.path.join(folder, "more"), encoding="utf-8") as file:
        labels = [record["labels"] for record in (read_record(line, []) for line in file) if record and record["group"] != "drain"]
    assert labels and all(one == {"via": "route"} for one in labels)
    assert_gone(victims)


@case
def fault_05_programs_that_end_without_shutdown_lose_nothing(folder):
    config = {"handlers": {"disk": file_handler(folder, "out")}, "groups": {"*": "disk"}}
    victims = Victims(folder, config)
    ends = {"abort": -signal.SIGABRT, "segv": -signal.SIGSEGV, "term": -signal.SIGTERM, "_exit": 3, "exit": 0}
    for end, status in ends.items():
        victims.wait_for_end(end, status)
    assert_balance(victims.drain("disk"))
    assert_prefixes(victims, os.path.join(folder, "out"), BATCH * victims.deaths)
    assert_gone(victims)


@case
def fault_13_a_crashing_plugin_loses_nothing_not_even_its_batch(folder):
    bad = os.path.join(folder, "bad")
    config = {"handlers": {"disk": file_handler(folder, "out"), "bad": {"type": "crasher"}},
              "groups": {"*": "disk", "t1": ["disk", "bad"]}}
    victims = Victims(folder, config)
    for _ in range(3):  # after the first time, by the recovered values
        victims.wait_for_end("wait", -signal.SIGSEGV)
    config["handlers"]["bad"] = file_handler(folder, "bad")
    assert_balance(victims.drain("disk", "bad"))
    assert_prefixes(victims, os.path.join(folder, "out"), BATCH * victims.deaths)
    for key in [key for key in victims.added if key[0] != "t1"]:
        del victims.added[key]
    assert_prefixes(victims, bad, BATCH * victims.deaths)
    assert any(victims.added.values()), victims.added
    assert_gone(victims)


@case
def killed_during_reloads_every_value_is_delivered(folder):
    config = {"handlers": {"disk": file_handler(folder, "out"), "other": file_handler(folder, "more")},
              "groups": {"*": ["disk", "other"], "t2": "disk"}}
    victims = Victims(folder, config)
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    victims.config = path
    for seconds in kill_times(ROUNDS // 4, 0.1):
        victims.kill_one(seconds, "reload")
    victims.kill_working("reload")
    assert_balance(victims.drain("disk"))
    assert_prefixes(victims, os.path.join(folder, "out"), BATCH * victims.deaths)
    assert_gone(victims)


class Reader:
    """Copies a FIFO to a file."""

    def __init__(self, folder):
        self.fifo, self.path = os.path.join(folder, "fifo"), os.path.join(folder, "out")
        os.mkfifo(self.fifo)

    def start(self):
        return subprocess.Popen(["sh", "-c", f"cat '{self.fifo}' >>'{self.path}'"])


def fifo_handler(reader, **more):
    return {"type": "fifo", "path": reader.fifo, "create": False, "format": "json", "batch": BATCH, "block_timeout": "1m",
            "retry_max": "20ms", "retry_min": "10ms", **more}


@case
def values_without_a_reader_survive_many_deaths(folder):
    reader = Reader(folder)
    config = {"handlers": {"pipe": fifo_handler(reader, queue="64MiB")}, "groups": {"*": "pipe"}}
    victims = Victims(folder, config)
    for seconds in kill_times(ROUNDS // 3, 0.1):
        victims.kill_one(seconds)
    victims.kill_working()
    process = reader.start()
    assert_balance(victims.drain("pipe"))
    process.wait()
    assert_prefixes(victims, reader.path, 0)
    assert_gone(victims)


def read_sums(path):
    """Returns count, sum, min and max of what each thread of each run has added: all of its intervals together."""
    sums, torn = {}, []
    with open(path, encoding="utf-8") as file:
        for record in filter(None, (read_record(line, torn) for line in file)):
            run_name, _, part = record["name"].partition(".")
            if record["group"] != "drain" and part in ("count", "sum", "min", "max"):
                parts = sums.setdefault((record["group"], run_name), {})
                combine = {"min": min, "max": max}.get(part, lambda one, other: one + other)
                parts[part] = combine(parts[part], record["value"]) if part in parts else record["value"]
    return sums


def write_config(path, config):
    """In one step, so that a reload never reads a part."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(config, file)
    os.rename(path + ".new", path)


def sum_in_journal(folder, **options):
    return {"handlers": {"disk": file_handler(folder, "out", aggregate="1d", **options)}, "groups": {"*": "disk"}}


NOTHING = {"count": 0, "sum": 0, "min": 0, "max": -1}


def drain_sums(victims, reader):
    process = reader.start()
    assert_balance(victims.drain("pipe"))
    process.wait()
    return read_sums(reader.path)


@case
def killed_while_they_sum_programs_lose_and_repeat_nothing(folder):
    """No handler takes a summary before the last process has all values, so each value is in one summary."""
    reader = Reader(folder)
    pipe = fifo_handler(reader, queue="64MiB", aggregate="1d", percentiles=[50])
    victims = Victims(folder, {"handlers": {"pipe": pipe}, "groups": {"*": "pipe"}})
    for seconds in kill_times(ROUNDS // 2, 0.12):
        victims.kill_one(seconds)
    victims.kill_working()
    sums = drain_sums(victims, reader)
    for key, added in victims.added.items():
        parts = sums.pop(key, NOTHING)
        last = parts["max"]
        assert added <= last + 1 <= added + 3, (key, added, parts)
        assert (parts["min"], parts["count"], parts["sum"]) == (0, last + 1, last * (last + 1) // 2), (key, parts)
    assert not sums, sums
    assert_gone(victims)


BOUNDS = [10, 100, 1000]


def read_totals(path):
    """Returns the last value of each part of each series: {(group, run): {part or bound: value}}."""
    totals = {}
    with open(path, encoding="utf-8") as file:
        for record in map(json.loads, file):
            run_name, _, part = record["name"].partition(".")
            if record["group"] != "drain":
                totals.setdefault((record["group"], run_name), {})[record.get("labels", {}).get("le", part)] = record["value"]
    return totals


@case
def counters_histograms_and_gauges_of_killed_programs_are_exact(folder):
    """Thread 0 adds 0, 1, 2, ... to a counter, thread 1 measures them, and thread 2 sets a gauge to them."""
    reader = Reader(folder)
    pipe = fifo_handler(reader, queue="64MiB", aggregate="1d", percentiles=[])
    histogram = {"instrument": "histogram", "buckets": BOUNDS}
    metrics = {"t0": {"r*": "counter"}, "t1": {"r*": histogram}, "t2": {"r*": "gauge"}}
    victims = Victims(folder, {"handlers": {"pipe": pipe}, "groups": {"*": "pipe"}, "metrics": metrics})
    for seconds in kill_times(ROUNDS // 2, 0.12):
        victims.kill_one(seconds)
    victims.kill_working()
    process = reader.start()
    assert_balance(victims.drain("pipe"))
    process.wait()
    totals = read_totals(reader.path)
    for (group, run_name), added in victims.added.items():
        got = totals.pop((group, run_name), {})
        if not got:
            assert added == 0, (group, run_name, added)
            continue
        possible = [expected_totals(group, count) for count in range(added, added + 4)]
        assert {key: value for key, value in got.items() if key not in ("min", "max")} in possible, (group, run_name, added, got)
    assert not totals, totals
    assert_gone(victims)


def expected_totals(group, count):
    """Of 0, 1, ... count - 1."""
    total = count * (count - 1) // 2
    if group == "t0":
        return {"": total}
    if group == "t2":
        return {"": count - 1}
    buckets = {str(bound): min(count, bound + 1) for bound in BOUNDS}
    return {"count": count, "sum": total, "+Inf": count, **buckets}


@case
def a_journal_that_the_configuration_has_no_more_keeps_what_is_summed(folder):
    """It is in use until the process ends, also for values that were added after the change."""
    victims = Victims(folder, sum_in_journal(folder))
    path, journaled = os.path.join(folder, "config.json"), victims.config
    settings = {key: value for key, value in journaled["settings"].items() if key != "journal"}
    write_config(path, journaled)
    victims.config = path
    process = victims.start("reload")
    wait_for(lambda: min(victims.read_progress()) > 300, "values")
    write_config(path, {**journaled, "settings": settings})
    wait_for(lambda: "settings.journal changed" in victims.messages(), "the reload")
    before = victims.read_progress()
    wait_for(lambda: min(now - then for now, then in zip(victims.read_progress(), before)) > 300, "values")
    victims.kill(process)
    victims.record_progress()
    victims.config = journaled
    assert_balance(victims.drain("disk"))
    sums = read_sums(os.path.join(folder, "out"))
    for key, added in victims.added.items():
        count = sums.pop(key)["count"]
        assert added <= count <= added + 3, (key, added, count)
    assert not sums, sums
    assert_gone(victims)


@case
def killed_while_summaries_go_to_disk_programs_lose_nothing(folder):
    """A summary that was being written to the spool at a death may be there and be made again."""
    reader, spool = Reader(folder), os.path.join(folder, "spool")
    pipe = fifo_handler(reader, queue="16KiB", spool=spool, spool_limit="1GiB", aggregate="10ms", percentiles=[50])
    victims = Victims(folder, {"handlers": {"pipe": pipe}, "groups": {"*": "pipe"}})
    for seconds in kill_times(ROUNDS // 2, 0.3):
        victims.kill_one(seconds)
    victims.kill_working()
    sums = drain_sums(victims, reader)
    for key, added in victims.added.items():
        parts = sums.pop(key, NOTHING)
        assert parts["min"] == 0 and added <= parts["max"] + 1 <= added + 3 and parts["count"] > parts["max"], (key, added, parts)
    assert not sums, sums
    assert_gone(victims)


def number_of(file):
    kind, number = file.split(".")
    return kind, int(number)


@case
def values_in_files_with_large_numbers_are_delivered(folder):
    """A process that runs for weeks makes more than 10^9 files: all 32-bit numbers are read."""
    reader = Reader(folder)
    config = {"handlers": {"pipe": fifo_handler(reader, queue="64MiB")}, "groups": {"*": "pipe"}}
    victims = Victims(folder, config)
    victims.kill_working()
    (journal,) = [os.path.join(victims.journal, name) for name in os.listdir(victims.journal)]
    files = [name for name in os.listdir(journal) if name.startswith(("seg.", "ring."))]
    last = max(number_of(name)[1] for name in files)
    for name in files:
        kind, number = number_of(name)
        os.rename(os.path.join(journal, name), os.path.join(journal, f"{kind}.{2**32 - 1 - last + number}"))
    listed = run(WEIR, "journal", "list", victims.journal)
    assert "pipe" in listed.stdout, listed
    process = reader.start()
    assert_balance(victims.drain("pipe"))
    process.wait()
    assert_prefixes(victims, reader.path, 0)
    assert_gone(victims)


@case
def a_file_that_was_just_created_is_not_reported_as_damaged(folder):
    """A process may be killed between the creation of a file and its allocation."""
    config = {"handlers": {"disk": file_handler(folder, "out")}, "groups": {"*": "disk"}}
    victims = Victims(folder, config)
    victims.kill_working()
    (journal,) = [os.path.join(victims.journal, name) for name in os.listdir(victims.journal)]
    for kind in ("series", "ring", "seg"):
        last = max(number_of(name)[1] for name in os.listdir(journal) if name.startswith(kind + "."))
        with open(os.path.join(journal, f"{kind}.{last + 1}"), "x", encoding="ascii"):
            pass
    assert_balance(victims.drain("disk"))
    assert "damaged" not in victims.messages(), victims.messages()
    assert_prefixes(victims, os.path.join(folder, "out"), BATCH)
    assert_gone(victims)


@case
def spooled_values_are_not_delivered_by_the_journal_too(folder):
    reader = Reader(folder)
    spool = os.path.join(folder, "spool")
    config = {"handlers": {"pipe": fifo_handler(reader, queue="32KiB", spool=spool)},
              "groups": {"*": "pipe", "drain": "pipe"}}
    victims = Victims(folder, config)
    for seconds in kill_times(ROUNDS // 4, 0.2):
        victims.kill_one(seconds)
    victims.kill_working()
    process = reader.start()
    assert_balance(victims.drain("pipe"))
    process.wait()
    values = read_rows(reader.path)
    for key, added in victims.added.items():
        assert set(range(added)) <= set(values.get(key, [])), f"{key}: of {added} some are missing"
    assert_gone(victims)


@case
def a_forked_child_has_its_own_journal(folder):
    skip_fork_under_sanitizers()
    config = {"handlers": {"disk": file_handler(folder, "out")}, "groups": {"*": "disk", "parent": []}}
    victims = Victims(folder, config)
    for seconds in kill_times(ROUNDS // 4, 0.15):
        victims.kill_one(seconds, "forked")
    victims.kill_working("forked")
    assert_balance(victims.drain("disk"))
    assert_prefixes(victims, os.path.join(folder, "out"), BATCH * victims.deaths)
    assert_gone(victims)


@case
def the_journal_of_a_running_process_is_not_touched(folder):
    config = {"handlers": {"disk": file_handler(folder, "out")}, "groups": {"*": "disk"}}
    victims = Victims(folder, config)
    living = victims.start()
    wait_for(lambda: os.path.exists(os.path.join(folder, "out")), "the first value")
    listed = run(WEIR, "journal", "list", victims.journal)
    assert f"process {living.pid} (running)" in listed.stdout, listed
    ledger = victims.drain("disk")["disk"]
    assert ledger[:2] == [0, 0], ledger
    victims.kill(living)
    victims.record_progress()
    assert_balance(victims.drain("disk"))
    assert_prefixes(victims, os.path.join(folder, "out"), BATCH)
    assert_gone(victims)


@case
def the_command_lists_verifies_and_delivers(folder):
    reader = Reader(folder)
    config = {"handlers": {"pipe": fifo_handler(reader, queue="64MiB")}, "groups": {"*": "pipe"}}
    victims = Victims(folder, config)
    victims.kill_working()
    listed = run(WEIR, "journal", "list", victims.journal)
    assert listed.returncode == 0 and 'for "pipe"' in listed.stdout and "(running)" not in listed.stdout, listed
    verified = run(WEIR, "journal", "verify", victims.journal)
    assert verified.returncode == 0 and verified.stdout.endswith(": sound\n"), verified
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**config, "settings": {}}, file)
    failed = run(WEIR, "journal", "replay", victims.journal, "-c", path, "-t", "50ms")
    assert failed.returncode == 1 and "left in the journal" in failed.stderr, failed
    process = reader.start()
    replayed = run(WEIR, "journal", "replay", victims.journal, "-c", path)
    process.wait()
    assert replayed.returncode == 0 and replayed.stdout == "", replayed
    # the reader may open the pipe a moment later
    assert all("has no reader" in line or "pipe: back after" in line for line in replayed.stderr.splitlines()), replayed
    assert_prefixes(victims, reader.path, 0)
    assert_gone(victims)
    for arguments in (["replay", victims.journal, "-c", path], ["list", victims.journal], ["verify", victims.journal]):
        again = run(WEIR, "journal", *arguments)
        assert again.returncode == 0 and not again.stdout + again.stderr, again


@case
def values_of_a_removed_handler_are_kept_until_it_exists_again(folder):
    reader = Reader(folder)
    config = {"handlers": {"pipe": fifo_handler(reader, queue="64MiB")}, "groups": {"*": "pipe"}}
    victims = Victims(folder, config)
    victims.kill_working()
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"groups": {"nobody": "null"}}, file)
    refused = run(WEIR, "journal", "replay", victims.journal, "-c", path)
    assert refused.returncode == 1 and 'are kept for handler "pipe"' in refused.stderr, refused
    assert os.path.join(victims.journal, "journal.") in refused.stderr, refused
    process = reader.start()
    assert_balance(victims.drain("pipe"))
    process.wait()
    rows = read_rows(reader.path)
    assert all(row == list(range(len(row))) for row in rows.values()) and rows
    assert_gone(victims)


def count_rings(journal):
    return sum(name.startswith("ring.") for _, _, names in os.walk(journal) for name in names)


def wait_until_written(path, numbers):
    """Waits until each thread's row has reached its number. Reads each line once: the file may grow faster than it can be read again."""
    missing = {f"t{thread}": number for thread, number in enumerate(numbers)}
    part = ""

    def reached():
        nonlocal part
        while missing:
            part += file.readline()
            if not part.endswith("\n"):
                return False
            record = json.loads(part)
            part = ""
            if record["value"] >= missing.get(record["group"], float("inf")):
                del missing[record["group"]]
        return True

    with open(path, encoding="utf-8") as file:
        wait_for(reached, f"{missing} in {path}")


@case
def on_a_full_disk_values_are_delivered_without_the_journal_until_there_is_space(folder):
    disk = Disk(folder, "16m")
    out = os.path.join(folder, "out")
    try:
        config = {"handlers": {"disk": file_handler(folder, "out")}, "groups": {"*": "disk"}}
        victims = Victims(folder, config)
        config["settings"]["journal"] = victims.journal = os.path.join(disk.path, "journal")
        disk.fill()
        process = victims.start()
        wait_for(lambda: os.path.exists(out), "the first value")
        log = victims.messages()
        assert log.count("No space left on device; values go on without it") == 1, log
        os.remove(disk.filler)
        wait_for(lambda: "values are kept there again" in victims.messages(), "the journal to be used again")
        wait_for(lambda: count_rings(victims.journal) >= THREADS, "the rings")
        time.sleep(0.1)
        added = victims.read_progress()
        wait_until_written(out, added)
        victims.kill(process)
        victims.record_progress()
        assert_balance(victims.drain("disk"))
        assert_prefixes(victims, out, BATCH)
        assert_gone(victims)
    finally:
        disk.remove()


@case
def a_disk_that_fills_up_during_work_ends_no_process(folder):
    disk = Disk(folder, "420k")
    out = os.path.join(folder, "out")
    try:
        config = {"handlers": {"disk": file_handler(folder, "out")}, "groups": {"*": "disk"}}
        victims = Victims(folder, config)
        config["settings"]["journal"] = victims.journal = os.path.join(disk.path, "journal")
        victims.wait_for_end("exit", 0)
        assert "No space left on device; values go on without it" in victims.messages(), victims.messages()
        assert_prefixes(victims, out, 0)
        assert_gone(victims)
    finally:
        disk.remove()


if __name__ == "__main__":
    main()
