"""A private VictoriaMetrics server: on a free loopback port, with its own data folder, terminated by its PID."""

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
    def __init__(self, workspace):
        self.workspace = workspace
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
        """Starts the server, which runs for the whole benchmark; it is nearly idle while nothing is sent."""
        if self.process:
            return
        program = shutil.which("victoria-metrics")
        if not program:
            raise Void("victoria-metrics is not installed")
        port = find_port()
        self.url = f"http://127.0.0.1:{port}"
        no_streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(
            [program, "-storageDataPath=" + self.folder, f"-httpListenAddr=127.0.0.1:{port}", "-memory.allowedBytes=512MB",
             "-loggerLevel=ERROR"], cwd=self.folder, **no_streams)
        end = time.monotonic() + 60
        while self.count_rows() is None:
            if time.monotonic() > end or self.process.poll() is not None:
                raise Void("victoria-metrics could not be started")
            time.sleep(0.05)

    def count_rows(self):
        """Returns how many values the server has accepted so far, or None if it does not respond."""
        try:
            with urllib.request.urlopen(self.url + "/metrics", timeout=30) as response:
                found = ROWS.search(response.read().decode())
        except (OSError, urllib.error.URLError):
            return None
        return int(found.group(1)) if found else 0

    def wait_for_rows(self, expected):
        """Waits until the server has counted the expected rows, or 30 s. Its counts are up to a second old, or older if it gets no CPU
        time. Returns the last count."""
        end = time.monotonic() + 30
        while True:
            rows = self.count_rows()
            if rows is None or rows >= expected or time.monotonic() > end:
                return rows
            time.sleep(0.05)

    def measure(self, scale, name):
        """Sends values with weir ("weir") or with the peer ("curl"), and checks that all of them arrived."""
        self.start()
        before = self.count_rows()
        url = self.url + "/write"
        task = {"mode": "lines", **scale.sizes({"mode": "lines"})}
        if name == "weir":
            handler = {"type": "http", "url": url, "format": "influx", "batch": BATCH, "overflow": "block", "linger": "0s"}
            figures = self.workspace.measure("weir/adding", config=write_config(self.workspace, [handler]), way="name", handlers=1, **task)
        else:
            figures = self.workspace.measure("peers/curl", file=url, **task)
        rows = self.wait_for_rows(before + figures["values"])
        if rows is None or rows - before != figures["values"]:
            raise Void(f"{name}: {figures['values']} values were added, {rows} - {before} arrived")
        return figures
