"""The http handler and its formats with real servers: the values are read back from them."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

from fifos import ScriptedApp
from harness import (ADDER, BUILD, SOURCE, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, main, run, skip_fork_under_sanitizers,
                     start, wait_for, without_waits)
from mlbench import MLBench
from peers import InfluxDB, Nginx, Pushgateway, VictoriaMetrics, prometheus_parsers
from scripted import Scripted

VALUES = int(os.environ.get("WEIR_TEST_VALUES", "100000" if os.environ.get("WEIR_TEST_SANITIZED") else "1000000"))
COUNTER = os.path.join(BUILD, "tests", "support", "counter")
SCAN = os.path.join(BUILD, "examples", "scan")
REJECTED, UNREPRESENTABLE = 1, 2


def config_of(url, **options):
    handler = {"type": "http", "url": url, "format": "influx", "queue": "64MiB", "overflow": "block", "block_timeout": "4m",
               "retry_min": "10ms", "retry_max": "200ms", **options}
    return {"settings": {"shutdown_timeout": "60s"}, "handlers": {"push": handler}, "groups": {"*": "push"}}


def summaries_to(url, form, **options):
    """A handler that gets summaries never makes a call wait, so `overflow` is not for it."""
    config = config_of(url, format=form, aggregate="50ms", **options)
    for option in ("overflow", "block_timeout"):
        del config["handlers"]["push"][option]
    return config


def add(config, count, *arguments, timeout=300, **env):
    done = run(ADDER, "-n", count, "-f", -1, "-H", "push", *arguments, WEIR_CONFIG=config, timeout=timeout, **env)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]["push"], done.stderr


def emit(config, *values, labels=(), group="my_app", **env):
    arguments = [argument for label in labels for argument in ("-l", label)]
    return run(WEIR, "emit", "-g", group, *arguments, "-v", "--", *values, WEIR_CONFIG=config, **env)


def example(name):
    return os.path.join(SOURCE, "examples", "config", name)


# ---- VictoriaMetrics ------------------------------------------------------------------------------

@case
def a_million_values_arrive_in_victoriametrics_each_once(folder):
    with VictoriaMetrics(folder) as server:
        ledger, log = add(config_of(server.url + "/write"), VALUES)
        assert ledger["delivered"] == VALUES and without_waits(log) == "", (ledger, log)
        values = server.await_series('{__name__="my_app_t0"}', VALUES)["my_app_t0"]
        assert len(values) == VALUES and sum(values) == VALUES * (VALUES - 1) // 2 and sorted(values) == list(range(VALUES))


@case
def values_of_two_threads_for_one_series_arrive_in_victoriametrics_each_once(folder):
    with VictoriaMetrics(folder) as server:
        ledger, log = add(config_of(server.url + "/write", compress="gzip"), VALUES // 2, "-t", 2, "-s")
        assert ledger["delivered"] == VALUES and without_waits(log) == "", (ledger, log)
        assert sorted(server.await_series('{__name__="my_app_t"}', VALUES)["my_app_t"]) == list(range(VALUES))


@case
def the_example_for_victoriametrics_works_with_a_whole_program(folder):
    with VictoriaMetrics(folder) as server:
        done = run(SCAN, "-c", example("victoriametrics.json"), os.path.join(SOURCE, "lib"), VICTORIAMETRICS_URL=server.url)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        series = server.await_series('{host!=""}', 1)
        assert any(name.startswith("scan") for name in series) and all(series.values()), list(series)


@case
def documents_are_accepted_by_victoriametrics(folder):
    with VictoriaMetrics(folder) as server:
        config = config_of(server.url + "/api/v1/import/prometheus", format="prometheus")
        done = emit(config, "latency=49.403", "b c=2", labels=["route=/x\"\\\n{}"])
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        assert server.await_series('{route="/x\\"\\\\\\n{}"}', 2) == {"my_app_latency": [49.403], "my_app_b_c": [2]}


@case
def requests_shrink_below_a_size_limit_in_front_of_the_server(folder):
    with VictoriaMetrics(folder) as server, Nginx(folder, server.url, "client_max_body_size 20k;") as front:
        ledger, log = add(config_of(front.url + "/write"), 20000)
        assert ledger["delivered"] == 20000 and ledger["retries"] == 0 and without_waits(log) == "", (ledger, log)
        assert sorted(server.await_series('{__name__="my_app_t0"}', 20000)["my_app_t0"]) == list(range(20000))


@case
def victoriametrics_has_the_totals_of_threads_and_processes(folder):
    """Influx's lines and Prometheus' documents, totals and deltas."""
    skip_fork_under_sanitizers()
    with VictoriaMetrics(folder) as server:
        forms = [("/write", "influx", "a_requests"), ("/write", {"type": "influx", "temporality": "delta"}, "b_requests"),
                 ("/api/v1/import/prometheus", "prometheus", "c_requests_total")]
        for path, form, name in forms:
            for arguments in (["-t", 4], ["-p", 4]):
                config = summaries_to(server.url + path, form)
                config["settings"]["labels"] = {"run": arguments[0][1:]}
                done = run(COUNTER, "-g", name[0], "-n", 3251, *arguments, WEIR_CONFIG=config)
                assert done.returncode == 0 and without_waits(done.stderr) == "", done
                for report in map(json.loads, done.stdout.splitlines()):
                    assert_ledgers(report)
                counted = sum if "delta" in str(form) else max
                match = '{__name__="%s",run="%s"}' % (name, arguments[0][1:])

                def counts():
                    return sorted(counted(values) for values in server.read_values(match))

                expected = [13004] if arguments[0] == "-t" else [3251] * 4
                wait_for(lambda: counts() == expected, f"{match}: {expected}")


# ---- InfluxDB -------------------------------------------------------------------------------------

def assert_all_in(server, field, count):
    row = server.query(f"SELECT count({field}), sum({field}), min({field}), max({field}) FROM my_app", db="bench")[0]
    assert (row["count"], row["sum"]) == (count, count * (count - 1) // 2), row
    assert (row["min"], row["max"]) == (0, count - 1), row


@case
def a_million_values_arrive_in_influxdb_each_once(folder):
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        ledger, log = add(config_of(server.url + "/write?db=bench"), VALUES)
        assert ledger["delivered"] == VALUES and without_waits(log) == "", (ledger, log)
        assert_all_in(server, "t0", VALUES)


@case
def values_of_two_threads_for_one_series_arrive_in_influxdb_each_once(folder):
    """InfluxDB keeps only one of two values with the same time."""
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        ledger, log = add(config_of(server.url + "/write?db=bench", compress="gzip"), VALUES // 2, "-t", 2, "-s", "-b", "handle")
        assert ledger["delivered"] == VALUES and without_waits(log) == "", (ledger, log)
        assert_all_in(server, "t", VALUES)


@case
def values_of_one_time_arrive_in_influxdb_each_once(folder):
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        now = time.time_ns() // 10**9 * 10**9
        ledger, log = add(config_of(server.url + "/write?db=bench"), 100000, "-t", 2, "-s", "-a", now)
        assert ledger["delivered"] == 200000 and without_waits(log) == "", (ledger, log)
        assert_all_in(server, "t", 200000)
        row = server.query("SELECT count(t) FROM my_app WHERE time >= %d AND time < %d" % (now, now + 200000), db="bench")[0]
        assert row["count"] == 200000, "the times must be consecutive"


@case
def events_are_points_with_a_field_for_each_name(folder):
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        done = emit(config_of(server.url + "/write?db=bench"), "a=1.5", "b c=-2", "d,e=3e300", labels=["k 1=v,=2", "empty="])
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        rows = server.query('SELECT * FROM my_app', db="bench", epoch="ns")
        assert [{key: value for key, value in row.items() if key != "time"} for row in rows] == [
            {"a": 1.5, "b c": -2, "d,e": 3e300, "k 1": "v,=2"}], rows


@case
def names_of_all_kinds_arrive_in_influxdb_unchanged(folder):
    names = ["plain", "with space", "comma,equals=", "quote\"'", "naïve €😀", "#hash", "C:\\dir", "a.b/c", "{}[]()", "-", "1"]
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        for name in names:
            done = emit(config_of(server.url + "/write?db=bench"), f"{name}=1", labels=[f"t{name.replace('=', '')}={name}"],
                        group="g" + name.replace(".", ""))
            assert done.returncode == 0 and without_waits(done.stderr) == "", (name, done)
        measurements = {row["name"] for row in server.query("SHOW MEASUREMENTS", db="bench")}
        assert measurements == {"g" + name.replace(".", "") for name in names}, measurements
        for name in names:
            measurement = ("g" + name.replace(".", "")).replace("\\", "\\\\").replace('"', '\\"')
            row = server.query(f'SELECT * FROM "{measurement}"', db="bench")[0]
            assert row[name.replace('"', "%22")] == 1 and row["t" + name.replace("=", "")] == name, (name, row)


ALIKE = ["quote\"q", "quote%22q", "time", "time_", "end\\", "end/", "end%5C"]


def add_alike(server):
    """An event with names that are alike, and for each of them a sample that has it as a label."""
    config = config_of(server.url + "/write?db=bench")
    done = emit(config, *(f"{name}={i + 1}" for i, name in enumerate(ALIKE)), group="alike")
    assert done.returncode == 0 and done.stdout == f"push: {len(ALIKE)} delivered\n", done
    for i, name in enumerate(ALIKE):
        done = emit(config, f"value={i + 1}", labels=[f"{name}={name}"], group="labelled")
        assert done.returncode == 0 and done.stdout == "push: 1 delivered\n", done


@case
def names_that_are_alike_stay_different_in_influxdb(folder):
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        add_alike(server)
        row = server.query("SELECT * FROM alike", db="bench")[0]
        assert sorted(value for key, value in row.items() if key != "time") == list(range(1, len(ALIKE) + 1)), row
        rows = server.query("SELECT * FROM labelled", db="bench")
        tags = {tuple((k, v) for k, v in row.items() if k not in ("time", "value") and v) for row in rows}
        assert len(rows) == len(tags) == len(ALIKE), rows


@case
def names_that_are_alike_stay_different_in_victoriametrics(folder):
    with VictoriaMetrics(folder) as server:
        add_alike(server)
        series = server.await_series('{__name__=~"alike.*"}', len(ALIKE))
        assert sorted(value for values in series.values() for value in values) == list(range(1, len(ALIKE) + 1)), series
        assert len(series) == len(ALIKE), series
        values = server.await_series('{__name__="labelled_value"}', len(ALIKE))["labelled_value"]
        assert sorted(values) == list(range(1, len(ALIKE) + 1)), values


@case
def a_batch_that_influxdb_stores_in_part_is_counted_so(folder):
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        config = config_of(server.url + "/write?db=bench", linger="1s")
        with urllib.request.urlopen(server.url + "/write?db=bench", b'my_app t0="a text"') as response:
            assert response.status == 204
        ledger, _ = add(config, 500, "-t", 2)
        assert ledger["delivered"] == 500 and ledger["dropped"][1] == 500, ledger
        assert server.query("SELECT count(t1) FROM my_app", db="bench")[0]["count"] == 500


@case
def values_refused_by_influxdb_are_counted_and_its_message_is_logged(folder):
    with InfluxDB(folder) as server:
        done = emit(config_of(server.url + "/write?db=bench"), "a=1")
        assert done.stdout == "push: 0 delivered, 1 dropped (rejected), status.404 1\n", done
        assert 'returned 404: {"error":"database not found: \\\\"bench\\\\""}' in done.stderr, done.stderr


@case
def the_option_integers_determines_the_type_of_fields(folder):
    program = os.path.join(BUILD, "tests", "support", "guest")
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        for integers, types in ((False, {"a": "float", "g": "float", "f": "float"}), (True, {"g": "integer", "f": "float"})):
            server.query("DROP DATABASE bench")
            server.query("CREATE DATABASE bench")
            config = config_of(server.url + "/write?db=bench", format={"type": "influx", "integers": integers})
            done = run(program, "allocations", WEIR_CONFIG=config)
            found = {row["fieldKey"]: row["fieldType"] for row in server.query("SHOW FIELD KEYS", db="bench")}
            assert types.items() <= found.items(), (integers, found)
            # "a" is added both as a double and as an integer: an error of the user if `integers` is true; it is logged
            assert ("field type conflict" in done.stderr) == integers, done.stderr


@case
def a_value_whose_type_influxdb_refuses_takes_no_others_with_it(folder):
    """InfluxDB stores nothing of a request in which a new field has two types."""
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        config = config_of(server.url + "/write?db=bench", linger="1h", format={"type": "influx", "integers": True})
        app = ScriptedApp(config, folder)
        for number in range(500):
            assert app.do(*(("add", "a", 0.5) if number == 123 else ("int", "a", number)))["code"] == 0
        app.do("flush", -1)
        ledger = app.do("ledger", "push")
        assert_handler_ledger(ledger)
        assert ledger["delivered"] == 499 and ledger["dropped"][REJECTED] == 1, ledger
        app.end()
        rows = server.query("SELECT count(a), sum(a) FROM my_app", db="bench")
        assert (rows[0]["count"], rows[0]["sum"]) == (499, sum(range(500)) - 123), rows


@case
def a_server_that_is_killed_repeatedly_loses_nothing_and_order_is_kept(folder):
    count = 20000
    server = InfluxDB(folder)
    try:
        server.query("CREATE DATABASE bench")
        program = start(ADDER, "-n", count, "-p", 100000, "-f", -1, "-H", "push",
                        WEIR_CONFIG=config_of(server.url + "/write?db=bench", linger="0s", batch=500, timeout="5s"))
        for turn in range(1, 6):
            wait_for(lambda: count_in(server) > turn * count // 8, "values")
            server.kill()
            time.sleep(0.1)  # gives the handler time to detect it; no assertion depends on it
            server.start()
        out, log = program.communicate(timeout=240)
        assert program.returncode == 0 and log.count("back after") >= 1 and "0 lost" in log, log
        report = json.loads(out)
        assert_ledgers(report)
        assert report["handlers"]["push"]["delivered"] == count, report
        values = [row["t0"] for row in server.query("SELECT t0 FROM my_app", db="bench")]
        assert values == list(range(count)), f"{len(values)} values, or out of order"
    finally:
        server.stop()


def count_in(server):
    rows = server.query("SELECT count(t0) FROM my_app", db="bench")
    return rows[0]["count"] if rows else 0


@case
def the_example_for_influxdb_works_with_a_password(folder):
    class Locked(InfluxDB):
        def http_settings(self):
            return "auth-enabled = true\n"

    with Locked(folder) as server:
        server.query("CREATE USER weir WITH PASSWORD 'geheim' WITH ALL PRIVILEGES")
        server.query("CREATE DATABASE bench", u="weir", p="geheim")
        done = run(SCAN, "-c", example("influxdb.json"), os.path.join(SOURCE, "lib"), INFLUXDB_URL=server.url, INFLUXDB_PASSWORD="geheim")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        rows = server.query("SHOW MEASUREMENTS", db="bench", u="weir", p="geheim")
        assert any(row["name"].startswith("scan") for row in rows), rows
        done = run(WEIR, "emit", "-t", "2s", "-g", "g", "-v", "a=1", WEIR_CONFIG=example("influxdb.json"), INFLUXDB_URL=server.url,
                   INFLUXDB_PASSWORD="wrong")
        assert done.returncode == 1 and "returned 401: " in done.stderr and "wrong" not in done.stderr, done.stderr


# ---- Pushgateway ----------------------------------------------------------------------------------

def metrics_of(server):
    """Returns {line without its value: value} of a Pushgateway's metrics page, and its comments."""
    lines = [line for line in server.get("/metrics").splitlines() if "my_app" in line or "scan" in line]
    values = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}
    return values, [line for line in lines if line.startswith("#")]


