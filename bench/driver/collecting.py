"""Values that are kept in SQLite: by a collector that takes them by http or forward, and by the handler sqlite alone; and a chart of them."""

import http.client
import json
import os
import sqlite3
import threading
import time
from statistics import median

from database import find_port
from programs import Void, write_config
from relaying import Relay, wait_until

SHARE = 1 / 2  # of the usual number of values
NAMES = 100
LINES, CONNECTIONS = 10000, 2  # of a post; that post at once
STORED = "SELECT (SELECT ifnull(sum(count), 0) FROM chunks) + (SELECT count(*) FROM tail)"
PATIENT = {"block_timeout": "10m"}


def remove(path):
    for ending in ("", "-wal", "-shm"):
        if os.path.exists(path + ending):
            os.remove(path + ending)


def count(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchone()[0]
    finally:
        connection.close()


def check(path, query, expected):
    stored = count(path, query)
    remove(path)
    if stored != expected:
        raise Void(f"{expected} values were added, {stored} are stored")


def add(workspace, handler, task):
    """Adds values with a program of its own, until all are delivered."""
    config = write_config(workspace, [{**handler, **PATIENT}], {"shutdown_timeout": "5m"})
    return workspace.measure("weir/adding", config=config, way="name", handlers=1, **task)


def sizes(scale):
    return {"mode": "lines", "names": NAMES, **scale.sizes({"mode": "lines"}, SHARE)}


# ---- Rates -------------------------------------------------------------------------------------


def measure_sqlite(workspace, scale):
    path = workspace.file("sqlite.db")
    figures = add(workspace, {"type": "sqlite", "path": path}, sizes(scale))
    check(path, "SELECT count(*) FROM samples", figures["values"])
    return figures


def measure_store_forward(workspace, scale):
    """A program hands its values over to a collector. Each is acknowledged when it is committed."""
    socket, path = workspace.file("socket"), workspace.file("store.db")
    relay = Relay(workspace, {"type": "forward", "listen": ["unix:" + socket]}, {"type": "store", "path": path, **PATIENT})
    wait_until(lambda: os.path.exists(socket), relay.process, "socket of weir relay")
    figures = add(workspace, {"type": "forward", "to": "unix:" + socket}, sizes(scale))
    relay.end()
    check(path, STORED, figures["values"])
    return figures


def make_bodies(values):
    """Of the last minutes: the store forgets what is a month old."""
    begin = time.time() - values / 1000

    def line(number):
        return f'{{"group":"my_app","name":"latency.{number % NAMES}","value":{(number % 1000) / 8},"timestamp":{begin + number / 1000:.3f}}}\n'

    return ["".join(map(line, range(first, min(first + LINES, values)))).encode() for first in range(0, values, LINES)]


def post(port, bodies, failures):
    """Posts bodies one after the other. Each is answered when its values are committed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        for body in bodies:
            connection.request("POST", "/ingest", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            text = reply.read()
            if reply.status != 200:
                failures.append(f"status {reply.status}: {text[:200]}")
    except OSError as error:
        failures.append(str(error))


def is_open(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.connect()
    except OSError:
        return False
    connection.close()
    return True


def measure_store_http(workspace, scale):
    port, path, values, failures = find_port(), workspace.file("store.db"), sizes(scale)["values"], []
    bodies = make_bodies(values)
    relay = Relay(workspace, {"type": "http", "listen": f"127.0.0.1:{port}", "ack": "delivered", "ack_timeout": "10m", "full_timeout": "10m"},
                  {"type": "store", "path": path, **PATIENT})
    wait_until(lambda: is_open(port), relay.process, "server of weir relay")
    threads = [threading.Thread(target=post, args=(port, bodies[i::CONNECTIONS], failures)) for i in range(CONNECTIONS)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.monotonic() - start
    relay.end()
    if failures:
        raise Void(failures[0])
    check(path, STORED, values)
    return {"rate": values / elapsed, "values": values}


# ---- Charts ------------------------------------------------------------------------------------


class Charts:
    """Two files with the same number of values of some series, made when they are needed first: one of the handler sqlite, one of a store."""
    SERIES, TIMES = 10, 15

    def __init__(self, workspace, scale):
        self.workspace, self.scale, self.paths, self.values = workspace, scale, None, 0

    def fill(self):
        if self.paths:
            return
        paths = {kind: self.workspace.file(kind + ".charts.db") for kind in ("sqlite", "store")}
        for kind, path in paths.items():
            figures = add(self.workspace, {"type": kind, "path": path}, {"mode": "lines", "names": self.SERIES, "values": self.scale.charted})
            self.values = figures["values"]
        self.paths = paths

    def measure(self):
        """The time of a chart of one series, from connecting to the end of the response, and of sqlite3's count of its rows."""
        self.fill()
        port, access = find_port(), self.workspace.file("access")
        os.makedirs(access + ".d", mode=0o700, exist_ok=True)
        relay = Relay(self.workspace, {"type": "collector", "listen": f"127.0.0.1:{port}", "path": self.paths["store"], "access": access + ".d",
                                       "query_timeout": "1m"}, {"type": "null"})
        wait_until(lambda: is_open(port), relay.process, "server of weir relay")
        with open(os.path.join(access + ".d", "token"), encoding="ascii") as file:
            token = file.read().strip()
        drawn = [self.draw(port, token) for _ in range(self.TIMES)]
        relay.end()
        counted = [self.count() for _ in range(self.TIMES)]
        return {"chart_ms": median(drawn), "count_ms": median(counted), "values": self.values}

    def draw(self, port, token):
        start = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("GET", "/api/v1/range?series=1&from=-1h&to=now&points=300", headers={"Authorization": "Bearer " + token})
        reply = connection.getresponse()
        found = json.loads(reply.read())
        elapsed = time.monotonic() - start
        charted = sum(point["count"] for point in found["series"][0]["points"]) if reply.status == 200 else found
        if charted != self.values // self.SERIES:
            raise Void(f"the chart has {charted} of {self.values // self.SERIES} values")
        return elapsed * 1000

    def count(self):
        start = time.monotonic()
        counted = count(self.paths["sqlite"], "SELECT count(*) FROM samples WHERE series = 1")
        if counted != self.values // self.SERIES:
            raise Void(f"sqlite3 counts {counted} of {self.values // self.SERIES} values")
        return (time.monotonic() - start) * 1000
