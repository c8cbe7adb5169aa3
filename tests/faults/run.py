"""Runs the tests of each fault in the table and prints a line for each: number, result, and what was tried.

usage: run.py [NUMBER...]"""

import os
import re
import subprocess
import sys

from harness import BUILD, SOURCE
from table import ROWS

CHOSEN = re.compile(r"\.t:")
RUNNER = {".t": "run-criterion", ".p": "run-plain"}


def command_of(test):
    """The command of a test: a Python test gets a word, a Criterion program a pattern."""
    path, _, choice = test.partition(":")
    kind = os.path.splitext(path)[1]
    if kind == ".py":
        return [sys.executable, "-B", os.path.join(SOURCE, path)] + ([choice] if choice else [])
    runner = ["sh", os.path.join(SOURCE, "tests", "support", RUNNER[kind]), os.path.join(BUILD, path)]
    return (["env", f"CRITERION_TEST_PATTERN={choice}"] if choice else []) + runner


def run_test(test, done):
    """Returns the numbers of passed, failed and skipped cases, and the output. Each test runs once, even if several rows list it."""
    if test not in done:
        env = dict(os.environ, WEIR_TEST_KILLS="1000", WEIR_TEST_NAMES="10000000")
        out = subprocess.run(command_of(test), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
        lines = out.splitlines()
        marked_skip = sum(line.startswith("ok") and "# SKIP" in line for line in lines)
        failed = sum(line.startswith(("not ok", "Bail out")) for line in lines)
        passed = sum(line.startswith("ok") for line in lines) - marked_skip
        skipped = 0 if CHOSEN.search(test) else marked_skip  # Criterion also reports unselected tests as skipped
        done[test] = passed, failed, skipped, out
    return done[test]


def run_row(number, done):
    row = ROWS[number]
    results = [(test, *run_test(test, done)) for test in row.tests]
    passed = sum(result[1] for result in results)
    bad = [result for result in results if result[2] or not result[1] + result[3]]
    skipped = sum(result[3] for result in results)
    outcome = "FAILED" if bad else "passed" if passed else "skipped"
    print(f"{number:02} {outcome}  {row.title}: {row.tried} ({passed} tests" + (f", {skipped} skipped" if skipped else "") + ")" +
          (f" -- {row.lacks if row.lacks.startswith('without') else 'not tried: ' + row.lacks}" if row.lacks else ""), flush=True)
    for test, *_, out in bad:
        print(f"    {test}\n" + "\n".join("    " + line for line in out.splitlines()[-20:]))
    return not bad


def main():
    done, numbers = {}, [int(word) for word in sys.argv[1:]] or sorted(ROWS)
    good = [run_row(number, done) for number in numbers]
    print(f"{sum(good)} of {len(good)} survived")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
