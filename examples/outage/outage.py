"""A web server under load whose database is killed and started again: nothing is lost.

    outage.py SERVER WEIR [SECONDS]

SERVER and WEIR are the programs built from examples/server.c and tools/. Needs influxd (Debian: influxdb). Shows what goes on, and ends with
the exit status 0 if the database has every value that the server has measured."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
THREADS, WAIT_S = 4, 120
VALUES = ("latency", "bytes")  # of each request
COLOURED = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def say(text="", end="\n"):
    print(text, end=end, flush=True)


def paint(text, code):
    return f"\033[{code}m{text}\033[0m" if COLOURED else text


def wait_until(is_true, what):
    end = time.monotonic() + WAIT_S
    while not is_true():
        if time.monotonic() > end:
            sys.exit(f"outage: waited too long for {what}")
        time.sleep(0.02)


def find_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Database:
    """InfluxDB: what it has accepted survives its death."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, find_port(), None
        self.url = f"http://127.0.0.1:{self.port}"
        with open(os.path.join(folder, "influxdb.conf"), "w", encoding="utf-8") as file:
            file.write(f'reporting-disabled = true\nbind-address = "127.0.0.1:{find_port()}"\n[meta]\ndir = "{folder}/meta"\n'
                       f'[data]\ndir = "{folder}/data"\nwal-dir = "{folder}/wal"\n[monitor]\nstore-enabled = false\n'
                       f'[http]\nbind-address = "127.0.0.1:{self.port}"\nlog-enabled = false\n')

    def start(self):
        with open(os.path.join(self.folder, "influxd.log"), "ab") as log:
            self.process = subprocess.Popen(["influxd", "-config", os.path.join(self.folder, "influxdb.conf")], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def ask(self, query):
        """None: there is no answer."""
        try:
            body = urllib.parse.urlencode({"q": query}).encode()
            with urllib.request.urlopen(self.url + "/query?db=demo", body, timeout=WAIT_S) as response:
                return json.load(response)
        except (OSError, urllib.error.URLError, http.client.HTTPException):
            return None

    def is_up(self):
        return self.process.poll() is None and self.ask("SHOW DATABASES") is not None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def count(self):
        """How many values it has."""
        found = self.ask("SELECT " + ", ".join(f"count({name})" for name in VALUES) + " FROM /.*/")
        series = (found or {}).get("results", [{}])[0].get("series", [])
        return sum(sum(number or 0 for number in row[1:]) for one in series for row in one["values"])


class Load:
    """Clients of the server, a connection a request."""

    def __init__(self, port):
        self.port, self.count, self.lock, self.is_over = port, 0, threading.Lock(), False
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        turn = number
        while not self.is_over:
            path = "/slow" if turn % 20 == 0 else "/missing" if turn % 33 == 0 else "/"
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()
            turn += 1
            with self.lock:
                self.count += 1

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


class Show:
    """A line a second."""

    def __init__(self, weir, folder, server, load):
        self.weir, self.folder, self.server, self.load, self.before, self.start = weir, folder, server, load, 0, time.monotonic()
        say(paint(f"{'time':>6}{'requests/s':>12}{'values waiting':>16}{'of these on disk':>18}   database", 1))

    def look(self):
        """The handler "database" as weir status shows it; None: not yet."""
        done = subprocess.run([self.weir, "status", "--folder", os.path.join(self.folder, "status"), "--json", str(self.server.pid)],
                              capture_output=True, check=False)
        found = json.loads(done.stdout or b"[]")
        return next((one for one in found[0]["handlers"] if one["name"] == "database"), None) if found else None

    def line(self, state):
        handler, count = self.look(), self.load.count
        spooled = handler["spooled"] if handler else 0
        waiting = spooled + (handler["queued"] if handler else 0)
        bar = "#" * min(40, (spooled + 999) // 1000)
        say(f"{time.monotonic() - self.start:5.0f}s{count - self.before:12,}{waiting:16,}{spooled:18,}   {state} {paint(bar, 33)}")
        self.before = count

    def during(self, seconds, state):
        for _ in range(seconds):
            time.sleep(1)
            self.line(state)

    def until_drained(self, state):
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            time.sleep(1)
            self.line(state)
            handler = self.look()
            if handler and not handler["spooled"]:
                return


def start_server(program, folder, database):
    environment = {**os.environ, "WEIR_CONFIG": os.path.join(HERE, "weir.json"), "WEIR_LOG": "info", "DEMO_FOLDER": folder,
                   "DEMO_DATABASE": database.url}
    with open(os.path.join(folder, "server.log"), "w", encoding="utf-8") as log:
        server = subprocess.Popen([program, "-t", str(THREADS)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment,
                                  text=True)
    line = server.stdout.readline()
    if not line:
        sys.exit("outage: the server has not started")
    return server, int(line.rsplit(":", 1)[1])


def count_measured(folder):
    """How many values were measured, and how many of them have a time of their own: the database keeps one of those with the same."""
    with open(os.path.join(folder, "copy.influx"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    points = {}
    for line in lines:
        series, fields, at = line.rsplit(" ", 2)
        points.setdefault((series, at), set()).update(field.split("=")[0] for field in fields.split(","))
    return sum(line.rsplit(" ", 2)[1].count("=") for line in lines), sum(map(len, points.values()))


def tell(weir, folder, measured, kept):
    say()
    say("What the server has measured, by route (latency in milliseconds):")
    subprocess.run([weir, "summary", "--parse", "influx", "--by", "route", os.path.join(folder, "copy.influx")], check=False)
    say()
    lost = measured - kept
    say(paint(f"{measured:,} values added = {kept:,} in the database, {lost:,} lost", "1;32" if lost == 0 else "1;31"))
    return lost == 0


def play(server_program, weir, folder, seconds):
    database = Database(folder)
    server = load = None
    try:
        say("A database (InfluxDB) and a web server with four threads start; the server measures each request.")
        database.start()
        wait_until(database.is_up, "the database")
        database.ask("CREATE DATABASE demo")
        server, port = start_server(server_program, folder, database)
        load = Load(port)
        show = Show(weir, folder, server, load)
        show.during(seconds, paint("takes everything", 32))
        say(paint("The database is killed. The server goes on as if nothing had happened: its values wait on disk.", 1))
        database.kill()
        show.during(seconds, paint("dead", 31))
        say(paint("The database is started again, and gets what has waited.", 1))
        database.start()
        wait_until(database.is_up, "the database")
        show.until_drained(paint("catches up", 32))
        load.end()
        say("The load ends, and the server is stopped. It delivers what is left, and reports.")
        server.terminate()
        server.communicate(timeout=WAIT_S)
        measured, distinct = count_measured(folder)
        if measured != distinct:
            say(f"{measured - distinct} values have the same nanosecond as others of their series; the database keeps one of each.")
        return tell(weir, folder, distinct, database.count())
    finally:
        if load:
            load.is_over = True
        for process in (server, database.process):
            if process and process.poll() is None:
                process.kill()
                process.wait()


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: outage.py SERVER WEIR [SECONDS]")
    if not shutil.which("influxd"):
        sys.exit("outage: influxd is not installed (Debian: influxdb)")
    folder = tempfile.mkdtemp(prefix="weir-outage-")
    try:
        return 0 if play(*map(os.path.abspath, sys.argv[1:3]), folder, int(sys.argv[3]) if len(sys.argv) > 3 else 5) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
