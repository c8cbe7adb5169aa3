"""Summaries in place of values, through a whole program: at its end, across reloads and forks, at the ends of intervals, and against the
exact percentiles of what was added."""

import json
import os
import re
import socket

from fifos import ScriptedApp
from harness import ADDER, BUILD, WEIR, assert_handler_ledger, assert_ledgers, await_day, case, lines_of, main, run, skip_fork_under_sanitizers, without_waits

FORMATTED = ["requests=1", "requests=2", "open=-5", "took=3", "took=60", "loss=0.5"]
METRICS = {"*": {"requests": "counter", "open": "gauge", "took": {"instrument": "histogram", "unit": "ms", "buckets": [5, 75.5]}}}
LIMIT = 10  # of enum weir_drop
COUNTER = os.path.join(BUILD, "tests", "support", "counter")


def to_file(path, **options):
    """An interval of a day ends with the program or by a flush only."""
    await_day()
    handler = {"type": "file", "path": path, "format": "json", "aggregate": "1d", "block_timeout": "1m"}
    handler.update(options)
    return {"handlers": {"out": handler}, "groups": {"*": "out"}}


def parts_of(path):
    return [json.loads(line) for line in lines_of(path)]


def values_of(path, name):
    return [part["value"] for part in parts_of(path) if part["name"] == name]


def count_with(*arguments, **env):
    """Runs `counter` and checks the ledgers of its processes."""
    done = run(COUNTER, *arguments, **env)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    for report in map(json.loads, done.stdout.splitlines()):
        assert_ledgers(report)
        assert report["handlers"]["out"]["dropped"] == [0] * len(report["handlers"]["out"]["dropped"]), report


@case
def the_open_interval_is_delivered_at_the_end_of_the_program(folder):
    out = os.path.join(folder, "out")
    count_with("-n", 3251, "-t", 4, WEIR_CONFIG=to_file(out))
    assert values_of(out, "requests") == [13004], parts_of(out)


@case
def each_forked_process_has_its_own_total(folder):
    skip_fork_under_sanitizers()
    out = os.path.join(folder, "out")
    count_with("-n", 3251, "-p", 4, "-b", 7, WEIR_CONFIG=to_file(out))
    assert sorted(values_of(out, "requests")) == [7, 3251, 3251, 3251, 3251], parts_of(out)


@case
def labels_with_the_process_id_tell_forked_processes_apart(folder):
    skip_fork_under_sanitizers()
    config = to_file(os.path.join(folder, "out.${PID}"))
    config["settings"] = {**config.get("settings", {}), "labels": {"instance": "${PID}"}}
    count_with("-n", 3251, "-p", 4, "-b", 7, WEIR_CONFIG=config)
    files = os.listdir(folder)
    assert len(files) == 5, files
    for name in files:
        assert all(part["labels"]["instance"] == name.removeprefix("out.") for part in parts_of(os.path.join(folder, name))), name


@case
def count_and_sum_are_exact_and_percentiles_within_1_percent(folder):
    out = os.path.join(folder, "out")
    count = 200000 if os.environ.get("WEIR_TEST_SANITIZED") else 2000000
    done = run(ADDER, "-n", count, "-f", -1, "-H", "out", WEIR_CONFIG=to_file(out))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"]["out"]["delivered"] == count, report
    parts = {part["name"]: part["value"] for part in parts_of(out)}
    assert parts["t0.count"] == count and parts["t0.sum"] == count * (count - 1) // 2, parts
    assert parts["t0.min"] == 0 and parts["t0.max"] == count - 1, parts
    for name, quantile in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)):
        exact = int(quantile * (count - 1))
        assert abs(parts["t0." + name] - exact) <= 0.01 * exact, (name, parts)


@case
def a_window_has_the_values_of_earlier_intervals(folder):
    found = {}
    for window in ("0s", "1d"):
        out = os.path.join(folder, window)
        app = ScriptedApp({**to_file(out, window=window, percentiles=[50]), "metrics": METRICS}, folder)
        for values in ([1000, 1000], [1], []):
            for value in values:
                app.do("add", "took", value)
                app.do("add", "loss", value)
            assert app.do("flush", -1)["code"] == 0
        stats = app.do("ledger", "out")
        assert_handler_ledger(stats)
        assert stats["delivered"] == 6, stats
        app.end()
        found[window] = {name: values_of(out, name) for name in ("took.max", "took.min", "loss.max", "loss.count", "loss.sum", "loss.last")}
        median = values_of(out, "loss.p50")
        assert [round(value / 1000) for value in median] == ([1, 0] if window == "0s" else [1, 1]), median
    last = {"loss.count": [2, 1], "loss.sum": [2000, 1], "loss.last": [1000, 1]}
    assert found["0s"] == {"took.max": [1000, 1], "took.min": [1000, 1], "loss.max": [1000, 1], **last}, found
    assert found["1d"] == {"took.max": [1000] * 4, "took.min": [1000, 1, 1, 1], "loss.max": [1000, 1000], **last}, found


