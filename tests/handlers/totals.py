"""Requests that a program counts in four threads, or in four processes, are as many in the systems that store them."""

import json
import os
import re
import subprocess

from harness import BUILD, SOURCE, assert_ledgers, case, free_port, main, skip_fork_under_sanitizers, start, wait_for
from peers import Carbon, Collectd, Prometheus, Statsd, VictoriaMetrics

REQUESTS = os.path.join(BUILD, "tests", "support", "requests")
COUNT = 13004
PARTS = 4


def config_of(**handler):
    handler = {"retry_min": "10ms", "retry_max": "200ms", **handler}
    return {"settings": {"shutdown_timeout": "60s"}, "handlers": {"out": handler}, "groups": {"*": "out"}}


def free_ports(count):
    ports = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


class Program:
    """The program `requests`, which waits before it counts, and again before it ends."""

    def __init__(self, mode, config, *ports, **env):
        self.mode = mode
        self.process = start(REQUESTS, mode, COUNT, *ports, WEIR_CONFIG=config, stdin=subprocess.PIPE, **env)
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.process.stderr):
            file.close()

    def count(self):
        """Returns when all is delivered."""
        self.process.stdin.write("count\n")
        self.process.stdin.flush()
        reports = [json.loads(self.process.stdout.readline()) for _ in range(PARTS if self.mode == "processes" else 1)]
        for report in reports:
            assert_ledgers(report)
            ledger = report["handlers"]["out"]
            assert ledger["delivered"] == ledger["offered"], report
        assert sum(report["process"]["added"] for report in reports) == COUNT, reports

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(240) == 0


# ---- Prometheus -------------------------------------------------------------------------------------------------


def count_for_prometheus(folder, mode, ports):
    """Prometheus scrapes before the first request."""
    config = os.path.join(folder, "weir.json")  # weir_reload reads a file again
    with open(config, "w", encoding="ascii") as file:
        json.dump(config_of(type="prometheus", listen="127.0.0.1:${PORT}", aggregate="100ms"), file)
    listening = ports[1:] if mode == "processes" else ports
    with Program(mode, config, *ports[1:], PORT=ports[0]) as program, \
            Prometheus(folder, *(f"127.0.0.1:{port}" for port in listening)) as server:
        wait_for(lambda: list(server.query("my_app_requests_total").values()) == [0] * len(listening), "the first scrapes")
        program.count()
        wait_for(lambda: server.value("sum(my_app_requests_total)") == COUNT, "the total")
        with open(os.path.join(SOURCE, "doc", "metrics.md"), encoding="utf-8") as file:
            exact = re.search(r"```promql\n(.*?)\n```", file.read()).group(1)
        assert "max_over_time" in exact
        wait_for(lambda: server.value(exact) == COUNT, "the total by the documented query")

        def increases():
            """At the time of the last sample increase() has nothing to extrapolate: the first sample is 0. A series is missing after a scrape
            that took too long, until the next one."""
            return [server.value(f'increase(my_app_requests_total{{instance="{dict(labels)["instance"]}"}}[1h])', time=f"{time:.3f}") or 0
                    for labels, time in server.query("timestamp(my_app_requests_total)").items()]
        wait_for(lambda: len(found := increases()) == len(listening) and abs(sum(found) - COUNT) < 1e-6, "the increases")
        program.end()


@case
def prometheus_counts_all_requests_of_four_threads(folder):
    count_for_prometheus(folder, "threads", free_ports(1))


@case
def prometheus_counts_all_requests_of_four_forked_processes_with_an_address_each(folder):
    skip_fork_under_sanitizers()
    count_for_prometheus(folder, "processes", free_ports(1 + PARTS))


@case
def prometheus_counts_all_requests_of_four_programs(folder):
    config = config_of(type="prometheus", listen="127.0.0.1:${PORT}", aggregate="100ms")
    ports = free_ports(PARTS)
    programs = [Program("threads", config, PORT=port) for port in ports]
    try:
        with Prometheus(folder, *(f"127.0.0.1:{port}" for port in ports)) as server:
            wait_for(lambda: list(server.query("my_app_requests_total").values()) == [0] * PARTS, "the first scrapes")
            for program in programs:
                program.count()
            wait_for(lambda: server.value("sum(my_app_requests_total)") == PARTS * COUNT, "the total")
            for program in programs:
                program.end()
    finally:
        for program in programs:
            program.__exit__()


def series_of(mode):
    """How many write the counter: the process from which the others are forked does too."""
    return 1 + PARTS if mode == "processes" else 1


# ---- VictoriaMetrics --------------------------------------------------------------------------------------------


def count_for_victoriametrics(folder, mode):
    with VictoriaMetrics(folder) as server:
        config = config_of(type="http", url=server.url + "/write", format="influx", aggregate="1s")
        with Program(mode, config) as program:
            series = series_of(mode)
            wait_for(lambda: server.value("count(my_app_requests)") == series, "the first totals")
            assert server.value("sum(my_app_requests)") == 0
            program.count()
            wait_for(lambda: server.value("sum(my_app_requests)") == COUNT, "the total")
            assert server.value("sum(increase(my_app_requests[1h]))") == COUNT
            assert server.value("count(my_app_requests)") == series
            program.end()


@case
def victoriametrics_counts_all_requests_of_four_threads(folder):
    count_for_victoriametrics(folder, "threads")


@case
def victoriametrics_counts_all_requests_of_four_processes(folder):
    skip_fork_under_sanitizers()
    count_for_victoriametrics(folder, "processes")


# ---- StatsD -----------------------------------------------------------------------------------------------------


def count_for_statsd(server, read, mode):
    config = config_of(type="socket", to=f"udp://127.0.0.1:{server.port}", format="statsd", aggregate="1s")
    with Program(mode, config) as program:
        program.count()
        wait_for(lambda: read().get("my_app.requests") == COUNT, "the total")
        program.end()


@case
def statsd_counts_all_requests_of_four_threads(folder):
    with Statsd(folder) as server:
        count_for_statsd(server, lambda: server.read("counters"), "threads")


@case
def collectd_counts_all_requests_of_four_threads(folder):
    with Collectd(folder) as server:
        count_for_statsd(server, server.read_counters, "threads")


@case
def collectd_counts_all_requests_of_four_processes(folder):
    skip_fork_under_sanitizers()
    with Collectd(folder) as server:
        count_for_statsd(server, server.read_counters, "processes")


# ---- Graphite ---------------------------------------------------------------------------------------------------


def totals_of(server):
    """Carbon hashes names with tags."""
    return [values[-1] for name, values in server.read_metrics().items() if name.startswith(("my_app.", "_tagged.")) and values]


def count_for_graphite(folder, mode):
    with Carbon(folder) as server:
        config = config_of(type="socket", to=f"tcp://127.0.0.1:{server.port}", format={"type": "graphite", "tags": mode == "processes"},
                           aggregate="1s")
        with Program(mode, config) as program:
            series = series_of(mode)
            wait_for(lambda: totals_of(server) == [0] * series, "the first totals")
            program.count()
            wait_for(lambda: sum(totals_of(server)) == COUNT, "the total")
            assert len(totals_of(server)) == series, server.read_metrics().keys()
            program.end()


@case
def graphite_counts_all_requests_of_four_threads(folder):
    count_for_graphite(folder, "threads")


@case
def graphite_counts_all_requests_of_four_processes(folder):
    skip_fork_under_sanitizers()
    count_for_graphite(folder, "processes")


main()
