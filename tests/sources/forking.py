"""Forking servers: what children hand over to a relay is exact on its Prometheus page, and gauges merge as they are declared."""

import json
import os
import re
import signal
import subprocess
import urllib.request

from harness import BUILD, SOURCE, WEIR, case, environment, free_port, main, run, skip_fork_under_sanitizers, start, wait_for

FORKING = os.path.join(BUILD, "examples", "forking")
REQUESTS = int(300 * max(1, min(5, float(os.environ.get("WEIR_TEST_FACTOR") or 1))))
GAUGES = {"server": {"open": {"instrument": "gauge", "merge": "sum"}, "largest": {"instrument": "gauge", "merge": "max"}, "last": "gauge"}}


class Relay:
    """`weir relay` with a page to scrape."""

    def __init__(self, folder, source=None, config=None, socket=None, **more):
        """source, or config: a file with the port as the variable PORT. socket: is there when it listens."""
        self.source, self.port, self.socket = source, free_port(), socket or os.path.join(folder, "s")
        self.config = config or os.path.join(folder, "relay.json")
        if source:
            self.write(GAUGES)
        self.process = start(WEIR, "relay", "-c", self.config, WEIR_LOG="info", PORT=self.port, **more)
        wait_for(lambda: self.process.poll() is not None or self.is_up(), "the page")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def write(self, metrics):
        config = {"settings": {"status": "off"}, "sources": {"in": self.source}, "metrics": metrics,
                  "handlers": {"page": {"type": "prometheus", "listen": f"127.0.0.1:{self.port}", "aggregate": "100ms"}}, "groups": {"*": "page"}}
        with open(self.config + ".new", "w", encoding="utf-8") as file:
            json.dump(config, file)
        os.rename(self.config + ".new", self.config)

    def is_up(self):
        try:
            return os.path.exists(self.socket) and bool(self.page())
        except OSError:
            return False

    def page(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as response:
            return response.read().decode()

    def value(self, name):
        """That of the one series of the name; None: there is none."""
        found = re.findall(rf"^server_{name}(?:{{[^}}]*}})? (\S+)$", self.page(), re.M)
        assert len(found) <= 1, found
        return float(found[0]) if found else None

    def await_value(self, name, wanted):
        wait_for(lambda: self.process.poll() is not None or self.value(name) == wanted, f"{name} {wanted}, not {self.value(name)}")
        assert self.process.poll() is None

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=240)
        assert self.process.returncode == 0, log
        return log


def forward(folder, **more):
    """(source, handler)"""
    to = "unix:" + os.path.join(folder, "s")
    return {"type": "forward", "listen": [to]}, {"type": "forward", "to": to, "retry_min": "5ms", **more}


def sender_config(handler):
    return {"settings": {"shutdown_timeout": "5m", "status": "off"}, "handlers": {"relay": handler}, "groups": {"*": "relay"}}


class Sender:
    """A process that hands over what it is given: its levels are known."""

    def __init__(self, handler):
        config = {**sender_config(handler), "metrics": {"server": {"*": "gauge"}}}
        self.process = subprocess.Popen([WEIR, "emit", "-g", "server", "-"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(WEIR_CONFIG=config), text=True)

    def set(self, **levels):
        self.process.stdin.write("".join(json.dumps({name: level}) + "\n" for name, level in levels.items()))
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=240) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


# ---- Forking servers -----------------------------------------------------------------------------


def page_configs(folder):
    """The configurations of the page by their names, and the places in them as variables."""
    with open(os.path.join(SOURCE, "doc", "forking.md"), encoding="utf-8") as file:
        configs = dict(re.findall(r"^```jsonc\n// (\S+)\n(.*?)^```$", file.read(), re.M | re.S))
    for name, text in configs.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return configs, {"RELAY_JOURNAL": os.path.join(folder, "journal"), "STATSD_SOCKET": os.path.join(folder, "d"), "SPOOL": os.path.join(folder, "spool"),
                     "XDG_RUNTIME_DIR": folder}


