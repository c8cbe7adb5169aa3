"""Instruction counts by callgrind, which do not depend on the load of the machine. They are recorded in bench/instructions.json and
must not grow by more than 5 %. What reading the time costs does depend on the machine, so they are recorded for each clock."""

import json
import os
import re
import subprocess

from programs import arguments, write_config
from scale import BURST

RECORD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "instructions.json")
MAX_GROWTH = 0.05
BURSTS = 40
VALUES = 40 * BURST

FILE = {"type": "file", "append": False}
NULL = {"type": "null"}
SUMMED = {**NULL, "aggregate": "1s", "percentiles": []}

# For each figure: the handler, the task, and the function in bench/weir/adding.c whose instructions are counted; "": the whole
# process, including the dispatcher and the handler.
FIGURES = {
    "call by name": (NULL, {"way": "name"}, "add_by_name"),
    "call by name, 10,000 series": (NULL, {"way": "name", "names": 10000}, "add_by_names_in_turn"),
    "call by handle": (NULL, {"way": "handle"}, "add_by_handle"),
    "counter by handle, summed": (SUMMED, {"way": "counter"}, "add_by_handle"),
    "histogram by handle, summed": (SUMMED, {"way": "histogram"}, "add_by_handle"),
    "call with labels, summed": (SUMMED, {"way": "labeled", "names": 8}, "add_labeled"),
    "weir_emit of 8, a value": (NULL, {"way": "emit", "event": 8}, "emit_events"),
    "all of a value, null handler": (NULL, {"way": "handle", "mode": "lines"}, ""),
    "all of a value, file, text": ({**FILE, "format": "text"}, {"way": "handle", "mode": "lines"}, ""),
    "all of a value, file, json": ({**FILE, "format": "json"}, {"way": "handle", "mode": "lines"}, ""),
    "all of a value, file, text, random doubles": ({**FILE, "format": "text"}, {"way": "handle", "mode": "lines", "random": 1},
                                                   ""),
}


def run_callgrind(workspace, handler, task, function):
    if handler["type"] == "file":
        handler = {**handler, "path": workspace.file("weir.0")}
    config = write_config(workspace, [handler], {"max_series": 1000000})
    output = workspace.file("callgrind")
    toggle = [f"--toggle-collect={function}"] if function else []
    workspace.run("valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", *toggle, workspace.program("weir/adding"),
              *arguments(config=config, **task))
    with open(output, encoding="utf-8") as file:
        return int(re.search(r"^totals: (\d+)", file.read(), re.M).group(1))


def count(workspace, handler, task, function):
    """Returns instructions per value: the difference between a run and one with twice as many values, so that startup does not count."""
    key, amount, values_each = ("values", VALUES, 1) if task.get("mode") == "lines" else ("bursts", BURSTS, BURST)
    less = run_callgrind(workspace, handler, {**task, key: amount}, function)
    more = run_callgrind(workspace, handler, {**task, key: 2 * amount}, function)
    return round((more - less) / (amount * values_each), 1)


def describe_tools():
    def version(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0].strip()
    return {"compiler": version(os.environ.get("CC", "gcc"), "-dumpfullversion"), "valgrind": version("valgrind", "--version")}


def name_clock():
    """What weir reads the time from: the processor's counter, if the kernel trusts it, or the kernel's clock."""
    folder = "/sys/devices/system/clocksource/clocksource0"
    with open(f"{folder}/available_clocksource", encoding="ascii") as available, open(f"{folder}/current_clocksource", encoding="ascii") as current:
        return "tsc" if "tsc" in available.read() else current.read().strip()


def read_record():
    if not os.path.exists(RECORD):
        return {"figures": {}}
    with open(RECORD, encoding="utf-8") as file:
        return json.load(file)


def write_record(clock, figures):
    record = {**read_record(), **describe_tools()}
    record["figures"][clock] = figures
    with open(RECORD, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=2)
        file.write("\n")


def compare(name, now, recorded):
    """Prints a figure and the recorded one; returns whether it is within the limit."""
    if recorded is None:
        print(f"{name:45} {now:8.1f}  not recorded")
        return False
    growth = now / recorded - 1
    remark = "" if abs(growth) <= MAX_GROWTH else "GROWN" if growth > 0 else "lower: record it"
    print(f"{name:45} {now:8.1f}  recorded {recorded:8.1f}  {growth:+7.1%}  {remark}".rstrip())
    return growth <= MAX_GROWTH


def check(workspace, record):
    figures = {name: count(workspace, *how) for name, how in FIGURES.items()}
    recorded, clock = read_record(), name_clock()
    tools = describe_tools()
    if not record and any(recorded.get(key) != value for key, value in tools.items()):
        print("recorded with different tools: gcc {compiler}, {valgrind}".format(**{"compiler": "?", "valgrind": "?", **recorded}))
    if record:
        write_record(clock, figures)
        print(f"recorded in bench/instructions.json for the clock {clock}")
    elif clock not in recorded["figures"]:
        print(f"nothing is recorded for the clock {clock}, so nothing is compared")
    known = recorded["figures"].get(clock, figures)
    passed = [compare(name, now, known.get(name)) for name, now in figures.items()]
    return record or all(passed)