@case
def a_pushgateway_shows_the_last_values_with_help_and_type(folder):
    with Pushgateway(folder) as server:
        config = config_of(server.url + "/metrics/job/bench", format="prometheus")
        ledger, log = add(config, 10000, "-t", 3)
        assert ledger["delivered"] == 30000 and without_waits(log) == "", (ledger, log)
        values, comments = metrics_of(server)
        assert values == {f'my_app_t{i}{{instance="",job="bench"}}': 9999.0 for i in range(3)}, values
        for i in range(3):
            assert f"# HELP my_app_t{i} t{i} of my_app" in comments and f"# TYPE my_app_t{i} gauge" in comments, comments


@case
def documents_with_any_names_and_labels_are_accepted_by_a_pushgateway(folder):
    with Pushgateway(folder) as server:
        config = config_of(server.url + "/metrics/job/bench", format="prometheus")
        done = emit(config, "a b=1", "a.b=2", "a_b=3", "ünï=4", "9=5", "c:d=6", "x{y}=7",
                    labels=["a.b=1", "a_b=2", "9=3", "quote=\"\\\n}", "__name__=x", "ünï=v", "empty="])
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        values, comments = metrics_of(server)
        names = {line.split("{")[0]: value for line, value in values.items()}
        assert names == {"my_app_a_b": 3.0, "my_app__n_": 4.0, "my_app_9": 5.0, "my_app_c:d": 6.0, "my_app_x_y_": 7.0}, names
        assert len(comments) == 2 * len(names), comments
        assert all('a_b="1;2"' in line and '_9="3"' in line and '_name__="x"' in line for line in values), list(values)


