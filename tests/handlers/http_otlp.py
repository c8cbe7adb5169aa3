"""The http handler with the format otlp: what a receiver reads, with an implementation of protobuf that is not weir's, and how its
responses are taken."""

import collections
import json
import math
import os
import random
import struct
from fractions import Fraction

import otlp
from harness import ADDER, BUILD, SOURCE, WEIR, assert_ledgers, case, go_on, main, run, start, start_in_steps, without_waits
from killable import Killable
from scripted import Scripted, reply

REJECTED = 1
FACTOR = float(os.environ.get("WEIR_TEST_FACTOR", "1"))
REQUESTS = os.path.join(BUILD, "tests", "support", "requests")
ENCODINGS = {"protobuf": "application/x-protobuf", "json": "application/json"}


def config_of(url, options=None, **handler):
    handler = {"type": "http", "format": {"type": "otlp", "service_name": "tests", **(options or {})}, "linger": "100ms", "overflow": "block",
               "retry_min": "1ms", "retry_max": "50ms", **handler}
    if url:
        handler["url"] = url
    return {"settings": {"shutdown_timeout": "60s"}, "handlers": {"push": handler}, "groups": {"*": "push"}}


def add(config, count, *arguments, **env):
    """Adds values, flushes, checks that the ledgers balance. Returns (the handler's ledger, messages)."""
    done = run(ADDER, "-n", count, "-f", -1, "-H", "push", *arguments, WEIR_CONFIG=config, **env)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]["push"], done.stderr


