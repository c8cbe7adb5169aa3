"""Real servers that tests send to. Each is started on a free loopback port with a folder of its own, and stopped by process id."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import Skip, wait_for


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Peer:
    """A server process. Subclasses name the program, its Debian package, and the path that reports readiness."""

    program = package = ready = ""

    def __init__(self, folder, port=None):
        self.path = shutil.which(self.program) or shutil.which(self.program, path="/usr/sbin:/usr/local/sbin")
        if not self.path:
            raise Skip(f"{self.program} is not installed (Debian: {self.package})")
        self.folder = os.path.join(folder, type(self).__name__)
        os.makedirs(self.folder, exist_ok=True)
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def command(self):
        raise NotImplementedError

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        end = time.monotonic() + 60
        while not self.is_ready():
            assert self.process.poll() is None, self.read_log()
            assert time.monotonic() < end, "not ready after a minute: " + self.read_log()
            time.sleep(0.02)

    def is_ready(self):
        try:
            self.get(self.ready)
            return True
        except (OSError, urllib.error.URLError):
            return False

    def read_log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def get(self, path, **query):
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.read().decode()

    def kill(self):
        """Kills it, as a power failure would."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class VictoriaMetrics(Peer):
    program, package, ready = "victoria-metrics", "victoria-metrics", "/health"

    def command(self):
        return [self.path, "-storageDataPath=" + self.folder, f"-httpListenAddr=127.0.0.1:{self.port}", "-retentionPeriod=100y",
                "-memory.allowedBytes=256MB", "-loggerLevel=ERROR"]

    def read_series(self, match):
        """{name: values in order of time} of all series that match."""
        self.get("/internal/force_flush")
        series = {}
        for record in map(json.loads, self.get("/api/v1/export", **{"match[]": match}).splitlines()):
            series.setdefault(record["metric"]["__name__"], []).extend(record["values"])
        return series

    def await_series(self, match, count):
        """Waits for `count` values, since VictoriaMetrics shows new series with a delay; returns read_series()."""
        wait_for(lambda: sum(map(len, self.read_series(match).values())) >= count, f"{count} values of {match}")
        return self.read_series(match)


class InfluxDB(Peer):
    program, package, ready = "influxd", "influxdb", "/ping"

    def command(self):
        config = os.path.join(self.folder, "influxdb.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'reporting-disabled = true\nbind-address = "127.0.0.1:{free_port()}"\n'
                       f'[meta]\ndir = "{self.folder}/meta"\n'
                       f'[data]\ndir = "{self.folder}/data"\nwal-dir = "{self.folder}/wal"\nquery-log-enabled = false\n'
                       f'[monitor]\nstore-enabled = false\n'
                       f'[http]\nbind-address = "127.0.0.1:{self.port}"\nlog-enabled = false\n{self.http_settings()}')
        return [self.path, "-config", config]

    def http_settings(self):
        return ""

    def query(self, text, **more):
        """The rows of a query's only series, as dictionaries; [] if there is none."""
        url = self.url + "/query?" + urllib.parse.urlencode(more)
        with urllib.request.urlopen(url, urllib.parse.urlencode({"q": text}).encode(), timeout=120) as response:
            result = json.load(response)["results"][0]
        assert "error" not in result, result
        series = result.get("series", [])
        return [dict(zip(series[0]["columns"], row)) for row in series[0].get("values", [])] if series else []


class Pushgateway(Peer):
    program, package, ready = "prometheus-pushgateway", "prometheus-pushgateway", "/-/ready"

    def command(self):
        return [self.path, f"--web.listen-address=127.0.0.1:{self.port}", f"--persistence.file={self.folder}/data", "--log.level=error"]


class Nginx(Peer):
    """A reverse proxy in front of another server, with limits that the other lacks."""

    program, package, ready = "nginx", "nginx-light", "/weir-ready"

    def __init__(self, folder, behind, server=""):
        self.behind, self.server = behind, server
        super().__init__(folder)

    def command(self):
        config = os.path.join(self.folder, "nginx.conf")
        temporary = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.geteuid() == 0 else ""
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"{user}daemon off;\nmaster_process off;\npid {self.folder}/pid;\nerror_log stderr error;\nevents {{}}\n"
                       f"http {{\naccess_log off;\n{temporary}server {{\nlisten 127.0.0.1:{self.port};\n{self.server}\n"
                       f"location = /weir-ready {{ return 204; }}\nlocation / {{ proxy_pass {self.behind}; }}\n}}\n}}\n")
        return [self.path, "-e", "stderr", "-p", self.folder, "-c", config]
