"""`weir relay` in place of benchmarkai's daemon: a program in mode fifo and a writer of JSON lines share its pipe, the relay and the
writers are restarted, and what arrives in a file and in VictoriaMetrics is what was written."""

import fcntl
import json
import os
import signal
import struct
import termios
import threading

from harness import ADDER, WEIR, assert_ledgers, case, main, run, start, wait_for
from peers import VictoriaMetrics

EVENTS = int(100000 * float(os.environ.get("WEIR_TEST_FACTOR") or 1))
RESTARTS = 3


def write_config(folder, url):
    config = {
        "settings": {"shutdown_timeout": "10m", "journal": os.path.join(folder, "journal"), "status": "off"},
        "sources": {"job": {"type": "fifo", "path": os.path.join(folder, "pipe"), "label_variables": "CUSTOM_LABEL_"}},
        "handlers": {
            "*": {"block_timeout": "1h"},
            "disk": {"type": "file", "path": os.path.join(folder, "out.jsonl")},
            "database": {"type": "http", "url": url + "/write", "format": "influx"},
        },
        "groups": {"*": ["disk", "database"]},
    }
    path = os.path.join(folder, "relay.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


class Relay:
    def __init__(self, config):
        self.process = start(WEIR, "relay", "-c", config, WEIR_LOG="warning", CUSTOM_LABEL_TASK_NAME="train")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out, log = self.process.communicate(timeout=900)
        assert (self.process.returncode, out, log) == (0, "", ""), (self.process.returncode, out, log)


def write_json(pipe, count):
    """Keeps the pipe open for reading, too: what a relay that ends has not read waits for the next one."""
    for i in range(count):
        os.write(pipe, json.dumps({"py": i, "loss": 0.5}).encode() + b"\n")


def add_in_mode_fifo(path, name, count):
    """Returns the program's ledger."""
    done = run(ADDER, "-n", count, "-g", name, "-f", -1, "-H", "fifo", timeout=1800, BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=path,
               BENCHMARK_AI_FIFO_MAX_WAIT_TIME=600)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report


def unread(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def count_in(path):
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def sums_of(path):
    """{name: (count, sum)} of a file of JSON lines."""
    sums = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            value = json.loads(line)
            assert value["labels"] == {"task_name": "train"}, line
            count, total = sums.get(value["name"], (0, 0))
            sums[value["name"]] = (count + 1, total + value["value"])
    return sums


@case
def sums_at_both_ends_are_those_of_the_writers_ledgers(folder):
    path, out = os.path.join(folder, "pipe"), os.path.join(folder, "out.jsonl")
    with VictoriaMetrics(folder) as database:
        config = write_config(folder, database.url)
        relay = Relay(config)
        wait_for(lambda: os.path.exists(path), "the pipe")
        pipe = os.open(path, os.O_RDWR)
        half = EVENTS // 2
        writer = threading.Thread(target=write_json, args=(pipe, half), daemon=True)
        writer.start()
        added = 0
        for i in range(RESTARTS):
            program = threading.Thread(target=lambda: reports.append(add_in_mode_fifo(path, "job", half // RESTARTS)))
            reports = []
            program.start()
            before = count_in(out)
            wait_for(lambda: count_in(out) > before or not program.is_alive(), "more values in the file", 900)
            relay.end()
            relay = Relay(config)
            program.join()
            assert len(reports) == 1, "the program failed"
            added += reports[0]["process"]["added"]
        writer.join()
        wait_for(lambda: unread(pipe) == 0, "an empty pipe", 900)
        relay.end()
        os.close(pipe)
        sums = sums_of(out)
        expected = {"py": (half, half * (half - 1) // 2), "loss": (half, half * 0.5)}
        each = half // RESTARTS
        programs = {name: sums[name] for name in sums if name not in expected}
        assert {name: sums.get(name) for name in expected} == expected, sums
        assert sum(count for count, _ in programs.values()) == added == RESTARTS * each, (programs, added)
        arrived = {name: (len(values), sum(values)) for name, values in stored(database, sum(count for count, _ in sums.values())).items()}
        assert arrived == {name: sums[name] for name in sums}, (arrived, sums)


def stored(database, count):
    """The values of each name."""
    series = database.await_series('{task_name="train"}', count)
    return {name.rpartition("_")[2]: values for name, values in series.items()}


main()
