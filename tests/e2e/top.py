"""`weir top` shows what moves between two pages in Prometheus' format. The time between the pages is not fixed: rates are compared with it."""

import fcntl
import http.server
import json
import math
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading

from harness import BUILD, WEIR, Skip, await_day, case, environment, free_port, lines_of, main, run, wait_for

SCRAPED = os.path.join(BUILD, "tests", "support", "scraped")
TEXT, OPENMETRICS = "text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Pages:
    """A server of one page after the other; the last one again and again. A page is a text, or (status, type, text)."""

    def __init__(self, *pages):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                page = pages[min(len(outer.requests), len(pages) - 1)]
                outer.requests.append((self.path, self.headers["Accept"]))
                status, kind, text = page if isinstance(page, tuple) else (200, TEXT, page)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.requests = []
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/metrics"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def top(url, *arguments, **env):
    return run(WEIR, "top", url, "--every", "100ms", *arguments, **env)


def tables_of(*pages, arguments=()):
    """The objects that are printed for these pages."""
    with Pages(*pages) as server:
        done = top(server.url, "--json", "--count", len(pages) - 1, *arguments)
        assert done.returncode == 0 and done.stderr == "", done
        assert len(server.requests) == len(pages), server.requests
        tables = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(tables) == len(pages) - 1 and all(table["url"] == server.url for table in tables), tables
    for table in tables:
        assert list(table) == ["time", "url", "seconds", "series", "moved", "per_second", "bad_lines", "metrics"], table
        assert table["seconds"] > 0 and table["moved"] == len(table["metrics"]), table
        rates = [row for row in table["metrics"] if row["type"] != "gauge"]
        for row in table["metrics"]:
            assert list(row) == ["name", "labels", "type", "per_second", "increase", "change", "mean", "p99", "value"], row
        for row in rates:
            assert math.isclose(row["per_second"] * table["seconds"], row["increase"], rel_tol=1e-9), (row, table)
            assert row["increase"] > 0 and row["change"] is None, row
        assert math.isclose(table["per_second"], sum(row["per_second"] for row in rates), rel_tol=1e-9), table
        assert table["metrics"][:len(rates)] == rates, "gauges are the last ones"
    return tables


def figures_of(table, *fields):
    return [tuple(row[field] for field in fields) for row in table["metrics"]]


# ---- What moves ---------------------------------------------------------------------------------------


@case
def counters_are_sorted_by_their_rate():
    page = "# TYPE a counter\na_total {}\n# TYPE b counter\nb{{x=\"1\",y=\"é\"}} {}\nb{{x=\"2\"}} {}\n# TYPE still counter\nstill 7\n"
    first, second = tables_of(page.format(1, 10, 100), page.format(4, 20, 101), page.format(4, 20, 103.5))
    assert first["series"] == second["series"] == 4 and first["bad_lines"] == 0, first
    assert figures_of(first, "name", "labels", "type", "increase", "value") == [
        ("b", {"x": "1", "y": "é"}, "counter", 10, 20), ("a_total", {}, "counter", 3, 4), ("b", {"x": "2"}, "counter", 1, 101)], first
    assert figures_of(second, "name", "labels", "increase", "value") == [("b", {"x": "2"}, 2.5, 103.5)], second
    assert all(row[:2] == (None, None) for row in figures_of(first, "mean", "p99")), first


@case
def equal_rates_are_sorted_by_name():
    page = "# TYPE c counter\n" + "".join(f'c{{{{i="{i}"}}}} {{0}}\n' for i in (3, 1, 2)) + "# TYPE a counter\na {0}\n"
    table, = tables_of(page.format(1), page.format(2))
    assert figures_of(table, "name", "labels") == [("a", {}), ("c", {"i": "1"}), ("c", {"i": "2"}), ("c", {"i": "3"})], table