@case
def the_example_for_a_pushgateway_stores_the_results_of_a_job(folder):
    with Pushgateway(folder) as server:
        done = run(SCAN, "-c", example("pushgateway.json"), os.path.join(SOURCE, "lib"), PUSHGATEWAY_URL=server.url, PUSHGATEWAY_JOB="scan")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        values, _ = metrics_of(server)
        assert values and all('job="scan"' in line for line in values), values


@case
def a_pushgateway_keeps_of_a_name_the_series_of_the_last_batch_only(folder):
    """As documented: POST replaces all series of a name."""
    with Pushgateway(folder) as server:
        config = config_of(server.url + "/metrics/job/bench", format="prometheus")
        for route in ("/x", "/y"):
            assert emit(config, "latency=1", f"count{route[1]}=2", labels=["route=" + route]).returncode == 0
        values, _ = metrics_of(server)
        routes = sorted((line.split("{")[0], '"/x"' in line) for line in values)
        assert routes == [("my_app_countx", True), ("my_app_county", False), ("my_app_latency", False)], values


@case
def a_job_whose_values_are_in_one_batch_keeps_all_series_in_a_pushgateway(folder):
    lines = os.path.join(folder, "lines")
    with open(lines, "w", encoding="ascii") as file:
        for route in "abcabcab":
            record = {"timestamp": 1795219607.5, "group": "my_app", "name": "latency", "value": 1, "labels": {"route": route}}
            file.write(json.dumps(record) + "\n")
    with Pushgateway(folder) as server, open(lines, "rb") as values:
        config = config_of(server.url + "/metrics/job/bench", format="prometheus", linger="1h")
        done = run(WEIR, "emit", "-v", "-t", "60s", "-", stdin=values, WEIR_CONFIG=config)
        assert done.returncode == 0 and "push: 8 delivered\n" in done.stdout, done
        found, _ = metrics_of(server)
        assert sorted(re.search('route="(.)"', line).group(1) for line in found) == ["a", "b", "c"], found


