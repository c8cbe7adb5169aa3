"""The ledger report that WEIR_LOG=info logs when a program ends."""

import json
import os
import re
import subprocess

from harness import ADDER, BUILD, case, environment, lines_of, main, run, skip_fork_under_sanitizers

UNROUTED_APP = os.path.join(BUILD, "tests", "support", "unrouted_app")


def run_unrouted_app(*arguments, **env):
    """Runs it. Returns (its counts, the log lines)."""
    done = run(UNROUTED_APP, *arguments, **env)
    assert done.returncode == 0, done
    return json.loads(done.stdout), done.stderr.splitlines()


def ledger(lines):
    """The lines of the report, without the prefix."""
    prefix = "weir: info: ledger: "
    return [line[len(prefix):] for line in lines if line.startswith(prefix)]


def process(lines):
    """(added, unrouted, refused, the rest) of the first line of the report."""
    found = re.match(r"process \d+: (\d+) values added, (\d+) of them unrouted, (\d+) refused(.*)", lines[0])
    return *map(int, found.groups()[:3]), found.group(4)


def unrouted_groups(lines):
    """({group: values} of the lines about groups, (groups, values) of the line about the others)."""
    groups = {name: int(count) for name, count in
              (re.match(r'group "([^"]*)": (\d+) values had no handler', line).groups() for line in lines if line.startswith("group "))}
    rest = [re.fullmatch(r"(\d+) more groups, whose (\d+) values had no handler", line) for line in lines]
    rest = [tuple(map(int, found.groups())) for found in rest if found]
    assert len(rest) <= 1, lines
    return groups, rest[0] if rest else (0, 0)


def assert_whole(stats, lines):
    """Each unrouted value is in the line of a group, and the process's line agrees with what the program counted."""
    added, unrouted, refused, _ = process(lines)
    assert (added, unrouted, refused) == (stats["added"], stats["unrouted"], stats["refused"]), (stats, lines)
    groups, rest = unrouted_groups(lines)
    assert sum(groups.values()) + rest[1] == unrouted, (stats, lines)


@case
def by_default_nothing_is_logged():
    for config in ({"groups": {"other": "null"}}, {}):
        for level in ({}, {"WEIR_LOG": "warning"}):
            stats, log = run_unrouted_app("a", "b", WEIR_CONFIG=config, **level)
            assert stats == {"added": 2, "unrouted": 2, "refused": 0} and log == [], (stats, log)


@case
def without_a_configuration_the_report_suggests_one():
    stats, log = run_unrouted_app("-n", 5, "a", WEIR_LOG="info")
    lines = ledger(log)
    assert_whole(stats, lines)
    assert process(lines)[3].startswith("; no route is configured: set WEIR_CONFIG"), lines
    assert lines[1:] == ['group "a": 5 values had no handler: no route matches'], lines
    assert len(lines) == len(log), log


@case
def each_handler_has_a_line(folder):
    config = {"settings": {"shutdown_timeout": "3s"},
              "handlers": {"good": {"type": "file", "path": os.path.join(folder, "out")},
                           "bad": {"type": "file", "path": os.path.join(folder, "no", "out")},
                           "kept": {"type": "file", "path": os.path.join(folder, "no", "out"), "spool": os.path.join(folder, "spool")}},
              "groups": {"*": ["good", "bad", "kept"]}}
    stats, log = run_unrouted_app("-n", 100, "a", WEIR_LOG="info", WEIR_CONFIG=config)
    lines = ledger(log)
    assert_whole(stats, lines)
    assert 'handler "good": 100 offered, 100 delivered, 0 dropped, 0 queued, 0 spooled, 0 retries' in lines, lines
    reason = re.escape(f"; last error: open {folder}/no/out: No such file or directory")
    assert any(re.fullmatch(r'handler "bad": 100 offered, 0 delivered, 100 dropped \(100 shutdown\), 0 queued, 0 spooled, \d+ retries'
                            + reason, line) for line in lines), lines
    assert any(re.fullmatch(r'handler "kept": 100 offered, 0 delivered, 0 dropped, 0 queued, 100 spooled, \d+ retries' + reason, line)
               for line in lines), lines
    assert len(lines_of(os.path.join(folder, "out"))) == 100
    stats, log = run_unrouted_app("a", WEIR_LOG="info", WEIR_CONFIG={**config, "groups": {"*": "good"}})
    assert 'handler "good": 1 offered, 1 delivered, 0 dropped, 0 queued, 0 spooled, 0 retries' in ledger(log), log


@case
def a_misspelt_group_is_shown_with_a_suggestion():
    config = {"groups": {"my_app.db": "null", "server": "null"}}
    stats, log = run_unrouted_app("-n", 3, "my_ap.db", "servr.http.v2", "quite_different", "server.x", WEIR_LOG="info", WEIR_CONFIG=config)
    lines = ledger(log)
    assert_whole(stats, lines)
    assert 'group "my_ap.db": 3 values had no handler: no route matches; did you mean "my_app.db"?' in lines, lines
    assert 'group "servr.http.v2": 3 values had no handler: no route matches; did you mean "server"?' in lines, lines
    assert 'group "quite_different": 3 values had no handler: no route matches' in lines, lines
    assert 'route "my_app.db": never used; did you mean "my_ap.db"?' in lines, lines
    assert not any(line.startswith('route "server"') for line in lines), lines


