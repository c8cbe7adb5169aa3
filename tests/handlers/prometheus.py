"""The prometheus handler with a real Prometheus, promtool, Prometheus' own parser, and scrapers that misbehave."""

import json
import os
import re
import select
import socket
import subprocess
import urllib.error
import urllib.request

from harness import BUILD, SOURCE, WEIR, Skip, assert_ledgers, await_day, case, environment, free_port, lines_of, main, run, \
    skip_fork_under_sanitizers, wait_for
from peers import Nginx, Prometheus, prometheus_parsers

SCRAPED = os.path.join(BUILD, "tests", "support", "scraped")
OPENMETRICS = "application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
COUNT = 13004
UNSCRAPED = "weir_unscraped_processes"
NO_LEAKS = "verify_asan_link_order=0:detect_leaks=0"  # a server whose descriptors are the program's now is leaked


def config_of(listen="127.0.0.1:0", labels=None, **options):
    """An interval of a day ends by `flush` only."""
    await_day()
    handler = {"type": "prometheus", "listen": listen, "aggregate": "1d", "retry_min": "10ms", "retry_max": "50ms", **options}
    return {"settings": {"labels": labels or {}}, "handlers": {"scrape": handler}, "groups": {"*": "scrape"}}


class App:
    """The program `scraped`. With port 0 the log has the port."""

    def __init__(self, folder, config, *arguments, **more):
        self.log = os.path.join(folder, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([SCRAPED, *arguments], env=environment(WEIR_CONFIG=config, WEIR_LOG="info", **more), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout.readline() == "0\n", lines_of(self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        assert select.select([self.process.stdout], [], [], 240)[0], lines_of(self.log)
        return self.process.stdout.readline()

    def do(self, *words):
        result = self.send(*words)
        assert result == "0\n", (words, result, lines_of(self.log))

    def deliver(self):
        self.do("flush")
        ledger = self.ledger()
        assert ledger["delivered"] == ledger["offered"], ledger

    def ledger(self):
        report = json.loads(self.send("ledger"))
        assert_ledgers(report)
        assert report["handlers"]["scrape"]["faults"] == 0, report
        return report["handlers"]["scrape"]

    def url(self):
        found = []
        wait_for(lambda: found.extend(re.findall(r"listening on (http://\S+)", "\n".join(lines_of(self.log)))) or found, "the endpoint")
        return found[-1]

    def address(self):
        host, port = re.match(r"http://\[?([^]/]+)\]?:(\d+)/", self.url()).groups()
        return host, int(port)

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(240) == 0, lines_of(self.log)


def fetch(url, **headers):
    request = urllib.request.Request(url, headers={key.replace("_", "-"): value for key, value in headers.items()})
    with urllib.request.urlopen(request, timeout=240) as response:
        return response.read().decode(), response.headers


def samples_of(text):
    """{name with labels: value} of the text format."""
    return {key: float(value) for key, value in (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}


def await_sample(app, name):
    """Waits until the page has it, which may be later than the endpoint. Returns all samples."""
    found = {}

    def has_it():
        found.update(samples_of(fetch(app.url())[0]))
        return name in found
    wait_for(has_it, name)
    return found


def fill(app):
    app.do("count", COUNT)
    app.do("level", 5)
    for ms in (3, 60, 75, 5000):
        app.do("observe", ms)
    app.do("add", "my_app", "loss", 0.25)
    app.deliver()


# ---- What is scraped --------------------------------------------------------------------------------------------


@case
def counters_gauges_and_histograms_are_scraped_as_such(folder):
    with App(folder, config_of(labels={"host": 'a"b\\'})) as app:
        fill(app)
        text, headers = fetch(app.url())
        host = 'host="a\\"b\\\\"'
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", headers
        samples = samples_of(text)
        assert samples["my_app_requests_total{%s}" % host] == COUNT, text
        assert samples["my_app_open_connections{%s}" % host] == 5, text
        name = "my_app_handle_duration_seconds"
        buckets = [samples['%s_bucket{%s,le="%s"}' % (name, host, le)] for le in ("0.005", "0.075", "1.0", "+Inf")]
        assert buckets == [1, 3, 3, 4] and samples["%s_count{%s}" % (name, host)] == 4, text
        assert abs(samples["%s_sum{%s}" % (name, host)] - 5.138) < 1e-9, text
        assert samples["%s_max{%s}" % (name, host)] == 5 and samples["my_app_loss_last{%s}" % host] == 0.25, text
        for line in ("# TYPE my_app_requests_total counter", "# TYPE my_app_open_connections gauge", f"# TYPE {name} histogram",
                     "# TYPE my_app_loss_max gauge", f'# HELP {name} how long "it" takes\\\\'):
            assert line in text.splitlines(), (line, text)
        assert "_p50" not in text, text
        app.end()


@case
def percentiles_are_scraped_if_they_are_wanted(folder):
    with App(folder, config_of(percentiles=[50])) as app:
        fill(app)
        text = fetch(app.url())[0]
        samples = samples_of(text)
        assert samples["my_app_loss_p50"] == 0.25 and abs(samples["my_app_handle_duration_seconds_p50"] - 0.06) < 0.0006, text
        assert "# TYPE my_app_loss_p50 gauge" in text.splitlines(), text
        app.end()


@case
def a_counter_is_scraped_before_its_first_value(folder):
    """weir_start, the first interval: nothing is added, and nothing flushed."""
    with App(folder, config_of(aggregate="100ms")) as app:
        samples = await_sample(app, "my_app_requests_total")
        assert samples["my_app_requests_total"] == 0, samples
        assert samples["my_app_handle_duration_seconds_count"] == 0, samples
        app.do("count", COUNT)
        wait_for(lambda: samples_of(fetch(app.url())[0])["my_app_requests_total"] == COUNT, "the total")
        app.deliver()


@case
def promtool_finds_nothing_to_complain_about(folder):
    with App(folder, config_of()) as app:
        fill(app)
        try:
            done = subprocess.run(["promtool", "check", "metrics"], input=fetch(app.url())[0], capture_output=True, text=True, timeout=240)
        except FileNotFoundError:
            raise Skip("promtool is not installed (Debian: prometheus)") from None
        assert done.returncode == 0 and done.stdout + done.stderr == "", done


@case
def both_formats_are_parsed_alike_by_prometheus_parsers(folder):
    parse_text, parse_openmetrics = prometheus_parsers()
    with App(folder, config_of(labels={"host": 'a"b\\', "9.8": "é"}, percentiles=[50, 99])) as app:
        fill(app)
        text, _ = fetch(app.url())
        openmetrics, headers = fetch(app.url(), Accept=OPENMETRICS)
        assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"), headers
        assert openmetrics.endswith("\n# EOF\n") and "# UNIT my_app_handle_duration_seconds seconds\n" in openmetrics, openmetrics
        both = []
        for parse, page in ((parse_text, text), (parse_openmetrics, openmetrics)):
            families = list(parse(page))
            types = {family.name: family.type for family in families}
            assert types["my_app_requests"] == "counter" and types["my_app_handle_duration_seconds"] == "histogram", types
            samples = [sample for family in families for sample in family.samples if sample.name != UNSCRAPED]
            both.append(sorted((sample.name, sorted(sample.labels.items()), sample.value) for sample in samples))
            assert all(dict(labels)["host"] == 'a"b\\' and dict(labels)["_9_8"] == "é" for _, labels, _ in both[-1]), both[-1]
        assert both[0] == both[1] and len(both[0]) > 20, both


@case
def gzip_is_used_when_it_is_accepted(folder):
    with App(folder, config_of()) as app:
        fill(app)
        plain, headers = fetch(app.url())
        assert headers["Content-Encoding"] is None
        done = subprocess.run(["curl", "-s", "--compressed", "-w", "%{size_download}", app.url()], capture_output=True, text=True,
                              timeout=240)
        text, _, size = done.stdout.rpartition("\n")
        assert text + "\n" == plain and int(size) < len(plain) // 2, done


@case
def names_that_become_equal_are_kept_apart_and_logged_once(folder):
    with App(folder, config_of(aggregate="0s")) as app:
        for group, name, value in (("my_app", "db.calls", 1), ("my_app.db", "calls", 2), ("x", "a.b", 3), ("x", "a_b", 4),
                                   ("x", "n_total", 5)):
            app.do("add", group, name, value)
        app.deliver()
        for _ in range(2):
            samples = samples_of(fetch(app.url())[0])
        assert samples.pop(UNSCRAPED) == 0, samples
        assert samples == {'my_app_db_calls{group="my_app"}': 1, 'my_app_db_calls{group="my_app.db"}': 2, 'x_a_b{weir_name="a.b"}': 3,
                           'x_a_b{weir_name="a_b"}': 4, "x_n_total_value": 5}, samples
        assert sum("some names or labels are equal" in line for line in lines_of(app.log)) == 1, lines_of(app.log)


@case
def label_sets_that_become_equal_are_kept_apart_in_the_page_and_its_log(folder):
    with App(folder, config_of(aggregate="0s")) as app:
        for key, value in (("a.b", 1), ("a_b", 2), ("c", 3)):
            app.do("add", "x", "n", value, key)
        app.deliver()
        for _ in range(2):
            samples = samples_of(fetch(app.url())[0])
        assert samples.pop(UNSCRAPED) == 0, samples
        assert samples == {'x_n{a_b="v",weir_labels="a.b=v"}': 1, 'x_n{a_b="v",weir_labels="a_b=v"}': 2, 'x_n{c="v"}': 3}, samples
        assert sum("some names or labels are equal" in line for line in lines_of(app.log)) == 1, lines_of(app.log)


@case
def histograms_and_types_that_become_equal_are_kept_apart(folder):
    config = config_of()
    config["metrics"] = {"x": {"a.b": {"instrument": "histogram", "buckets": [1]}, "a_b": {"instrument": "histogram", "buckets": [1]},
                               "n": "counter", "n_total": "gauge", "y.n": "counter"}, "x.y": {"n": "gauge"}}
    with App(folder, config) as app:
        for group, name, value in (("x", "a.b", 1), ("x", "a_b", 2), ("x", "n", 3), ("x", "n_total", 4), ("x", "y.n", 5), ("x.y", "n", 6)):
            app.do("add", group, name, value)
        app.deliver()
        samples = samples_of(fetch(app.url())[0])
        found = {key: value for key, value in samples.items() if key.startswith("x_") and not re.search("_(min|max|p[0-9_]+)", key)}
        assert found == {'x_a_b_bucket{weir_name="a.b",le="1.0"}': 1, 'x_a_b_bucket{weir_name="a.b",le="+Inf"}': 1,
                         'x_a_b_sum{weir_name="a.b"}': 1, 'x_a_b_count{weir_name="a.b"}': 1,
                         'x_a_b_bucket{weir_name="a_b",le="1.0"}': 0, 'x_a_b_bucket{weir_name="a_b",le="+Inf"}': 1,
                         'x_a_b_sum{weir_name="a_b"}': 2, 'x_a_b_count{weir_name="a_b"}': 1,
                         "x_n_total": 3, "x_n_total_value": 4, "x_y_n_total": 5, "x_y_n_value": 6}, found


@case
def units_are_left_as_they_are_on_request(folder):
    with App(folder, config_of(units="as_is")) as app:
        fill(app)
        samples = samples_of(fetch(app.url())[0])
        assert samples['my_app_handle_duration_ms_bucket{le="75.0"}'] == 3, samples
        assert samples["my_app_handle_duration_ms_sum"] == 5138, samples


@case
def plain_values_expire_and_totals_stay(folder):
    with App(folder, config_of(expiry="1s")) as app:
        fill(app)
        wait_for(lambda: not any("loss" in key for key in samples_of(fetch(app.url())[0])), "the end of loss")
        assert samples_of(fetch(app.url())[0])["my_app_requests_total"] == COUNT

        def shows_another():
            app.do("add", "my_app", "loss", 0.5)
            app.deliver()
            return samples_of(fetch(app.url())[0]).get("my_app_loss_last") == 0.5
        wait_for(shows_another, "another value of loss")
        assert samples_of(fetch(app.url())[0])["my_app_requests_total"] == COUNT


@case
def a_series_that_is_removed_leaves_the_page_and_begins_anew(folder):
    metrics = {"my_app": {"peers": "counter", "depth": "gauge", "took": "histogram"}}
    with App(folder, {**config_of(), "metrics": metrics}) as app:
        for name in ("peers", "depth", "took", "peers"):
            app.do("add", "my_app", name, 2, "id")
            app.do("add", "my_app", name, 2)
        app.deliver()
        assert samples_of(fetch(app.url())[0])['my_app_peers_total{id="v"}'] == 4
        for name in ("peers", "depth", "took"):
            app.do("remove", "my_app", name, "id")
        app.deliver()
        samples = samples_of(fetch(app.url())[0])
        assert not [key for key in samples if 'id="v"' in key and not re.search("_(min|max|p[0-9]+)", key)], samples
        assert samples["my_app_peers_total"] == 4 and samples["my_app_depth"] == 2 and samples["my_app_took_count"] == 1, samples
        app.do("add", "my_app", "peers", 3, "id")
        app.deliver()
        samples = samples_of(fetch(app.url())[0])
        assert samples['my_app_peers_total{id="v"}'] == 3 and samples["my_app_peers_total"] == 4, samples
        app.end()


@case
def what_expires_leaves_the_page(folder):
    """An expiry of 1ns: whatever has no value in an interval expires when that ends."""
    metrics = {"my_app": {"peers": "counter", "depth": "gauge", "took": "histogram"}}
    with App(folder, {**config_of(), "settings": {"expiry": "1ns"}, "metrics": metrics}) as app:
        for name in ("peers", "depth", "took"):
            app.do("add", "my_app", name, 2, "id")
            app.do("add", "my_app", name, 2)
        app.deliver()
        samples = samples_of(fetch(app.url())[0])
        assert samples['my_app_peers_total{id="v"}'] == samples['my_app_depth{id="v"}'] == samples["my_app_depth"] == 2, samples
        app.deliver()
        app.deliver()
        samples = samples_of(fetch(app.url())[0])
        assert not [key for key in samples if 'id="v"' in key and not re.search("_(min|max|p[0-9]+)", key)], samples
        assert "my_app_depth" not in samples and samples["my_app_peers_total"] == 2 and samples["my_app_took_count"] == 1, samples
        app.do("add", "my_app", "peers", 3, "id")
        app.do("add", "my_app", "depth", 4)
        app.deliver()
        samples = samples_of(fetch(app.url())[0])
        assert samples['my_app_peers_total{id="v"}'] == 3 and samples["my_app_depth"] == 4, samples
        app.end()


@case
def openmetrics_says_since_when_totals_are_counted(folder):
    _, parse = prometheus_parsers()
    metrics = {"my_app": {"peers": "counter", "depth": "gauge", "took": "histogram"}}

    def created_of(app):
        text, _ = fetch(app.url(), Accept=OPENMETRICS)
        samples = [sample for family in parse(text) for sample in family.samples]
        return {(sample.name.removesuffix("_created"), sample.labels.get("id")): sample.value for sample in samples
                if sample.name.endswith("_created")}
    with App(folder, {**config_of(created=True), "metrics": metrics}) as app:
        for name in ("peers", "depth", "took", "alone"):
            app.do("add", "my_app", name, 2, "id")
        app.deliver()
        first = created_of(app)
        assert {("my_app_peers", "v"), ("my_app_took", "v"), ("my_app_requests", None)} <= set(first), first
        assert not [name for name, _ in first if name.startswith(("my_app_depth", "my_app_alone"))], first
        app.do("remove", "my_app", "peers", "id")
        app.deliver()
        assert ("my_app_peers", "v") not in created_of(app)
        for _ in range(2):
            app.do("add", "my_app", "peers", 3, "id")
            app.deliver()
            again = created_of(app)
            assert again.pop(("my_app_peers", "v")) > first[("my_app_peers", "v")], (first, again)
            assert again.items() <= first.items(), (first, again)
        assert "_created" not in fetch(app.url())[0]
        app.end()
    with App(folder, {**config_of(), "metrics": metrics}) as app:
        fill(app)
        assert "_created" not in fetch(app.url(), Accept=OPENMETRICS)[0]


# ---- Prometheus -------------------------------------------------------------------------------------------------


@case
def prometheus_sees_each_increment_of_four_threads(folder):
    with App(folder, config_of(aggregate="100ms")) as app:
        host, port = app.address()
        with Prometheus(folder, f"{host}:{port}") as server:
            wait_for(lambda: server.value("my_app_requests_total") == 0, "a scrape before the first request")
            app.do("count", COUNT)
            for ms in (3, 60, 75, 5000):
                app.do("observe", ms)
            wait_for(lambda: server.value("my_app_requests_total") == COUNT, "the total")
            wait_for(lambda: server.value("my_app_handle_duration_seconds_count") == 4, "the histogram")
            # Between two samples of the same values nothing is extrapolated away: only their difference from 0 counts.
            assert server.value("max_over_time(my_app_requests_total[1h]) - min_over_time(my_app_requests_total[1h])") == COUNT
            wait_for(lambda: (server.value("increase(my_app_requests_total[1h])") or 0) > 0, "an increase")
            assert server.value("resets(my_app_requests_total[1h])") == 0
            assert server.value('my_app_handle_duration_seconds_bucket{le=~"0.0750?"}') == 3
            assert server.value("histogram_quantile(0.5, my_app_handle_duration_seconds_bucket)") <= 0.075
            types = json.loads(server.get("/api/v1/metadata"))["data"]
            assert types["my_app_requests_total" if "my_app_requests_total" in types else "my_app_requests"][0]["type"] == "counter", types
            assert types["my_app_handle_duration_seconds"][0]["type"] == "histogram", types
        app.deliver()
        app.end()


def query_for(question):
    """The query of the table in doc/metrics.md that answers a question."""
    with open(os.path.join(SOURCE, "doc", "metrics.md"), encoding="utf-8") as file:
        return re.search(r"^\| " + question + r" \| `([^`]+)` \|$", file.read(), re.M).group(1)


def quantile(samples, name, q):
    """As histogram_quantile does: linear within a bucket. The last bound is not reached: its bucket is open."""
    buckets = sorted((float(le), samples[f'{name}_bucket{{le="{le}"}}']) for le in ("0.005", "0.075", "1.0", "+Inf"))
    rank, below, lower = q * buckets[-1][1], 0, 0
    for bound, count in buckets[:-1]:
        if count >= rank:
            return lower + (bound - lower) * (rank - below) / (count - below)
        below, lower = count, bound
    return lower


@case
def the_documented_queries_show_rate_share_of_failures_and_p99_of_what_was_timed(folder):
    """At the time of the last sample there is nothing to extrapolate, since the first one is 0."""
    count, failures, name = 500, 20, "my_app_handle_duration_seconds"
    with App(folder, config_of(aggregate="100ms")) as app:
        host, port = app.address()
        with Prometheus(folder, f"{host}:{port}") as server:
            wait_for(lambda: server.value(f"{name}_count") == 0 == server.value("my_app_handle_failure_total"), "the first scrape")
            app.do("handle", count, failures)
            wait_for(lambda: server.value(f"{name}_count") == count, "the histogram")
            time = f'{server.value(f"timestamp({name}_count)"):.3f}'
            rate = server.value(query_for("how many a second"), time=time)
            share = server.value(query_for("which share of them failed"), time=time)
            p99 = server.value(query_for("how long 99 % of them take at most"), time=time)
            expected = quantile(samples_of(fetch(app.url())[0]), name, 0.99)
            assert abs(rate - count / 300) < 1e-9 and abs(share - failures / count) < 1e-9, (rate, share)
            assert abs(p99 - expected) < 1e-9, (p99, expected)
        app.deliver()
        app.end()


# ---- Scrapers that misbehave ------------------------------------------------------------------------------------


def connect(app):
    return socket.create_connection(app.address(), timeout=240)


def read_all(connection):
    data = b""
    while more := connection.recv(1 << 16):
        data += more
    return data


def is_gone(connection):
    """Whether the server has ended the connection."""
    try:
        read_all(connection)
    except ConnectionError:
        pass
    connection.close()
    return True


@case
def scrapers_that_do_not_read_keep_no_one_out_for_long(folder):
    with App(folder, config_of(connection_limit=4, timeout="1s")) as app:
        fill(app)
        slow = [connect(app) for _ in range(8)]
        for connection in slow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")  # the request does not end
        app.do("count", 1)
        app.deliver()  # a value waits for no scraper
        assert samples_of(fetch(app.url())[0])["my_app_requests_total"] == COUNT + 1
        assert all(is_gone(connection) for connection in slow)


@case
def a_scraper_that_never_reads_delays_no_value(folder):
    with App(folder, config_of(connection_limit=2, timeout="5s")) as app:
        for number in range(2000):
            app.do("add", "my_app", f"value_{number:04}", number)
        app.deliver()
        assert len(fetch(app.url())[0]) > 1 << 20  # more than the buffers of a connection
        lazy = []
        for _ in range(4):
            connection = socket.socket()
            connection.settimeout(240)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.connect(app.address())
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            lazy.append(connection)
        app.do("count", COUNT)
        app.deliver()
        assert samples_of(fetch(app.url())[0])["my_app_requests_total"] == COUNT
        for connection in lazy:
            connection.close()


@case
def the_header_accept_decides_the_format(folder):
    openmetrics = "application/openmetrics-text"
    with App(folder, config_of()) as app:
        app.deliver()
        for accept, expected in ((OPENMETRICS, True), (openmetrics, True), ("*/*", False), ("", False), ("text/plain", False),
                                 (openmetrics + ";version=0.0.1", False), (openmetrics + ";q=0", False),
                                 (openmetrics + ";q=0.5, text/plain;q=0.6", False), (openmetrics + "; version=\"1.0.0\" ; q=0.9,*/*", True),
                                 (";q=,,;;" + "a," * 1000, False), ("text/plain;q=0.5 , " + openmetrics.upper() + ";q=0.5", True)):
            text, headers = fetch(app.url(), Accept=accept)
            assert text.endswith("# EOF\n") == expected == headers["Content-Type"].startswith(openmetrics), (accept, headers)


@case
def a_trickle_of_bytes_does_not_keep_a_connection_alive(folder):
    with App(folder, config_of(timeout="1s")) as app:
        app.deliver()
        connection = connect(app)
        ended = []

        def trickle():
            try:
                connection.send(b"G", socket.MSG_NOSIGNAL)
            except OSError:
                ended.append(True)
            return bool(ended)

        wait_for(trickle, "the end of the connection")
        connection.close()


@case
def two_hundred_scrapers_at_once_are_all_served(folder):
    with App(folder, config_of(connection_limit=16)) as app:
        fill(app)
        connections = [connect(app) for _ in range(200)]
        for connection in connections:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        for connection in connections:
            data = read_all(connection)
            assert data.startswith(b"HTTP/1.1 200") and b"my_app_requests_total 13004" in data, data
            connection.close()
        app.deliver()


@case
def requests_that_make_no_sense_are_refused(folder):
    with App(folder, config_of()) as app:
        app.deliver()
        for request, statuses in ((b"\x00\xff\x16\x03\x01garbage\r\n\r\n", (b"400", b"")),
                                  (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", (b"404",)),
                                  (b"GET /metrics%00x HTTP/1.1\r\nHost: x\r\n\r\n", (b"404",)),
                                  (b"GET /metrics HTTP/1.1\r\n\r\n", (b"200",)),
                                  (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", (b"405",)),
                                  (b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 1000000 + b"\r\n\r\n", (b"431", b"413", b"")),
                                  (b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 20000 + b"\r\n", (b"431", b"413", b""))):
            connection = connect(app)
            try:
                connection.sendall(request, socket.MSG_NOSIGNAL)
                data = read_all(connection)
            except ConnectionError:
                data = b""  # refused before all of it was read
            connection.close()
            assert data[9:12] in statuses, (request[:40], data[:200])
        status = fetch(app.url())[1]
        assert status["Content-Type"].startswith("text/plain"), status


# ---- Listening --------------------------------------------------------------------------------------------------


def check(config):
    return run(WEIR, "emit", "-g", "a", "b=1", WEIR_CONFIG=config)


@case
def other_machines_may_connect_only_if_that_is_said(folder):
    del folder
    for listen in ("0.0.0.0:0", "[::]:0", "10.1.2.3:9464"):
        done = check(config_of(listen))
        assert done.returncode != 0 and "put a proxy in front" in done.stderr, done
    done = check(config_of("0.0.0.0:0", insecure=True))
    assert done.returncode == 0 and done.stderr == "", done
    for listen in ("9464", ":9464", "example.org:9464", "127.0.0.1:70000", "[::1:9464", "127.0.0.1:"):
        done = check(config_of(listen))
        assert done.returncode != 0 and "is not an address and a port" in done.stderr, done
    done = check(config_of(path="metrics"))
    assert done.returncode != 0 and "is not a path" in done.stderr, done


@case
def ipv6_and_another_path_are_served(folder):
    if not os.path.exists("/proc/net/if_inet6") or not open("/proc/net/if_inet6", encoding="ascii").read():
        raise Skip("this machine has no IPv6")
    with App(folder, config_of("[::1]:0", path="/a/b")) as app:
        app.deliver()
        assert app.url().startswith("http://[::1]:") and app.url().endswith("/a/b"), app.url()
        assert samples_of(fetch(app.url())[0])["my_app_requests_total"] == 0


@case
def an_address_in_use_is_tried_again(folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with App(folder, config_of(f"127.0.0.1:{other.getsockname()[1]}", aggregate="100ms")) as app:
            app.do("count", 3)
            wait_for(lambda: any("Address already in use" in line for line in lines_of(app.log)), "the message")
            other.close()
            assert UNSCRAPED in samples_of(fetch(app.url())[0])
            await_sample(app, "my_app_requests_total")
            app.deliver()
            assert samples_of(fetch(app.url())[0])["my_app_requests_total"] == 3


@case
def a_proxy_may_stand_in_front(folder):
    with App(folder, config_of()) as app:
        app.deliver()
        with Nginx(folder, app.url().removesuffix("/metrics")) as front:
            assert samples_of(fetch(front.url + "/metrics")[0])["my_app_requests_total"] == 0


@case
def the_example_listens_where_it_is_told(folder):
    port, example = free_port(), os.path.join(SOURCE, "examples", "config", "prometheus.json")
    with App(folder, example, WEIR_LISTEN=f"127.0.0.1:{port}") as app:
        app.do("count", 5)
        app.deliver()
        assert app.url() == f"http://127.0.0.1:{port}/metrics"
        assert samples_of(fetch(app.url())[0])["my_app_requests_total"] == 5
        app.end()


@case
def the_endpoint_opens_before_the_first_value_though_nothing_is_declared(folder):
    with App(folder, config_of(), "bare") as app:
        text, _ = fetch(app.url())
        assert samples_of(text) == {UNSCRAPED: 0}, text
        assert fetch(app.url(), Accept=OPENMETRICS)[0].endswith(" 0\n# EOF\n")
        app.do("add", "my_app", "loss", 0.5)
        app.deliver()
        assert samples_of(fetch(app.url())[0])["my_app_loss_last"] == 0.5
        app.end()


@case
def the_endpoint_opens_with_the_first_value_whatever_the_interval(folder):
    with App(folder, config_of(), "lazy") as app:
        app.do("add", "my_app", "loss", 0.5)
        assert samples_of(fetch(app.url())[0]) == {UNSCRAPED: 0}
        app.deliver()
        assert samples_of(fetch(app.url())[0])["my_app_loss_last"] == 0.5
        app.end()


# ---- Descriptors ------------------------------------------------------------------------------------------------


def descriptors_of(app):
    """{number: where it leads}"""
    folder, found = f"/proc/{app.process.pid}/fd", {}
    for number in os.listdir(folder):
        try:
            found[int(number)] = os.readlink(os.path.join(folder, number))
        except FileNotFoundError:
            continue  # closed in the meantime
    return found


def connect_idle(app):
    """Returns a connection that the server has accepted, whose request does not end. On a busy machine the server may close some before they
    are seen."""
    while True:
        scraper = connect(app)
        scraper.sendall(b"GET /metrics HTTP/1.1\r\n")
        scraper.setblocking(False)

        def is_closed():
            try:
                return scraper.recv(1 << 16) == b""
            except BlockingIOError:
                return False
            except ConnectionError:
                return True

        def is_open():
            return sum(place.startswith("socket:") for place in descriptors_of(app).values()) == 2
        wait_for(lambda: is_open() or is_closed(), "the connection")
        scraper.settimeout(240)
        if is_open():
            return scraper
        scraper.close()


def check_replaced(folder, number):
    if "thread" in os.environ.get("WEIR_TEST_SANITIZED", ""):
        raise Skip("to close a descriptor that another thread uses is a data race, which the sanitizer ends the program for")
    strangers = os.path.join(folder, f"strangers-{number}")
    with App(folder, config_of(f"127.0.0.1:{free_port()}", timeout="1s"), ASAN_OPTIONS=NO_LEAKS) as app:
        app.do("count", 3)
        app.deliver()
        scraper = connect_idle(app)
        for turn in range(2):
            app.do("replace", strangers, number)
            opened = sum(place == strangers for place in descriptors_of(app).values())
            app.do("count", 4)
            app.deliver()
            assert samples_of(fetch(app.url())[0])["my_app_requests_total"] == 7 + 4 * turn
            assert sum(place == strangers for place in descriptors_of(app).values()) == opened >= 20, descriptors_of(app)
        assert is_gone(scraper) and os.path.getsize(strangers) == 0
        app.end()


@case
def a_program_that_closes_all_descriptors_continues_with_new_ones_and_other_files_are_untouched(folder):
    check_replaced(folder, 253)


@case
def a_program_that_closes_some_descriptors_continues_with_new_ones_and_other_files_are_untouched(folder):
    for number in (1, 2, 3, 4, 5):
        check_replaced(folder, number)


@case
def a_program_without_standard_error_prints_nothing_to_scrapers(folder):
    with App(folder, config_of()) as app:
        app.deliver()
        scraper = connect(app)
        app.do("mute")
        with connect(app) as other:
            other.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
            wait_for(lambda: sum(place.startswith("socket:") for place in descriptors_of(app).values()) == 3, "the connection")
            assert app.send("complain") == "-1\n" and 2 not in descriptors_of(app), descriptors_of(app)
            other.sendall(b"\r\n")
            data = read_all(other)
        assert data.startswith(b"HTTP/1.1 200") and b"not for scrapers" not in data, data
        scraper.close()


# ---- Forks ------------------------------------------------------------------------------------------------------


@case
def a_forked_child_does_not_listen_and_ends_without_waiting_for_the_address(folder):
    """Its flush and its shutdown have no time limit."""
    skip_fork_under_sanitizers()
    with App(folder, config_of(f"127.0.0.1:{free_port()}")) as app:
        fill(app)
        assert app.send("fork") == "1\n"  # its value was dropped
        warnings = [line for line in lines_of(app.log) if "warning: " in line and "a forked child is not scraped" in line]
        assert len(warnings) == 1 and "rejected" in warnings[0] and "push with http" in warnings[0], lines_of(app.log)
        assert "hand over to `weir relay` with forward" in warnings[0], warnings
        app.do("count", 1)
        app.deliver()
        samples = samples_of(fetch(app.url())[0])
        assert samples["my_app_requests_total"] == COUNT + 1 and samples[UNSCRAPED] == 0, samples


@case
def processes_that_are_not_scraped_are_counted_while_they_live(folder):
    skip_fork_under_sanitizers()
    with App(folder, config_of()) as app:
        url, children = app.url(), []
        try:
            for number in range(3):
                children.append(int(app.send("spawn")))
                assert samples_of(fetch(url)[0])[UNSCRAPED] == number + 1
            os.kill(children.pop(), 9)  # it stays a zombie
            wait_for(lambda: samples_of(fetch(url)[0])[UNSCRAPED] == 2, "the end of a process")
            assert "# TYPE weir_unscraped_processes gauge" in fetch(url)[0]
            children.append(int(app.send("spawn")))  # in the place of the one that was killed
            assert samples_of(fetch(url)[0])[UNSCRAPED] == 3
        finally:
            for child in children:
                os.kill(child, 9)
        wait_for(lambda: samples_of(fetch(url)[0])[UNSCRAPED] == 0, "the end of all")
        app.do("count", 1)
        app.deliver()


def start_sibling(folder, name, listen):
    """A process that was started by itself, with the same address as others. No log of another has the same folder."""
    own = os.path.join(folder, name)
    os.mkdir(own)
    return App(own, config_of(listen))


def unscraped_by(app):
    return samples_of(fetch(app.url())[0])[UNSCRAPED]


@case
def processes_started_with_one_address_are_counted_and_the_next_one_that_listens_says_so(folder):
    listen = f"127.0.0.1:{free_port()}"
    with start_sibling(folder, "first", listen) as first:
        first.do("count", 3)
        first.deliver()
        assert unscraped_by(first) == 0
        with start_sibling(folder, "second", listen) as second, start_sibling(folder, "third", listen) as third:
            wait_for(lambda: unscraped_by(first) == 2, "two places")
            warnings = [line for line in lines_of(second.log) if "warning: " in line]
            assert len(warnings) == 1 and "another process, or another handler, has it and is scraped instead" in warnings[0], warnings
            assert "hand over to `weir relay` with forward" in warnings[0], warnings
            third.process.kill()
            third.process.wait()
            wait_for(lambda: unscraped_by(first) == 1, "one place")
            second.do("count", 5)
            first.end()
            second.deliver()
            samples = samples_of(fetch(second.url())[0])
            assert samples["my_app_requests_total"] == 5 and samples[UNSCRAPED] == 0, samples
            assert any("warning: " in line and f"listened on {listen} until now" in line for line in lines_of(second.log)), lines_of(second.log)
            second.end()


@case
def those_forked_from_a_process_that_does_not_listen_are_counted_too(folder):
    skip_fork_under_sanitizers()
    listen = f"127.0.0.1:{free_port()}"
    with start_sibling(folder, "first", listen) as first, start_sibling(folder, "second", listen) as second:
        wait_for(lambda: unscraped_by(first) == 1, "a place")
        child = int(second.send("spawn"))
        try:
            assert unscraped_by(first) == 2
        finally:
            os.kill(child, 9)
        wait_for(lambda: unscraped_by(first) == 1, "the end of a process")


@case
def processes_that_listen_on_any_port_do_not_count_each_other(folder):
    with start_sibling(folder, "first", "127.0.0.1:0") as first, start_sibling(folder, "second", "127.0.0.1:0") as second:
        assert unscraped_by(first) == unscraped_by(second) == 0


@case
def a_daemon_whose_parent_has_ended_listens(folder):
    skip_fork_under_sanitizers()
    with App(folder, config_of(f"127.0.0.1:{free_port()}", aggregate="100ms"), "daemon") as app:
        assert app.process.wait(240) == 0, lines_of(app.log)
        app.do("count", COUNT)

        def total():
            try:
                return samples_of(fetch(app.url())[0]).get("my_app_requests_total")
            except urllib.error.URLError:
                return None  # the first process' endpoint

        wait_for(lambda: total() == COUNT, "the total")
        report = json.loads(app.send("ledger"))
        assert_ledgers(report)


@case
def the_endpoint_ends_with_the_program_and_opens_again(folder):
    port = free_port()
    for _ in range(2):
        with App(folder, config_of(f"127.0.0.1:{port}")) as app:
            app.deliver()
            url = app.url()
            assert samples_of(fetch(url)[0])["my_app_requests_total"] == 0
            app.end()
        try:
            fetch(url)
            raise AssertionError("it still listens")
        except urllib.error.URLError:
            pass


main()