@case
def promtool_accepts_a_document():
    promtool = shutil.which("promtool")
    if not promtool:
        raise Skip("promtool is not installed (Debian: prometheus)")
    with Scripted() as server:
        done = emit(config_of(server.url, format="prometheus"), "latency_seconds=49.403", "queue_bytes=2", labels=["route=/x\"\\\n"])
        assert done.returncode == 0, done
        checked = subprocess.run([promtool, "check", "metrics"], input=server.requests[0].body, capture_output=True)
        assert checked.returncode == 0 and checked.stdout + checked.stderr == b"", (checked, server.requests[0].body)
        done = emit(config_of(server.url, format="prometheus"), "a b=1", "a.b=2", "ünï=4", "9=5", labels=["a.b=1", "a_b=2", "__x=1"])
        checked = subprocess.run([promtool, "check", "metrics"], input=server.requests[1].body, capture_output=True)
        assert b"error while linting" not in checked.stdout + checked.stderr and b"parsing" not in checked.stderr, checked


@case
def summaries_are_parsed_alike_in_both_of_prometheus_formats(folder):
    parse_text, parse_openmetrics = prometheus_parsers()
    metrics = {"*": {"requests": "counter", "open": "gauge", "took": {"instrument": "histogram", "unit": "ms", "help": 'how "long"\\'},
                     "below": {"instrument": "histogram", "buckets": [-1, 1]}, "sent": {"instrument": "counter", "unit": "KiB"}}}
    found = {}
    for name, parse in (("prometheus", parse_text), ("openmetrics", parse_openmetrics)):
        with Scripted() as server:
            config = {**summaries_to(server.url, name), "metrics": metrics}
            config["settings"]["instance"] = 'a"b\\'
            values = ("requests=3", "open=-2.5", "took=3", "took=60", "below=-2", "below=2", "sent=2", "loss=0.5")
            done = emit(config, *values, labels=["route=/x"], group="g")
            assert done.returncode == 0 and without_waits(done.stderr) == "", done
            request = server.requests[-1]
        families = list(parse(request.body.decode()))
        types = {family.name: family.type for family in families}
        assert {types[name] for name in ("g_requests", "g_sent_bytes")} == {"counter"} and types["g_took_seconds"] == "histogram", types
        found[name] = {(sample.name, sample.labels.get("le")): sample.value for family in families for sample in family.samples}
        assert all(sample.labels["instance"] == 'a"b\\' for family in families for sample in family.samples), families
    both = found["prometheus"].pop(("g_below_sum", None)), found["prometheus"].pop(("g_below_count", None))
    assert both == (0, 2), "OpenMetrics has no sum where values may be negative, and then no count"
    assert found["prometheus"] == found["openmetrics"], found
    for name, le, value in (("g_requests_total", None, 3), ("g_open", None, -2.5), ("g_sent_bytes_total", None, 2048),
                            ("g_took_seconds_bucket", "0.005", 1), ("g_took_seconds_bucket", "+Inf", 2), ("g_took_seconds_sum", None, 0.063)):
        assert found["openmetrics"][name, le] == value, (name, le, found["openmetrics"])


