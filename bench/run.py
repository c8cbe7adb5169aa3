#!/usr/bin/env python3
"""The benchmark: weir and its peers in turn, one table. Called by `./dev bench`, which builds first."""

import argparse
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver"))

import growth  # noqa: E402
import idle  # noqa: E402
import instructions  # noqa: E402
import jobs  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
from database import Database  # noqa: E402
from programs import Place, Void  # noqa: E402
from scale import FULL, QUICK  # noqa: E402
from tracing import Tracing  # noqa: E402


def attempt(job):
    """A job's report, or why it is void."""
    try:
        return job()
    except Void as reason:
        return str(reason)


def run_rounds(listed, scale):
    """Every job once a round. The first round warms the machine up and is thrown away."""
    rounds = []
    for number in range(scale.rounds + 1):
        start, before = time.monotonic(), machine.processor_time()
        reports = {name: attempt(job) for name, job in listed.items()}
        words = f"round {number} of {scale.rounds}" if number else "a first round, thrown away"
        stolen = machine.stolen_share(before, machine.processor_time())
        print(f"{words}: {time.monotonic() - start:.0f} s, {stolen:.0%} taken by the host", file=sys.stderr, flush=True)
        if number:
            rounds.append(reports)
    return rounds


def run_table(place, options):
    scale = QUICK if options.quick else FULL
    here, before = machine.describe(), machine.processor_time()
    print("{processor}, {processors} processors, Linux {kernel}, load {load:.1f}\n".format(**here))
    if machine.is_busy(here):
        print("The machine is busy with something else: expect noise.\n")
    sys.stdout.flush()
    with Tracing(place) as tracing, Database(place) as database:
        rounds = run_rounds(jobs.list_jobs(place, tracing, database, scale), scale)
    here["stolen"] = machine.stolen_share(before, machine.processor_time())
    rounds[-1]["weir idle"] = attempt(lambda: idle.watch_idle(place, scale.idle_s))
    results = [rows.judge(row, rounds) for row in rows.GOALS + rows.OTHERS]
    report.print_table(results)
    counts = report.print_verdict(results)
    print(f"{here['stolen']:.0%} of the processors' time went to others on the same host")
    if options.json:
        report.write_json(options.json, here, scale, results, rounds)
    if options.plot:
        report.write_plot(options.plot, place, results)
    return counts


def run_mixed(place, seconds):
    command = [place.program("weir/mixed.p"), str(seconds), place.folder]
    return subprocess.run(command, env=place.environment(), check=False).returncode == 0


def read_options():
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measures weir beside other libraries.")
    parser.add_argument("--quick", action="store_true", help="the same in under a minute, with more noise")
    parser.add_argument("--json", metavar="FILE", help="writes the results there too")
    parser.add_argument("--plot", metavar="FILE.png", help="draws the goals, by gnuplot")
    parser.add_argument("--instructions", action="store_true",
                        help="counts instructions by callgrind; fails where they have grown by more than 5 %%")
    parser.add_argument("--growth", action="store_true", help="measures how cost grows as work grows")
    parser.add_argument("--mixed", metavar="SECONDS", type=float, nargs="?", const=600,
                        help="ten minutes, or so many seconds, of everything at once: the ledger has to stay exact, memory flat")
    parser.add_argument("--record", action="store_true",
                        help="with --instructions, --growth: what was measured becomes what is recorded in bench/")
    parser.add_argument("--build", default="build-bench", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = read_options()
    with Place(options.build) as place:
        if options.instructions:
            return instructions.check(place, options.record)
        if options.growth:
            return growth.show(place, options.record, QUICK if options.quick else FULL)
        if options.mixed is not None:
            return run_mixed(place, options.mixed)
        return run_table(place, options)


if __name__ == "__main__":
    try:
        sys.exit(0 if main() else 1)
    except Void as reason:
        sys.exit(f"void: {reason}")
