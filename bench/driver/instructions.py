"""Instructions, as callgrind counts them: figures that no noise disturbs. bench/instructions.json records them, and they may not
grow by more than a twentieth."""

import json
import os
import re
import subprocess

from programs import arguments, write_config
from scale import BURST

RECORD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "instructions.json")
MOST_GROWTH = 0.05
BURSTS = 40
VALUES = 40 * BURST

FILE = {"type": "file", "append": False}
NULL = {"type": "null"}

# What is counted: the handler, the task, and the function of bench/weir/adding.c inside of which counting is on; "": everywhere, so
# that the dispatcher's and the handler's work are in it too.
FIGURES = {
    "call by name": (NULL, {"way": "name"}, "add_by_name"),
    "call by name, 10,000 series": (NULL, {"way": "name", "names": 10000}, "add_by_names_in_turn"),
    "call by handle": (NULL, {"way": "handle"}, "add_by_handle"),
    "weir_emit of 8, a value": (NULL, {"way": "emit", "event": 8}, "emit_events"),
    "all of a value, null handler": (NULL, {"way": "handle", "mode": "lines"}, ""),
    "all of a value, file, text": ({**FILE, "format": "text"}, {"way": "handle", "mode": "lines"}, ""),
    "all of a value, file, json": ({**FILE, "format": "json"}, {"way": "handle", "mode": "lines"}, ""),
    "all of a value, file, text, random doubles": ({**FILE, "format": "text"}, {"way": "handle", "mode": "lines", "random": 1},
                                                   ""),
}


def run_callgrind(place, handler, task, function):
    if handler["type"] == "file":
        handler = {**handler, "path": place.file("weir.0")}
    config = write_config(place, [handler], {"max_series": 1000000})
    output = place.file("callgrind")
    toggle = [f"--toggle-collect={function}"] if function else []
    place.run("valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", *toggle, place.program("weir/adding"),
              *arguments(config=config, **task))
    with open(output, encoding="utf-8") as file:
        return int(re.search(r"^totals: (\d+)", file.read(), re.M).group(1))


def count(place, handler, task, function):
    """Instructions a value: what twice as many values cost more, so that the start does not count."""
    key, most, each = ("values", VALUES, 1) if task.get("mode") == "lines" else ("bursts", BURSTS, BURST)
    less = run_callgrind(place, handler, {**task, key: most}, function)
    more = run_callgrind(place, handler, {**task, key: 2 * most}, function)
    return round((more - less) / (most * each), 1)


def describe_tools():
    def version(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0].strip()
    return {"compiler": version(os.environ.get("CC", "gcc"), "-dumpfullversion"), "valgrind": version("valgrind", "--version")}


def read_record():
    if not os.path.exists(RECORD):
        return {"figures": {}}
    with open(RECORD, encoding="utf-8") as file:
        return json.load(file)


def write_record(figures):
    with open(RECORD, "w", encoding="utf-8") as file:
        json.dump({**describe_tools(), "figures": figures}, file, indent=2)
        file.write("\n")


def compare(name, now, recorded):
    """Prints a figure beside the recorded one; answers whether it has not grown too much."""
    if recorded is None:
        print(f"{name:45} {now:8.1f}  not recorded")
        return False
    growth = now / recorded - 1
    words = "" if abs(growth) <= MOST_GROWTH else "GROWN" if growth > 0 else "less: worth recording"
    print(f"{name:45} {now:8.1f}  recorded {recorded:8.1f}  {growth:+7.1%}  {words}".rstrip())
    return growth <= MOST_GROWTH


def check(place, record):
    figures = {name: count(place, *how) for name, how in FIGURES.items()}
    recorded = read_record()
    tools = describe_tools()
    if not record and any(recorded.get(key) != value for key, value in tools.items()):
        print("recorded with other tools: gcc {compiler}, {valgrind}".format(**{"compiler": "?", "valgrind": "?", **recorded}))
    good = [compare(name, now, recorded["figures"].get(name)) for name, now in figures.items()]
    if record:
        write_record(figures)
        print("recorded in bench/instructions.json")
    return record or all(good)
