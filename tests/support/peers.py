"""Real servers that tests send to. Each is started on a free loopback port with a folder of its own, and stopped by process id."""

import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import Skip, free_port, wait_for


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
        end = time.monotonic() + 240
        while not self.is_ready():
            assert self.process.poll() is None, self.read_log()
            assert time.monotonic() < end, "not ready after four minutes: " + self.read_log()
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
        with urllib.request.urlopen(url, timeout=240) as response:
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
                "-memory.allowedBytes=256MB", "-loggerLevel=ERROR", "-search.latencyOffset=0s"]

    def read_series(self, match):
        """{name: values in order of time} of all series that match."""
        self.get("/internal/force_flush")
        series = {}
        for record in map(json.loads, self.get("/api/v1/export", **{"match[]": match}).splitlines()):
            series.setdefault(record["metric"]["__name__"], []).extend(record["values"])
        return series

    def value(self, text):
        """The value of a query that has one; None: none yet."""
        self.get("/internal/force_flush")
        rows = json.loads(self.get("/api/v1/query", query=text, nocache=1))["data"]["result"]
        assert len(rows) <= 1, rows
        return float(rows[0]["value"][1]) if rows else None

    def read_values(self, match):
        """The values of each series that matches, in order of time."""
        self.get("/internal/force_flush")
        series = {}
        for record in map(json.loads, self.get("/api/v1/export", **{"match[]": match}).splitlines()):
            series.setdefault(json.dumps(record["metric"], sort_keys=True), []).extend(record["values"])
        return list(series.values())

    def await_series(self, match, count):
        """Waits for `count` values, since VictoriaMetrics shows new series with a delay; returns read_series()."""
        wait_for(lambda: sum(map(len, self.read_series(match).values())) >= count, f"{count} values of {match}")
        return self.read_series(match)


class Prometheus(Peer):
    """Scrapes the targets each second."""

    program, package, ready = "prometheus", "prometheus", "/-/ready"

    def __init__(self, folder, *targets):
        self.targets = targets
        super().__init__(folder)

    def command(self):
        config = os.path.join(self.folder, "prometheus.json")
        with open(config, "w", encoding="utf-8") as file:  # YAML includes JSON
            json.dump({"global": {"scrape_interval": "1s"},
                       "scrape_configs": [{"job_name": "app", "static_configs": [{"targets": self.targets}]}]}, file)
        return [self.path, "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(self.folder, "data"),
                f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error"]

    def query(self, text, **more):
        """{labels as sorted items: value}"""
        found = json.loads(self.get("/api/v1/query", query=text, **more))
        assert found["status"] == "success", found
        return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in found["data"]["result"]}

    def value(self, text, **more):
        rows = self.query(text, **more)
        assert len(rows) <= 1, rows
        return next(iter(rows.values()), None)


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
        with urllib.request.urlopen(url, urllib.parse.urlencode({"q": text}).encode(), timeout=240) as response:
            result = json.load(response)["results"][0]
        assert "error" not in result, result
        series = result.get("series", [])
        return [dict(zip(series[0]["columns"], row)) for row in series[0].get("values", [])] if series else []


class Pushgateway(Peer):
    program, package, ready = "prometheus-pushgateway", "prometheus-pushgateway", "/-/ready"

    def command(self):
        return [self.path, f"--web.listen-address=127.0.0.1:{self.port}", f"--persistence.file={self.folder}/data", "--log.level=error"]


