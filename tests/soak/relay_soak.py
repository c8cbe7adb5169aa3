#!/usr/bin/env python3
"""A relay under steady load for a long time; called by `./dev soak --relay`, which builds first.

Four programs add values at a steady rate, and send them through a pipe, Unix datagrams (statsd), http and a link (forward) to one relay;
besides, short-lived programs come and go on the link. Prints a line each minute. Exit status 0 if every value that was sent was added by
the relay and delivered, the datagrams that the kernel dropped aside, and the relay's memory did not grow once all programs had sent for a
fifth of the time.

    relay_soak.py [--minutes N] [--pause MICROSECONDS]
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import ADDER, WEIR, environment, free_port

EVENT = 20            # values of an event: a line of JSON, a datagram
VISITORS = 5          # short-lived programs per second
WARM = 0.2            # the part of the time after which memory must not grow
GROWTH_KB = 4 << 10   # what the allocator may keep more or less of


class Soak:
    def __init__(self, folder, seconds, pause_us):
        self.folder, self.seconds, self.pause_us = folder, seconds, pause_us
        self.port = free_port()
        self.paths = {name: os.path.join(folder, name) for name in ("pipe", "statsd", "link", "journal", "status", "log")}
        self.rss = []  # (seconds since the start, KiB)
        self.visits, self.visitors = 0, []

    def write_config(self):
        config = {
            "settings": {"journal": self.paths["journal"], "status": self.paths["status"], "shutdown_timeout": "5m"},
            "sources": {
                "pipe": {"type": "fifo", "path": self.paths["pipe"], "parse": "json"},
                "statsd": {"type": "statsd", "listen": ["unix-dgram:" + self.paths["statsd"]]},
                "http": {"type": "http", "listen": f"127.0.0.1:{self.port}"},
                "link": {"type": "forward", "listen": ["unix:" + self.paths["link"]]}},
            "handlers": {"*": {"block_timeout": "1h"}, "all": {"type": "null"},
                         "sums": {"type": "file", "path": os.path.join(self.folder, "sums"), "aggregate": "1s"}},
            "groups": {"*": ["all", "sums"]}}
        path = os.path.join(self.folder, "relay.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return path

    def handlers(self):
        return {"pipe": {"type": "fifo", "path": self.paths["pipe"], "format": "json"},
                "statsd": {"type": "socket", "to": "unix-dgram:" + self.paths["statsd"], "format": "statsd"},
                "http": {"type": "http", "url": f"http://127.0.0.1:{self.port}/", "format": "json"},
                "link": {"type": "forward", "to": "unix:" + self.paths["link"]}}

    def add(self, kind, count, *options):
        """Starts a program that sends so many values."""
        handler = {**self.handlers()[kind], "overflow": "block", "block_timeout": "1h", "retry_min": "5ms", "retry_max": "1s"}
        config = {"settings": {"shutdown_timeout": "5m", "status": "off"}, "handlers": {"up": handler}, "groups": {"*": "up"}}
        return subprocess.Popen([ADDER, "-n", str(count), "-g", kind, "-H", "up", "-f", "-1", *options], stdout=subprocess.PIPE, text=True,
                                env=environment(WEIR_CONFIG=config, WEIR_LOG="error"))

    def look(self, started):
        with open(f"/proc/{self.relay.pid}/status", encoding="utf-8") as file:
            rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        self.rss.append((time.monotonic() - started, rss))

    def visit(self, most):
        """Programs that add one value and end: reads the ledgers of those that have, and starts others."""
        for program in [program for program in self.visitors if most == 0 or program.poll() is not None]:
            self.visitors.remove(program)
            self.visits += self.delivered_by(program)
        while len(self.visitors) < most:
            self.visitors.append(self.add("link", 1))

    def delivered_by(self, program):
        out, _ = program.communicate()
        if program.returncode:
            sys.exit(f"a program ended with {program.returncode}")
        ledger = json.loads(out)["handlers"]["up"]
        if ledger["delivered"] != ledger["offered"]:
            sys.exit(f"a program did not deliver all values: {ledger}")
        return ledger["delivered"]

    def status(self):
        done = subprocess.run([WEIR, "status", str(self.relay.pid), "--json", "--folder", self.paths["status"]], stdout=subprocess.PIPE,
                              check=True, env=environment())
        return json.loads(done.stdout)[0]

    def await_relay(self):
        while not all(os.path.exists(self.paths[name]) for name in ("link", "statsd", "pipe")):
            if self.relay.poll() is not None:
                sys.exit("the relay has ended: " + self.log())
            time.sleep(0.1)

    def log(self):
        with open(self.paths["log"], encoding="utf-8") as file:
            return file.read()

    def load(self):
        """Returns the ledgers of the four programs' handlers when all have ended."""
        programs = {kind: self.add(kind, 10 ** 12, "-e", str(EVENT), "-p", str(self.pause_us * 1000), "-d", str(self.seconds))
                    for kind in self.handlers()}
        started, shown = time.monotonic(), 0
        while any(program.poll() is None for program in programs.values()):
            self.look(started)
            self.visit(VISITORS)
            if self.rss[-1][0] >= shown + 60:
                shown += 60
                print(f"{shown // 60} min: {self.rss[-1][1]} KiB, {self.status()['added']} values, {self.visits} programs", flush=True)
            time.sleep(1)
        self.visit(0)
        sent = {kind: self.delivered_by(program) for kind, program in programs.items()}
        sent["link"] += self.visits
        return sent

    def taken(self):
        """{source: values it has added}"""
        return {source["name"]: source["added"] for source in self.status()["sources"]}

    def run(self):
        """Returns what is wrong."""
        with open(self.paths["log"], "w", encoding="utf-8") as log:
            self.relay = subprocess.Popen([WEIR, "relay", "-c", self.write_config()], stderr=log, env=environment(WEIR_LOG="info"))
        try:
            self.await_relay()
            sent = self.load()
            deadline = time.monotonic() + 60
            while (taken := self.taken()) != sent and time.monotonic() < deadline:
                time.sleep(0.5)
            self.relay.send_signal(signal.SIGTERM)
            ended = self.relay.wait(600)
        finally:
            self.relay.kill()
            self.relay.wait()
        return list(self.check(sent, taken, ended))

    def check(self, sent, taken, ended):
        total = sum(sent.values())
        warm = max(rss for at, rss in self.rss if at <= self.seconds * WARM)
        most = max(rss for at, rss in self.rss if at > self.seconds * WARM)
        print(f"sent {sent}, {self.visits} of them by programs of one value; memory {warm} KiB, then at most {most} KiB")
        if taken != sent:
            yield f"the relay has added {taken}"
        if most > warm + GROWTH_KB:
            yield f"memory has grown by {most - warm} KiB"
        if ended:
            yield f"the relay has ended with {ended}"
        for name in ("all", "sums"):
            ledger = re.search(rf'ledger: handler "?{name}"?: (\d+) offered, (\d+) delivered', self.log())
            if not ledger or set(map(int, ledger.groups())) != {total}:
                yield f"{total} values were sent; {ledger[0] if ledger else self.log()[-2000:]}"


def main():
    parser = argparse.ArgumentParser(prog="./dev soak --relay", description="A relay under steady load for a long time.")
    parser.add_argument("--minutes", metavar="N", type=float, default=10, help="how long (10)")
    parser.add_argument("--pause", metavar="N", type=int, default=200, help=f"microseconds between two events of {EVENT} values (200)")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="weir-soak-")
    try:
        problems = Soak(folder, int(options.minutes * 60), options.pause).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for problem in problems:
        print("wrong: " + problem)
    print("soak: " + ("FAILED" if problems else "every value was added and delivered; memory has not grown"))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
