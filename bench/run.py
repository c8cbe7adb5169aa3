#!/usr/bin/env python3
"""Runs the benchmark: weir and its peers in turn, one table. Called by `./dev bench`, which builds the programs first."""

import argparse
import os
import re
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
from programs import Void, Workspace  # noqa: E402
from scale import FULL, QUICK  # noqa: E402
from tracing import Tracing  # noqa: E402


def attempt(job):
    """Returns the job's report, or the reason why it is void."""
    try:
        return job()
    except Void as reason:
        return str(reason)


def run_rounds(job_list, scale):
    """Runs every job once per round. The first round is a warm-up and is discarded."""
    rounds = []
    for number in range(scale.rounds + 1):
        start, before = time.monotonic(), machine.processor_time()
        reports = {name: attempt(job) for name, job in job_list.items()}
        label = f"round {number} of {scale.rounds}" if number else "warm-up round, discarded"
        stolen = machine.stolen_share(before, machine.processor_time())
        print(f"{label}: {time.monotonic() - start:.0f} s, {stolen:.0%} CPU time stolen by the host", file=sys.stderr, flush=True)
        if number:
            rounds.append(reports)
    return rounds


def choose(options, job_list):
    """Returns the chosen rows, and the jobs that they need."""
    chosen = [row for row in rows.GOALS + rows.OTHERS if not options.only or re.search(options.only, row.what)]
    needed = {figure.job for row in chosen for figure in (row.figure, row.peer) if figure}
    return chosen, {name: job for name, job in job_list.items() if name in needed}, needed


def run_table(workspace, options):
    scale = QUICK if options.quick else FULL
    host, before = machine.describe(), machine.processor_time()
    print("{processor}, {processors} processors, Linux {kernel}, load {load:.1f}\n".format(**host))
    if machine.is_busy(host):
        print("The machine is busy: expect noise.\n")
    sys.stdout.flush()
    with Tracing(workspace) as tracing, Database(workspace) as database:
        chosen, job_list, needed = choose(options, jobs.list_jobs(workspace, tracing, database, scale))
        rounds = run_rounds(job_list, scale)
    host["stolen"] = machine.stolen_share(before, machine.processor_time())
    if "weir idle" in needed:
        rounds[-1]["weir idle"] = attempt(lambda: idle.watch_idle(workspace, scale.idle_s))
    results = [rows.judge(row, rounds) for row in chosen]
    report.print_table(results)
    valid = report.print_verdict(results)
    print(f"{host['stolen']:.0%} of the CPU time was stolen by the host")
    if options.json:
        report.write_json(options.json, host, scale, results, rounds)
    if options.plot:
        report.write_plot(options.plot, workspace, results)
    return valid


def run_mixed(workspace, seconds):
    command = [workspace.program("weir/mixed.p"), str(seconds), workspace.folder]
    return subprocess.run(command, env=workspace.environment(), check=False).returncode == 0


def read_options():
    parser = argparse.ArgumentParser(prog="./dev bench", description="Compare the performance of weir with other libraries.")
    parser.add_argument("--quick", action="store_true", help="run in under a minute, with more noise")
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE")
    parser.add_argument("--plot", metavar="FILE.png", help="plot the goals with gnuplot")
    parser.add_argument("--only", metavar="PATTERN", help="measure only the rows whose name this regular expression is found in")
    parser.add_argument("--instructions", action="store_true",
                        help="count instructions with callgrind; fail if a count has grown by more than 5 %%")
    parser.add_argument("--growth", action="store_true", help="measure how cost grows with the amount of work")
    parser.add_argument("--mixed", metavar="SECONDS", type=float, nargs="?", const=600,
                        help="stress test for SECONDS, by default ten minutes: the ledger must stay exact, and memory must not grow")
    parser.add_argument("--record", action="store_true",
                        help="with --instructions, --growth: record the results in bench/")
    parser.add_argument("--build", default="build-bench", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = read_options()
    with Workspace(options.build) as workspace:
        if options.instructions:
            return instructions.check(workspace, options.record)
        if options.growth:
            return growth.show(workspace, options.record, QUICK if options.quick else FULL)
        if options.mixed is not None:
            return run_mixed(workspace, options.mixed)
        return run_table(workspace, options)


if __name__ == "__main__":
    try:
        sys.exit(0 if main() else 1)
    except Void as reason:
        sys.exit(f"void: {reason}")