def relay(folder, config, records, expected=0):
    """Sends records through `weir relay`, as the format json has them. expected: its exit status."""
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**config, "sources": {"in": {"type": "stdin", "parse": "json"}}}, file)
    with open(os.path.join(folder, "input"), "w+", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        file.seek(0)
        done = run(WEIR, "relay", "-c", path, "-v", stdin=file, WEIR_LOG="info")
    assert done.returncode == expected, done
    return done.stderr


def requests_of(server):
    return [otlp.decode(request.body, request.headers["content-type"]) for request in server.requests]


def points_of(server):
    return [point for request in requests_of(server) for point in otlp.points_of(request)]


def resource_of(request):
    """The attributes of the one resource."""
    resource, = request.resource_metrics
    return otlp.attributes_of(resource.resource.attributes)


# ---- What is sent ---------------------------------------------------------------------------------

@case
def all_values_arrive_with_scope_name_and_attributes_in_both_encodings():
    for encoding, content_type in ENCODINGS.items():
        with Scripted(lambda request: reply(200)) as server:
            config = config_of(server.url + "/v1/metrics", {"encoding": encoding}, batch=300)
            config["settings"]["labels"] = {"host": "ä b"}
            ledger, log = add(config, 1000, "-t", 2)
            assert ledger["delivered"] == 2000 and without_waits(log) == "", (ledger, log)
            values = {}
            for scope, metric, kind, _, point in points_of(server):
                assert (scope, kind, otlp.attributes_of(point.attributes)) == ("my_app", "gauge", {"host": "ä b"})
                assert point.time_unix_nano > 1_600_000_000 * 10 ** 9 and point.start_time_unix_nano == 0
                values.setdefault(metric.name, []).append(point.as_double)
            assert values == {f"my_app.t{k}": list(map(float, range(1000))) for k in range(2)}
            assert all(resource_of(request) == {"service.name": "tests"} for request in requests_of(server))
            assert all(request.headers["content-type"] == content_type and request.path == "/v1/metrics" for request in server.requests)


@case
def bodies_are_compressed_if_configured():
    with Scripted(lambda request: reply(200)) as server:
        ledger, _ = add(config_of(server.url, compress="gzip"), 1000)
        assert ledger["delivered"] == 1000 and len(points_of(server)) == 1000
        assert server.requests[0].headers["content-encoding"] == "gzip"


def hostile_text(dice, most=12):
    pool = "aZ09 ._-/\\\"'{}[]<>&%=,;:|#*$ä€𝄞\u200b\u202e\ufeff\x7f"
    text = "".join(dice.choice(pool) for _ in range(dice.randint(1, most)))
    return text.replace("\x7f", "x")


def hostile_records(dice, count):
    doubles = [0.0, -0.0, 1.0, -1.5, 5e-324, 1.7976931348623157e308, 0.1, "NaN", "Infinity", "-Infinity", 1e22]
    ints = [0, 1, -1, 2 ** 63 - 1, -2 ** 63, 2 ** 53 + 1]
    for i in range(count):
        value = dice.choice(doubles) if dice.random() < 0.5 else dice.choice(ints) if dice.random() < 0.7 else dice.gauss(0, 1e6)
        labels = {hostile_text(dice): hostile_text(dice, 40) for _ in range(dice.randint(0, 4))}
        group = hostile_text(dice).replace("*", "x").strip(".") or "g"
        while ".." in group:
            group = group.replace("..", ".")
        yield {"timestamp": 1_700_000_000 + i / 128, "group": group, "name": hostile_text(dice), "value": value, "labels": labels}


def same_number(sent, point):
    if isinstance(sent, int):
        return point.HasField("as_int") and point.as_int == sent
    sent = float(sent)
    return point.HasField("as_double") and (struct.pack("d", point.as_double) == struct.pack("d", sent) or
                                            (math.isnan(sent) and math.isnan(point.as_double)))


@case
def what_is_read_back_equals_what_was_added_whatever_the_names_and_numbers(folder):
    seed = int(os.environ.get("WEIR_TEST_SEED", "7"))
    for encoding in ENCODINGS:
        records = list(hostile_records(random.Random(seed), 1000))
        with Scripted(lambda request: reply(200)) as server:
            log = relay(folder, config_of(server.url, {"encoding": encoding}), records)
            assert "1000 values added, 0 refused" in log and "push: 1000 delivered" in log, (seed, log)
            sent = {}
            for record in records:
                key = (record["group"], record["name"], tuple(sorted(record["labels"].items())), int(Fraction(record["timestamp"]) * 10 ** 9))
                sent[key] = record["value"]
            read = {}
            for scope, metric, kind, _, point in points_of(server):
                assert kind == "gauge" and metric.name.startswith(scope + ".")
                attributes = tuple(sorted(otlp.attributes_of(point.attributes).items()))
                read[(scope, metric.name[len(scope) + 1:], attributes, point.time_unix_nano)] = point
            assert len(read) == 1000 and set(read) == set(sent), (seed, list(set(read) ^ set(sent))[:2])
            wrong = [key for key in sent if not same_number(sent[key], read[key])]
            assert not wrong, (seed, [(key, sent[key], read[key]) for key in wrong[:3]])


@case
def times_before_1970_are_dropped_as_unrepresentable(folder):
    with Scripted(lambda request: reply(200)) as server:
        log = relay(folder, config_of(server.url), [{"timestamp": t, "group": "g", "name": "n", "value": 1} for t in (-1.5, 1.5)], 1)
        assert [point.time_unix_nano for *_, point in points_of(server)] == [1_500_000_000]
        assert "push: 1 delivered, 1 dropped (unrepresentable)" in log, log


# ---- Instruments ----------------------------------------------------------------------------------

METRICS = {"g": {"calls": "counter", "level": {"instrument": "gauge", "unit": "KiB/s", "help": "how \"much\""},
                 "size": {"instrument": "histogram", "unit": "bytes", "buckets": [1, 10.5, 100]}}}
RECORDS = [{"group": "g", "name": name, "value": value, "labels": {"r": "x"}}
           for name, value in [("calls", 2), ("level", 7.5), ("size", 10.5), ("calls", 3), ("level", 6.5), ("size", 0.5), ("size", 1000),
                               ("size", 11), ("plain", 4), ("plain", 6)]]


@case
def summed_up_values_are_totals_with_a_start_or_deltas_of_the_interval(folder):
    for encoding in ENCODINGS:
        for temporality, number in (("cumulative", 2), ("delta", 1)):
            with Scripted(lambda request: reply(200)) as server:
                config = {**config_of(server.url, {"encoding": encoding, "temporality": temporality}, aggregate="1h"), "metrics": METRICS}
                config["settings"]["instance"] = "one"
                del config["handlers"]["push"]["overflow"]
                log = relay(folder, config, RECORDS)
                assert "push: 10 delivered" in log, log
                found = {}
                for scope, metric, kind, data, point in points_of(server):
                    attributes = otlp.attributes_of(point.attributes)
                    assert scope == "g" and attributes == {"r": "x", "instance": "one"}, attributes
                    found[metric.name] = (kind, metric, data, point)
                kind, metric, data, point = found["g.calls"]
                assert (kind, data.aggregation_temporality, data.is_monotonic, point.as_double) == ("sum", number, True, 5.0)
                assert 0 < point.start_time_unix_nano < point.time_unix_nano, point
                kind, metric, _, point = found["g.level"]
                assert (kind, metric.unit, metric.description, point.as_double) == ("gauge", "KiBy/s", "how \"much\"", 6.5)
                kind, metric, data, point = found["g.size"]
                assert (kind, metric.unit, data.aggregation_temporality) == ("histogram", "By", number)
                assert list(point.explicit_bounds) == [1, 10.5, 100] and list(point.bucket_counts) == [1, 1, 1, 1]
                assert point.count == 4 and point.sum == 1022 and 0 < point.start_time_unix_nano < point.time_unix_nano
                assert point.HasField("min") == point.HasField("max") == (temporality == "delta")
                if temporality == "delta":
                    assert (point.min, point.max) == (0.5, 1000)
                assert found["g.plain.count"][3].as_double == 2 and found["g.plain.sum"][3].as_double == 10
                assert found["g.plain.last"][3].as_double == 6 and found["g.plain.p50"][0] == "gauge"


@case
def a_sum_of_values_that_may_be_negative_is_left_out(folder):
    with Scripted(lambda request: reply(200)) as server:
        config = {**config_of(server.url, aggregate="1h"), "metrics": {"g": {"size": {"instrument": "histogram", "buckets": [-5, 5]}}}}
        del config["handlers"]["push"]["overflow"]
        relay(folder, config, [{"group": "g", "name": "size", "value": value} for value in (-7, 1)])
        (_, _, kind, _, point), = points_of(server)
        assert kind == "histogram" and point.count == 2 and not point.HasField("sum") and list(point.bucket_counts) == [1, 1, 0]


def exponential_points(folder, encoding, values, **options):
    """Sends the values of each name as a histogram; returns the point of each."""
    with Scripted(lambda request: reply(200)) as server:
        config = config_of(server.url, {"encoding": encoding, "temporality": "delta", "histograms": "exponential", **options}, aggregate="1h")
        config["metrics"] = {"g": {name: "histogram" for name in values}}
        del config["handlers"]["push"]["overflow"]
        records = [{"group": "g", "name": name, "value": value, "labels": {"r": "x"}} for name in values for value in values[name]]
        log = relay(folder, config, records)
        assert f"push: {len(records)} delivered" in log, log
        points = {}
        for scope, metric, kind, data, point in points_of(server):
            assert (scope, kind, data.aggregation_temporality) == ("g", "exponential_histogram", 1), metric
            assert otlp.attributes_of(point.attributes)["r"] == "x" and 0 < point.start_time_unix_nano < point.time_unix_nano
            points[metric.name[2:]] = point
        assert set(points) == set(values)
        return points


@case
def exponential_histograms_have_each_value_and_quantiles_within_two_percent(folder):
    dice = random.Random(int(os.environ.get("WEIR_TEST_SEED", "7")))
    times = [round(dice.lognormvariate(3, 0.8) * 1024) / 1024 for _ in range(4000)]  # sums of these are exact
    values = {"time": times, "signed": [*times[:1000], *(-value for value in times[1000:2000])] + [0] * 50 + [-0.0] * 3, "one": [7.25], "zeros": [0] * 9,
              "huge": [1.25e308, 1e307], "tiny": [5e-324, 1e-323, 2.5e-322]}
    for encoding in ENCODINGS:
        for name, point in exponential_points(folder, encoding, values).items():
            exact, found = sorted(values[name]), otlp.quantiles_of(point)
            assert point.count == len(exact) == len(found) and (point.min, point.max) == (exact[0], exact[-1]), (name, point)
            assert point.zero_count == exact.count(0) and point.zero_threshold == 0, (name, point.zero_count)
            assert point.HasField("sum") == (exact[0] >= 0) and (exact[0] < 0 or point.sum == math.fsum(exact)), (name, point.sum)
            assert point.scale == 6 and max(len(point.positive.bucket_counts), len(point.negative.bucket_counts)) <= 640, (name, point.scale)
            wrong = [(a, b) for a, b in zip(exact, found) if abs(a - b) > 0.02 * abs(a)]
            assert not wrong or name == "tiny", (name, wrong[:3])  # of these a hundredth is less than the distance of two doubles


@case
def exponential_histograms_of_any_values_have_few_buckets(folder):
    values = {"all": [5e-324, 1e-300, 1, 1e300, 1.5e308], "both": [-1.5e308, -5e-324, 0, 3e-9, 1e9]}
    for encoding in ENCODINGS:
        for most, scale in ((640, -2), (50, -6), (3, -10)):
            for name, point in exponential_points(folder, encoding, values, max_buckets=most).items():
                assert max(len(point.positive.bucket_counts), len(point.negative.bucket_counts)) <= most, point
                assert point.scale == scale and point.count == len(otlp.quantiles_of(point)) == 5, (name, most, point)
                ratio = 2.0 ** 2.0 ** -scale if scale > -10 else math.inf
                for exact, found in zip(values[name], otlp.quantiles_of(point)):
                    assert (exact < 0) == (found < 0) and (exact == 0) == (found == 0), (name, exact, found)
                    assert exact == 0 or abs(exact) / ratio <= abs(found) <= abs(exact) * ratio, (name, exact, found)


@case
def values_of_instruments_that_are_not_summed_up_are_deltas_and_gauges(folder):
    with Scripted(lambda request: reply(200)) as server:
        records = RECORDS + [{"group": "g", "name": "total", "value": 9, "cumulative": True}]
        relay(folder, {**config_of(server.url), "metrics": METRICS}, records)
        found = {}
        for _, metric, kind, data, point in points_of(server):
            value = point.as_int if point.HasField("as_int") else point.as_double
            found.setdefault((metric.name, kind, getattr(data, "aggregation_temporality", 0)), []).append(value)
        assert found == {("g.calls", "sum", 1): [2, 3], ("g.level", "gauge", 0): [7.5, 6.5], ("g.size", "gauge", 0): [10.5, 0.5, 1000, 11],
                         ("g.plain", "gauge", 0): [4, 6], ("g.total", "sum", 2): [9]}, found


@case
def requests_counted_in_four_threads_are_as_many_at_the_receiver(folder):
    path = os.path.join(folder, "input")
    with open(path, "w", encoding="ascii") as file:
        file.write("count\n")
    with Scripted(lambda request: reply(200)) as server:
        config = config_of(server.url, aggregate="50ms")
        del config["handlers"]["push"]["overflow"]
        with open(path, encoding="ascii") as file:
            done = run(REQUESTS, "threads", 13004, stdin=file, WEIR_CONFIG=config)
        assert done.returncode == 0, done
        assert_ledgers(json.loads(done.stdout.splitlines()[1]))
        points = [point for _, metric, _, _, point in points_of(server) if metric.name == "my_app.requests"]
        values = [point.as_double for point in points]
        assert values[-1] == 13004 and values == sorted(values) and len({point.start_time_unix_nano for point in points}) == 1, values


@case
def units_are_those_of_ucum(folder):
    units = {"ms": "ms", "bytes": "By", "%": "%", "requests": "{requests}", "MB/s": "MBy/s", "{x}": "{x}", "a b": "{a_b}", "°C": "Cel",
             "requests/s": "{requests}/s", "1": "1", "µs": "us"}
    metrics = {f"n{i}": {"instrument": "gauge", "unit": unit} for i, unit in enumerate(units)}
    with Scripted(lambda request: reply(200)) as server:
        relay(folder, {**config_of(server.url), "metrics": {"g": metrics}}, [{"group": "g", "name": name, "value": 1} for name in metrics])
        assert {metric.name: metric.unit for _, metric, *_ in points_of(server)} == {
            f"g.n{i}": ucum for i, ucum in enumerate(units.values())}


@case
def the_example_configuration_sends_totals():
    with Scripted(lambda request: reply(200)) as server:
        done = run(WEIR, "emit", "-g", "my_app", "-v", "a=1", "a=3", WEIR_CONFIG=os.path.join(SOURCE, "examples", "config", "opentelemetry.json"),
                   OTEL_EXPORTER_OTLP_ENDPOINT=server.url, OTEL_SERVICE_NAME="shop")
        assert done.returncode == 0, done
        assert {metric.name: point.as_double for _, metric, _, _, point in points_of(server)}["my_app.a.sum"] == 4
        assert resource_of(requests_of(server)[0]) == {"service.name": "shop"}


# ---- The resource and the environment -------------------------------------------------------------

@case
def resource_attributes_come_from_the_options_and_the_standards_variables():
    listed = "service.name=listed,deployment.environment=pr%C3%B6d%2C1 , team = a%20b"
    for options, env, expected in (
            ({}, {}, {"service.name": "tests"}),
            ({"service_name": None}, {}, {"service.name": "unknown_service:adder"}),
            ({"service_name": None}, {"OTEL_SERVICE_NAME": "named"}, {"service.name": "named"}),
            ({"service_name": None}, {"OTEL_RESOURCE_ATTRIBUTES": listed},
             {"service.name": "listed", "deployment.environment": "pröd,1", "team": "a b"}),
            ({"service_name": None}, {"OTEL_RESOURCE_ATTRIBUTES": listed, "OTEL_SERVICE_NAME": "named"},
             {"service.name": "named", "deployment.environment": "pröd,1", "team": "a b"}),
            ({"service_name": None}, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,x=1,y=2,x=3,service.name=b"},
             {"service.name": "b", "y": "2", "x": "3"}),
            ({"resource": {"team": "ours", "x": ""}}, {"OTEL_RESOURCE_ATTRIBUTES": listed, "OTEL_SERVICE_NAME": "named"},
             {"service.name": "tests", "team": "ours", "x": "", "deployment.environment": "pröd,1"}),
            ({"service_name": None, "resource": {"service.name": "mapped"}}, {"OTEL_SERVICE_NAME": "named"}, {"service.name": "mapped"})):
        with Scripted(lambda request: reply(200)) as server:
            config = config_of(server.url, options)
            config["handlers"]["push"]["format"] = {k: v for k, v in config["handlers"]["push"]["format"].items() if v is not None}
            add(config, 1, **env)
            assert resource_of(requests_of(server)[0]) == expected, (options, env)


@case
def the_url_may_be_left_out_if_the_environment_has_it():
    with Scripted(lambda request: reply(200)) as server, Scripted(lambda request: reply(200)) as other:
        for env, path in (({"OTEL_EXPORTER_OTLP_ENDPOINT": server.url}, "/v1/metrics"),
                          ({"OTEL_EXPORTER_OTLP_ENDPOINT": server.url + "/base/"}, "/base/v1/metrics"),
                          ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": server.url + "/own", "OTEL_EXPORTER_OTLP_ENDPOINT": other.url}, "/own")):
            ledger, log = add(config_of(None), 10, **env)
            assert ledger["delivered"] == 10 and without_waits(log) == "" and server.requests[-1].path == path, (env, log)
        add(config_of(server.url + "/configured"), 1, OTEL_EXPORTER_OTLP_ENDPOINT=other.url)
        assert server.requests[-1].path == "/configured" and not other.requests
        done = run(WEIR, "check", WEIR_CONFIG=config_of(None))
        assert done.returncode == 1 and 'the option "url" is missing, and OTEL_EXPORTER_OTLP_ENDPOINT is not set' in done.stderr, done


@case
def headers_of_the_environment_are_for_its_own_url_and_never_shown():
    secret = "Bearer geheim-token"
    listed = "Authorization=Bearer%20geheim-token, X-Scope = tenant%201"
    with Scripted(lambda request: reply(403, request.headers.get("authorization", "none"))) as server:
        ledger, log = add(config_of(None), 1, OTEL_EXPORTER_OTLP_ENDPOINT=server.url, OTEL_EXPORTER_OTLP_HEADERS=listed)
        headers = server.requests[0].headers
        assert headers["authorization"] == secret and headers["x-scope"] == "tenant 1"
        assert ledger["dropped"][REJECTED] == 1 and "geheim" not in log and "returned 403: ****" in log, log
        add(config_of(None, headers={"x-scope": "ours"}), 1, OTEL_EXPORTER_OTLP_ENDPOINT=server.url, OTEL_EXPORTER_OTLP_HEADERS=listed)
        assert server.requests[-1].headers["x-scope"] == "ours"
        add(config_of(None), 1, OTEL_EXPORTER_OTLP_ENDPOINT=server.url, OTEL_EXPORTER_OTLP_HEADERS="a=1",
            OTEL_EXPORTER_OTLP_METRICS_HEADERS="b=2")
        assert "a" not in server.requests[-1].headers and server.requests[-1].headers["b"] == "2"
        add(config_of(server.url), 1, OTEL_EXPORTER_OTLP_HEADERS=listed)
        assert "authorization" not in server.requests[-1].headers


# ---- Responses ------------------------------------------------------------------------------------

def partial(encoding, rejected, text):
    if encoding == "json":
        return reply(200, json.dumps({"partialSuccess": {"rejectedDataPoints": str(rejected), "errorMessage": text}}),
                     Content_Type="application/json")
    body = otlp.message("ExportMetricsServiceResponse",
                        partial_success=otlp.message("ExportMetricsPartialSuccess", rejected_data_points=rejected, error_message=text))
    return reply(200, body.SerializeToString(), Content_Type="application/x-protobuf")


@case
def points_that_a_receiver_rejects_are_counted_and_not_sent_again():
    otlp.require()
    for encoding in ENCODINGS:
        with Scripted(lambda request: partial(encoding, 3, "too old")) as server:
            ledger, log = add(config_of(server.url, {"encoding": encoding}, linger="1s"), 10)
            assert ledger["delivered"] == 7 and ledger["dropped"][REJECTED] == 3 and len(server.requests) == 1, (encoding, ledger)
            assert f"3 rejected: POST {server.url}/: partial success: too old" in log, log
        with Scripted(lambda request: partial(encoding, 10 ** 15, "all")) as server:
            ledger, _ = add(config_of(server.url, {"encoding": encoding}, linger="1s"), 10)
            assert ledger["delivered"] == 0 and ledger["dropped"][REJECTED] == 10, ledger


@case
def a_receivers_warning_is_logged_once_and_everything_is_delivered():
    otlp.require()
    for encoding in ENCODINGS:
        with Scripted(lambda request: partial(encoding, 0, "use another endpoint")) as server:
            ledger, log = add(config_of(server.url, {"encoding": encoding}, batch=100), 1000)
            assert ledger["delivered"] == 1000 and len(server.requests) >= 10
            assert log.count("use another endpoint") == 1, log


@case
def fault_only_429_502_503_504_and_lost_connections_are_sent_again():
    otlp.require()
    for status in (429, 502, 503, 504, None):
        state = {"calls": 0}

        def respond(_):
            state["calls"] += 1
            return reply(200) if state["calls"] > 2 else reply(status, "later", Retry_After="0") if status else None

        with Scripted(respond) as server:
            ledger, log = add(config_of(server.url, linger="1s"), 100)
            assert ledger["delivered"] == 100 and len(server.requests) == 3, (status, ledger)
            assert len({request.body for request in server.requests}) == 1 and "back after" in log, log
    for status in (400, 401, 403, 404, 408, 500, 501, 505):
        with Scripted(lambda request: reply(status, otlp.message("Status", code=3, message="that is wrong").SerializeToString())) as server:
            ledger, log = add(config_of(server.url, linger="1s"), 100)
            assert ledger["dropped"][REJECTED] == 100 and len(server.requests) == 1, (status, ledger)
            assert f"returned {status}: that is wrong" in log, log


@case
def a_request_too_large_is_halved():
    with Scripted(lambda request: reply(200 if len(request.body) <= 2000 else 413)) as server:
        ledger, log = add(config_of(server.url, linger="1s"), 1000)
        assert ledger["delivered"] == 1000 and ledger["retries"] == 0 and without_waits(log) == "", (ledger, log)


@case
def responses_that_are_none_count_as_delivered():
    """The standard: a server that has taken everything may send nothing that can be understood."""
    for body in (b"", b"{}", b"null", b"\xff\xff\xff\xff", b"{\"partialSuccess\":5}", b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
                 b"\x0a\x02\x08", b"{" * 100, b"\x0b\x0b"):
        with Scripted(lambda request: reply(200, body)) as server:
            ledger, _ = add(config_of(server.url, linger="1s"), 10)
            assert ledger["delivered"] == 10, (body, ledger)


# ---- A server that dies ---------------------------------------------------------------------------

@case
def fault_a_server_that_is_killed_three_times_under_load_has_every_value(folder):
    """The standard has no ids: what a killed server stored without a response comes again."""
    otlp.require()
    count, batch = int(20_000 * FACTOR), 1000
    server = Killable(folder, "otlp.py", requests=3)
    config = config_of(f"http://127.0.0.1:{server.port}/v1/metrics", batch=batch, linger="10ms", queue="64MiB", spool=os.path.join(folder, "spool"))
    config["settings"]["shutdown_timeout"] = "240s"
    program = start(ADDER, "-n", count // 4, "-t", 4, "-f", -3, "-H", "push", WEIR_CONFIG=config)
    try:
        for requests in (3, 3, 0):
            server.await_end()
            server.start(requests)
        output, log = program.communicate(timeout=2400)
    finally:
        program.kill()
        server.kill()
    report = json.loads(output)
    assert_ledgers(report)
    ledger = report["handlers"]["push"]
    assert program.returncode == 0 and ledger["delivered"] == count and sum(ledger["dropped"]) == 0 and ledger["retries"] >= 3, (ledger, log)
    arrived = collections.Counter((metric.name, point.as_double) for _, metric, _, _, point in otlp.kept_points(server.lines()))
    assert set(arrived) == {(f"my_app.t{k}", float(value)) for k in range(4) for value in range(count // 4)}
    assert 3 <= arrived.total() - count <= 3 * batch, "only the requests without a response are repeated"


@case
def fault_totals_are_exact_although_the_server_is_killed_three_times(folder):
    otlp.require()
    each = int(5_000 * FACTOR)
    server = Killable(folder, "otlp.py", requests=1)
    config = config_of(f"http://127.0.0.1:{server.port}/v1/metrics", aggregate="20ms")
    config["metrics"] = {"my_app": {"t0": "counter", "t1": "counter", "t2": "histogram", "t3": "histogram"}}
    del config["handlers"]["push"]["overflow"]
    program = start_in_steps("-n", each, "-t", 4, "-i", each // 5, "-f", -1, "-H", "push", WEIR_CONFIG=config)
    try:
        for requests in (1, 1, 0):
            server.await_end()
            for _ in range(4):
                go_on(program)
            server.start(requests)
        output, log = program.communicate(timeout=2400)
    finally:
        program.kill()
        server.kill()
    report = json.loads(output)
    assert_ledgers(report)
    ledger = report["handlers"]["push"]
    assert program.returncode == 0 and ledger["delivered"] == 4 * each and sum(ledger["dropped"]) == 0 and ledger["retries"] >= 3, (ledger, log)
    totals = {}
    for _, metric, kind, data, point in otlp.kept_points(server.lines()):
        assert data.aggregation_temporality == 2
        total = (point.count, point.sum) if kind == "histogram" else (each, point.as_double)
        totals.setdefault(metric.name, []).append(total)
    assert all(values == sorted(values) for values in totals.values()), totals
    assert {name: values[-1] for name, values in totals.items()} == {f"my_app.t{k}": (each, each * (each - 1) // 2) for k in range(4)}


# ---- Configurations -------------------------------------------------------------------------------

@case
def wrong_configurations_are_refused_with_the_place_and_what_is_allowed():
    for options, env, expected in (
            ({"encoding": "grpc"}, {}, '"grpc" is not allowed; allowed: protobuf, json'),
            ({"temporality": "total"}, {}, '"total" is not allowed; allowed: cumulative, delta'),
            ({"histograms": "log"}, {}, '"log" is not allowed; allowed: explicit, exponential'),
            ({"histograms": "exponential"}, {}, '"histograms": "exponential" needs "temporality": "delta"'),
            ({"histograms": "exponential", "temporality": "delta", "max_buckets": 2}, {}, "handlers.push.format.max_buckets: 2 is"),
            ({"max_buckets": 2049}, {}, "allowed: 3..2048"),
            ({"service_name": ""}, {}, '"service_name" must not be empty'),
            ({"resource": {"": "x"}}, {}, '"resource" has an attribute without a name'),
            ({"resource": {"service.name": "x"}}, {}, 'only one of "service_name" and the attribute "service.name" of "resource" is allowed'),
            ({"resource": []}, {}, "handlers.push.format.resource"),
            ({"temporalty": "delta"}, {}, 'did you mean "temporality"'),
            ({}, {"OTEL_RESOURCE_ATTRIBUTES": "novalue"}, "OTEL_RESOURCE_ATTRIBUTES must be a list like key=value,key=value"),
            ({}, {"OTEL_RESOURCE_ATTRIBUTES": "a=%ff"}, "OTEL_RESOURCE_ATTRIBUTES must be a list"),
            ({}, {"OTEL_RESOURCE_ATTRIBUTES": "=a"}, "OTEL_RESOURCE_ATTRIBUTES must be a list")):
        done = run(WEIR, "check", WEIR_CONFIG=config_of("http://h/v1/metrics", options), **env)
        assert done.returncode == 1 and expected in done.stderr, (options, env, done)
    for env, expected in (
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "the value is not a URL: it has no scheme"),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc://h:4317"}, "is neither HTTP nor HTTPS"),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "novalue"},
             "OTEL_EXPORTER_OTLP_HEADERS must be a list like name=value,name=value"),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "a b=x"},
             'OTEL_EXPORTER_OTLP_HEADERS: "a b" is not a header name'),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "x=%0d%0a"},
             'OTEL_EXPORTER_OTLP_HEADERS: "x" has a control character in its value'),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a b=x"},
             'OTEL_EXPORTER_OTLP_METRICS_HEADERS: "a b" is not a header name')):
        done = run(WEIR, "check", WEIR_CONFIG=config_of(None), **env)
        assert done.returncode == 1 and expected in done.stderr, (env, done)


main()