@case
def servers_with_the_configurations_of_the_page_are_counted_exactly(folder):
    skip_fork_under_sanitizers()
    configs, places = page_configs(folder)
    assert set(configs) == {"relay.json", "workers.json", "each.json", "datagrams.json"}, configs
    os.mkdir(os.path.join(folder, "weir"))
    with Relay(folder, config=os.path.join(folder, "relay.json"), socket=os.path.join(folder, "d"), **places) as relay:
        ways = (("workers.json", "workers"), ("each.json", "each"), ("datagrams.json", "each"), ("datagrams.json", "workers"))
        for number, (config, way) in enumerate(ways, 1):
            # a child that the machine stops for a while waits all the same
            text = configs[config].replace('"200ms"', '"5m"')
            done = run(FORKING, way, REQUESTS, 8, WEIR_CONFIG=text, timeout=600, **places)
            assert (done.returncode, done.stderr[:1000]) == (0, ""), (config, way)
            relay.await_value("requests_total", number * REQUESTS)
            relay.await_value("request_bytes_count", number * REQUESTS)
            relay.await_value("request_bytes_sum", number * REQUESTS * (REQUESTS - 1) / 2)
            if config != "datagrams.json":
                relay.await_value("open", 0)
                assert 0 <= relay.value("largest") < REQUESTS
        relay.end()


# ---- Gauges --------------------------------------------------------------------------------------


@case
def gauges_merge_as_they_are_declared_while_senders_come_and_go(folder):
    source, handler = forward(folder, ack="taken")
    with Relay(folder, source) as relay:
        first, second, third = (Sender(handler) for _ in range(3))
        first.set(open=3, largest=30, last=1)
        relay.await_value("open", 3)
        second.set(open=4, largest=50, last=2)
        relay.await_value("open", 7)
        third.set(open=0.5, largest=-1, last=3)
        relay.await_value("open", 7.5)
        relay.await_value("largest", 50)
        relay.await_value("last", 3)
        first.set(open=1, last=4)
        relay.await_value("open", 5.5)
        relay.await_value("last", 4)
        second.set(largest=10)
        relay.await_value("largest", 30)
        second.kill()
        relay.await_value("open", 1.5)
        first.end()
        relay.await_value("open", 0.5)
        relay.await_value("largest", -1)
        third.end()
        relay.await_value("open", 0)
        assert relay.value("largest") == -1 and relay.value("last") == 4
        relay.end()


@case
def senders_that_lose_the_relay_count_again_with_what_they_send_next(folder):
    source, handler = forward(folder, ack="taken", aggregate="50ms")
    relay = Relay(folder, source)
    first, second = Sender(handler), Sender(handler)
    with relay:
        first.set(open=3)
        second.set(open=4)
        relay.await_value("open", 7)
        relay.process.kill()
    with Relay(folder, source) as relay:
        relay.await_value("open", 7)
        second.set(open=1)
        relay.await_value("open", 4)
        first.end()
        relay.await_value("open", 1)
        second.end()
        relay.await_value("open", 0)
        relay.end()


@case
def a_reload_changes_how_a_gauge_merges_and_a_new_source_counts_each_sender_once(folder):
    source, handler = forward(folder, ack="taken")
    with Relay(folder, source) as relay:
        first, second = Sender(handler), Sender(handler)
        first.set(open=3)
        second.set(open=4)
        relay.await_value("open", 7)
        relay.write({"server": {"open": {"instrument": "gauge", "merge": "max"}}})
        relay.process.send_signal(signal.SIGHUP)
        wait_for(lambda: first.set(open=2) or relay.value("open") == 4, "the maximum")
        relay.source["connections"] = 10  # another source takes the place of this one
        relay.write(GAUGES)
        relay.process.send_signal(signal.SIGHUP)
        wait_for(lambda: first.set(open=3) or second.set(open=4) or relay.value("open") == 7, "the sum")
        first.end()
        relay.await_value("open", 4)
        second.end()
        relay.await_value("open", 0)
        relay.end()


if __name__ == "__main__":
    main()
