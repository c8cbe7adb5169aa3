"""`weir serve` with its pages opened in a browser, and programs that send values to it."""

import datetime
import json
import subprocess
import urllib.parse

from collectors import RUN
from harness import WEIR, environment, wait_for
from serving import Serving
from sourced import keep

INSTRUMENTS = {"*": {"*.success": "counter", "*.failure": "counter", "*.duration.ms": {"instrument": "histogram", "unit": "ms"},
                     "sessions": "gauge", "queue.bytes": {"instrument": "gauge", "unit": "bytes"}}}


class Served(Serving):
    def __init__(self, folder):
        self.senders, self.browser = [], None
        super().__init__(folder)
        self.base = f"http://127.0.0.1:{self.port}"

    # ---- Pages

    def open(self, browser, place=""):
        """Opens a page; the first time by the address that begins a session."""
        if not self.browser:
            browser.open("about:blank")
            browser.console()  # of an earlier case
            browser.addresses()
            browser.open(self.url)
            wait_for(lambda: browser.driver.current_url == self.base + "/", "the start page")
        self.browser = browser
        browser.open(f"{self.base}/{place}")

    # ---- Values

    def sender(self, group):
        """A program that adds each line of its standard input, and stays. Returns a function that takes values; "__" in a name is a dot."""
        config = {"handlers": {"to": {"type": "forward", "to": "unix:" + self.socket}}, "metrics": INSTRUMENTS, "groups": {"*": "to"}}
        program = subprocess.Popen([WEIR, "emit", "-g", group, "-"], env=environment(WEIR_CONFIG=config), stdin=subprocess.PIPE, text=True)
        self.senders.append(keep(program))

        def add(labels=None, metadata=None, time=None, **values):
            for name, value in values.items():
                line = {"timestamp": time, "group": group, "name": name.replace("__", "."), "value": value, "labels": labels or {},
                        "metadata": metadata}
                program.stdin.write(json.dumps({key: part for key, part in line.items() if part is not None}) + "\n")
            program.stdin.flush()
        return add

    def add_run(self, name, **values):
        """values: NAME=[...], each at the time when it is sent: an archive has those between the run's start and end. Returns the run's id."""
        run = json.loads(self.send("POST", "/api/runs/", {**RUN, "name": name}))["id"]
        for metric, list_of_values in values.items():
            for value in list_of_values:
                now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                self.send("POST", "/api/metrics/", {"run_id": run, "name": metric, "value": value, "metadata": "", "cumulative": "False",
                                                    "date": now})
        return run

    def finish_run(self, run, **change):
        self.send("PATCH", f"/api/runs/{run}/", json.dumps({"state": "finished", **change}), "application/json")

    def send(self, method, path, body, kind="application/x-www-form-urlencoded"):
        status, _, reply = self.ask(path, method, urllib.parse.urlencode(body) if isinstance(body, dict) else body, Content_Type=kind)
        assert status in (200, 201), (status, reply)
        return reply

    # ---- The end

    def settle(self):
        """Ends the senders; then all they have added is in the store, and nothing was dropped."""
        for program in self.senders:
            program.stdin.close()
            assert program.wait(timeout=300) == 0
        self.senders = []

        def is_settled():
            handler = self.status()["handlers"][0]  # its ledger is right
            assert not handler["dropped"], handler
            return handler["delivered"] == handler["offered"] + handler["recovered"]
        wait_for(is_settled, "all values to be stored")

    def end(self):
        self.settle()
        return super().end()
