"""The report handler: its files against perf.py's formulas, its bounds, what goes wrong, and its page in a browser."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from html.parser import HTMLParser

from fifos import ScriptedApp
from harness import ADDER, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, main, run, \
    skip_fork_under_sanitizers, start, wait_for
from sourced import Sourced
from sourced import case as sourced_case

KEYS = ["cpu_pct_per_cpu_avg", "cpu_pct_per_cpu_min", "cpu_pct_per_cpu_max", "mem_percent", "disk_usage_percent", "disk_io_read_mb",
        "disk_io_write_mb", "net_io_lo_sent_mb", "net_io_lo_recv_mb", "net_io_ext_sent_mb", "net_io_ext_recv_mb", "timestamp"]
FIGURES = ["max_t_cpu_pct_per_cpu_avg", "cpu_avg_utilization_pct", "cpu_avg_utilization_at100_pct", "cpu_avg_utilization_over80_pct",
           "cpu_avg_utilization_over40_pct", "cpu_avg_utilization_over20_pct", "max_t_cpu_pct_per_cpu_min", "max_t_cpu_pct_per_cpu_max",
           "node_cpu_hours", "node_unused_cpu_hours", "max_t_mem_percent", "max_t_disk_usage_percent", "total_disk_io_read_mb",
           "total_disk_io_write_mb", "total_net_io_lo_sent_mb", "total_net_io_ext_sent_mb", "total_net_io_lo_recv_mb",
           "total_net_io_ext_recv_mb"]
MIB = 2**20


def handler_of(folder, *files, **options):
    """Files: of path, figures, details, html."""
    names = {"path": "perf.json", "figures": "figures.json", "details": "details.json", "html": "page.html"}
    return {"type": "report", "retry_min": "5ms", "retry_max": "50ms", "block_timeout": "1h",
            **{file: os.path.join(folder, names[file]) for file in files}, **options}


def config_of(handler, shutdown="2m"):
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"out": handler}, "groups": {"*": "out"}}


def text_of(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def read(folder, name):
    return json.loads(text_of(folder, name))


def add(handler, *arguments, code=0, **env):
    done = run(ADDER, "-H", "out", *arguments, WEIR_CONFIG=config_of(handler), **env)
    assert done.returncode == code, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]["out"], done.stderr


# ---- The machine --------------------------------------------------------------------------------------------------


def take_snapshot(folder):
    """The files of /proc of which a report is made, as they are now."""
    os.makedirs(os.path.join(folder, "net"), exist_ok=True)
    for name in ("stat", "meminfo", "diskstats", "net/dev"):
        with open(os.path.join("/proc", name), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(folder, name + ".new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(os.path.join(folder, name + ".new"), os.path.join(folder, name))


def lines_in(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read().splitlines()


def cpu_times(folder):
    return [[int(field) for field in line.split()[1:]] for line in lines_in(folder, "stat") if re.match(r"cpu\d", line)]


def cpu_percents(before, now):
    """psutil.cpu_percent(percpu=True)."""
    percents = []
    for old, new in zip(before, now):
        deltas = [max(0, b - a) for a, b in zip(old, new)]
        total = sum(deltas) - sum(deltas[8:10])  # guests are part of others
        percents.append(round(100 * (total - deltas[3] - deltas[4]) / total, 1) if total else 0.0)
    return percents


def memory_percent(folder):
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines_in(folder, "meminfo")}
    return round(100 * (sizes["MemTotal"] - sizes["MemAvailable"]) / sizes["MemTotal"], 1)


def disk_bytes(folder):
    read_sectors = written_sectors = 0
    for fields in map(str.split, lines_in(folder, "diskstats")):
        if os.path.exists("/sys/block/" + fields[2].replace("/", "!")):
            read_sectors, written_sectors = read_sectors + int(fields[5]), written_sectors + int(fields[9])
    return read_sectors * 512, written_sectors * 512


def network_bytes(folder):
    """(sent, received) of the loopback interface, and of all others."""
    totals = {True: [0, 0], False: [0, 0]}
    for line in lines_in(folder, "net/dev")[2:]:
        name, numbers = line.rsplit(":", 1)
        name, fields = name.strip().lower(), numbers.split()
        is_loopback = name == "lo" or "loopback" in name
        totals[is_loopback][0] += int(fields[8])
        totals[is_loopback][1] += int(fields[0])
    return totals[True], totals[False]


def disk_usage():
    status = os.statvfs("/")
    used = status.f_blocks - status.f_bfree
    return round(100 * used / (used + status.f_bavail), 1)


def keep_busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def expect_report(before, folder):
    """The numbers of perf.py's report, but for its time."""
    percents = cpu_percents(before, cpu_times(folder))
    loopback, external = network_bytes(folder)
    return [sum(percents) / len(percents), min(percents), max(percents), memory_percent(folder), disk_usage(),
            *(count / MIB for count in (*disk_bytes(folder), *loopback, *external))]