@case
def a_counter_that_went_down_counts_from_0():
    page = "# TYPE c counter\nc {}\n# TYPE h histogram\nh_bucket{{le=\"1\"}} {}\nh_bucket{{le=\"2\"}} {}\nh_bucket{{le=\"+Inf\"}} {}\nh_sum {}\nh_count {}\n"
    table, = tables_of(page.format(1000, 500, 600, 700, 800, 700), page.format(3, 0, 10, 10, 15, 10))
    assert figures_of(table, "name", "increase", "value", "mean", "p99") == [("h", 10, 10, 1.5, 1.99), ("c", 3, 3, None, None)], table


@case
def a_series_is_shown_from_its_second_page_on():
    both, one = "# TYPE c counter\nc{{x=\"1\"}} {}\nc{{x=\"2\"}} {}\n", "# TYPE c counter\nc{{x=\"1\"}} {}\n"
    tables = tables_of(one.format(1), both.format(2, 50), both.format(3, 60), one.format(4), both.format(5, 80), both.format(6, 90))
    assert [[(row["labels"]["x"], row["increase"]) for row in table["metrics"]] for table in tables] == [
        [("1", 1)], [("2", 10), ("1", 1)], [("1", 1)], [("1", 1)], [("2", 10), ("1", 1)]], tables
    assert [table["series"] for table in tables] == [2, 2, 1, 2, 2], tables


@case
def gauges_are_sorted_by_their_relative_change():
    page = "# TYPE g gauge\n" + "".join(f'g{{{{i="{i}"}}}} {{}}\n' for i in range(7)) + "untyped {}\n# TYPE c counter\nc {}\n"
    table, = tables_of(page.format(1000, 10, -1, 5, "NaN", 0, "+Inf", 3, 1), page.format(1010, 5, 1, 5, 1, 2, 7, 2.25, 2))
    assert table["series"] == 9
    assert figures_of(table, "name", "labels", "type", "per_second", "change", "value")[1:] == [
        ("g", {"i": "2"}, "gauge", None, 2, 1), ("g", {"i": "5"}, "gauge", None, 2, 2), ("g", {"i": "1"}, "gauge", None, -5, 5),
        ("untyped", {}, "gauge", None, -0.75, 2.25), ("g", {"i": "0"}, "gauge", None, 10, 1010)], table


# ---- Histograms and summaries -------------------------------------------------------------------------


def histogram_of(counts, total, name="h", bounds=(0.1, 0.5, 1, "+Inf"), labels=""):
    lines = [f'{name}_bucket{{{labels}le="{bound}"}} {count}' for bound, count in zip(bounds, counts)]
    rest = f"{{{labels.rstrip(',')}}}"
    return "\n".join([f"# TYPE {name} histogram", *lines, f"{name}_sum{rest} {total}", f"{name}_count{rest} {counts[-1]}", ""])


def p99_of(before, now, **more):
    table, = tables_of(histogram_of(before, 10, **more), histogram_of(now, 75, **more))
    row, = table["metrics"]
    assert (row["type"], row["increase"], row["value"]) == ("histogram", now[-1] - before[-1], now[-1]), row
    assert math.isclose(row["mean"], 65 / (now[-1] - before[-1])), row
    return row["p99"]


@case
def mean_and_p99_are_of_what_was_observed_between_the_pages():
    assert math.isclose(p99_of((7, 8, 9, 10), (57, 98, 109, 110)), 0.5 + 0.5 * (99 - 90) / 10)
    assert math.isclose(p99_of((0, 0, 0, 0), (100, 100, 100, 100)), 0.099)
    assert p99_of((1, 2, 3, 4), (1, 2, 3, 104)) == 1, "above the last bound"
    assert math.isclose(p99_of((0, 0, 0, 5), (50, 50, 100, 105), labels='a="x",'), 0.5 + 0.5 * (99 - 50) / 50)
    assert p99_of((0, 0), (100, 100), bounds=(-2, "+Inf")) == -2, "the first bucket has no lower bound"
    assert p99_of((0,), (10,), bounds=("+Inf",)) is None