@case
def promtool_accepts_summaries(folder):
    promtool = shutil.which("promtool")
    if not promtool:
        raise Skip("promtool is not installed (Debian: prometheus)")
    with Scripted() as server:
        metrics = {"*": {"requests": "counter", "took": {"instrument": "histogram", "unit": "ms"}}}
        config = {**summaries_to(server.url, "prometheus"), "metrics": metrics}
        done = emit(config, "requests=3", "took=3", "loss=0.5")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        checked = subprocess.run([promtool, "check", "metrics"], input=server.requests[0].body, capture_output=True)
        assert checked.returncode == 0 and checked.stdout + checked.stderr == b"", (checked, server.requests[0].body)


# ---- MLBench --------------------------------------------------------------------------------------

@case
def every_value_is_a_metric_of_its_run_with_all_fields():
    with MLBench(runs=[7], pods=["worker-0"]) as server:
        done = emit(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "run_id": "7"}),
                    "loss=0.25", "Prec@1 &+%é=1e+20", "big=12345678901234567", labels=["rank=0"])
        assert done.returncode == 0 and without_waits(done.stderr) == "" and not server.faults, (done, server.faults)
        with urllib.request.urlopen(server.url + "/api/metrics/7?metric_type=run") as response:
            metrics = json.load(response)
        assert {name: float(of[0]["value"]) for name, of in metrics.items()} == {
            "loss": 0.25, "Prec@1 &+%é": 1e20, "big": 12345678901234567.0}, metrics
        assert all(of[0]["cumulative"] is False and of[0]["metadata"] == "" for of in metrics.values()), metrics
        age = time.time() - _timestamp(metrics["loss"][0]["date"])
        assert -5 < age < 600, "the date is UTC"
        done = emit(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "pod_name": "worker-0", "group": True}), "cpu=1")
        assert done.returncode == 0 and "my_app.cpu" in server.read("/api/metrics/worker-0")[1], done


