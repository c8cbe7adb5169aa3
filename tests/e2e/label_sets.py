"""Label sets that come and go: what each handler and format writes has the labels that the value was added with, although ids and memory are
used again. The value of each sample is the number of its label set."""

import http.server
import json
import os
import re
import sqlite3
import threading

from harness import BUILD, PLUGINS, Skip, case, main, run

PROGRAM = os.path.join(BUILD, "tests", "support", "reused")
TIMES = 4

# the number of the label set, and the value, of each line of a value or a level
LINES = {
    "json": r'"name":"(?P<name>level|plain|size|size\.sum)","value":(?P<value>\d+),"labels":\{.*"set":"s(?P<set>\d+)"',
    "text": r'(?P<name>level|plain|size|size\.sum)=(?P<value>\d+) \{.*set="s(?P<set>\d+)"',
    "csv": r'(?P<name>level|plain|size|size\.sum),(?P<value>\d+),.*set"":""s(?P<set>\d+)""',
    "influx": r"set=s(?P<set>\d+) (?P<name>level|plain|size|size\.count=1,size\.sum)=(?P<value>\d+)",
    "graphite": r"churn\.(?P<name>level|plain|size|size\.sum);.*set=s(?P<set>\d+) (?P<value>\d+)",
    "elastic": r'"set":"s(?P<set>\d+)".*"(?P<name>level|plain|size|size\.sum)":(?P<value>\d+)\.0',
    "prometheus": r'churn_(?P<name>level|plain|size|size_sum)\{.*set="s(?P<set>\d+)".*\} (?P<value>\d+)',
    "openmetrics": r'churn_(?P<name>level|plain|size|size_sum)\{.*set="s(?P<set>\d+)".*\} (?P<value>\d+)',
}


def need(handler_type):
    if not os.path.exists(os.path.join(PLUGINS, f"{handler_type}.so")):
        raise Skip(f"the handler type {handler_type} was not built")


def configure(folder, handlers):
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"settings": {"expiry": "60ms"}, "handlers": handlers, "groups": {"*": list(handlers)}}, file)
    return path


def add_label_sets(folder, handlers):
    """Returns how many there were."""
    done = run(PROGRAM, TIMES, WEIR_CONFIG=configure(folder, handlers))
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def check(name, found, count):
    """Of (name, set, value): all are right, and each label set has one. The sum of a histogram is 0 if an interval ends between the moment when its
    series is there and its first value."""
    wrong = [each for each in found if each[1] != each[2] and not (each[2] == 0 and each[0].endswith("sum"))]
    assert not wrong, f"{name}: {len(wrong)} of {len(found)}, such as {wrong[:5]}"
    for part in {each[0] for each in found}:
        assert {each[1] for each in found if each[0] == part and each[1] == each[2]} == set(range(count)), (name, part)


def find_all(pattern, text):
    return [(match["name"], int(match["set"]), int(match["value"])) for match in re.finditer(pattern, text)]


@case
def each_line_has_the_labels_of_its_value(folder):
    handlers = {}
    for name in ("json", "text", "csv", "influx", "graphite", "elastic"):
        form = {"type": "graphite", "tags": True} if name == "graphite" else name
        for kind, more in (("plain", {}), ("sums", {"aggregate": "20ms"})):
            handlers[f"{name}_{kind}"] = {"type": "file", "path": os.path.join(folder, f"{name}.{kind}"), "format": form, **more}
    count = add_label_sets(folder, handlers)
    for name, pattern in LINES.items():
        for kind in ("plain", "sums"):
            path = os.path.join(folder, f"{name}.{kind}")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    check(f"{name} {kind}", find_all(pattern, file.read()), count)


class Server(http.server.ThreadingHTTPServer):
    """Keeps what is posted, by the path."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.texts, self.lock = {}, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with self.server.lock:
            self.server.texts.setdefault(self.path[1:], []).append(text)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format, *args):
        pass


@case
def each_document_has_the_labels_of_its_values(folder):
    need("http")
    server = Server()
    handlers = {}
    for name in ("prometheus", "openmetrics"):
        for kind, more in (("plain", {}), ("sums", {"aggregate": "20ms"})):
            url = f"http://127.0.0.1:{server.server_port}/{name}.{kind}"
            handlers[f"{name}_{kind}"] = {"type": "http", "url": url, "format": name, "linger": "20ms", **more}
    count = add_label_sets(folder, handlers)
    server.shutdown()
    for name in ("prometheus", "openmetrics"):
        for kind in ("plain", "sums"):
            check(f"{name} {kind}", find_all(LINES[name], "\n".join(server.texts[f"{name}.{kind}"])), count)


@case
def each_row_has_the_labels_of_its_value(folder):
    need("sqlite")
    paths = {kind: os.path.join(folder, f"{kind}.db") for kind in ("plain", "sums")}
    count = add_label_sets(folder, {
        "plain": {"type": "sqlite", "path": paths["plain"]},
        "sums": {"type": "sqlite", "path": paths["sums"], "aggregate": "20ms"},
    })
    for kind, path in paths.items():
        database = sqlite3.connect(path)
        rows = database.execute("SELECT name, labels, value FROM \"values\" WHERE name IN ('level', 'plain', 'size', 'size.sum')")
        found = [(name, int(json.loads(labels)["set"][1:]), int(value)) for name, labels, value in rows]
        database.close()
        check(kind, found, count)


main()
