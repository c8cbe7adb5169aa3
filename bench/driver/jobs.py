"""The jobs of a round: each has a name and a function that runs one program."""

import json
import os
import subprocess
import sys
from functools import partial

import brokers
from collecting import Charts, measure_sqlite, measure_store_forward, measure_store_http
from database import find_port
from programs import TIMEOUT_S, Void, arguments, write_config
from publishing import measure_nats
from receiving import measure_posting
from relaying import WeirStatsd, measure_fifo, measure_forward, measure_statsd, start_collectd, start_statsd

FILE = {"type": "file", "format": "text"}
NULL = {"type": "null"}
SCRAPED_SERIES = 10000


def measure_weir(workspace, scale, handler="text", handlers=1, queue=None, aggregate=None, percentiles=None, settings=None,
                 **task):
    """Measures weir with one kind of handler: text, json (files) or null. aggregate, percentiles: its options."""
    format_name = "json" if handler == "json" else "text"
    paths = [workspace.file(f"weir.{number}") for number in range(handlers)] if handler != "null" else []
    configured = [{"type": "file", "format": format_name, "path": path} for path in paths] or [NULL] * handlers
    if queue:
        configured = [{**handler, "queue": queue} for handler in configured]
    if aggregate:
        configured = [{**handler, "aggregate": aggregate} for handler in configured]
    if percentiles is not None:
        configured = [{**handler, "percentiles": percentiles} for handler in configured]
    config = write_config(workspace, configured, {"max_series": 1000000, **(settings or {})})
    share = 5 if handler == "null" else 1 / handlers
    task = {"way": "name", "handlers": handlers, **scale.sizes(task, share), **task}
    figures = workspace.measure("weir/adding", config=config, **task)
    for path in paths:
        if is_plain(task):
            workspace.verify(path, figures, {**task, "format": format_name})
    return figures


def is_plain(task):
    """Returns whether all lines have the name that verify expects. For other tasks the program's own check of the ledger is sufficient."""
    return task.get("names", 1) == 1 and task.get("event", 1) == 1 and not task.get("name_length")


def measure_peer(workspace, scale, name, writes=True, **task):
    path = workspace.file("peer") if writes else ""
    task = {**scale.sizes(task), **task}
    figures = workspace.measure("peers/" + name, file=path, **task)
    if writes:
        workspace.verify(path, figures, task)
    return figures


def measure_tracing(tracing, scale, **task):
    return tracing.measure(blocking=task.get("mode") == "lines", **scale.sizes(task), **task)


def measure_arrival(workspace, scale):
    path = workspace.file("weir.0")
    config = write_config(workspace, [{**FILE, "path": path}])
    return json.loads(workspace.run(workspace.program("weir/arrival"), config, path, scale.arrivals))


def measure_children(workspace, scale):
    """Children with and without weir, one after the other."""
    config = write_config(workspace, [{**FILE, "path": workspace.file("weir.0")}])
    plain = json.loads(workspace.run(workspace.program("peers/children"), scale.children))["child_us"]
    child = json.loads(workspace.run(workspace.program("weir/children"), config, scale.children))["child_us"]
    return {"child_us": child, "plain_us": plain, "more_us": child - plain}


def measure_synced(workspace, scale, to, command):
    """Runs a program that writes a line per event to standard output, which is a file or a pipe."""
    path, result = workspace.file("synced"), workspace.file("result")
    with open(path, "wb") as file:
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file) if to == "pipe" else None
        done = subprocess.run([str(c) for c in [*command(workspace), scale.synced, result]], stdout=reader.stdin if reader else file,
                              stderr=subprocess.PIPE, env=workspace.environment(), timeout=TIMEOUT_S, text=True, check=False)
        if reader:
            reader.communicate()
    with open(path, "rb") as file:
        lines = file.read().count(b"\n")
    if done.returncode or lines != scale.synced:
        raise Void(f"{lines} of {scale.synced} lines: {done.stderr.strip()}")
    with open(result, encoding="utf-8") as file:
        return json.load(file)