@sourced_case
def a_report_is_that_of_psutil_over_the_same_interval(folder):
    proc = os.path.join(folder, "proc")
    take_snapshot(proc)
    if not disk_bytes(proc)[0]:
        raise Skip("this machine has no block devices that are visible here")
    source = {"type": "system", "interval": "20ms", "proc": proc}
    program = Sourced(folder, source, handler_of(folder, "path", "figures", "details", node="some node"))
    program.await_stats(added=200)
    before = cpu_times(proc)
    keep_busy(0.3)
    take_snapshot(proc)
    program.await_stats(added=program.stats()["added"] + 400)
    program.end()
    reports = read(folder, "perf.json")["some node"]
    assert all(list(report) == KEYS and all(type(value) is float for value in report.values()) for report in reports), reports[0]
    expected = dict(zip(KEYS, expect_report(before, proc)))
    busiest = max(reports, key=lambda report: report["cpu_pct_per_cpu_max"])
    for key in KEYS[:3]:
        assert abs(busiest[key] - expected[key]) <= 0.2, (key, busiest, expected)
    assert abs(reports[-1]["disk_usage_percent"] - expected["disk_usage_percent"]) <= 2
    for key in KEYS[3:4] + KEYS[5:-1]:
        assert reports[-1][key] == expected[key], (key, reports[-1], expected)
    check_figures(folder, reports)


def check_figures(folder, reports):
    figures = read(folder, "figures.json")["some node"]
    assert list(figures) == FIGURES, figures
    averages = [report["cpu_pct_per_cpu_avg"] for report in reports]

    def most(key):
        return max(report[key] for report in reports)

    def share(least):
        return 100 * sum(average >= least for average in averages) / len(averages)
    mean = sum(averages) / len(averages)
    hours = figures["node_cpu_hours"]
    expected = [most(KEYS[0]), mean, share(100), share(80), share(40), share(20), most(KEYS[1]), most(KEYS[2]), hours,
                hours * (100 - mean) / 100, *map(most, KEYS[3:5]), most("disk_io_read_mb"), most("disk_io_write_mb"),
                most("net_io_lo_sent_mb"), most("net_io_ext_sent_mb"), most("net_io_lo_recv_mb"), most("net_io_ext_recv_mb")]
    for name, value in zip(FIGURES, expected):
        assert abs(figures[name] - value) <= 1e-9 * max(1, abs(value)), (name, figures[name], value)
    assert hours >= (reports[-1]["timestamp"] - reports[0]["timestamp"]) * os.cpu_count() / 3600 * 0.5, "until now"
    details = read(folder, "details.json")["some node"]
    assert details["reports"] == reports and list(details["figures"]) == FIGURES


