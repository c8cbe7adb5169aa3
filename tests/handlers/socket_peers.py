"""The socket handler with real servers: collectd's plugin for StatsD, and Graphite's carbon."""

import json
import os
import threading

from fifos import ScriptedApp
from harness import BUILD, SOURCE, WEIR, assert_ledgers, case, main, run, skip_fork_under_sanitizers, wait_for, without_waits
from peers import Carbon, Collectd

COUNTER = os.path.join(BUILD, "tests", "support", "counter")
SCAN = os.path.join(BUILD, "examples", "scan")
NAMES = [f"value{number}" for number in range(200)]


def example(name):
    return os.path.join(SOURCE, "examples", "config", name)


def config_of(to, name, **options):
    handler = {"type": "socket", "to": to, "format": name, "overflow": "block", "block_timeout": "1h", "retry_min": "5ms",
               "retry_max": "50ms", **options}
    return {"settings": {"shutdown_timeout": "20s"}, "handlers": {"pipe": handler}, "groups": {"*": "pipe"}}


def summaries_to(to, form, **options):
    """A handler that gets summaries never makes a call wait, so `overflow` is not for it."""
    config = config_of(to, form, aggregate="20ms", **options)
    for option in ("overflow", "block_timeout"):
        del config["handlers"]["pipe"][option]
    return config