def synced_weir(workspace):
    return [workspace.program("weir/synced"), write_config(workspace, [{"type": "console", "format": "text", "delivery": "sync"}])]


def synced_python(workspace):
    return [sys.executable, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers", "prints.py")]


def measure_stamps(workspace, scale, clock):
    return json.loads(workspace.run(workspace.program("weir/stamps"), clock, scale.stamps))


def measure_scrapes(workspace, scale, program):
    task = {"port": find_port(), "series": SCRAPED_SERIES, "scrapes": scale.scrapes}
    return json.loads(workspace.run(workspace.program(program), *arguments(**task)))


def list_jobs(workspace, tracing, database, scale):
    """Returns the jobs, with weir and its peers interleaved so that changes in the machine's speed affect both."""
    weir = partial(measure_weir, workspace, scale)
    peer = partial(measure_peer, workspace, scale)
    stdio, spdlog = partial(peer, "stdio"), partial(peer, "spdlog")
    lttng = partial(measure_tracing, tracing, scale)
    prometheus = partial(peer, "prometheus", writes=False)
    aggregated = partial(weir, handler="null", aggregate="1s")
    tails, lines, two = {"mode": "tails"}, {"mode": "lines"}, {"threads": 2}
    return {
        "rdtsc": partial(peer, "rdtsc", writes=False),
        "weir name": weir,
        "lttng": lttng,
        "spdlog sync": partial(spdlog, way="sync"),
        "spdlog async": partial(spdlog, way="async"),
        "weir handle": partial(weir, way="handle"),
        "weir null handle": partial(weir, handler="null", way="handle"),
        "weir labeled handle": partial(weir, handler="null", way="labeled_handle"),
        "rdtsc, 2 threads": partial(peer, "rdtsc", writes=False, **two),
        "weir emit": partial(weir, way="emit", event=8),
        "fprintf": stdio,
        "weir name, 2 threads": partial(weir, **two),
        "spdlog sync, 2 threads": partial(spdlog, way="sync", **two),
        "weir handle, 2 threads": partial(weir, way="handle", **two),
        "lttng, 2 threads": partial(lttng, **two),
        "weir 10000 series": partial(weir, names=10000),
        "fprintf, 2 threads": partial(stdio, **two),
        "weir 64 threads": partial(weir, handler="null", queue="64MiB", threads=64, cpu_time=True),
        "weir 1 null": partial(weir, handler="null"),
        "weir 20 null": partial(weir, handler="null", handlers=20),
        "log4c": partial(peer, "log4c"),
        "log4c, 2 threads": partial(peer, "log4c", **two),
        "weir gauge": partial(aggregated, way="gauge"),
        "gauge": partial(prometheus, way="gauge"),
        "weir counter": partial(aggregated, way="counter"),
        "counter": partial(prometheus, way="counter"),
        "weir labeled counter": partial(aggregated, way="labeled_counter"),
        "weir counter, 2 threads": partial(aggregated, way="counter", **two),
        "counter, 2 threads": partial(prometheus, way="counter", **two),
        "weir histogram": partial(aggregated, way="histogram", percentiles=[]),
        "weir histogram, percentiles": partial(aggregated, way="histogram"),
        "histogram": partial(prometheus, way="histogram"),
        "weir labeled": partial(weir, handler="null", way="labeled", names=8),
        "weir aggregated labeled": partial(aggregated, way="labeled", names=8),
        "weir scrape": partial(measure_scrapes, workspace, scale, "weir/scraped"),
        "exposer scrape": partial(measure_scrapes, workspace, scale, "peers/exposer"),
        "spdlog async, 2 threads": partial(spdlog, way="async", **two),
        "weir tails": partial(weir, **tails),
        "rdtsc tails": partial(peer, "rdtsc", writes=False, **tails),
        "fprintf tails": partial(stdio, **tails),
        "lttng tails": partial(lttng, **tails),
        "spdlog sync tails": partial(spdlog, way="sync", **tails),
        "spdlog async tails": partial(spdlog, way="async", **tails),
        "weir text": partial(weir, **lines),
        "spdlog sync lines": partial(spdlog, way="sync", **lines),
        "fprintf lines": partial(stdio, **lines),
        "spdlog async lines": partial(spdlog, way="async", **lines),
        "weir text, 2 threads": partial(weir, **lines, **two),
        "spdlog sync lines, 2 threads": partial(spdlog, way="sync", **lines, **two),
        "weir json": partial(weir, handler="json", **lines),
        "fprintf json": partial(stdio, format="json", **lines),
        "weir random": partial(weir, random=True, **lines),
        "fprintf random": partial(stdio, random=True, **lines),
        "weir null": partial(weir, handler="null", **lines),
        "weir aggregated": partial(aggregated, **lines),
        "weir aggregated counter": partial(aggregated, way="counter", **lines),
        "weir journaled counter": partial(aggregated, way="counter", settings={"journal": workspace.file("journal")}, **lines),
        "counter lines": partial(prometheus, way="counter", **lines),
        "weir aggregated histogram": partial(aggregated, way="histogram", percentiles=[], **lines),
        "histogram lines": partial(prometheus, way="histogram", **lines),
        "weir aggregated percentiles": partial(aggregated, way="histogram", **lines),
        "lttng lines": partial(lttng, **lines),
        "weir text, 64 threads": partial(weir, threads=64, **lines),
        "weir 5 files": partial(weir, handlers=5, **lines),
        "weir 20 files": partial(weir, handlers=20, **lines),
        "log4c lines": partial(peer, "log4c", **lines),
        "weir http": partial(database.measure, scale, "weir"),
        "curl": partial(database.measure, scale, "curl"),
        "weir kafka": partial(brokers.measure, workspace, scale, "weir"),
        "kafka": partial(brokers.measure, workspace, scale, "kafka"),
        "weir nats": partial(measure_nats, workspace, scale, "weir"),
        "nats": partial(measure_nats, workspace, scale, "nats"),
        "weir elastic": partial(measure_posting, workspace, scale, "weir", "elastic"),
        "curl elastic": partial(measure_posting, workspace, scale, "curl", "elastic"),
        "weir otlp": partial(measure_posting, workspace, scale, "weir", "otlp"),
        "curl otlp": partial(measure_posting, workspace, scale, "otlp", "otlp"),
        "weir children": partial(measure_children, workspace, scale),
        "weir synced": partial(measure_synced, workspace, scale, "file", synced_weir),
        "print": partial(measure_synced, workspace, scale, "file", synced_python),
        "weir synced, pipe": partial(measure_synced, workspace, scale, "pipe", synced_weir),
        "print, pipe": partial(measure_synced, workspace, scale, "pipe", synced_python),
        "weir statsd": partial(measure_statsd, workspace, scale, WeirStatsd),
        "statsd": partial(measure_statsd, workspace, scale, start_statsd),
        "collectd": partial(measure_statsd, workspace, scale, start_collectd),
        "weir forward": partial(measure_forward, workspace, scale, **lines),
        "weir sqlite": partial(measure_sqlite, workspace, scale),
        "store forward": partial(measure_store_forward, workspace, scale),
        "store http": partial(measure_store_http, workspace, scale),
        "chart": Charts(workspace, scale).measure,
        "weir fifo": partial(measure_fifo, workspace, scale, "weir"),
        "pusher": partial(measure_fifo, workspace, scale, "pusher"),
        "weir arrival": partial(measure_arrival, workspace, scale),
        "weir stamps": partial(measure_stamps, workspace, scale, "auto"),
        "weir stamps, system": partial(measure_stamps, workspace, scale, "system"),
        "weir name, clock system": partial(weir, settings={"clock": "system"}),
    }