@case
def the_formulas_of_these_tests_are_those_of_psutil(folder):
    try:
        import psutil
    except ImportError:
        raise Skip("psutil is not installed (Debian: python3-psutil)") from None
    psutil.PROCFS_PATH = folder
    take_snapshot(folder)
    before = cpu_times(folder)
    psutil.cpu_percent(percpu=True)
    keep_busy(0.2)
    take_snapshot(folder)
    for expected, real in zip(cpu_percents(before, cpu_times(folder)), psutil.cpu_percent(percpu=True)):
        assert abs(expected - real) <= 0.1, (expected, real)
    assert memory_percent(folder) == psutil.virtual_memory().percent
    assert abs(disk_usage() - psutil.disk_usage("/").percent) <= 2
    disks = psutil.disk_io_counters()
    assert disks is None or disk_bytes(folder) == (disks.read_bytes, disks.write_bytes)
    sums = [[0, 0], [0, 0]]
    for name, counters in psutil.net_io_counters(pernic=True).items():
        is_external = not (name.lower() == "lo" or "loopback" in name.lower())
        sums[is_external][0] += counters.bytes_sent
        sums[is_external][1] += counters.bytes_recv
    assert tuple(sums) == network_bytes(folder), sums


@sourced_case
def the_file_is_what_json_dump_writes(folder):
    program = Sourced(folder, {"type": "system", "interval": "20ms"}, handler_of(folder, "path", node='a "b"\u00e9\n', reports=4))
    program.await_stats(added=1500)
    program.end()
    document = read(folder, "perf.json")
    (node, reports), = document.items()
    assert node == 'a "b"\u00e9\n' and 2 < len(reports) <= 4, document
    assert text_of(folder, "perf.json") == json.dumps(document, indent=4)


# ---- Series and nodes ---------------------------------------------------------------------------------------------


@case
def every_series_has_its_row_and_an_evenly_spaced_course(folder):
    handler = handler_of(folder, "path", "details", "html", node="n", reports=100)
    stats, _ = add(handler, "-n", 12800, "-t", 2, "-f", -1)
    assert stats["delivered"] == 25600 and sum(stats["dropped"]) == 0, stats
    assert text_of(folder, "perf.json") == '{\n    "n": []\n}', "no machine was measured"
    details = read(folder, "details.json")["n"]
    assert set(details["figures"].values()) == {None} and details["reports"] == []
    rows = {row["name"]: row for row in details["metrics"]}
    assert sorted(rows) == ["t0", "t1"]
    for row in rows.values():
        assert (row["count"], row["min"], row["max"], row["sum"]) == (12800, 0, 12799, 12799 * 6400), row
        assert abs(row["p50"] - 6400) <= 70 and abs(row["p99"] - 12672) <= 130
        values = [value for _, value in row["points"]]
        assert values == list(range(0, 12800, row["stride"])) and 50 < len(values) <= 100, row["stride"]


@case
def series_beyond_the_limit_are_refused_and_counted(folder):
    stats, log = add(handler_of(folder, "details", series=3), "-n", 100, "-t", 5, "-f", -1)
    assert stats["delivered"] == 300 and sum(stats["dropped"]) == 200, stats
    assert re.search(r'my_app\.t\d is one series too many: "series" is 3', log), log
    (node,) = read(folder, "details.json").values()
    assert len(node["metrics"]) == 3


@case
def a_label_names_the_node(folder):
    handler = handler_of(folder, "details", node="here", node_label="host", nodes=2)
    for number, host in enumerate(("a", "b", "c")):
        path = os.path.join(folder, str(number))
        os.makedirs(path)
        done = run(WEIR, "emit", "-g", "g", "-l", f"host={host}", "n=1", WEIR_CONFIG=config_of({**handler, "details": path + "/d.json"}))
        assert done.returncode == 0, done
        assert list(read(path, "d.json")) == [host]


