"""The http handler and its formats with real servers: the values are read back from them."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

from harness import ADDER, BUILD, SOURCE, WEIR, Skip, assert_ledgers, case, main, run, start, wait_for
from mlbench import MLBench
from peers import InfluxDB, Nginx, Pushgateway, VictoriaMetrics
from scripted import Scripted

VALUES = int(os.environ.get("WEIR_TEST_VALUES", "100000" if os.environ.get("WEIR_TEST_SANITIZED") else "1000000"))
SCAN = os.path.join(BUILD, "examples", "scan")
REJECTED, UNREPRESENTABLE = 1, 2


def config_of(url, **options):
    handler = {"type": "http", "url": url, "format": "influx", "queue": "64MiB", "overflow": "block", "block_timeout": "60s",
               "retry_min": "10ms", "retry_max": "200ms", **options}
    return {"settings": {"shutdown_timeout": "60s"}, "handlers": {"push": handler}, "groups": {"*": "push"}}


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
        assert ledger["delivered"] == VALUES and log == "", (ledger, log)
        values = server.await_series('{__name__="my_app_t0"}', VALUES)["my_app_t0"]
        assert len(values) == VALUES and sum(values) == VALUES * (VALUES - 1) // 2 and sorted(values) == list(range(VALUES))


@case
def values_of_two_threads_for_one_series_arrive_in_victoriametrics_each_once(folder):
    with VictoriaMetrics(folder) as server:
        ledger, log = add(config_of(server.url + "/write", compress="gzip"), VALUES // 2, "-t", 2, "-s")
        assert ledger["delivered"] == VALUES and log == "", (ledger, log)
        assert sorted(server.await_series('{__name__="my_app_t"}', VALUES)["my_app_t"]) == list(range(VALUES))


@case
def the_example_for_victoriametrics_works_with_a_whole_program(folder):
    with VictoriaMetrics(folder) as server:
        done = run(SCAN, "-c", example("victoriametrics.json"), os.path.join(SOURCE, "lib"), VICTORIAMETRICS_URL=server.url)
        assert done.returncode == 0 and done.stderr == "", done
        series = server.await_series('{host!=""}', 1)
        assert any(name.startswith("scan") for name in series) and all(series.values()), list(series)


@case
def documents_are_accepted_by_victoriametrics(folder):
    with VictoriaMetrics(folder) as server:
        config = config_of(server.url + "/api/v1/import/prometheus", format="prometheus")
        done = emit(config, "latency=49.403", "b c=2", labels=["route=/x\"\\\n{}"])
        assert done.returncode == 0 and done.stderr == "", done
        assert server.await_series('{route="/x\\"\\\\\\n{}"}', 2) == {"my_app_latency": [49.403], "my_app_b_c": [2]}


@case
def requests_shrink_below_a_size_limit_in_front_of_the_server(folder):
    with VictoriaMetrics(folder) as server, Nginx(folder, server.url, "client_max_body_size 20k;") as front:
        ledger, log = add(config_of(front.url + "/write"), 20000)
        assert ledger["delivered"] == 20000 and ledger["retries"] == 0 and log == "", (ledger, log)
        assert sorted(server.await_series('{__name__="my_app_t0"}', 20000)["my_app_t0"]) == list(range(20000))


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
        assert ledger["delivered"] == VALUES and log == "", (ledger, log)
        assert_all_in(server, "t0", VALUES)


@case
def values_of_two_threads_for_one_series_arrive_in_influxdb_each_once(folder):
    """InfluxDB keeps only one of two values with the same time."""
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        ledger, log = add(config_of(server.url + "/write?db=bench", compress="gzip"), VALUES // 2, "-t", 2, "-s", "-b", "handle")
        assert ledger["delivered"] == VALUES and log == "", (ledger, log)
        assert_all_in(server, "t", VALUES)


@case
def values_of_one_time_arrive_in_influxdb_each_once(folder):
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        now = time.time_ns() // 10**9 * 10**9
        ledger, log = add(config_of(server.url + "/write?db=bench"), 100000, "-t", 2, "-s", "-a", now)
        assert ledger["delivered"] == 200000 and log == "", (ledger, log)
        assert_all_in(server, "t", 200000)
        row = server.query("SELECT count(t) FROM my_app WHERE time >= %d AND time < %d" % (now, now + 200000), db="bench")[0]
        assert row["count"] == 200000, "the times must be consecutive"


@case
def events_are_points_with_a_field_for_each_name(folder):
    with InfluxDB(folder) as server:
        server.query("CREATE DATABASE bench")
        done = emit(config_of(server.url + "/write?db=bench"), "a=1.5", "b c=-2", "d,e=3e300", labels=["k 1=v,=2", "empty="])
        assert done.returncode == 0 and done.stderr == "", done
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
            assert done.returncode == 0 and done.stderr == "", (name, done)
        measurements = {row["name"] for row in server.query("SHOW MEASUREMENTS", db="bench")}
        assert measurements == {"g" + name.replace(".", "") for name in names}, measurements
        for name in names:
            measurement = ("g" + name.replace(".", "")).replace("\\", "\\\\").replace('"', '\\"')
            row = server.query(f'SELECT * FROM "{measurement}"', db="bench")[0]
            assert row[name] == 1 and row["t" + name.replace("=", "")] == name, (name, row)


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
        out, log = program.communicate(timeout=120)
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
        assert done.returncode == 0 and done.stderr == "", done
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
        assert ledger["delivered"] == 30000 and log == "", (ledger, log)
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
        assert done.returncode == 0 and done.stderr == "", done
        values, comments = metrics_of(server)
        names = {line.split("{")[0]: value for line, value in values.items()}
        assert names == {"my_app_a_b": 3.0, "my_app__n_": 4.0, "my_app_9": 5.0, "my_app_c:d": 6.0, "my_app_x_y_": 7.0}, names
        assert len(comments) == 2 * len(names), comments
        assert all('a_b="1;2"' in line and '_9="3"' in line and '_name__="x"' in line for line in values), list(values)


@case
def the_example_for_a_pushgateway_stores_the_results_of_a_job(folder):
    with Pushgateway(folder) as server:
        done = run(SCAN, "-c", example("pushgateway.json"), os.path.join(SOURCE, "lib"), PUSHGATEWAY_URL=server.url, PUSHGATEWAY_JOB="scan")
        assert done.returncode == 0 and done.stderr == "", done
        values, _ = metrics_of(server)
        assert values and all('job="scan"' in line for line in values), values


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


# ---- MLBench --------------------------------------------------------------------------------------

@case
def every_value_is_a_metric_of_its_run_with_all_fields():
    with MLBench(runs=[7], pods=["worker-0"]) as server:
        done = emit(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "run_id": "7"}),
                    "loss=0.25", "Prec@1 &+%é=1e+20", "big=12345678901234567", labels=["rank=0"])
        assert done.returncode == 0 and done.stderr == "" and not server.faults, (done, server.faults)
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
        assert ledger["delivered"] == 3000 and log == "" and server.connections == 1, (ledger, log, server.connections)
        assert [float(metric["value"]) for metric in server.metrics["run", 7]] == list(range(3000)) and not server.faults
        dates = [metric["date"] for metric in server.metrics["run", 7]]
        assert dates == sorted(dates)


@case
def a_missing_pod_is_refused_and_a_missing_run_is_retried():
    with MLBench() as server:
        done = emit(config_of(server.url + "/api/metrics/", format={"type": "mlbench", "pod_name": "nobody"}), "a=1")
        assert done.stdout == "push: 0 delivered, 1 dropped (rejected), status.404 1\n" and "Pod not found" in done.stderr, done
        program = start(ADDER, "-n", 1, "-f", -1, "-H", "push",
                        WEIR_CONFIG=config_of(server.url + "/api/metrics/", format={"type": "mlbench", "run_id": "9"}))
        assert "returned 500" in program.stderr.readline()
        server.metrics["run", 9] = []
        out, _ = program.communicate(timeout=60)
        assert json.loads(out)["handlers"]["push"]["delivered"] == 1 and len(server.metrics["run", 9]) == 1, out


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