def count_13004(config, *arguments):
    done = run(COUNTER, "-n", 3251, *arguments, WEIR_CONFIG=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done
    for report in map(json.loads, done.stdout.splitlines()):
        assert_ledgers(report)


def emit(config, values, **env):
    """Adds values, which must all be delivered."""
    done = run(WEIR, "emit", "-v", "-g", "my_app", *(f"{name}={value}" for name, value in values.items()), WEIR_CONFIG=config, **env)
    assert done.returncode == 0 and done.stdout.endswith(f": {len(values)} delivered\n") and without_waits(done.stderr) == "", done


def assert_becomes(read, expected, what):
    try:
        wait_for(lambda: read() == expected, what)
    except AssertionError:
        found = read()
        wrong = {name: (found.get(name), expected.get(name)) for name in {*found, *expected} if found.get(name) != expected.get(name)}
        raise AssertionError(f"{what}: (found, expected) {wrong}") from None


class Adder:
    """A program that adds 0, 1, 2, ... under each name until the test ends it."""

    def __init__(self, folder, config, names):
        self.app, self.names = ScriptedApp(config, folder), names
        self.count, self.repeated, self.ends = 0, 0, False
        self.thread = threading.Thread(target=self._add, daemon=True)
        self.thread.start()

    def _add(self):
        while not self.ends:
            for name in self.names:
                self.app.do("add", name, self.count)
            self.count += 1

    def log(self):
        return self.app.stderr_text()

    def pause(self):
        """Returns the last value, which each name has."""
        self.ends = True
        self.thread.join()
        return self.count - 1

    def repeat(self):
        """While it pauses: adds the last value once more."""
        for name in self.names:
            self.app.do("add", name, self.count - 1)
        self.repeated += 1

    def end(self):
        """Delivers everything. Returns how many different values each name has."""
        self.pause()
        result, ledger = self.app.do("flush", -1), self.app.ledger()
        assert result["code"] == 0 and ledger["delivered"] == (self.count + self.repeated) * len(self.names), (result, ledger, self.log())
        self.app.end()
        return self.count


# ---- StatsD ----------------------------------------------------------------------------------------------------


@case
def statsd_shows_every_gauge_negative_ones_too(folder):
    with Collectd(folder) as server:
        values = {name: (number - 100) * 1.5 for number, name in enumerate(NAMES)}
        emit(config_of(f"udp://127.0.0.1:{server.port}", "statsd", linger="20ms"), values)
        assert_becomes(server.read_gauges, {"my_app." + name: value for name, value in values.items()}, "the gauges")


@case
def statsd_counts_each_request_of_threads_and_processes_once(folder):
    """The increments of intervals, and each increment by itself."""
    skip_fork_under_sanitizers()
    with Collectd(folder) as server:
        to, total = f"udp://127.0.0.1:{server.port}", 0
        for arguments in (["-t", 4], ["-p", 4]):
            count_13004(summaries_to(to, "statsd"), *arguments)
            total += 13004
            assert_becomes(server.read_counters, {"app.requests": total}, "the counter")
        config = {**config_of(to, "statsd"), "metrics": {"app": {"requests": "counter"}}}
        done = run(WEIR, "emit", "-g", "app", *["requests=1"] * 100, WEIR_CONFIG=config)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        assert_becomes(server.read_counters, {"app.requests": total + 100}, "the counter")


@case
def statsd_that_was_killed_and_restarted_shows_the_last_values(folder):
    """The kernel drops datagrams that come faster than they are read, also the last one: it is sent until it is read."""
    with Collectd(folder) as server:
        config = config_of(f"udp://127.0.0.1:{server.port}", "statsd")
        adder = Adder(folder, config, ["t0"])
        wait_for(lambda: server.read_gauges().get("my_app.t0", 0) > 0, "values")
        server.kill()
        wait_for(adder.log, "a message")
        assert adder.log().startswith("weir: warning: pipe: send 127.0.0.1"), adder.log()
        server.start()
        last = adder.pause()

        def read_again():
            adder.repeat()
            return server.read_gauges()

        assert_becomes(read_again, {"my_app.t0": float(last)}, "the last value")
        adder.end()


@case
def the_example_for_statsd_works(folder):
    with Collectd(folder) as server:
        done = run(SCAN, "-c", example("statsd.json"), os.path.join(SOURCE, "examples"), STATSD=f"127.0.0.1:{server.port}")
        assert done.returncode == 0, done
        wait_for(lambda: any(name.startswith("scan.") for name in server.read_gauges()), "gauges of scan")


# ---- Graphite --------------------------------------------------------------------------------------------------


def of_my_app(server):
    """{metric: its last value}"""
    return {name: values[-1] for name, values in server.read_metrics().items() if name.startswith("my_app.") and values}


@case
def graphite_stores_every_value(folder):
    with Carbon(folder) as server:
        values = {name: (number - 100) * 1.5 for number, name in enumerate(NAMES)}
        emit(config_of(f"tcp://127.0.0.1:{server.port}", "graphite"), values)
        assert_becomes(lambda: of_my_app(server), {"my_app." + name: value for name, value in values.items()}, "the metrics")


@case
def graphite_has_the_total_of_threads_and_of_processes(folder):
    skip_fork_under_sanitizers()
    with Carbon(folder) as server:
        to = f"tcp://127.0.0.1:{server.port}"

        def totals():
            """Carbon hashes names with tags."""
            return [values[-1] for name, values in server.read_metrics().items() if name.startswith(("app.", "_tagged.")) and values]

        count_13004(summaries_to(to, "graphite"), "-t", 4)
        wait_for(lambda: totals() == [13004], "the total")
        count_13004(summaries_to(to, {"type": "graphite", "tags": True}), "-p", 4)
        wait_for(lambda: sorted(totals()) == [3251] * 4 + [13004], "the totals of four processes")


@case
def graphite_that_was_killed_and_restarted_stores_what_comes_then(folder):
    """What the killed one had read, but not written to its files, is lost with it: all later values are compared."""
    with Carbon(folder) as server:
        config = config_of(f"tcp://127.0.0.1:{server.port}", "graphite")
        names = [f"t{number}" for number in range(8)]
        adder = Adder(folder, config, names)
        wait_for(lambda: len(of_my_app(server)) == len(names), "the metrics")
        server.kill()
        wait_for(adder.log, "a message")
        assert adder.log().startswith("weir: warning: pipe: "), adder.log()
        server.start()
        count = adder.end()
        assert_becomes(lambda: of_my_app(server), {"my_app." + name: count - 1.0 for name in names}, "the last values")
        stored = {value for name, values in server.read_metrics().items() if name.startswith("my_app.") for value in values}
        assert stored <= set(range(count)), stored
        assert "invalid" not in server.read_log(), server.read_log()


@case
def the_example_for_graphite_works(folder):
    with Carbon(folder) as server:
        done = run(SCAN, "-c", example("graphite.json"), os.path.join(SOURCE, "examples"), GRAPHITE=f"127.0.0.1:{server.port}")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        wait_for(lambda: any(name.startswith("scan.") for name in server.read_metrics()), "metrics of scan")


main()
