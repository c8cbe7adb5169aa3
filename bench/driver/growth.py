"""Measures how cost grows with threads, series, handlers, values per event and length of names. Prints Markdown tables; --record
writes them to bench/README.md."""

import os
import re
import sys
from jobs import measure_weir

README = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "README.md")
BEGIN, END = "<!-- growth: made by ./dev bench --growth --record -->\n", "<!-- /growth -->\n"

NAME_LENGTHS = (1, 4, 8, 16, 32, 64, 128, 255)
LINES = {"mode": "lines"}

# For each kind of growth: its steps, and for each column the task that is measured at a step.
CURVES = {
    "threads": ((1, 2, 4, 8, 16, 32, 64), {
        "call, ns": lambda n: dict(handler="null", queue="64MiB", threads=n, cpu_time=True),
        "file, text, M/s": lambda n: dict(threads=n, **LINES),
        "peak memory, MB": lambda n: dict(threads=n, **LINES),
    }),
    "series": ((1, 10, 100, 1000, 10000, 100000), {
        "call by name, ns": lambda n: dict(handler="null", names=n),
        "file, text, M/s": lambda n: dict(names=n, **LINES),
        "peak memory, MB": lambda n: dict(names=n, **LINES),
    }),
    "handlers": ((1, 2, 5, 10, 20), {
        "call by name, ns": lambda n: dict(handler="null", handlers=n),
        "values to each file, M/s": lambda n: dict(handlers=n, **LINES),
        "peak memory, MB": lambda n: dict(handlers=n, **LINES),
    }),
    "values per event": ((1, 2, 4, 8, 16, 64, 250, 1000), {
        "weir_emit, ns per value": lambda n: dict(handler="null", way="emit", event=n),
        "file, text, M/s": lambda n: dict(way="emit", event=n, **LINES),
        "peak memory, MB": lambda n: dict(way="emit", event=n, **LINES),
    }),
    "bytes per name": (NAME_LENGTHS, {
        "call by name, ns": lambda n: dict(handler="null", name_length=n),
        "file, text, M/s": lambda n: dict(name_length=n, **LINES),
        "peak memory, MB": lambda n: dict(name_length=n, **LINES),
    }),
}


def is_rate(column):
    return column.endswith("M/s")


def read_figure(column, figures):
    if column.endswith("MB"):
        return figures["peak_kb"] / 1024
    return figures["rate"] / 1e6 if is_rate(column) else figures["call_ns"]


def measure_round(workspace, scale, best):
    """Runs every step of every curve once and updates `best` with better figures."""
    for name, (steps, columns) in CURVES.items():
        for step in steps:
            reports = {}
            for column, task in columns.items():
                key = repr(task(step))
                if key not in reports:  # columns with the same task share one run
                    reports[key] = measure_weir(workspace, scale, **task(step))
                now = read_figure(column, reports[key])
                before = best.get((name, step, column), now)
                best[name, step, column] = max(now, before) if is_rate(column) else min(now, before)


def measure_curves(workspace, scale):
    """Returns the best figures of the rounds; the first round is a warm-up and is discarded. The best show the
    curves, because a disturbance can only make a step slower; a round takes a minute."""
    measure_round(workspace, scale, {})
    best = {}
    for number in range(scale.rounds):
        measure_round(workspace, scale, best)
        print(f"round {number + 1} of {scale.rounds}", file=sys.stderr, flush=True)
    return best


def make_table(name, best):
    steps, columns = CURVES[name]
    rows = [[name, *columns], ["---:"] * (1 + len(columns))]
    for step in steps:
        rows.append([f"{step:,}", *(f"{best[name, step, column]:.{2 if is_rate(column) else 1}f}" for column in columns)])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def write_readme(text):
    with open(README, encoding="utf-8") as file:
        readme = file.read()
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    with open(README, "w", encoding="utf-8") as file:
        file.write(re.sub(pattern, lambda _: BEGIN + "\n" + text + "\n" + END, readme, flags=re.S))


def show(workspace, record, scale):
    best = measure_curves(workspace, scale)
    text = "\n".join(make_table(name, best) for name in CURVES)
    print(text)
    if record:
        write_readme(text)
        print("recorded in bench/README.md")
    return True