@case
def a_route_without_handlers_is_distinguished_from_no_route():
    stats, log = run_unrouted_app("loud.noise.x", WEIR_LOG="info", WEIR_CONFIG={"groups": {"*": "null", "loud.noise": []}})
    lines = ledger(log)
    assert_whole(stats, lines)
    assert 'group "loud.noise.x": 1 values had no handler: the route of "loud.noise" is empty' in lines, lines


@case
def a_route_whose_handlers_are_left_out_is_distinguished_from_no_route():
    config = {"handlers": {"k": {"type": "no_such_type", "optional": True}}, "groups": {"*": "null", "a": ["k"], "b": ["k", "null"]}}
    stats, log = run_unrouted_app("-n", 2, "a.x", "b", WEIR_LOG="info", WEIR_CONFIG=config)
    lines = ledger(log)
    assert_whole(stats, lines)
    found = [line for line in lines if line.startswith("group")]
    assert found == ['group "a.x": 2 values had no handler: none of the handlers in the route of "a" is there'], lines


@case
def values_added_before_the_configuration_are_distinguished_from_later_ones(folder):
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"groups": {"*": "null"}}, file)
    stats, log = run_unrouted_app("-n", 7, "-e", path, "a", WEIR_LOG="info")
    lines = ledger(log)
    assert_whole(stats, lines)
    assert 'group "a": 7 values had no handler: added while it had no route; now it has the route of "*"' in lines, lines
    assert 'handler "null": 1 offered, 1 delivered, 0 dropped, 0 queued, 0 spooled, 0 retries' in lines, lines


@case
def entries_of_metrics_that_matched_no_name_are_listed():
    metrics = {"a": {"*": "counter", "no_such": "gauge"}, "b": {f"n{i}": "gauge" for i in range(9)}, "weir": {"offered": "counter"}}
    stats, log = run_unrouted_app("-n", 3, "a", WEIR_LOG="info", WEIR_CONFIG={"groups": {"a": "null"}, "metrics": metrics})
    lines = ledger(log)
    assert_whole(stats, lines)
    found = [line for line in lines if "matched no name" in line]
    assert found == ['entry "no_such" of "a" in "metrics": matched no name'] + [
        f'entry "n{i}" of "b" in "metrics": matched no name' for i in range(4)] + ['5 more entries of "metrics" matched no name'], lines


@case
def thousands_of_groups_take_a_few_lines_and_every_value_is_counted():
    stats, log = run_unrouted_app("-g", 2000, WEIR_LOG="info", WEIR_CONFIG={"groups": {f"r{i}": "null" for i in range(100)}})
    lines = ledger(log)
    assert stats["unrouted"] == 2000 * 2001 // 2 and len(lines) < 20, lines
    assert_whole(stats, lines)
    groups, rest = unrouted_groups(lines)
    assert groups == {f"g{i}": i + 1 for i in range(1995, 2000)} and rest[0] == 1995, (groups, rest)
    assert "95 more routes never used" in lines, lines


@case
def values_of_threads_that_change_the_group_at_each_value_are_all_counted():
    stats, log = run_unrouted_app("-t", 8, "-n", 20000, "a", "b", "c", WEIR_LOG="info", WEIR_CONFIG={"groups": {"c": "null"}})
    lines = ledger(log)
    assert_whole(stats, lines)
    assert unrouted_groups(lines)[0] == {"a": 160000, "b": 160000}, lines


@case
def a_forked_child_reports_its_own_values():
    skip_fork_under_sanitizers()
    stats, log = run_unrouted_app("-n", 5, "-f", "a", WEIR_LOG="info", WEIR_CONFIG={"groups": {"b": "null"}})
    lines = ledger(log)
    heads = [line for line in lines if line.startswith("process ")]
    assert [re.search(r": (\d+) values", line).group(1) for line in heads] == ["1", "5"], lines
    assert [line for line in lines if line.startswith("group ")] == [
        f'group "a": {n} values had no handler: no route matches' for n in (1, 5)], lines


@case
def the_report_is_passed_to_the_programs_log_function():
    done = run(UNROUTED_APP, "-l", "a", WEIR_LOG="info", WEIR_CONFIG={"groups": {"*": "null"}})
    assert done.returncode == 0 and done.stderr == "", done
    assert re.search(r'^3: ledger: handler "null": 1 offered, 1 delivered, ', done.stdout, re.M), done.stdout
    assert run(UNROUTED_APP, "-l", "a", WEIR_CONFIG={"groups": {"*": "null"}}).stdout.count("\n") == 1


@case
def the_report_is_logged_once():
    """By weir_shutdown; the end of the program does not repeat it."""
    done = run(ADDER, "-q", "-x", "shutdown", WEIR_LOG="info", WEIR_CONFIG={"groups": {"*": "null"}})
    assert done.stderr.count("ledger: process") == 1 and done.stderr.count('handler "null"') == 1, done.stderr


@case
def names_in_the_report_are_escaped():
    """Names have no control characters; other characters that mislead on a terminal are escaped."""
    done = subprocess.run([UNROUTED_APP, "a\u202eb"], env=environment(WEIR_LOG="info"), capture_output=True, text=True, timeout=240)
    assert "\u202e" not in done.stderr and 'group "a\\u202eb"' in done.stderr, done.stderr


main()