class Collectd(Peer):
    """Its plugin statsd, which writes each second's values to CSV files."""

    program, package = "collectd", "collectd-core"

    def __init__(self, folder):
        super().__init__(folder, free_port(socket.SOCK_DGRAM))

    def command(self):
        config = os.path.join(self.folder, "collectd.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'Hostname "here"\nFQDNLookup false\nBaseDir "{self.folder}"\nPIDFile "{self.folder}/pid"\nInterval 1\n'
                       f'LoadPlugin csv\nLoadPlugin statsd\n<Plugin csv>\nDataDir "{self.folder}/csv"\n</Plugin>\n'
                       f'<Plugin statsd>\nHost "127.0.0.1"\nPort "{self.port}"\n</Plugin>\n')
        return [self.path, "-f", "-C", config]

    def is_ready(self):
        with open("/proc/net/udp", encoding="ascii") as file:
            return f"0100007F:{self.port:04X}" in file.read()

    def read_gauges(self):
        return self._read("gauge")

    def read_counters(self):
        """Their totals since the start."""
        return self._read("derive")

    def _read(self, kind):
        """{name: the last value written}"""
        folder, found = os.path.join(self.folder, "csv", "here", "statsd"), {}
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="ascii") as file:
                rows = [line for line in file if line.endswith("\n")][1:]
            if name.startswith(kind + "-") and rows:
                found[name[len(kind + "-"):-len("-2000-01-01")]] = float(rows[-1].split(",")[1])
        return found


class Statsd(Peer):
    """The original. It is not flushed, so its counters are totals."""

    program, package = "node", "nodejs; npm install -g statsd"

    def __init__(self, folder):
        places = [os.environ.get("WEIR_TEST_STATSD", ""), "/usr/lib/node_modules/statsd/stats.js", "/usr/local/lib/node_modules/statsd/stats.js"]
        self.script = next(filter(os.path.exists, places), None)
        if not self.script:
            raise Skip("statsd is not installed (npm install -g statsd)")
        self.manager = free_port()
        super().__init__(folder, free_port(socket.SOCK_DGRAM))

    def command(self):
        config = os.path.join(self.folder, "config.js")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"address": "127.0.0.1", "port": self.port, "mgmt_address": "127.0.0.1", "mgmt_port": self.manager,
                       "flushInterval": 3600000, "backends": ["./backends/console"]}, file)
        return [self.path, self.script, config]

    def is_ready(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.manager)) == 0

    def read(self, kind):
        """{name: value}; kind: counters or gauges."""
        with socket.create_connection(("127.0.0.1", self.manager), timeout=240) as connection:
            connection.sendall(kind.encode() + b"\n")
            text = b""
            while not text.endswith(b"END\n\n"):
                text += connection.recv(65536)
        return {name: float(value) for name, value in re.findall(r"'?([\w.]+)'?: ([-+.\de]+)", text.decode())}


class Carbon(Peer):
    """Graphite's receiver, which writes a file for each metric."""

    program, package = "carbon-cache", "graphite-carbon"

    def command(self):
        for name in ("conf", "log"):
            os.makedirs(os.path.join(self.folder, name + ".d"), exist_ok=True)
        config = os.path.join(self.folder, "conf.d", "carbon.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[cache]\nSTORAGE_DIR = {self.folder}\nLOCAL_DATA_DIR = {self.folder}/whisper\nCONF_DIR = {self.folder}/conf.d\n"
                       f"LOG_DIR = {self.folder}/log.d\nPID_DIR = {self.folder}\nMAX_UPDATES_PER_SECOND = inf\n"
                       f"MAX_CREATES_PER_MINUTE = inf\nENABLE_LOGROTATION = False\nENABLE_TAGS = False\nLINE_RECEIVER_INTERFACE = 127.0.0.1\n"
                       f"LINE_RECEIVER_PORT = {self.port}\nPICKLE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = {free_port()}\n"
                       f"CACHE_QUERY_INTERFACE = 127.0.0.1\nCACHE_QUERY_PORT = {free_port()}\nWHISPER_AUTOFLUSH = True\n")
        with open(os.path.join(self.folder, "conf.d", "storage-schemas.conf"), "w", encoding="utf-8") as file:
            file.write("[all]\npattern = .*\nretentions = 1s:1h\n")
        pid = os.path.join(self.folder, "carbon.pid")
        if os.path.exists(pid):  # of one that was killed
            os.remove(pid)
        return [self.path, "--config=" + config, "--pidfile=" + pid, "--nodaemon", "start"]

    def is_ready(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def read_metrics(self):
        """{metric: its values in order of time}, of the files. A file: metadata, one archive's place and size, then pairs of time and
        value (big endian)."""
        found = {}
        root = os.path.join(self.folder, "whisper")
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    data = file.read()
                if len(data) < 28:
                    continue  # not complete yet
                place, _, count = struct.unpack(">LLL", data[16:28])
                points = [struct.unpack(">Ld", data[at:at + 12]) for at in range(place, place + 12 * count, 12) if at + 12 <= len(data)]
                key = os.path.relpath(path, root).replace("/", ".").removesuffix(".wsp")
                found[key] = [value for time_s, value in sorted(points) if time_s]
        return found

    def read_log(self):
        """All of it: it names each line that is not valid."""
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()


class Nginx(Peer):
    """A reverse proxy in front of another server, with limits that the other lacks."""

    program, package, ready = "nginx", "nginx-light", "/weir-ready"

    def __init__(self, folder, behind, server="", http=""):
        self.behind, self.server, self.http = behind, server, http
        super().__init__(folder)

    def command(self):
        config = os.path.join(self.folder, "nginx.conf")
        temporary = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.geteuid() == 0 else ""
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"{user}daemon off;\nmaster_process off;\npid {self.folder}/pid;\nerror_log stderr error;\nevents {{}}\n"
                       f"http {{\naccess_log off;\n{self.http}\n{temporary}server {{\nlisten 127.0.0.1:{self.port};\n{self.server}\n"
                       f"location = /weir-ready {{ return 204; }}\nlocation / {{ proxy_pass {self.behind}; }}\n}}\n}}\n")
        return [self.path, "-e", "stderr", "-p", self.folder, "-c", config]


