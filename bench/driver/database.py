"""A VictoriaMetrics of our own: on a free port of the loopback, with a folder of its own, ended by its id."""

import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from programs import Void, write_config

ROWS = re.compile(r'^vm_rows_inserted_total\{type="influx"\} (\d+)$', re.M)
BATCH = 5000


def find_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Database:
    def __init__(self, place):
        self.place = place
        self.folder = tempfile.mkdtemp(prefix="weir-bench-database-")
        self.url = self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """It stays for the whole benchmark; while nobody sends anything it has little to do."""
        if self.process:
            return
        program = shutil.which("victoria-metrics")
        if not program:
            raise Void("victoria-metrics is not installed")
        port = find_port()
        self.url = f"http://127.0.0.1:{port}"
        nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(
            [program, "-storageDataPath=" + self.folder, f"-httpListenAddr=127.0.0.1:{port}", "-memory.allowedBytes=512MB",
             "-loggerLevel=ERROR"], cwd=self.folder, **nothing)
        end = time.monotonic() + 60
        while self.count_rows() is None:
            if time.monotonic() > end or self.process.poll() is not None:
                raise Void("victoria-metrics could not be started")
            time.sleep(0.05)

    def count_rows(self):
        """How many values it has taken so far; None: it does not answer."""
        try:
            with urllib.request.urlopen(self.url + "/metrics", timeout=30) as answer:
                found = ROWS.search(answer.read().decode())
        except (OSError, urllib.error.URLError):
            return None
        return int(found.group(1)) if found else 0

    def wait_for_rows(self, expected):
        """Its counts are those of up to a second ago, or more where it gets no processor. Answers the last one."""
        end = time.monotonic() + 30
        while True:
            rows = self.count_rows()
            if rows is None or rows >= expected or time.monotonic() > end:
                return rows
            time.sleep(0.05)

    def measure(self, scale, name):
        """Sends values by weir ("weir") or by the peer ("curl"), and looks whether all have come."""
        self.start()
        before = self.count_rows()
        url = self.url + "/write"
        task = {"mode": "lines", **scale.sizes({"mode": "lines"})}
        if name == "weir":
            handler = {"type": "http", "url": url, "format": "influx", "batch": BATCH, "overflow": "block", "linger": "0s"}
            figures = self.place.measure("weir/adding", config=write_config(self.place, [handler]), way="name", handlers=1, **task)
        else:
            figures = self.place.measure("peers/curl", file=url, **task)
        rows = self.wait_for_rows(before + figures["values"])
        if rows is None or rows - before != figures["values"]:
            raise Void(f"{name}: {figures['values']} values were added, and {rows} - {before} have come")
        return figures