@case
def parts_that_are_not_wanted_are_left_out(folder):
    for number, (options, expected) in enumerate((
            ({"parts": ["max"]}, {"took.max", "loss.max", "took.p50", "loss.p50"}),
            ({"parts": ["min", "last"], "percentiles": []}, {"took.min", "loss.min", "loss.last"}),
            ({"parts": [], "percentiles": [], "window": "1d"}, set()))):
        out = os.path.join(folder, f"out{number}")
        app = ScriptedApp({**to_file(out, **{"percentiles": [50], **options}), "metrics": METRICS}, folder)
        for value in (3, 5):
            app.do("add", "took", value)
            app.do("add", "loss", value)
        assert app.do("flush", -1)["code"] == 0
        stats = app.do("ledger", "out")
        assert_handler_ledger(stats)
        assert stats["delivered"] == 4, stats
        app.end()
        found = {part["name"]: part["value"] for part in parts_of(out)}
        always = {"took.count", "took.sum", "took.bucket", "loss.count", "loss.sum"}
        names = {name for name in found if name.startswith(("took.", "loss."))}
        assert names == always | expected, (options, found)
        assert found["loss.sum"] == 8 and found.get("loss.last", 5) == 5 and found.get("took.max", 5) == 5, found


@case
def intervals_end_at_multiples_of_their_length(folder):
    out = os.path.join(folder, "out")
    done = run(ADDER, "-n", 300, "-p", 1000000, "-f", -1, "-H", "out", WEIR_CONFIG=to_file(out, aggregate="50ms"))
    assert done.returncode == 0, done.stderr
    assert_ledgers(json.loads(done.stdout))
    counts = [part for part in parts_of(out) if part["name"] == "t0.count"]
    assert sum(part["value"] for part in counts) == 300, counts
    times = [round(part["timestamp"] * 1000, 3) if isinstance(part["timestamp"], float) else part["timestamp"] for part in counts]
    assert times == sorted(set(times)) and len(times) > 1, times
    assert all(time % 50 == 0 for time in times[:-1]), times


@case
def a_hundred_reloads_lose_nothing(folder):
    files, outs = [], [os.path.join(folder, f"out{i}") for i in range(3)]
    for i, options in enumerate(({"aggregate": "20ms"}, {"aggregate": "1d"}, {"aggregate": "1s", "percentiles": [50]})):
        files += ["-c", os.path.join(folder, f"{i}.json")]
        with open(files[-1], "w", encoding="utf-8") as file:
            json.dump(to_file(outs[i], **options), file)
    done = run(ADDER, "-t", 2, "-n", 500000, "-r", 100, *files, "-f", -1, "-H", "out")
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    delivered = report["handlers"]["out"]["delivered"]
    assert delivered + report["process"]["unrouted"] == 1000000, report
    written = [out for out in outs if os.path.exists(out)]
    assert delivered == sum(sum(values_of(out, f"t{thread}.count")) for out in written for thread in (0, 1)), report


@case
def summaries_are_counted_by_the_status(folder):
    out = os.path.join(folder, "out")
    done = run(ADDER, "-n", 1000, "-H", "out", WEIR_CONFIG=to_file(out))
    report = json.loads(done.stdout)
    assert_ledgers(report)
    account = report["handlers"]["out"]
    assert account["summing"] == account["offered"] and account["delivered"] == 0, report
    assert sum(values_of(out, "t0.count")) == 1000


# ---- As formats write them --------------------------------------------------------------------------------------


