"""Output: the table, JSON, a plot."""

import json
import os
import subprocess
from statistics import median

HEADINGS = ("figure", "weir", "peer", "peer's figure", "ratio", "goal", "met")


def show_range(numbers, decimals):
    """Returns the median, with the minimum and the maximum of the rounds."""
    text = f"{median(numbers):,.{decimals}f}"
    if len(numbers) == 1:
        return text
    return f"{text} ({min(numbers):,.{decimals}f}-{max(numbers):,.{decimals}f})"


def show_cells(result):
    row = result.row
    goal = row.goal.text if row.goal else ""
    if result.void:
        return (row.what, "void", row.peer_name, "", "", goal, "void" if row.goal else "")
    unit = f" {row.figure.unit}" if row.figure.unit else ""
    met = {None: "", True: "yes", False: "NO"}[result.met]
    peer = show_range(result.peer, row.peer.decimals) + unit if row.peer else ""
    ratio = show_range(result.ratios, 3 if result.ratio < 0.1 else 2) if row.peer else ""
    return (row.what, show_range(result.weir, row.figure.decimals) + unit, row.peer_name, peer, ratio, goal, met)


def print_table(results):
    lines = [show_cells(result) for result in results]
    widths = [max(len(line[i]) for line in [HEADINGS, *lines]) for i in range(len(HEADINGS))]
    for number, line in enumerate([HEADINGS, tuple("-" * width for width in widths), *lines]):
        if number > 2 and results[number - 2].row.goal is None and results[number - 3].row.goal is not None:
            print()
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def print_verdict(results):
    """Prints how many goals are met, and the reasons for void figures. Returns whether no figure is void."""
    goals = [result for result in results if result.row.goal]
    print(f"\n{sum(result.met is True for result in goals)} of {len(goals)} goals met")
    reasons = sorted({result.void for result in results if result.void})
    for reason in reasons:
        print(f"void: {reason}")
    return not reasons


def describe_numbers(numbers):
    return {"median": median(numbers), "min": min(numbers), "max": max(numbers), "rounds": numbers} if numbers else None


def write_json(path, machine, scale, results, rounds):
    rows = [{"what": result.row.what, "peer_name": result.row.peer_name, "unit": result.row.figure.unit,
             "weir": describe_numbers(result.weir), "peer": describe_numbers(result.peer),
             "ratio": describe_numbers(result.ratios), "goal": result.row.goal.text if result.row.goal else None,
             "met": result.met, "void": result.void or None}
            for result in results]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"machine": machine, "scale": vars(scale), "rows": rows, "rounds": rounds}, file, indent=1)
        file.write("\n")


PLOT = """
set terminal pngcairo noenhanced size 1100, {height} font "sans,10"
set output "{png}"
set title "weir relative to its goals: how many times better than the goal (1: just met)"
set datafile separator "\\t"
set logscale x 2
set xrange [{low}:{high}]
set yrange [-0.7:{last}]
set xtics 2
set ytics out nomirror
set grid xtics
set arrow from 1, graph 0 to 1, graph 1 nohead lw 2 lc rgb "#444444" front
set boxwidth 0.7
unset key
set lmargin 48
left(x) = x < 1 ? x : 1
right(x) = x < 1 ? 1 : x
color(x) = x < 1 ? 0xcc4444 : 0x3377aa
set style fill solid
plot "{data}" using 1:2:(left($1)):(right($1)):($2-0.35):($2+0.35):(color($1)):ytic(3) with boxxyerror lc rgb variable
"""


def write_plot(path, workspace, results):
    """Plots the goals whose margin is a ratio as bars."""
    bars = [(result, result.row.goal.margin(result.figure, result.ratio)) for result in results if result.met is not None]
    bars = [(result, margin) for result, margin in bars if margin]
    low, high = min([0.5] + [margin for _, margin in bars]), max([2] + [margin for _, margin in bars])
    data, script = workspace.file("plot.tsv"), workspace.file("plot.gp")
    with open(data, "w", encoding="utf-8") as file:
        for height, (result, margin) in enumerate(reversed(bars)):
            peer = f" / {result.row.peer_name}" if result.row.peer_name else ""
            file.write(f"{margin}\t{height}\t{result.row.what}{peer}\n")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PLOT.format(height=120 + 26 * len(bars), png=os.path.abspath(path), last=len(bars) - 0.3, data=data,
                               low=low / 1.2, high=high * 1.2))
    subprocess.run(["gnuplot", script], check=True)
