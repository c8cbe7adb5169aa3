#!/usr/bin/env python3
"""Mixed load for a long time, with faults injected from outside; called by `./dev soak`, which builds first.

The program (soak.c) adds values by threads that come and go and by forked children, under configurations that change, with a journal. From
here its file is rotated and deleted, the reader of its pipe is killed and comes back, its server answers errors, hangs up and goes away. A
line each minute, then the figures; the exit status is 0 if everything that was added was delivered or counted, the ledger was exact in
every snapshot, and memory and descriptors stayed where they were.

    soak.py [--minutes N]
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from harness import BUILD, environment
from scripted import Scripted, reply

SOAK = os.path.join(BUILD, "tests", "soak", "soak")


class File:
    """What the handler `file` writes to: moved away, or deleted, again and again; each line that was ever there is counted."""

    def __init__(self, folder):
        self.folder, self.path = folder, os.path.join(folder, "disk")
        self.lines, self.rotations, self.deletions, self.kept = 0, 0, 0, []

    def disturb(self):
        if not os.path.exists(self.path):
            return
        name = os.path.join(self.folder, f"disk.{self.rotations + self.deletions}")
        if random.random() < 0.5:
            os.rename(self.path, name)
            self.rotations += 1
        else:
            os.link(self.path, name)  # for us, to count: to the handler it is gone
            os.unlink(self.path)
            self.deletions += 1
        self.kept.append(name)
        if len(self.kept) > 8:  # by then nobody writes there any more
            self.count(self.kept.pop(0))

    def count(self, path):
        with open(path, "rb") as file:
            for line in file:
                json.loads(line)
                self.lines += 1
        os.unlink(path)

    def end(self):
        for path in self.kept + ([self.path] if os.path.exists(self.path) else []):
            self.count(path)


class Pipe:
    """A FIFO whose reader is killed and comes back."""

    def __init__(self, folder):
        self.path, self.reader, self.kills = os.path.join(folder, "pipe"), None, 0
        os.mkfifo(self.path)
        self.start()

    def start(self):
        self.reader = subprocess.Popen(["cat", self.path], stdout=subprocess.DEVNULL)

    def disturb(self):
        if self.reader and self.reader.poll() is None:
            self.reader.kill()
            self.reader.wait()
            self.kills += 1
        else:
            self.start()

    def calm_down(self):
        if self.reader.poll() is not None:
            self.start()

    def end(self):
        self.reader.kill()
        self.reader.wait()


class Server:
    """Takes values, answers errors, hangs up, or is away for a while."""

    def __init__(self):
        self.mood, self.taken, self.refused, self.away = "well", 0, 0, 0
        self.lock = threading.Lock()
        self.server = Scripted(self.answer)
        self.port, self.url = self.server.port, self.server.url

    def answer(self, request):
        with self.lock:
            self.server.requests.clear()  # it would keep everything for ever
            if self.mood == "well":
                self.taken += len(request.lines())
                return reply(204)
            self.refused += 1
        return reply(503) if self.mood == "ill" else None

    def disturb(self):
        if self.server.closed:
            self.server = Scripted(self.answer, port=self.port)
            self.mood = "well"
            return
        self.mood = random.choice(["well", "ill", "hangs up", "goes"])
        if self.mood == "goes":
            self.away += 1
            self.server.close()

    def calm_down(self):
        if self.server.closed:
            self.server = Scripted(self.answer, port=self.port)
        self.mood = "well"


def write_configs(folder, disk, pipe, server):
    spool = os.path.join(folder, "spool")
    base = {"retry_min": "50ms", "retry_max": "500ms"}
    variants = [({"batch": 500}, {"slow": {"overflow": "drop_newest", "queue": "64KiB"}, "flaky": {"overflow": "drop_oldest"}}),
                ({"linger": "20ms"}, {"flaky": {"overflow": "drop_newest", "queue": "32KiB"}}),
                ({"queue": "256KiB"}, {"slow": {"overflow": "drop_oldest", "queue": "32KiB", "batch": 50}})]
    for number, (common, sinks) in enumerate(variants):
        handlers = {
            "disk": {"type": "file", "path": disk.path, "format": "json", **base, **common},
            "push": {"type": "http", "url": server.url + "/write", "format": "json", "timeout": "2s", "spool": spool, **base, **common},
            "pipe": {"type": "fifo", "path": pipe.path, "create": False, "format": "json", "spool": spool, "spool_limit": "64MiB",
                     "overflow": "drop_oldest", **base, **common},
            **{name: {"type": "sink", **base, **options} for name, options in sinks.items()}}
        config = {"settings": {"journal": os.path.join(folder, "journal"), "shutdown_timeout": "20s"}, "handlers": handlers,
                  "groups": {"soak.disk": "disk", "soak.push": "push", "soak.pipe": "pipe", "soak.many": sorted(sinks)}}
        with open(os.path.join(folder, f"valid.{number}.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
    for number, text in enumerate(['{"groups": {"*": "nobody"}}', '{"handlers": {"disk": {"type": "file", "paht": "x"}}}']):
        with open(os.path.join(folder, f"wrong.{number}.json"), "w", encoding="utf-8") as file:
            file.write(text)


def read_results(output):
    """{handler: {word: number}} of the lines that begin with `result`."""
    results = {}
    for line in output:
        words = line.split()
        if words[:1] == ["result"]:
            results[words[1]] = dict(zip(words[2::2], map(int, words[3::2])))
    return results


def judge(results, disk, server):
    """What is wrong with the account of what arrived; nothing, if all is well."""
    came = {name: row["delivered"] + row["children"] for name, row in results.items()}
    if results["disk"]["dropped"] or disk.lines != came["disk"]:
        yield f"the file got {disk.lines} values, {came['disk']} were delivered to it and {results['disk']['dropped']} dropped"
    if server.taken < came["push"]:
        yield f"the server took {server.taken} values, but {came['push']} were delivered to it"


def disturb(process, things, ends):
    """Injects a fault into one thing after the other, until it is time for all to calm down."""
    while time.monotonic() < ends and process.poll() is None:
        time.sleep(random.uniform(0.3, 1.5))
        random.choice(things).disturb()


def soak(seconds, folder):
    disk, pipe, server = File(folder), Pipe(folder), Server()
    write_configs(folder, disk, pipe, server)
    output = []
    with open(os.path.join(folder, "said"), "wb") as said:
        process = subprocess.Popen([SOAK, str(seconds), folder], stdout=subprocess.PIPE, stderr=said, text=True,
                                   env=environment(WEIR_LOG="error"))

    def pass_on():
        for line in process.stdout:
            output.append(line)
            if not line.startswith("result"):
                print(line, end="", flush=True)

    reader = threading.Thread(target=pass_on)
    reader.start()
    disturb(process, [disk, pipe, server], time.monotonic() + seconds)
    pipe.calm_down()
    server.calm_down()
    process.wait()
    reader.join()
    pipe.end()
    disk.end()
    print(f"{disk.rotations} rotations and {disk.deletions} deletions of the file, {pipe.kills} readers of the pipe killed, "
          f"{server.refused} errors of the server, {server.away} times away")
    results = read_results(output)
    for name, row in results.items():
        print(f"{name:6}" + "".join(f"  {word} {number}" for word, number in row.items()))
    with open(os.path.join(folder, "said"), encoding="utf-8", errors="replace") as file:
        problems = file.read().splitlines()[-5:] if process.returncode else []
    return problems + (list(judge(results, disk, server)) if not process.returncode else [f"exit status {process.returncode}"])


def main():
    parser = argparse.ArgumentParser(prog="./dev soak", description="Mixed load for a long time, with faults injected.")
    parser.add_argument("--minutes", metavar="N", type=float, default=30, help="how long (30)")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="weir-soak-")
    try:
        problems = soak(options.minutes * 60, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for problem in problems:
        print("wrong: " + problem)
    print("soak: " + ("FAILED" if problems else "all that was added was delivered or counted; nothing has grown"))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