@case
def without_the_same_buckets_on_both_pages_there_is_no_p99():
    first = histogram_of((1, 2, 3, 4), 1)
    other = histogram_of((11, 22, 33, 34), 2, bounds=(0.1, 0.4, 1, "+Inf"))
    fewer = histogram_of((12, 34, 35), 3, bounds=(0.1, 0.4, "+Inf"))
    tables = tables_of(first, other, histogram_of((12, 22, 33, 35), 3, bounds=(0.1, 0.4, 1, "+Inf")), fewer.replace("35", "36"),
                       fewer.replace("34", "44").replace("35", "46"), first.replace("4", "47"))
    assert [table["metrics"][0]["p99"] is None for table in tables] == [True, False, True, False, True], tables
    assert [table["metrics"][0]["increase"] for table in tables] == [30, 1, 1, 10, 1], tables


@case
def a_histogram_with_its_buckets_is_one_series():
    page = histogram_of((0, 0, 0, 1), 1, labels='a="1",') + histogram_of((0, 0, 0, 1), 1, labels='a="2",').split("\n", 1)[1]
    table, = tables_of(page, page.replace(" 1\n", " 2\n"))
    assert table["series"] == 2 and figures_of(table, "name", "labels") == [("h", {"a": "1"}), ("h", {"a": "2"})], table


@case
def a_summary_has_a_mean_and_counters_named_like_its_parts_have_none():
    page = '# TYPE s summary\ns{{quantile="0.5"}} {0}\ns_sum {1}\ns_count {2}\n# TYPE x_sum counter\nx_sum {1}\n# TYPE s_other_count counter\ns_other_count {2}\n'
    table, = tables_of(page.format(1, 10, 20), page.format(2, 30, 24))
    assert table["series"] == 3, table
    assert figures_of(table, "name", "type", "increase", "mean") == [
        ("x_sum", "counter", 20, None), ("s", "summary", 4, 5), ("s_other_count", "counter", 4, None)], table


# ---- Pages --------------------------------------------------------------------------------------------


@case
def openmetrics_is_read():
    page = '# TYPE c counter\n# HELP c what\nc_total{{a="1"}} {0} 1.5 # {{trace="x"}} 0.5\nc_created{{a="1"}} {0}\n' \
        '# TYPE h histogram\nh_bucket{{le="1.0"}} {0} # {{trace="x"}} 0.5\nh_bucket{{le="+Inf"}} {0}\nh_count {0}\nh_sum {0}\nh_created {0}\n# EOF\n'
    table, = tables_of((200, OPENMETRICS, page.format(1)), (200, OPENMETRICS, page.format(3)))
    assert table["bad_lines"] == 0 and table["series"] == 2, table
    assert figures_of(table, "name", "labels", "increase", "mean", "p99") == [("c_total", {"a": "1"}, 2, None, None), ("h", {}, 2, 1, 0.99)], table


@case
def undeclared_totals_are_counters_and_undeclared_buckets_are_left_out():
    page = 'x_total {0}\ny {0}\nz_bucket{{le="1"}} {0}\nz{{quantile="0.9"}} {0}\n'
    table, = tables_of(page.format(1), page.format(2))
    assert figures_of(table, "name", "type") == [("x_total", "counter"), ("y", "gauge")] and table["series"] == 2, table


@case
def lines_that_are_not_understood_are_counted():
    page = "# TYPE c counter\nc {}\nwhat is this\nc one\n"
    table, = tables_of(page.format(1), page.format(2))
    assert table["bad_lines"] == 2 and table["moved"] == 1, table


@case
def names_can_be_selected():
    def page(n):
        return f"# TYPE http_a counter\nhttp_a {n}\n# TYPE other counter\nother {n}\n" + histogram_of((n, n, n, n), n, name="http_h") + \
            histogram_of((n, n, n, n), n)
    table, = tables_of(page(1), page(2), arguments=("--name", "http_[ah]*"))
    assert table["series"] == 2 and figures_of(table, "name") == [("http_a",), ("http_h",)], table


