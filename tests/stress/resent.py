"""A receiver that is killed and gets everything again: with a journal each value is added once, however often it is sent."""

import json
import os
import random
import subprocess

from harness import BUILD, assert_ledgers, case, environment, lines_of, main, run
from small_disk import Disk

RESENDER = os.path.join(BUILD, "tests", "stress", "resender")
PLUGIN = os.path.join(BUILD, "tests", "support", "plugins", ".libs", "scripted.source.so")
KILLS = int(os.environ.get("WEIR_TEST_KILLS", "24"))
SENDERS = "abc"


def write_config(folder, handler, journal=None):
    """The same handler by name; while nobody reads its pipe, everything stays in the journal."""
    path = os.path.join(folder, "weir.json")
    config = {"settings": {"journal": journal or os.path.join(folder, "journal"), "shutdown_timeout": "2m"},
              "sources": {"in": {"type": "scripted", "plugin": PLUGIN}},
              "handlers": {"out": {"queue": "1GiB", "block_timeout": "1h", **handler}}, "groups": {"*": "out"}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


def held(folder, journal=None):
    return write_config(folder, {"type": "fifo", "path": os.path.join(folder, "nobody")}, journal)


def delivered(folder, journal=None):
    return write_config(folder, {"type": "file", "path": os.path.join(folder, "out"), "format": "json"}, journal)


def start(config, count, **more):
    return subprocess.Popen([RESENDER, config, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), **more)


def read_blocks(process, blocks):
    """Reads until it has added some blocks, or all."""
    said = b""
    while len(said) < blocks and not said.endswith(b"\n"):
        said += os.read(process.stdout.fileno(), 1) or b"\n"
    return said


def kill_after(config, count, blocks):
    """Kills it after it has added some blocks, or all. Returns how many it had said."""
    process = start(config, count)
    said = read_blocks(process, blocks)
    process.kill()
    more, _ = process.communicate()
    return (said + more).count(b".")


def finish(config, count):
    """Runs it to its end. Returns how many values it added, and its ledgers."""
    process = start(config, count)
    dots = process.stdout.readline().decode()
    report, _ = process.communicate(timeout=600)
    assert process.returncode == 0 and dots.endswith("all 1\n"), dots[-20:]
    report = json.loads(report)
    assert_ledgers(report)
    return dots.count("."), report["handlers"]["out"]


def assert_all(folder, count, once=True):
    numbers = {name: [] for name in SENDERS}
    for line in lines_of(os.path.join(folder, "out")):
        record = json.loads(line)
        numbers[record["name"]].append(record["value"])
        assert (record.get("metadata") == "four") == (record["value"] % 5 == 0), record
    for name in SENDERS:
        assert sorted(set(numbers[name])) == list(range(count)), (name, len(numbers[name]), len(set(numbers[name])))
        assert not once or len(numbers[name]) == count, (name, len(numbers[name]))


@case
def after_kills_what_is_sent_again_is_added_once(folder):
    count = 1500 * KILLS
    config = held(folder)
    blocks = 0
    for _ in range(KILLS):
        blocks += kill_after(config, count, random.randrange(1, 60))
    assert blocks
    _, ledger = finish(delivered(folder), count)
    assert ledger["delivered"] == ledger["offered"] + ledger["recovered"] == len(SENDERS) * count, ledger
    assert_all(folder, count)


@case
def numbers_outlive_an_orderly_end_and_leave_no_folder_when_there_are_none(folder):
    config = delivered(folder)
    added, _ = finish(config, 5000)
    assert added
    for _ in range(2):
        added, ledger = finish(config, 5000)
        assert added == 0 and ledger["offered"] + ledger["recovered"] == 0, ledger
    added, ledger = finish(config, 6000)
    assert ledger["delivered"] == len(SENDERS) * 1000, ledger
    assert_all(folder, 6000)
    assert len(os.listdir(os.path.join(folder, "journal"))) == 1
    assert run(RESENDER, write_config(folder, {"type": "null"}), 0, stdin=subprocess.DEVNULL).returncode == 0
    assert len(os.listdir(os.path.join(folder, "journal"))) == 1


@case
def without_numbers_no_folder_is_left(folder):
    assert run(RESENDER, delivered(folder), 0, stdin=subprocess.DEVNULL).returncode == 0
    assert os.listdir(os.path.join(folder, "journal")) == []


@case
def values_that_left_a_full_journal_are_added_again(folder):
    disk = Disk(folder, "1500k")  # less than the values take
    journal = os.path.join(disk.path, "journal")
    try:
        process = start(held(folder, journal), 30000)
        process.stdout.readline()
        process.kill()
        process.communicate()
        disk.resize("64m")
        config = delivered(folder, journal)
        process = start(config, 30000, stderr=subprocess.PIPE)
        assert process.stdout.readline().endswith(b"all 1\n")
        report, errors = process.communicate(timeout=600)
        assert_ledgers(json.loads(report))
        assert b"may be added twice" in errors, errors
        assert_all(folder, 30000, once=False)
    finally:
        disk.remove()


main()
