#!/usr/bin/env python3
"""Mixed load for a long time, with faults injected from outside; called by `./dev soak`, which builds first.

The program (soak.c) adds values from short-lived threads and forked children, with changing configurations and a journal. This script
rotates and deletes its file, kills and restarts the reader of its pipe, and its server returns errors, closes connections and is down for
a while. Prints a line each minute, then the results. Exit status 0 if all added values were delivered or counted, the ledger was exact in
every snapshot, and memory and descriptors did not grow.

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
    """The output of the handler `file`, which is moved or deleted repeatedly. All lines ever written are counted."""

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
            os.link(self.path, name)  # a link for counting; the path is gone for the handler
            os.unlink(self.path)
            self.deletions += 1
        self.kept.append(name)
        if len(self.kept) > 8:  # nothing is written to the oldest ones any more
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
    """A FIFO whose reader is killed and restarted."""

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

    def stop_faults(self):
        if self.reader.poll() is not None:
            self.start()

    def end(self):
        self.reader.kill()
        self.reader.wait()


class Server:
    """An HTTP server that accepts values, returns errors, closes connections, or is down for a while."""

    def __init__(self):
        self.mood, self.taken, self.refused, self.away = "well", 0, 0, 0
        self.lock = threading.Lock()
        self.server = Scripted(self.respond)
        self.port, self.url = self.server.port, self.server.url

    def respond(self, request):
        with self.lock:
            self.server.requests.clear()  # it would grow forever
            if self.mood == "well":
                self.taken += len(request.lines())
                return reply(204)
            self.refused += 1
        return reply(503) if self.mood == "ill" else None

    def disturb(self):
        if self.server.closed:
            self.server = Scripted(self.respond, port=self.port)
            self.mood = "well"
            return
        self.mood = random.choice(["well", "ill", "hangs up", "goes"])
        if self.mood == "goes":
            self.away += 1
            self.server.close()

    def stop_faults(self):
        if self.server.closed:
            self.server = Scripted(self.respond, port=self.port)
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
    """Returns {handler: {word: number}} from the lines that start with `result`."""
    results = {}
    for line in output:
        words = line.split()
        if words[:1] == ["result"]:
            results[words[1]] = dict(zip(words[2::2], map(int, words[3::2])))
    return results


def check(results, disk, server):
    """Yields a message for each difference between received and delivered values."""
    delivered = {name: row["delivered"] + row["children"] for name, row in results.items()}
    if results["disk"]["dropped"] or disk.lines != delivered["disk"]:
        yield f"the file contains {disk.lines} values, {delivered['disk']} were delivered to it and {results['disk']['dropped']} dropped"
    if server.taken < delivered["push"]:
        yield f"the server accepted {server.taken} values, but {delivered['push']} were delivered to it"


def disturb(process, destinations, ends):
    """Injects faults into one destination after the other until the time is over, then stops all faults."""
    while time.monotonic() < ends and process.poll() is None:
        time.sleep(random.uniform(0.3, 1.5))
        random.choice(destinations).disturb()


def soak(seconds, folder):
    disk, pipe, server = File(folder), Pipe(folder), Server()
    write_configs(folder, disk, pipe, server)
    output = []
    with open(os.path.join(folder, "log"), "wb") as log:
        process = subprocess.Popen([SOAK, str(seconds), folder], stdout=subprocess.PIPE, stderr=log, text=True,
                                   env=environment(WEIR_LOG="error"))

    def forward_output():
        for line in process.stdout:
            output.append(line)
            if not line.startswith("result"):
                print(line, end="", flush=True)

    reader = threading.Thread(target=forward_output)
    reader.start()
    disturb(process, [disk, pipe, server], time.monotonic() + seconds)
    pipe.stop_faults()
    server.stop_faults()
    process.wait()
    reader.join()
    pipe.end()
    disk.end()
    print(f"{disk.rotations} rotations and {disk.deletions} deletions of the file, {pipe.kills} readers of the pipe killed, "
          f"{server.refused} errors of the server, {server.away} times down")
    results = read_results(output)
    for name, row in results.items():
        print(f"{name:6}" + "".join(f"  {word} {number}" for word, number in row.items()))
    with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as file:
        problems = file.read().splitlines()[-5:] if process.returncode else []
    return problems + (list(check(results, disk, server)) if not process.returncode else [f"exit status {process.returncode}"])


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
    print("soak: " + ("FAILED" if problems else "all added values were delivered or counted; memory and descriptors have not grown"))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