@case
def a_page_may_be_empty_or_lose_its_last_series():
    tables = tables_of("", "# TYPE c counter\nc 1\n", "", "# TYPE c counter\nc 3\n", "# TYPE c counter\nc 4\n")
    assert [(table["series"], table["moved"]) for table in tables] == [(1, 0), (0, 0), (1, 0), (1, 1)], tables


@case
def the_path_is_metrics_unless_there_is_one():
    with Pages("c 1\n") as server:
        for url, path in ((server.url[:-len("/metrics")], "/metrics"), (server.url[:-len("metrics")], "/"), (server.url + "?a=b", "/metrics?a=b")):
            done = top(url, "--json", "--count", 1)
            assert done.returncode == 0 and server.requests[-1][0] == path, (done, server.requests)
            assert json.loads(done.stdout)["url"].endswith(path), done
        assert server.requests[0][1].startswith("text/plain;version=0.0.4,"), server.requests


@case
def a_page_of_100_000_series_is_read():
    lines = [f'c{{host="node-{i % 100}",path="/items/{i}"}} ' for i in range(100000)]
    pages = ["# TYPE c counter\n" + "".join(f"{line}{n * i}\n" for i, line in enumerate(lines)) for n in (1, 2, 4)]
    first, second = tables_of(*pages)
    for table, factor in ((first, 1), (second, 2)):
        assert (table["series"], table["moved"]) == (100000, 99999), table["moved"]
        assert [row["increase"] for row in table["metrics"]] == [factor * i for i in range(99999, 0, -1)]


# ---- The table ----------------------------------------------------------------------------------------


BEFORE = "# TYPE c counter\nc{a=\"\\\"q\\\"\\\\n\x1b\"} 1\n# TYPE still counter\nstill 1\n# TYPE g gauge\ng 1500\n" + histogram_of((7, 8, 9, 10), 10)
AFTER = "# TYPE c counter\nc{a=\"\\\"q\\\"\\\\n\x1b\"} 1.5\n# TYPE still counter\nstill 1\n# TYPE g gauge\ng 1250\n" + histogram_of((57, 98, 109, 110), 75)


@case
def the_table_is_repeated_below_an_empty_line():
    with Pages(BEFORE, AFTER) as server:
        done = top(server.url, "--count", 2)
    first, second = done.stdout.split("\n\n")
    lines = first.split("\n")
    assert done.returncode == 0 and "\033" not in done.stdout, done
    assert re.fullmatch(rf"\d\d:\d\d:\d\d  4 series, 3 move, [\d.]+k? per s  {server.url}", lines[0]), lines
    assert lines[1] == "    per s     mean      p99    total  counter or histogram", lines
    assert re.fullmatch(r" *[\d.]+k?     0.65     0.95      110  h", lines[2]), lines
    assert re.fullmatch(r' *[\d.]+                        1.5  c\{a=".*q.*"\}', lines[3]) and "\x1b" not in first, lines
    assert lines[4:] == ["   change                      level  gauge", "     -250                       1.2k  g"], lines
    assert re.fullmatch(rf"\d\d:\d\d:\d\d  4 series, 0 move, 0 per s  {server.url}\n +per s .*\n", second), second


@case
def labels_are_cut_at_the_width():
    page = "# TYPE c counter\nc{a=\"" + "é" * 200 + "\"} 1\n"
    with Pages(page, page.replace(" 1\n", " 2\n")) as server:
        done = top(server.url, "--count", 1, COLUMNS=60)
    lines = done.stdout.splitlines()
    assert len(lines[2]) == 59 and lines[2].endswith('  c{a="' + "é" * 13 + "...") and len(lines[0]) < 60, lines