def _timestamp(date):
    import datetime
    return datetime.datetime.strptime(date, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()


@case
def many_metrics_are_sent_over_one_connection_in_order():
    with MLBench(runs=[7]) as server:
        ledger, log = add(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "run_id": "7"}), 3000, "-e", 3)
        assert ledger["delivered"] == 3000 and without_waits(log) == "" and server.connections == 1, (ledger, log, server.connections)
        assert [float(metric["value"]) for metric in server.metrics["run", 7]] == list(range(3000)) and not server.faults
        dates = [metric["date"] for metric in server.metrics["run", 7]]
        assert dates == sorted(dates)


@case
def a_missing_pod_is_refused_and_a_missing_run_is_retried():
    with MLBench(pods=["worker-0"]) as server:
        done = emit(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "pod_name": "nobody"}), "a=1")
        assert done.stdout == "push: 0 delivered, 1 dropped (rejected), status.404 1\n" and "Pod not found" in done.stderr, done
        config = config_of(server.url + "/api/metrics/", format={"type": "mlbench", "run_id": "9"}, retry_min="3s", retry_max="3s")
        program = start(ADDER, "-n", 1, "-f", -1, "-H", "push", WEIR_CONFIG=config)
        assert "returned 500" in program.stderr.readline()
        server.metrics["run", 9] = []
        out, _ = program.communicate(timeout=240)
        assert json.loads(out)["handlers"]["push"]["delivered"] == 1 and len(server.metrics["run", 9]) == 1, out


