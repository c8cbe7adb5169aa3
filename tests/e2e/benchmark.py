"""The benchmark's checks: it discards the figures of a program that lost, repeated, reordered or damaged a line."""

import os
import sys
import time

from harness import BUILD, SOURCE, case, main, run

sys.path.insert(0, os.path.join(SOURCE, "bench", "driver"))

import report  # noqa: E402
import rows  # noqa: E402

VERIFY = os.path.join(BUILD, "bench", "support", "verify")
VALUES = 10000


def make_lines(count=VALUES):
    """The lines of one thread in the format text, with the values of bench/support/values.c."""
    lines = []
    for i in range(count):
        place = i % VALUES * 7919 % VALUES
        lines.append(f"[{time.time():.6f}][my_app]: latency={(place * 10 + 1 + place % 9) / 1000:.3f}\n")
    return lines


def verify(folder, lines, threads=1, values=VALUES, shape="text"):
    path = os.path.join(folder, "lines")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return run(VERIFY, path, shape, "plain", threads, values)


def assert_rejected(folder, lines, word, **how):
    result = verify(folder, lines, **how)
    assert result.returncode == 1, result
    assert word in result.stderr, result.stderr


@case
def correct_lines_are_accepted(folder):
    result = verify(folder, make_lines())
    assert result.returncode == 0, result.stderr
    result = verify(folder, make_lines(24000), values=24000)
    assert result.returncode == 0, result.stderr


@case
def lines_of_two_threads_are_accepted_in_any_order(folder):
    result = verify(folder, make_lines() + make_lines()[::-1], threads=2, values=2 * VALUES)
    assert result.returncode == 0, result.stderr


@case
def a_lost_line_is_detected(folder):
    assert_rejected(folder, make_lines()[:-1], "9999 lines, not 10000")
    lines = make_lines() + make_lines()
    del lines[7]
    assert_rejected(folder, lines, "19999 lines", threads=2, values=2 * VALUES)


@case
def a_repeated_line_in_place_of_a_lost_one_is_detected(folder):
    lines = make_lines() + make_lines()
    lines[7] = lines[8]
    assert_rejected(folder, lines, "times, not", threads=2, values=2 * VALUES)


@case
def lines_of_one_thread_out_of_order_are_detected(folder):
    lines = make_lines()
    lines[70], lines[71] = lines[71], lines[70]
    assert_rejected(folder, lines, "order")


@case
def a_damaged_line_is_detected(folder):
    for old, new, word in (("my_app", "my_ap", "must be"), ("latency=", "latency", "must be"), ("\n", " \n", "must be"),
                           ("=", "=x", "not a number"), ("=", "=1", "never been added"), ("[1", "[", "not a time"),
                           ("][", "0][", "decimals")):
        lines = make_lines()
        lines[-1] = lines[-1].replace(old, new, 1)
        assert_rejected(folder, lines, word)
    assert_rejected(folder, make_lines(), "must be", shape="json")
    assert_rejected(folder, make_lines()[:-1] + [make_lines()[-1][:-1]], "must be")


def judge_row(goal, weir, peer):
    """weir, peer: one figure per round, or the reason why the round is void."""
    row = rows.Row("what", rows.Figure("mine", "n", "ns"), "peer", rows.Figure("theirs", "n", "ns"), goal)
    rounds = [{"mine": a if isinstance(a, str) else {"n": a}, "theirs": b if isinstance(b, str) else {"n": b}} for a, b in zip(weir, peer)]
    return rows.judge(row, rounds)


@case
def a_goal_is_compared_with_the_median_ratio_of_the_rounds():
    result = judge_row(rows.at_most(1.7), [10, 20, 99], [10, 10, 10])
    assert result.ratio == 2 and result.met is False
    result = judge_row(rows.at_least(5), [10, 60, 99], [10, 10, 10])
    assert result.ratio == 6 and result.met is True
    result = judge_row(rows.Goal("either", ratio_max=0.5, figure_max=6), [6, 6, 6], [7, 7, 7])
    assert result.met is True


@case
def a_void_round_makes_its_rows_void_and_the_run_fail():
    for weir, peer in (([1, "lost", 1], [1, 1, 1]), ([1, 1, 1], [1, 1, "lost"])):
        result = judge_row(rows.at_most(2), weir, peer)
        assert result.void == "lost" and result.met is None
        assert report.show_cells(result)[1] == "void"
        assert report.print_verdict([result]) is False
    assert report.print_verdict([judge_row(rows.at_most(2), [9], [1])]) is True, "a missed goal is not an error"


main()