@case
def the_table_fits_the_screen():
    def page(n):
        return "# TYPE c counter\n" + "".join(f'c{{i="{i}"}} {n * (i + 1)}\n' for i in range(20)) + \
            "# TYPE g gauge\n" + "".join(f'g{{i="{i}"}} {n * 2**i}\n' for i in range(20))
    for variables, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 13, 70, 0, 0))
        with Pages(page(1), page(2), page(3)) as server:
            shown = subprocess.Popen([WEIR, "top", server.url, "--every", "100ms"], stdout=follower, env=environment(**{"TERM": "xterm", **variables}))
            os.close(follower)
            text = ""
            while text.count("\033[J") < 3:  # one of them clears the screen
                text += os.read(leader, 4096).decode()
            shown.kill()
            shown.wait()
        os.close(leader)
        assert text.startswith("\033[H\033[J"), text
        screen = text.split("\033[J")[2]
        assert screen.startswith("\033[H") and ("\033[1m" in screen) == is_coloured, screen
        lines = re.sub("\033\\[[0-9]*[a-zA-Z]", "", screen).split("\r\n")
        assert len(lines) == 13 and lines[11] == "and 32 more" and lines[12] == "" and max(map(len, lines)) <= 70, lines
        assert [line.split()[-1] for line in lines[2:8]] == [f'c{{i="{i}"}}' for i in range(19, 13, -1)], lines
        assert lines[8].split() == ["change", "level", "gauge"] and [line.split()[-1] for line in lines[9:11]] == ['g{i="19"}', 'g{i="18"}'], lines


# ---- Failures -----------------------------------------------------------------------------------------


@case
def a_page_that_cannot_be_read_is_an_error():
    url = f"http://127.0.0.1:{free_port()}/metrics"
    done = top(url)
    assert done.returncode == 1 and done.stdout == "" and f"weir: top: {url}: Couldn't connect to server" in done.stderr, done
    assert 'the handler {"type": "prometheus"} in its configuration' in done.stderr, done
    for page, reason in (((404, TEXT, "c 1\n"), "the server returns status 404"), ((200, "text/html; charset=utf-8", "c 1\n"), "but HTML"),
                         ("<html>\n<body>\n", 'not a page in Prometheus\' format: "<html>" is not a name'), ((302, TEXT, ""), "status 302")):
        with Pages(page) as server:
            done = top(server.url)
        assert done.returncode == 1 and done.stdout == "" and reason in done.stderr and server.url in done.stderr, (page, done)


@case
def a_page_that_is_lost_is_an_error_with_a_count():
    with Pages("# TYPE c counter\nc 1\n", "# TYPE c counter\nc 2\n", (503, TEXT, "")) as server:
        done = top(server.url, "--count", 5, "--json")
    assert done.returncode == 1 and done.stderr == f"weir: top: {server.url}: the server returns status 503\n", done
    assert [json.loads(line)["moved"] for line in done.stdout.splitlines()] == [1], done


@case
def without_a_count_a_lost_page_is_read_again():
    """The increase is that since the last page that was there."""
    pages = ["# TYPE c counter\nc 1\n", "# TYPE c counter\nc 2\n", (503, TEXT, ""), (200, "text/html", "x"), "?\n", "# TYPE c counter\nc 12\n"]
    reasons = ["status 503", "but HTML", "not a page"]
    with Pages(*pages) as server:
        process = subprocess.Popen([WEIR, "top", server.url, "--every", "100ms", "--json"], stdout=subprocess.PIPE, text=True, env=environment())
        objects = [json.loads(process.stdout.readline()) for _ in range(5)]
        process.kill()
        process.communicate()
    assert objects[0]["metrics"][0]["increase"] == 1 and objects[4]["metrics"][0]["increase"] == 10, objects
    for lost, reason in zip(objects[1:4], reasons):
        assert list(lost) == ["time", "url", "error"] and reason in lost["error"], lost
    with Pages(*pages) as server:
        process = subprocess.Popen([WEIR, "top", server.url, "--every", "100ms"], stdout=subprocess.PIPE, text=True, env=environment(COLUMNS=200))
        lines = []
        while not any("lost" in line or "c" == line.split()[-1] for line in lines[4:] if line.split()):
            lines.append(process.stdout.readline().rstrip("\n"))
        process.kill()
        process.communicate()
    heads = [line for line in lines if re.match(r"\d\d:\d\d:\d\d  ", line)]
    assert len(heads) == 5 and all(re.fullmatch(rf"\S+  no page for [\d.]+ m?s: .*{reason}.*  {server.url}", head) for head, reason in zip(heads[1:4], reasons)), lines