@case
def a_name_too_long_for_mlbench_is_rejected_and_does_not_hold_up_others():
    with MLBench(runs=[7]) as server:
        done = emit(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "run_id": "7"}), "a=1", "x" * 51 + "=2", "b=3")
        assert "2 delivered, 1 dropped (rejected)" in done.stdout and '"' + "x" * 51 + '"' in done.stderr, done
        assert list(server.metrics["run", 7]) and [m["name"] for m in server.metrics["run", 7]] == ["a", "b"], server.metrics


@case
def values_of_a_run_that_mlbench_does_not_have_are_rejected_while_it_works():
    with MLBench(runs=[7]) as server:
        done = emit(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "run_id": "8"}), "a=1", "b=2")
        assert "0 delivered, 2 dropped (rejected)" in done.stdout and '"a" of group "my_app"' in done.stderr, done


@case
def mlbench_3_refuses_pods_and_a_url_without_its_last_slash_is_explained():
    with MLBench(runs=[7]) as server:
        done = emit(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "pod_name": "worker-0"}), "a=1")
        assert "returned 400" in done.stderr and "Run ID has to be supplied" in done.stderr, done.stderr
        config = config_of(server.url + "/api/metrics", format={"type": "mlbench", "run_id": "7"})
        config["settings"]["shutdown_timeout"] = "1s"
        assert 'add the slash to "url"' in run(WEIR, "emit", "-t", "1s", "-g", "g", "a=1", WEIR_CONFIG=config).stderr


@case
def the_example_for_mlbench_works():
    with MLBench(runs=[3]) as server:
        done = run(WEIR, "emit", "-g", "training", "-v", "loss=0.5", WEIR_CONFIG=example("mlbench.json"), MLBENCH_URL=server.url,
                   MLBENCH_RUN=3)
        assert done.returncode == 0 and "dashboard: 1 delivered\n" in done.stdout, done
        assert [metric["value"] for metric in server.metrics["run", 3]] == ["0.5"] and not server.faults
        done = run(WEIR, "emit", "-g", "other", "x=1", WEIR_CONFIG=example("mlbench.json"), MLBENCH_URL=server.url)
        assert done.returncode == 0 and re.search(r"\[other\]: x=1$", done.stdout, re.M), done


main()
