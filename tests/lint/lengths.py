#!/usr/bin/env python3
"""Lengths and complexity of functions, and lengths of files, held against tests/lint/limits: they only go down.

With --record the present values become the limits."""

import glob
import subprocess
import sys

SOURCES = sorted(glob.glob("lib/*.c") + glob.glob("plugins/*/*.c") + glob.glob("tools/**/*.c", recursive=True) + glob.glob("examples/*.c")
                 + glob.glob("bench/*/*.c"))
LIMITS = "tests/lint/limits"


def measure():
    """The largest value of each kind, with where it is."""
    largest = {"complexity": (0, ""), "function_lines": (0, ""), "file_lines": (0, "")}
    output = subprocess.run(["pmccabe", *SOURCES], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        modified, _, _, _, lines, place = line.split("\t")
        for kind, value in (("complexity", int(modified)), ("function_lines", int(lines))):
            largest[kind] = max(largest[kind], (value, place))
    for path in SOURCES:
        with open(path, encoding="utf-8") as file:
            largest["file_lines"] = max(largest["file_lines"], (len(file.readlines()), path))
    return largest


def main():
    largest = measure()
    if sys.argv[1:] == ["--record"]:
        with open(LIMITS, "w", encoding="utf-8") as file:
            file.writelines(f"{kind} {value}\n" for kind, (value, _) in largest.items())
    with open(LIMITS, encoding="utf-8") as file:
        limits = {kind: int(value) for kind, value in (line.split() for line in file)}
    problems = []
    for kind, (value, place) in largest.items():
        print(f"lengths: {kind} {value} (limit {limits[kind]}): {place}")
        if value > limits[kind]:
            problems.append(f"lengths: {kind} of {place} is {value}; the limit is {limits[kind]}")
        elif value < limits[kind]:
            problems.append(f"lengths: {kind} has gone down to {value}: run tests/lint/lengths.py --record")
    sys.exit("\n".join(problems) if problems else 0)


main()