def lines_as(folder, form, *arguments, settings=None):
    """The lines of one interval, without times and with PID for that of the program."""
    out = os.path.join(folder, "out")
    if os.path.exists(out):
        os.remove(out)
    config = {**to_file(out, format=form, percentiles=[50]), "metrics": METRICS, "settings": settings or {}}
    done = run(WEIR, "emit", "-g", "my.app", *arguments, "--", *FORMATTED, WEIR_CONFIG=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done
    lines = [re.sub(r"\binstance=%s:\d+" % re.escape(socket.gethostname()), "instance=HOST:PID", line) for line in lines_of(out)]
    begins = (i for i, line in enumerate(lines + [lines[0]]) if i and "requests" in line and "requests" not in lines[i - 1])
    last = len(lines) // 2 if form == "bai" else next(begins)
    return [re.sub(r" \d{10,}$", "", line) for line in lines[:last]]


@case
def statsd_gets_increments_levels_and_parts(folder):
    expected = ["my.app.requests:3|c", "my.app.open:0|g", "my.app.open:-5|g", "my.app.took.count:2|c", "my.app.took.sum:63|c",
                "my.app.took.min:3|g", "my.app.took.max:60|g", "my.app.took.p50:3|g", "my.app.took.bucket.5:1|c",
                "my.app.took.bucket.75_5:2|c", "my.app.took.bucket.inf:2|c", "my.app.loss.count:1|c", "my.app.loss.sum:0.5|c",
                "my.app.loss.min:0.5|g", "my.app.loss.max:0.5|g", "my.app.loss.last:0.5|g", "my.app.loss.p50:0.5|g"]
    assert lines_as(folder, "statsd") == expected, lines_as(folder, "statsd")
    tagged = lines_as(folder, {"type": "statsd", "tags": True}, "-l", "route=/x")
    assert tagged[0] == "my.app.requests:3|c|#route:/x" and "my.app.took.bucket:2|c|#le:75.5,route:/x" in tagged, tagged


@case
def influx_gets_a_line_for_each_summary_and_bucket(folder):
    tags = "my.app,instance=HOST:PID"
    expected = [tags + " requests=3", tags + " open=-5", tags + " took.count=2,took.sum=63,took.min=3,took.max=60,took.p50=3",
                tags + ",le=5 took.bucket=1", tags + ",le=75.5 took.bucket=2", tags + ",le=+Inf took.bucket=2",
                tags + " loss.count=1,loss.sum=0.5,loss.min=0.5,loss.max=0.5,loss.last=0.5,loss.p50=0.5"]
    assert lines_as(folder, "influx") == expected, lines_as(folder, "influx")
    separated = lines_as(folder, {"type": "influx", "name_separator": "_", "temporality": "delta"})
    assert separated == [line.replace("my.app", "my_app").replace("took.", "took_").replace("loss.", "loss_") for line in expected]


@case
def graphite_gets_a_path_for_each_part(folder):
    lines = lines_as(folder, "graphite")
    assert lines[:4] == ["my.app.requests 3", "my.app.open -5", "my.app.took.count 2", "my.app.took.sum 63"], lines
    assert lines[7:10] == ["my.app.took.bucket.5 1", "my.app.took.bucket.75_5 2", "my.app.took.bucket.inf 2"], lines
    tagged = lines_as(folder, {"type": "graphite", "tags": True})
    assert tagged[0] == "my.app.requests;instance=HOST:PID 3" and "my.app.took.bucket;instance=HOST:PID;le=5 1" in tagged, tagged


@case
def graphite_with_the_names_of_statsd(folder):
    """The interval ends by the flush, so the rates are those of a time that is not known."""
    lines = [line.split(" ") for line in lines_as(folder, {"type": "graphite", "names": "statsd"})]
    rates = {path: float(value) for path, value in lines if path.endswith((".rate", ".count_ps"))}
    assert set(rates) == {"stats.counters.my.app.requests.rate", "stats.timers.my.app.took.count_ps", "stats.timers.my.app.loss.count_ps"}, rates
    assert abs(rates["stats.counters.my.app.requests.rate"] / rates["stats.timers.my.app.loss.count_ps"] - 3) < 1e-9, rates
    timer = "stats.timers.my.app."
    assert [(path, float(value)) for path, value in lines if path not in rates] == [
        ("stats.counters.my.app.requests.count", 3), ("stats.gauges.my.app.open", -5), (timer + "took.count", 2),
        (timer + "took.sum", 63), (timer + "took.mean", 31.5), (timer + "took.lower", 3), (timer + "took.upper", 60),
        (timer + "took.median", 31.5), (timer + "took.sum_squares", 3609), (timer + "took.std", 28.5), (timer + "took.count_50", 1), (timer + "took.upper_50", 3),
        (timer + "took.sum_50", 3), (timer + "took.sum_squares_50", 9), (timer + "took.mean_50", 3), (timer + "loss.count", 1), (timer + "loss.sum", 0.5),
        (timer + "loss.mean", 0.5), (timer + "loss.lower", 0.5), (timer + "loss.upper", 0.5), (timer + "loss.median", 0.5),
        (timer + "loss.sum_squares", 0.25), (timer + "loss.std", 0), (timer + "loss.count_50", 1), (timer + "loss.upper_50", 0.5),
        (timer + "loss.sum_50", 0.5), (timer + "loss.sum_squares_50", 0.25), (timer + "loss.mean_50", 0.5)], lines


@case
def names_of_statsd_are_told_apart_by_what_they_are_of(folder):
    """A counter took.count beside the histogram took, and a gauge requests.count beside the counter requests."""
    out = os.path.join(folder, "out")
    metrics = {"my_app": {"took": "histogram", "took.count": "counter", "requests": "counter", "requests.count": "gauge"}}
    app = ScriptedApp({**to_file(out, format={"type": "graphite", "names": "statsd"}, percentiles=[], parts=[], window="1d"),
                       "metrics": metrics}, folder)
    for values in ((1, 2, 3), (10, 20, 30)):
        for value in values:
            for name in metrics["my_app"]:
                app.do("add", name, value)
        assert app.do("flush", -1)["code"] == 0
    stats = app.do("ledger", "out")
    assert_handler_ledger(stats)
    assert stats["delivered"] == 24, stats
    app.end()
    found = {}
    for path, value, _ in (line.split(" ") for line in lines_of(out)):
        found.setdefault(path, []).append(float(value))
    assert found["stats.timers.my_app.took.count"][:2] == [3, 3], found
    assert found["stats.counters.my_app.took.count.count"][:2] == [6, 60], found
    assert found["stats.counters.my_app.requests.count"][:2] == [6, 60], found
    assert found["stats.gauges.my_app.requests.count"][:2] == [3, 30], found
    median = found["stats.timers.my_app.took.median"]
    assert abs(median[0] - 2) <= 0.02 and abs(median[1] - 6.5) <= 0.065, found


@case
def described_buckets_are_those_of_the_histogram(folder):
    for text, bounds in (("exponential(0.0625, 10, 4)", ["0.0625", "0.625", "6.25", "62.5", "+Inf"]), ("linear(${FROM}, 30, 3)", ["15", "45", "75", "+Inf"])):
        out = os.path.join(folder, "out." + text[:3])
        config = {**to_file(out), "metrics": {"*": {"took": {"instrument": "histogram", "buckets": text}}}}
        done = run(WEIR, "emit", "-g", "g", "took=20", WEIR_CONFIG=config, FROM="15")
        assert done.returncode == 0, done
        buckets = {part["labels"]["le"]: part["value"] for part in parts_of(out) if part["name"] == "took.bucket"}
        assert buckets == {bound: int(float(bound) >= 20) for bound in bounds}, buckets


@case
def formats_without_labels_get_no_buckets(folder):
    assert lines_as(folder, "bai")[2] == '{"took.count": 2.0, "took.sum": 63.0, "took.min": 3.0, "took.max": 60.0, "took.p50": 3.0}'
    for form in ("bai", {"type": "text", "style": "python"}):
        assert not any("bucket" in line for line in lines_as(folder, form)), form


@case
def the_instance_of_the_program_and_of_the_operator_takes_precedence(folder):
    for settings, arguments, expected in (({}, ["-l", "instance=own"], "instance=own"), ({"instance": "there"}, [], "instance=there"),
                                          ({"instance": "there"}, ["-l", "instance=own"], "instance=own"),
                                          ({"labels": {"instance": "here"}}, [], "instance=here"),
                                          ({"instance": "${NO:-a}b"}, [], "instance=ab")):
        for line in lines_as(folder, "influx", *arguments, settings=settings):
            assert re.match(r"my\.app,%s[, ]" % expected, line), (settings, line)
    assert lines_as(folder, "influx", settings={"instance": ""})[0] == "my.app requests=3"


@case
def a_spooled_summary_keeps_the_instance_of_its_process(folder):
    spool, out = os.path.join(folder, "spool"), os.path.join(folder, "out")
    config = {**to_file(out, format="influx", spool=spool), "settings": {"instance": "first", "shutdown_timeout": "0s"}}
    config["handlers"]["out"]["path"] = os.path.join(folder, "missing", "out")
    done = run(WEIR, "emit", "-t", "100ms", "-g", "app", "a=1", WEIR_CONFIG=config)
    assert os.listdir(spool), done
    config = {**to_file(out, format="influx", spool=spool), "settings": {"instance": "second"}}
    done = run(WEIR, "emit", "-g", "app", "a=2", WEIR_CONFIG=config)
    assert done.returncode == 0, done
    found = [re.search(r"instance=(\w+) a.count=1,a.sum=(\d)", line).groups() for line in lines_of(out)]
    assert found == [("first", "1"), ("second", "2")], lines_of(out)


@case
def only_the_process_that_has_counted_shows_a_total_of_the_spool(folder):
    """Another one does once it has a value of it."""
    commands = {"other": (WEIR, "emit", "-g", "app", "other=1"), "adds": (WEIR, "emit", "-g", "app", "requests=2")}
    shown = {}
    for name, command in commands.items():
        spool, out, settings = os.path.join(folder, name), os.path.join(folder, "out." + name), {"shutdown_timeout": "0s", "instance": "first"}
        config = {**to_file(out, format="influx", spool=spool), "settings": settings, "metrics": METRICS}
        config["handlers"]["out"]["path"] = os.path.join(folder, "missing", "out")
        done = run(WEIR, "emit", "-t", "1s", "-g", "app", "open=1", "requests=3", "requests=4", "took=5", WEIR_CONFIG=config)
        assert os.listdir(spool), done
        config["handlers"]["out"]["path"], settings["instance"], settings["shutdown_timeout"] = out, name, "1m"
        done = run(*command, WEIR_CONFIG=config)
        assert done.returncode == 0, done
        lines = lines_of(out)
        assert any("instance=first requests=7" in line for line in lines), lines
        shown[name] = {line.split(" ")[1] for line in lines if "instance=first" not in line and "other" not in line.split(" ")[1]}
    assert shown == {"other": set(), "adds": {"requests=2"}}, shown


@case
def spooled_summaries_that_have_no_room_are_dropped_as_limit(folder):
    """The sums of several series would be lines of one."""
    spool, out = os.path.join(folder, "spool"), os.path.join(folder, "out")
    config = {**to_file(out, spool=spool), "settings": {"shutdown_timeout": "0s"}}
    config["handlers"]["out"]["path"] = os.path.join(folder, "missing", "out")
    lines = "".join(f"hits{i}:{i}|c\nhits{i}:1|c\n" for i in range(1, 51))
    with open(os.path.join(folder, "in"), "w+", encoding="utf-8") as given:
        given.write(lines)
        given.seek(0)
        done = run(WEIR, "emit", "-t", "1s", "-g", "app", "--parse", "statsd", "-", stdin=given, WEIR_CONFIG=config)
    assert os.listdir(spool), done
    config = {**to_file(out, spool=spool), "settings": {"max_series": 20}}
    done = run(ADDER, "-g", "app", "-n", 3, "-f", -3, "-H", "out", WEIR_CONFIG=config)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    totals = {part["name"]: part["value"] for part in parts_of(out) if part["name"].startswith("hits")}
    number = len(totals)
    assert 10 < number < 20 and totals == {f"hits{i}": i + 1 for i in range(1, number + 1)}, parts_of(out)
    stats = report["handlers"]["out"]
    assert (stats["recovered"], stats["dropped"][LIMIT], sum(stats["dropped"])) == (100, 2 * (50 - number), 2 * (50 - number)), report
    assert done.stderr.count("the spool has summaries of more series than settings.max_series and settings.max_series_per_name leave room for") == 1, done


@case
def each_process_has_an_instance_and_deltas_add_up(folder):
    skip_fork_under_sanitizers()
    for temporality in ("total", "delta"):
        out = os.path.join(folder, temporality)
        config = to_file(out, format={"type": "influx", "temporality": temporality}, aggregate="10ms")
        count_with("-n", 3251, "-p", 4, "-b", 7, WEIR_CONFIG=config)
        series = {}
        for line in lines_of(out):
            instance, value = re.fullmatch(r"app,instance=(\S+) requests=(\d+) \d+", line).groups()
            series.setdefault(instance, []).append(int(value))
        found = [sum(values) if temporality == "delta" else values[-1] for values in series.values()]
        assert sorted(found) == [7, 3251, 3251, 3251, 3251], series


main()