@sourced_case
def one_report_has_the_machines_that_forward_to_a_relay(folder):
    socket = os.path.join(folder, "s")
    source = {"type": "forward", "listen": ["unix:" + socket]}
    program = Sourced(folder, source, handler_of(folder, "path", "details", node="relay", node_label="host"),
                      journal=os.path.join(folder, "journal"))
    program.await_log("listens at")
    senders = []
    for host in ("a", "b"):
        config = {"settings": {"labels": {"host": host}, "shutdown_timeout": "2m"},
                  "sources": {"machine": {"type": "system", "interval": "20ms"}},
                  "handlers": {"out": {"type": "forward", "to": "unix:" + socket, "block_timeout": "1h"}}, "groups": {"*": "out"}}
        path = os.path.join(folder, host + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        senders.append(start(WEIR, "relay", "-c", path))
    try:
        program.await_stats(added=2000)
    finally:
        for sender in senders:
            sender.terminate()
    logs = [sender.communicate(timeout=300)[1] for sender in senders]
    assert [sender.returncode for sender in senders] == [0, 0], logs
    program.end()
    reports = read(folder, "perf.json")
    assert sorted(reports) == ["a", "b"] and all(len(of_node) > 2 for of_node in reports.values()), reports
    for host, node in read(folder, "details.json").items():
        assert {row["labels"]["host"] for row in node["metrics"]} == {host}


# ---- Files --------------------------------------------------------------------------------------------------------


@case
def a_flush_writes_the_files_and_the_end_writes_them_again(folder):
    with ScriptedApp(config_of(handler_of(folder, "path", "details", mode="0600")), folder) as app:
        app.do("add", "x", 1)
        assert app.do("flush", -1)["code"] == 0
        assert [row["count"] for row in list(read(folder, "details.json").values())[0]["metrics"]] == [1]
        app.do("add", "x", 2)
        assert_handler_ledger(app.do("ledger", "out"))
    assert [row["count"] for row in list(read(folder, "details.json").values())[0]["metrics"]] == [2]
    assert stat.S_IMODE(os.stat(os.path.join(folder, "perf.json")).st_mode) == 0o600
    assert sorted(name for name in os.listdir(folder) if name.endswith(".json") or name.startswith(".")) == ["details.json", "perf.json"]


@sourced_case
def a_reader_never_sees_half_a_file_and_a_killed_program_leaves_a_whole_one(folder):
    program = Sourced(folder, {"type": "system", "interval": "20ms"}, handler_of(folder, "path", "details", write_every="10ms", node="n"))
    path, seen = os.path.join(folder, "details.json"), set()
    wait_for(lambda: os.path.exists(path), "the first file")
    while len(seen) < 10:
        seen.add(len(read(folder, "details.json")["n"]["reports"]))
    program.program.send_signal(signal.SIGKILL)
    program.program.wait()
    assert read(folder, "details.json")["n"]["metrics"] and read(folder, "perf.json")["n"] is not None


@case
def values_wait_until_the_files_can_be_written(folder):
    later = os.path.join(folder, "later")
    with ScriptedApp(config_of(handler_of(later, "path", "html")), folder) as app:
        app.do("add", "x", 1)
        wait_for(lambda: "No such file or directory" in app.stderr_text(), "the message")
        assert f"path {later}/perf.json" in app.stderr_text(), app.stderr_text()
        stats = app.do("ledger", "out")
        assert_handler_ledger(stats)
        assert stats["delivered"] == 0, stats
        os.makedirs(later)
        assert app.do("flush", -1)["code"] == 0
        assert sorted(os.listdir(later)) == ["page.html", "perf.json"]
        shutil.rmtree(later)
        app.do("add", "x", 2)
        app.do("flush", 100)
        wait_for(lambda: "write path" in app.stderr_text(), "the message of the flush")
        os.makedirs(later)
        assert app.do("flush", -1)["code"] == 0 and os.path.exists(later + "/page.html")
        assert_handler_ledger(app.do("ledger", "out"))


@case
def a_report_that_cannot_be_written_at_the_end_is_an_error_with_its_path(folder):
    later = os.path.join(folder, "later")
    os.makedirs(later)
    with ScriptedApp(config_of(handler_of(later, "path"), shutdown="200ms"), folder) as app:
        app.do("add", "x", 1)
        assert app.do("flush", -1)["code"] == 0
        app.do("add", "x", 2)
        wait_for(lambda: app.do("ledger", "out")["delivered"] == 2, "delivery")
        shutil.rmtree(later)
    assert f"write path {later}/perf.json: No such file or directory; the report is lost" in app.stderr_text(), app.stderr_text()


@case
def what_is_no_regular_file_is_not_replaced(folder):
    pipe, link, target = (os.path.join(folder, name) for name in ("pipe", "link", "target"))
    os.mkfifo(pipe)
    done = run(WEIR, "emit", "-g", "g", "-t", "100ms", "n=1", WEIR_CONFIG=config_of({**handler_of(folder), "path": pipe}, shutdown="100ms"))
    assert done.returncode != 0 and "it is not a regular file, and would be replaced by one" in done.stderr, done
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)
    with open(target, "w", encoding="ascii"):
        pass
    os.symlink(target, link)
    done = run(WEIR, "emit", "-g", "g", "n=1", WEIR_CONFIG=config_of({**handler_of(folder), "path": link}))
    assert done.returncode == 0 and os.path.islink(link) and os.path.getsize(target) > 0, done