class PostgreSQL(Peer):
    """Takes passwords by SCRAM only, and connections by TLS only. It refuses to run as root: then it runs as nobody."""

    program, package = "postgres", "postgresql"
    password = "geheim"

    def __init__(self, folder, certificate):
        self.certificate = certificate
        found = glob.glob("/usr/lib/postgresql/*/bin")
        self.programs = found[-1] if found else None
        if self.programs:
            os.environ["PATH"] += ":" + self.programs
        super().__init__(folder)

    def as_another_user(self, *command):
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command] if os.geteuid() == 0 else list(command)

    def initialize(self, data):
        """Makes the database with its certificate, all owned by the user who runs it."""
        password = os.path.join(self.folder, "password")
        files = [shutil.copy(path, self.folder) for path in self.certificate]
        with open(password, "w", encoding="ascii") as file:
            file.write(self.password)
        if os.geteuid() == 0:
            os.chmod(os.path.dirname(self.folder), 0o711)
            for path in (self.folder, password, *files):
                os.chown(path, 65534, 65534)
        os.chmod(files[1], 0o600)
        command = self.as_another_user("initdb", "-D", data, "-U", "weir", "--pwfile=" + password, "--no-sync", "-A", "scram-sha-256",
                                       "-E", "UTF8", "--no-locale")
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with open(os.path.join(data, "pg_hba.conf"), "w", encoding="ascii") as file:
            file.write("hostssl all all 127.0.0.1/32 scram-sha-256\n")

    def command(self):
        data, (certificate, key) = os.path.join(self.folder, "data"), (os.path.basename(path) for path in self.certificate)
        if not os.path.exists(data):
            self.initialize(data)
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "off", "ssl": "on",
                    "ssl_cert_file": os.path.join(self.folder, certificate), "ssl_key_file": os.path.join(self.folder, key)}
        return self.as_another_user("postgres", "-D", data, *(word for key, value in settings.items() for word in ("-c", f"{key}={value}")))

    def is_ready(self):
        return subprocess.run(["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode == 0

    @property
    def uri(self):
        """For libpq. It trusts this server's certificate only."""
        return (f"host=127.0.0.1 port={self.port} user=weir password={self.password} dbname=postgres sslmode=verify-full "
                f"sslrootcert={self.certificate[0]}")

    def crash(self):
        """An immediate shutdown: all of the server's processes end at once, and the next start recovers from its log."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def count_rows(self, table="weir_samples"):
        """0: also if the server is not there."""
        done = subprocess.run(["psql", "-X", "-At", "-c", f"SELECT count(*) FROM {table}", self.uri], capture_output=True, text=True, check=False)
        return int(done.stdout) if done.returncode == 0 else 0

    def query(self, text):
        """The lines of the result."""
        done = subprocess.run(["psql", "-X", "-At", "-c", text, self.uri], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


class Redis(Peer):
    """Writes each command to its file before it replies. Listens at `url`, and at a Unix socket."""

    program, package = "redis-server", "redis-server"
    password = "geheim"

    def __init__(self, folder):
        self.socket = os.path.join(folder, "redis.sock")
        super().__init__(folder)
        self.url = f"tcp://127.0.0.1:{self.port}"

    def command(self):
        return [self.path, "--bind", "127.0.0.1", "--port", str(self.port), "--unixsocket", self.socket, "--dir", self.folder, "--save", "",
                "--appendonly", "yes", "--appendfsync", "always", "--requirepass", self.password]

    def is_ready(self):
        try:
            return self.do("PING") == "PONG"
        except (OSError, RuntimeError):  # it loads its file, or is not there
            return False

    def do(self, *words):
        """Returns the reply to a command: texts, numbers, lists and None."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(240)
            connection.connect(self.socket)
            for command in (("AUTH", self.password), words):
                parts = [str(word).encode() for word in command]
                connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            with connection.makefile("rb") as replies:
                self._read_reply(replies)
                return self._read_reply(replies)

    def _read_reply(self, replies):
        line = replies.readline().decode().rstrip()
        kind, rest = line[:1], line[1:]
        if kind == "*":
            return [self._read_reply(replies) for _ in range(int(rest))]
        if kind == "$":
            return replies.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
        if kind == "-" or not kind:
            raise RuntimeError(rest or "the server closed the connection")
        return int(rest) if kind == ":" else rest

    def count(self, stream="weir"):
        """How many entries a stream has. 0: also if the server is not there."""
        try:
            return self.do("XLEN", stream)
        except (OSError, RuntimeError):
            return 0

    def read(self, stream="weir"):
        """The fields of each entry."""
        return [dict(zip(fields[::2], fields[1::2])) for _, fields in self.do("XRANGE", stream, "-", "+")]


class Mosquitto(Peer):
    """Keeps for a client whatever it has not acknowledged."""

    program, package = "mosquitto", "mosquitto, mosquitto-clients"

    def __init__(self, folder, *lines):
        """lines: of its configuration, in place of the one that lets everybody in."""
        self.lines = lines or ["allow_anonymous true"]
        super().__init__(folder)
        self.address = f"tcp://127.0.0.1:{self.port}"

    def command(self):
        if not shutil.which("mosquitto_pub"):
            raise Skip(f"mosquitto_pub is not installed (Debian: {self.package})")
        config = os.path.join(self.folder, "mosquitto.conf")
        user = "user root\n" if os.geteuid() == 0 else ""
        with open(config, "w", encoding="ascii") as file:
            file.write(f"{user}max_queued_messages 0\npersistence true\npersistence_location {self.folder}/\nautosave_interval 0\n"
                       f"listener {self.port} 127.0.0.1\n" + "".join(f"{line}\n" for line in self.lines))
        return [self.path, "-c", config]

    def is_ready(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def publish(self, topic, lines, *more, qos=1):
        """A message for each line. Returns when the broker has all of them."""
        command = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(self.port), "-t", topic, "-q", str(qos), *more]
        command += ["-l"] if not more else []
        done = subprocess.run(command, input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr

    def save(self):
        """Has it write its file, as it does from time to time."""
        path = os.path.join(self.folder, "mosquitto.db")
        before = os.stat(path).st_ino if os.path.exists(path) else 0
        self.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(path) and os.stat(path).st_ino != before, "the broker's file")


def prometheus_client():
    """Prometheus' client for Python."""
    sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's package is, whatever Python runs this
    try:
        import prometheus_client as client
        import prometheus_client.openmetrics.exposition
        import prometheus_client.openmetrics.parser
        import prometheus_client.parser
    except ImportError:
        raise Skip("prometheus_client is not installed (Debian: python3-prometheus-client)") from None
    return client


def prometheus_parsers():
    """Its parsers: of the text format, and of OpenMetrics."""
    client = prometheus_client()
    return client.parser.text_string_to_metric_families, client.openmetrics.parser.text_string_to_metric_families
