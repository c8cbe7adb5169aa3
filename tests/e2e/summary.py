"""weir summary: the figures of files, against Python's own; comparisons; what is not understood."""

import json
import math
import os
import random
import sqlite3
import statistics

from harness import ADDER, SANITIZED, WEIR, Skip, case, main, run


def write(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    return path


def line_of(value, name="n", time=None, **more):
    return json.dumps({"group": "g", "name": name, "value": value, **({} if time is None else {"timestamp": time}), **more})


def summary(*arguments, code=0, **env):
    done = run(WEIR, "summary", *arguments, **env)
    assert done.returncode == code, done
    return done


def rows_of(*arguments, code=0):
    return {(row["name"], *sorted(row["labels"].items())): row for row in json.loads(summary("--json", *arguments, code=code).stdout)}


@case
def the_figures_are_those_of_the_values(folder):
    random.seed(7)
    values = [random.lognormvariate(0, 1) for _ in range(5000)] + [-3.5, 0, 12]
    path = write(folder, "v.json", [line_of(value) for value in values])
    row = rows_of(path)["n",]
    assert row["count"] == len(values) and row["min"] == min(values) and row["max"] == max(values)
    assert math.isclose(row["sum"], math.fsum(values), rel_tol=1e-12)
    assert math.isclose(row["mean"], statistics.fmean(values), rel_tol=1e-9)
    assert math.isclose(row["sd"], statistics.stdev(values), rel_tol=1e-9)
    ordered = sorted(values)
    for key, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        exact = ordered[math.floor(q * (len(values) - 1))]
        assert abs(row[key] - exact) <= abs(exact) * 0.0101, (key, row[key], exact)


@case
def what_weir_writes_as_json_and_csv_is_read_back(folder):
    config = {"handlers": {kind: {"type": "file", "path": os.path.join(folder, "v." + kind), "format": kind} for kind in ("json", "csv")},
              "groups": {"*": ["json", "csv"]}}
    done = run(ADDER, "-n", 1000, "-H", "json", "-H", "csv", "-f", -1, WEIR_CONFIG=config)
    assert done.returncode == 0, done
    by_json, by_csv = (rows_of(os.path.join(folder, "v." + kind)) for kind in ("json", "csv"))
    assert by_json == by_csv and sum(row["count"] for row in by_json.values()) == 1000, (by_json, by_csv)
    both = rows_of(os.path.join(folder, "v.json"), os.path.join(folder, "v.csv"))
    assert sum(row["count"] for row in both.values()) == 2000


@case
def a_database_of_the_sqlite_handler_is_read(folder):
    if "sqlite" not in run(WEIR, "handlers").stdout:
        raise Skip("built without SQLite")
    if "thread" in SANITIZED:
        raise Skip("of two connections to a database SQLite lets the last one close both descriptors, which is a data race for the sanitizer")
    database, copy = os.path.join(folder, "values.db"), os.path.join(folder, "values.json")
    config = {"handlers": {"db": {"type": "sqlite", "path": database}, "other": {"type": "sqlite", "path": database, "prefix": "b_"},
                           "copy": {"type": "file", "path": copy, "format": "json"}},
              "groups": {"*": ["db", "copy"], "b": ["other", "copy"]}}
    with open(os.path.join(folder, "in"), "w", encoding="utf-8") as file:
        for i in range(1000):
            file.write(line_of(i * 1.5, "n%d" % (i % 3), 1700000000 + i, labels={"k": "\u00fc \"%d" % (i % 2)}) + "\n")
            file.write(json.dumps({"group": "b", "name": "m", "value": i, "timestamp": 1700000000 + i}) + "\n")
    with open(os.path.join(folder, "in"), "rb") as file:
        done = run(WEIR, "emit", "-", stdin=file, WEIR_CONFIG=config)
    assert done.returncode == 0, done
    read, expected = rows_of(database), rows_of(copy)
    assert len(read) == 7 and read == expected, (read, expected)
    with sqlite3.connect(database) as changed:
        changed.execute("""UPDATE series SET labels = '{"a": null, "b": "c"}' WHERE id = (SELECT min(id) FROM series WHERE name = 'n0')""")
    assert ("n0", ("b", "c")) in rows_of(database)
    other = os.path.join(folder, "other.db")
    run("python3", "-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE samples (x)')", other)
    assert "has no tables of the handler type sqlite" in summary(other, code=1).stderr
    with open(other, "r+b") as file:
        file.truncate(100)
    assert other + ": " in summary(other, code=1).stderr


@case
def labels_make_rows_and_by_puts_them_together(folder):
    path = write(folder, "v.json", [line_of(i, labels={"zone": "ab"[i % 2], "host": f"h{i % 3}"}) for i in range(60)])
    assert len(rows_of(path)) == 6
    rows = rows_of("--by", "zone", path)
    assert {key: row["count"] for key, row in rows.items()} == {("n", ("zone", "a")): 30, ("n", ("zone", "b")): 30}
    assert rows["n", ("zone", "b")]["mean"] == statistics.fmean(range(1, 60, 2))
    table = summary("--by", "zone", path).stdout.splitlines()
    assert table[0].split()[:3] == ["series", "count", "mean"] and [row.split()[:3] for row in table[1:]] == [
        ["g.n{zone=a}", "30", "29"], ["g.n{zone=b}", "30", "30"]], table


@case
def running_totals_count_by_their_increments(folder):
    path = write(folder, "v.json", [line_of(total, cumulative=True) for total in (100, 103, 103, 110, 4, 5)])
    row = rows_of(path)["n",]
    assert (row["count"], row["sum"], row["max"], row["min"]) == (5, 15, 7, 0), row


@case
def values_that_are_not_finite_are_counted_apart(folder):
    path = write(folder, "v.txt", ["n=1", "n=nan", "n=3", "n=inf", "only=nan"])
    rows = rows_of(path)
    assert (rows["n",]["count"], rows["n",]["not_finite"], rows["n",]["mean"]) == (4, 2, 2)
    assert rows["only",]["mean"] is None and rows["only",]["count"] == 1
    assert "only" in summary(path).stdout


@case
def csv_has_a_line_for_each_series(folder):
    path = write(folder, "v.json", [line_of(i, labels={"q": 'a"b,c'}) for i in (1, 2, 6)])
    lines = summary("--csv", path).stdout.splitlines()
    assert lines[0] == "series,count,mean,sd,min,p50,p90,p99,max,sum"
    assert lines[1].startswith('"g.n{q=a""b,c}",3,3,') and lines[1].endswith(",6,9"), lines


@case
def the_table_fits_the_screen(folder):
    path = write(folder, "v.json", [line_of(i % 17, "name_" * 30, 1700000000 + i) for i in range(300)])
    for columns in (20, 50, 80, 100, 160, 400):
        out = summary(path, COLUMNS=columns, LC_ALL="C.UTF-8").stdout
        assert all(len(line) <= max(columns, 44) for line in out.splitlines()), (columns, out)
        assert "\033" not in out
    assert any(bar in out for bar in "▁▂▃▄▅▆▇█"), out


@case
def values_without_a_time_have_a_course_in_their_order(folder):
    path = write(folder, "v.json", [line_of(i) for i in range(8)])
    assert summary(path, COLUMNS=200, LC_ALL="C.UTF-8").stdout.endswith("   ▁▂▃▄▅▆▇█\n")
    path = write(folder, "v.json", [line_of(i // 1000) for i in range(8000)])
    bars = summary(path, COLUMNS=200, LC_ALL="C.UTF-8").stdout.split()[-1]
    assert list(bars) == sorted(bars) and set(bars) == set("▁▂▃▄▅▆▇█"), bars


@case
def a_difference_is_told_from_noise(folder):
    a, b = [10, 12, 11, 13, 9, 11], [14, 16, 15, 17, 13, 15]
    first, second = (write(folder, name, [line_of(v) for v in values] + [line_of(1, name)]) for name, values in (("a.json", a), ("b.json", b)))
    rows = {row["name"]: row for row in json.loads(summary("--compare", "--json", first, second).stdout)}
    half = 2.228138852 * math.sqrt(statistics.variance(a) / 6 + statistics.variance(b) / 6)  # 10 degrees of freedom
    row = rows["n"]
    assert row["difference"] == 4 and row["b_is"] == "higher", row
    assert math.isclose(row["most"] - 4, half, rel_tol=0.003) and math.isclose(4 - row["least"], half, rel_tol=0.003), (row, half)
    assert "b" not in rows["a.json"] and "a" not in rows["b.json"]
    lower = summary("--compare", second, first).stdout
    assert "lower" in lower and "-27 %" in lower and "only in the first" in lower and "only in the second" in lower, lower
    assert "noise" in summary("--compare", first, write(folder, "c.json", [line_of(v + 0.1) for v in a])).stdout
    assert "too few values" in summary("--compare", first, write(folder, "d.json", [line_of(99)])).stdout


@case
def two_and_three_values_have_the_intervals_of_students_distribution(folder):
    """Equal counts and variances: 2 and 4 degrees of freedom."""
    for values, factor in (([1, 3], 4.302652730), ([1, 2, 3], 2.776445105)):
        first = write(folder, "a.json", [line_of(v) for v in values])
        second = write(folder, "b.json", [line_of(v + 1) for v in values])
        row = json.loads(summary("--compare", "--json", first, second).stdout)[0]
        half = factor * math.sqrt(2 * statistics.variance(values) / len(values))
        assert math.isclose(row["most"] - row["difference"], half, rel_tol=0.003), (row, half)


@case
def what_is_not_understood_is_named_and_the_rest_counts(folder):
    path = write(folder, "v.json", [line_of(1), "{wrong", "[1]", line_of(3)])
    done = summary("--json", path, code=1)
    assert json.loads(done.stdout)[0]["count"] == 2
    assert f"{path}:2:" in done.stderr and "further ones are only counted" in done.stderr and "2 lines are invalid" in done.stderr
    done = summary(path, os.path.join(folder, "missing"), code=1)
    assert "missing: No such file or directory" in done.stderr and "g.n" in done.stdout
    assert "there are no values" in summary(write(folder, "empty.json", []), code=1).stderr
    assert "Is a directory" in summary(folder, code=1).stderr
    with open(os.path.join(folder, "x.gz"), "wb") as file:
        file.write(b"\x1f\x8b\x08abc")
    assert "zcat FILE | weir summary -" in summary(os.path.join(folder, "x.gz"), code=1).stderr


@case
def wrong_arguments_are_refused(folder):
    for arguments, wanted in [([], "FILE is missing"), (["--json", "--csv", "x"], "exclude each other"), (["--compare", "x"], "two files"),
                              (["--compare", "--csv", "x", "y"], "use --json"), (["--parse", "xml", "x"], '"xml" is not a format'),
                              (["--what", "x"], "unrecognized option")]:
        done = summary(*arguments, code=2)
        assert wanted in done.stderr and done.stdout == "", (arguments, done)


# ---- Reports ------------------------------------------------------------------------------------------------------

KEYS = ["cpu_pct_per_cpu_avg", "cpu_pct_per_cpu_min", "cpu_pct_per_cpu_max", "mem_percent", "disk_usage_percent", "disk_io_read_mb",
        "disk_io_write_mb", "net_io_lo_sent_mb", "net_io_lo_recv_mb", "net_io_ext_sent_mb", "net_io_ext_recv_mb", "timestamp"]
FIGURES = ["max_t_cpu_pct_per_cpu_avg", "cpu_avg_utilization_pct", "cpu_avg_utilization_at100_pct", "cpu_avg_utilization_over80_pct",
           "cpu_avg_utilization_over40_pct", "cpu_avg_utilization_over20_pct", "max_t_cpu_pct_per_cpu_min", "max_t_cpu_pct_per_cpu_max",
           "node_cpu_hours", "node_unused_cpu_hours", "max_t_mem_percent", "max_t_disk_usage_percent", "total_disk_io_read_mb",
           "total_disk_io_write_mb", "total_net_io_lo_sent_mb", "total_net_io_ext_sent_mb", "total_net_io_lo_recv_mb",
           "total_net_io_ext_recv_mb"]


def reports_of(*averages):
    """As perf.py collects them: a report each second."""
    return [dict(zip(KEYS, [average, 0.0, 100.0, 10.5 + i, 50.0, *(1.5 * k + i for k in range(6)), 1000.25 + i]))
            for i, average in enumerate(averages)]


def write_report(folder, name, document):
    """As perf.py writes it."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=4)
    return path


@case
def reports_of_perf_py_are_recognised(folder):
    path = write_report(folder, "perf", {"0": reports_of(10.0, 30.0, 100.0), "1 \u00e9": reports_of(50.0)})
    rows = rows_of(path)
    assert len(rows) == 22, rows
    row = rows["cpu_pct_per_cpu_avg", ("node", "0")]
    assert (row["count"], row["min"], row["max"]) == (3, 10, 100) and math.isclose(row["mean"], 140 / 3), row
    with open(path, encoding="utf-8") as file:
        assert summary("--json", path).stdout == run(WEIR, "summary", "--json", "-", stdin=file).stdout
    table = summary(path, COLUMNS=200).stdout
    assert f"max_t_cpu_pct_per_cpu_avg{100:23}{50:16}  %\n" in table, table
    assert set(FIGURES) <= {line.split()[0] for line in table.splitlines() if line}
    lines = write(folder, "lines", [line_of(1), line_of(2)])
    both = rows_of(path, lines)
    assert len(both) == 23 and both["n",]["count"] == 2
    other = write_report(folder, "other", {"0": reports_of(10.0, 30.0, 100.0)})
    assert "only in the first" in summary("--compare", path, other).stdout and "noise" in summary("--compare", path, other).stdout


@case
def reports_are_merged_with_the_figures_of_each_node(folder):
    one, two = write_report(folder, "a.json", {"a": reports_of(10.0, 90.0)}), write_report(folder, "b.json", {"b": [], "c": reports_of(20.0)})
    merged = json.loads(summary("--merge", one, two).stdout)
    assert list(merged) == ["a", "b", "c"], merged
    assert [list(node) for node in merged.values()] == [["figures", "reports", "metrics"]] * 3
    assert merged["a"]["reports"] == reports_of(10.0, 90.0) and merged["b"]["reports"] == []
    assert all(list(node["figures"]) == FIGURES for node in merged.values())
    expected = [90, 50, 0, 50, 50, 50, 0, 100, None, None, 11.5, 50, 1, 2.5, 4, 7, 5.5, 8.5]
    assert list(merged["a"]["figures"].values()) == expected, merged["a"]["figures"]
    assert set(merged["b"]["figures"].values()) == {None}
    figures = write_report(folder, "f.json", {"d": dict(merged["a"]["figures"], node_cpu_hours=7.5)})
    again = write(folder, "m.json", [json.dumps(merged)])
    both = json.loads(summary("--merge", again, figures).stdout)
    assert list(both) == ["a", "b", "c", "d"] and {name: both[name] for name in merged} == merged
    assert both["d"]["figures"]["node_cpu_hours"] == 7.5 and both["d"]["reports"] == []
    assert "in " + one + " and in " + again in summary("--merge", one, again, code=1).stderr
    renamed = json.loads(summary("--merge", "x=" + one, one).stdout)
    assert list(renamed) == ["x", "a"] and renamed["x"] == renamed["a"]
    assert "has 2 nodes; NAME=FILE" in summary("--merge", "x=" + two, code=1).stderr


@case
def what_the_report_handler_writes_is_read(folder):
    handler = {"type": "report", "details": os.path.join(folder, "d.json"), "figures": os.path.join(folder, "f.json"), "node": "n",
               "path": os.path.join(folder, "p.json"), "reports": 100}
    done = run(ADDER, "-n", 300, "-f", -1, WEIR_CONFIG={"handlers": {"out": handler}, "groups": {"*": "out"}})
    assert done.returncode == 0, done
    shown = summary("--json", handler["details"])
    (row,) = json.loads(shown.stdout)
    assert row["labels"] == {"node": "n"} and row["count"] == 75 and row["max"] == 296, row
    assert "of 1 series a part of the values was kept" in shown.stderr, shown.stderr
    merged = json.loads(summary("--merge", handler["details"]).stdout)
    assert merged["n"]["metrics"][0]["count"] == 300 and merged["n"]["metrics"][0]["p50"] is not None
    for name in ("path", "figures"):
        assert "node_cpu_hours" in summary(handler[name]).stdout


@case
def reports_that_are_not_right_are_refused(folder):
    lines = write(folder, "lines", [line_of(1)])
    good = reports_of(1.0)
    for document, problem in (({"a": good, "b": 3}, 'node "b": its value: is neither an array of reports nor an object'),
                              ({"a": [{}]}, 'node "a": cpu_pct_per_cpu_avg: is missing'),
                              ({"a": [dict(good[0], mem_percent="x")]}, "mem_percent: is neither a number nor null"),
                              ({"a": [good[0], 3]}, "reports: one of them is not an object"),
                              ({"a": {"figures": {}}}, "max_t_cpu_pct_per_cpu_avg: is missing"),
                              ({"a": {"reports": [], "metrics": [3]}}, "metrics: one of them is not an object with name and points"),
                              ({"a": {"reports": [], "metrics": {}}}, "is not an array")):
        done = summary("--merge", write_report(folder, "bad.json", document), code=1)
        assert problem in done.stderr and done.stdout == "", (document, done)
        assert summary("--json", os.path.join(folder, "bad.json"), code=1).stdout.strip() == "[]"
    path = write(folder, "cut.json", [json.dumps({"a": good})[:-9]])
    assert "the file ends too early" in summary(path, code=1).stderr
    assert "is not a report" in summary("--merge", lines, code=1).stderr
    assert "--merge excludes" in summary("--merge", "--csv", lines, code=2).stderr
    assert summary("--merge", os.path.join(folder, "none"), code=1).stderr.startswith("weir: " + folder)


main()