@case
def a_forked_child_does_not_replace_its_parents_report(folder):
    skip_fork_under_sanitizers()
    with ScriptedApp(config_of(handler_of(folder, "details", node="n")), folder) as app:
        app.do("add", "mine", 1)
        assert app.do("flush", -1)["code"] == 0
        app.do("fork", "childs")
        app.do("reap")
        assert "the parent process writes it; use ${PID}" in app.stderr_text(), app.stderr_text()
        assert [row["name"] for row in read(folder, "details.json")["n"]["metrics"]] == ["mine"]
    with ScriptedApp(config_of(handler_of(folder, node="n", details=folder + "/${PID}.json")), folder) as app:
        app.do("add", "mine", 1)
        child = app.do("fork", "childs")["code"]
        app.do("reap")
        assert [row["name"] for row in read(folder, f"{child}.json")["n"]["metrics"]] == ["childs"]
    assert [row["name"] for row in read(folder, f"{app.pid}.json")["n"]["metrics"]] == ["mine"]


@case
def wrong_options_are_refused(folder):
    path = os.path.join(folder, "x")
    for options, message in (({}, "at least one is needed of path, figures, details, html"),
                             ({"path": path, "html": path}, f'"{path}" is the file of path, too; each needs its own'),
                             ({"path": path, "mode": "9"}, '"9" is not a mode'), ({"path": path, "reports": 1}, "2..1000000"),
                             ({"path": path, "series": 0}, "1..100000"), ({"path": path, "nodes": 0}, "1..10000"),
                             ({"path": path, "write_every": "2d"}, "0s..1d")):
        done = run(WEIR, "check", stdin=None, WEIR_CONFIG=config_of({"type": "report", **options}))
        assert done.returncode != 0 and message in done.stdout + done.stderr, (options, done)


# ---- The page -----------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Checks that elements are closed in order, and collects what there is."""

    VOID = {"meta", "link", "img", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)


EVIL = "</title><script>alert(1)</script><img src=x onerror=alert(2)>"


def make_page(folder):
    """A page of a machine, and of values with names that are not harmless."""
    program = Sourced(folder, {"type": "system", "interval": "20ms", "labels": {"evil": EVIL + "\"'&\n"}},
                      handler_of(folder, "html", title=EVIL, node=EVIL))
    program.await_stats(added=1500)
    program.end()
    return text_of(folder, "page.html")


@sourced_case
def the_page_needs_nothing_else_and_runs_nothing(folder):
    text = make_page(folder)
    page = Page(text)
    assert "script" not in page.tags and "img" not in page.tags and "link" not in page.tags and "iframe" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href", "xlink:href")], page.attributes
    assert not re.search(r"url\(|@import|https?:", text), "nothing is loaded"
    policy = [value for name, value in page.attributes if value and "default-src" in value]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"], policy
    words = "".join(page.texts)
    assert all(figure in words for figure in FIGURES) and EVIL in words
    for title in ("Processors", "Memory and space", "Disks", "Network"):
        assert title in page.texts, title


@sourced_case
def a_browser_shows_the_page_without_errors(folder):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        raise Skip("no browser (Debian: chromium)")
    make_page(folder)
    home = os.path.join(folder, "home")
    os.makedirs(home)
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom",
                           "--disable-dev-shm-usage", f"--user-data-dir={home}", "file://" + os.path.join(folder, "page.html")],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "HOME": home})
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    assert done.stdout.count("<svg") > 50 and "total_net_io_ext_recv_mb" in done.stdout, done.stdout[:1000]
    assert "<script" not in done.stdout and "<img" not in done.stdout


main()