@case
def wrong_arguments_are_refused():
    for arguments, reason in ((("localhost:9464",), '"localhost:9464" is not a URL like http://127.0.0.1:9464/metrics'), (("--count", "0"), '--count: "0" is not a number'),
                              (("--count", "2x"), '"2x" is not a number'), (("--every", "1"), '--every: "1" is not a duration from 100ms to 1d'),
                              (("http://a", "http://b"), "at most one URL")):
        done = run(WEIR, "top", *arguments)
        assert done.returncode == 2 and reason in done.stderr and "usage: weir top" in done.stderr, (arguments, done)


@case
def output_that_cannot_be_written_ends_it():
    with Pages("c 1\n") as server:
        with open("/dev/full", "w", encoding="utf-8") as full:
            for arguments in ((), ("--json",)):
                done = subprocess.run([WEIR, "top", server.url, "--every", "100ms", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), timeout=240)
                assert done.returncode == 1 and "standard output cannot be written" in done.stderr, done


# ---- The handler prometheus ---------------------------------------------------------------------------


@case
def a_program_with_the_handler_is_shown(folder):
    if not os.path.exists(os.path.join(BUILD, "plugins", ".libs", "prometheus.so")):
        raise Skip("the handler type prometheus is not built")
    await_day()
    log = os.path.join(folder, "log")
    config = {"handlers": {"scrape": {"type": "prometheus", "listen": "127.0.0.1:0", "aggregate": "1d"}}, "groups": {"*": "scrape"}}
    with open(log, "wb") as file:
        app = subprocess.Popen([SCRAPED], env=environment(WEIR_CONFIG=config, WEIR_LOG="info"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True)
    def do(*lines):
        for line in lines:
            app.stdin.write(line + "\n")
            app.stdin.flush()
            assert app.stdout.readline() == "0\n", lines_of(log)
    assert app.stdout.readline() == "0\n"
    do("count 5", "level 1", "observe 60", "flush")
    found = []
    wait_for(lambda: found.extend(re.findall(r"listening on (http://\S+)", "\n".join(lines_of(log)))) or found, "the endpoint")
    shown = subprocess.Popen([WEIR, "top", found[0], "--every", "100ms", "--json"], stdout=subprocess.PIPE, text=True, env=environment())
    while json.loads(shown.stdout.readline())["moved"]:
        pass
    do("count 1000", "level 4", *["observe 60"] * 98, "observe 700", "observe 700", "flush")
    seen = {}
    while len(seen) < 3:
        table = json.loads(shown.stdout.readline())
        for row in table["metrics"]:
            if row["name"] in ("my_app_requests_total", "my_app_handle_duration_seconds", "my_app_open_connections"):
                assert seen.setdefault(row["name"], row) is row, "an interval is on the page as a whole"
    shown.send_signal(signal.SIGTERM)
    shown.communicate()
    app.stdin.close()
    assert app.wait(240) == 0 and shown.returncode == -signal.SIGTERM
    app.stdout.close()
    counter, histogram, gauge = (seen[f"my_app_{name}"] for name in ("requests_total", "handle_duration_seconds", "open_connections"))
    assert (counter["type"], counter["increase"], counter["value"]) == ("counter", 1000, 1005), counter
    assert (gauge["type"], gauge["change"], gauge["value"]) == ("gauge", 3, 4), gauge
    assert (histogram["type"], histogram["increase"], histogram["value"]) == ("histogram", 100, 101), histogram
    assert math.isclose(histogram["mean"], (98 * 0.06 + 2 * 0.7) / 100), histogram
    assert math.isclose(histogram["p99"], 0.075 + (1 - 0.075) / 2), histogram


main()
