"""The query API of the source collector: what it returns of a store's tail and chunks, compared with models of them; every response is
validated against its OpenAPI document."""

import contextlib
import gzip
import http.client
import json
import math
import os
import random
import sqlite3
import statistics
import time
import urllib.parse

import jsonschema

from collectors import RUN, Collector
from fifos import ScriptedApp
from harness import SOURCE, WEIR, main, run, wait_for, without_waits
from sourced import case

START = 1700000000  # a multiple of 100 s
METRICS = {"g": {"c": {"instrument": "counter", "unit": "By", "help": "bytes"}, "h": {"instrument": "histogram", "unit": "ms"},
                 "l": {"instrument": "gauge"}}}


class Document:
    """openapi.json. Its schemas are those of JSON, but for "nullable"."""

    def __init__(self):
        with open(os.path.join(SOURCE, "plugins", "source_collector", "openapi.json"), encoding="utf-8") as file:
            self.json = json.load(file)
        self.paths = self.json["paths"]

    def schema(self, value):
        if isinstance(value, list):
            return [self.schema(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            found = self.json
            for part in value["$ref"][2:].split("/"):
                found = found[part]
            return self.schema(found)
        made = {key: self.schema(item) for key, item in value.items() if key != "nullable"}
        return {"anyOf": [made, {"type": "null"}]} if value.get("nullable") is True else made

    def path_of(self, path):
        parts = path.split("?")[0].split("/")
        for pattern in self.paths:
            wanted = pattern.split("/")
            if len(wanted) == len(parts) and all(one in ("{id}", other) for one, other in zip(wanted, parts)):
                return pattern
        return None

    def check(self, path, status, kind, body):
        pattern = self.path_of(path)
        if pattern is None:
            assert status == 404
            answer = {"$ref": "#/components/responses/NotFound"}
        else:
            answers = self.paths[pattern]["get"]["responses"]
            assert str(status) in answers, (path, status, body)
            answer = answers[str(status)]
        schema = self.schema(answer)["content"][kind]["schema"]
        jsonschema.validate(json.loads(body), schema)


class Api(Collector):
    document = Document()

    def __init__(self, folder, tail=1000, **options):
        self.folder, self.tail = folder, tail
        super().__init__(folder, **{"query_timeout": "1m", **options})

    def authorization(self):
        with open(os.path.join(self.folder, "access", "token"), encoding="ascii") as file:
            return {"Authorization": "Bearer " + file.read().strip()}

    def call(self, method, path, *body, **more):
        return super().call(method, path, *body, **(self.authorization() if path.startswith("/api/v1") else {}), **more)

    def ask(self, path, status=200, **parameters):
        query = urllib.parse.urlencode(parameters, doseq=True)
        path = "/api/v1/" + path + ("?" + query if query else "")
        found, body, headers = self.call("GET", path)
        assert found == status, (path, found, body)
        self.document.check(path, status, headers["Content-Type"], body)
        return json.loads(body)

    def refuse(self, path, word, status=400, **parameters):
        answer = self.ask(path, status, **parameters)
        assert answer["status"] == status and word in answer["message"], answer

    def emit_config(self):
        return {"settings": {"shutdown_timeout": "5m"}, "metrics": METRICS, "groups": {"*": "db"},
                "handlers": {"db": {"type": "store", "path": self.path, "tail": self.tail, "batch": 200, "keep": "0s", "busy_timeout": "1m"}}}

    def emit(self, *lines):
        path = os.path.join(self.folder, "in")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
        with open(path, "rb") as file:
            done = run(WEIR, "emit", "-g", "g", "-", stdin=file, WEIR_CONFIG=self.emit_config())
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr

    def ids(self, **parameters):
        return [series["id"] for series in self.ask("series", **parameters)["series"]]

    def points(self, series, since, until, **parameters):
        answer = self.ask("range", series=series, **{"from": since, "to": until, **parameters})
        return answer, answer["series"][0]["points"]

    def query(self, text):
        with contextlib.closing(sqlite3.connect(self.path, timeout=240)) as db:
            return db.execute(text).fetchall()


def line(name, value, when, **more):
    return {"group": "g", "name": name, "value": value, "timestamp": when, **more}


def number(value):
    return float(value) if isinstance(value, str) else value


@case
def series_are_found_by_group_name_label_and_words(folder):
    server = Api(folder)
    assert server.ask("groups") == {"groups": []} and server.ask("series") == {"series": [], "next": None}
    server.emit(line("c", 2, START + 0.5, labels={"route": "/a", "x": "ü=\"<b>"}), line("c", 3, START, labels={"route": "/b"}),
                line("c", 4, START + 1, labels={"route": "/a", "x": "ü=\"<b>"}),
                {**line("x", 0.5, START + 2), "group": "g.in"}, {**line("x", 0.5, START + 3), "group": "gg"})
    assert server.ask("groups") == {"groups": [{"group": "g", "series": 2, "last": START + 1}, {"group": "g.in", "series": 1, "last": START + 2},
                                               {"group": "gg", "series": 1, "last": START + 3}]}
    first = server.ask("series", limit=1)
    assert first == {"next": 1, "series": [{"id": 1, "group": "g", "name": "c", "labels": {"route": "/a", "x": "ü=\"<b>"}, "cumulative": False,
                                            "instrument": "counter", "unit": "By", "help": "bytes", "count": 2, "first": START + 0.5,
                                            "last": START + 1, "last_value": 4}]}, first
    assert server.ids(after=1) == [2, 3, 4] and server.ids(ids="4,2") == [2, 4] and server.ids(limit=2, after=2) == [3, 4]
    assert server.ids(group="g") == [1, 2] and server.ids(group="g", inside="true") == [1, 2, 3] and server.ids(name="x") == [3, 4]
    assert server.ids(label="route=/a") == [1] and server.ids(label=["route=/a", "x=ü=\"<b>"]) == [1] and server.ids(label=["route=/a", "x=y"]) == []
    assert server.ids(search="G.IN x") == [3] and server.ids(search="route /b") == [2] and server.ids(search="'; DROP TABLE series; --") == []
    assert server.ask("labels") == {"labels": {"route": ["/a", "/b"], "x": ["ü=\"<b>"]}} and server.ask("labels", name="x") == {"labels": {}}
    server.end()


def model(values, since, until, step, increases):
    """Buckets of [(time, value, increase)], sorted by time."""
    buckets = {}
    for when, value, increase in values:
        if since <= when < until:
            buckets.setdefault(math.floor(when / step) * step, []).append((value, increase))
    made = []
    for start, found in sorted(buckets.items()):
        numbers = [value for value, _ in found]
        bucket = {"t": start, "count": len(found), "sum": math.fsum(numbers), "min": min(numbers), "max": max(numbers),
                  "mean": statistics.fmean(numbers), "last": numbers[-1]}
        if increases:
            bucket["increase"] = math.fsum(increase for _, increase in found)
        made.append(bucket)
    return made


def assert_near(found, wanted):
    assert [point["t"] for point in found] == [point["t"] for point in wanted]
    for one, other in zip(found, wanted):
        assert one.keys() == other.keys(), (one, other)
        assert all(math.isclose(one[key], other[key], rel_tol=1e-9, abs_tol=1e-9) for key in one), (one, other)


@case
def buckets_of_tail_and_chunks_are_those_of_a_model(folder):
    server, chance = Api(folder, tail=700), random.Random(1)
    values = {"c": [], "l": [], "run": []}
    total = 1000
    for part in range(4):  # the third part is older than the second: chunks overlap
        lines = []
        for i in range(1500):
            when = START + (part - 1.5 * (part == 2)) * 1500 + i + round(chance.random(), 3)
            total = total + chance.randrange(10) if chance.random() > 0.01 else chance.randrange(5)
            for name, value in (("c", chance.randrange(100)), ("l", chance.uniform(-5, 5)), ("run", total)):
                values[name].append((when, value))
                lines.append(line(name, value, when, **({"cumulative": True} if name == "run" else {})))
        server.emit(*lines)
    assert server.query("SELECT count(*) > 10 FROM chunks") == [(1,)] and server.query("SELECT count(*) > 20 FROM tail") == [(1,)]
    with contextlib.closing(sqlite3.connect(server.path, timeout=240)) as db, db:
        db.execute("UPDATE chunks SET first = NULL, rise = NULL WHERE id % 3 = 0")  # as of chunks whose rise is not finite
    for series in server.ask("series")["series"]:
        name = series["name"]
        found = sorted(values[name], key=lambda value: value[0])
        assert (series["count"], series["first"], series["last"], series["last_value"]) == (6000, found[0][0], found[-1][0], found[-1][1])
        before = [found[0][1]] + [value for _, value in found]
        rise = [value if name == "c" else max(value - old, 0) if value >= old else value for (_, value), old in zip(found, before)]
        points = [(when, value, more) for (when, value), more in zip(found, rise)]
        for since, until, most in ((START, START + 6000, 300), (START + 1234.5, START + 4321, 50), (START - 1e6, START + 1e6, 10),
                                   (START + 900, START + 910, 10), (0, "now", 5000), (START, START + 6000, 5000)):
            answer, got = server.points(series["id"], since, until, points=most)
            wanted = model(points, answer["from"], answer["to"], answer["step"], name != "l")
            assert (answer["to"] - answer["from"]) / answer["step"] <= most and answer["from"] <= since
            if answer["series"][0]["raw"]:
                inside = [point for point in points if answer["from"] <= point[0] < answer["to"]]
                assert [(point["t"], point["last"]) for point in got] == [point[:2] for point in inside] and len(inside) <= most
                assert name == "l" or [point["increase"] for point in got] == [point[2] for point in inside]
            else:
                assert_near(got, wanted)
    server.end()


@case
def percentiles_are_within_one_percent(folder):
    server, chance = Api(folder, tail=800), random.Random(2)
    values = [chance.lognormvariate(0, 2) for _ in range(4000)]
    server.emit(*[line("h", value, START + i) for i, value in enumerate(values)])
    answer, got = server.points(1, START, START + 4000, points=10)
    assert len(got) > 3
    for bucket in got:
        start = int(bucket["t"] - START)
        inside = sorted(values[max(start, 0):int(start + answer["step"])])
        for key, rank in (("p50", 0.5), ("p99", 0.99)):
            wanted = inside[math.floor(rank * (len(inside) - 1))]
            assert abs(bucket[key] - wanted) <= 0.0101 * wanted, (bucket, wanted)
    server.emit(*[line("l", i, START + i) for i in range(100)])
    _, plain = server.points(2, START, START + 100, points=10)
    _, full = server.points(2, START, START + 100, points=10, percentiles="true")
    assert "p50" not in plain[0] and full[0].keys() - plain[0].keys() == {"p50", "p99"}
    server.end()


@case
def few_values_are_returned_as_they_are(folder):
    server = Api(folder, tail=3)
    app = ScriptedApp(server.emit_config(), folder)
    for text in ("nan", "inf", "-inf", "9007199254740993", "-0.0"):
        assert app.do("add", "x", text)["code"] == 0 and app.do("flush", -1)["code"] == 0
    app.end()
    answer, got = server.points(1, "-1h", "now")
    assert answer["series"][0]["raw"] and [point["last"] for point in got][:3] == ["NaN", "Infinity", "-Infinity"], got
    _, packed = server.points(1, 0, "now", points=10)
    assert len(packed) == 5, "still few enough"
    server.emit(*[line("same", i, START) for i in range(20)])
    answer, got = server.points(2, START, START + 1)
    assert answer["series"][0]["raw"] and [(point["t"], point["last"]) for point in got] == [(START, i) for i in range(20)], "in order of arrival"
    answer, got = server.points(2, START, START + 1, points=10)
    assert not answer["series"][0]["raw"] and [(point["count"], point["last"]) for point in got] == [(20, 19)]
    app = ScriptedApp(server.emit_config(), folder)
    for i in range(30):
        assert app.do("add", "y", "nan" if i % 2 else i)["code"] == 0
    assert app.do("flush", -1)["code"] == 0
    app.end()
    _, got = server.points(3, "-1000d", "now", points=10)
    assert [(point["count"], point["finite"], point["sum"], point["last"]) for point in got] == [(30, 15, 210, 28)], got
    server.end()


@case
def buckets_stay_where_they_are_while_time_moves_on(folder):
    server = Api(folder)
    server.emit(*[line("l", i, START + i / 10) for i in range(20000)])
    seen = {}
    for shift in range(0, 60, 7):
        answer, got = server.points(1, START + shift + 0.3, START + shift + 600.3, points=100)
        assert answer["step"] == 10 and answer["from"] % 10 == 0
        for point in got:
            assert seen.setdefault(point["t"], point) == point, "the same bucket has the same values"
    server.end()


@case
def events_are_paged_through_equal_times(folder):
    server = Api(folder, tail=30)
    lines = [line("a", i, START + i // 7, metadata=f"note {i}") if i % 2 else line("a", i, START + i // 7) for i in range(60)]
    server.emit(*lines, *[line("b", -i, START + i) for i in range(9)])
    found, page = [], {}
    for _ in range(100):
        page = server.ask("events", series="1,2", limit=4, **{"from": START - 1, "to": START + 100, **({"before": page["next"]} if page else {})})
        found += page["events"]
        assert page["more"] == (page["next"] is not None)
        if not page["more"]:
            break
    wanted = sorted([{"t": START + i // 7, "series": 1, "value": i, **({"metadata": f"note {i}"} if i % 2 else {})} for i in range(60)] +
                    [{"t": START + i, "series": 2, "value": -i} for i in range(9)], key=lambda event: (-event["t"], event["series"], -event["value"]
                                                                                                       if event["series"] == 1 else 0))
    assert found == wanted, (found[:9], wanted[:9])
    assert [event["value"] for event in server.ask("events", series=2, **{"from": START, "to": START + 100, "before": START + 3})["events"]] == [-2, -1, 0]
    server.end()


@case
def the_top_values_of_a_label_are_summed(folder):
    server = Api(folder, tail=50)
    lines = [line("c", i % 5, START + i, labels={"route": f"/{i % 4}", "code": str(i % 2)}) for i in range(400)]
    lines += [line("t", 100 + i, START + i, labels={"route": "/t"}, cumulative=True) for i in range(10)]
    lines += [line("d", -2, START, labels={"route": "/d"})]
    server.emit(*lines)
    top = server.ask("top", group="g", name="c", by="route", n=3, **{"from": START + 100, "to": START + 300})
    wanted = []
    for route in range(4):
        values = [i % 5 for i in range(100, 300) if i % 4 == route]
        wanted.append({"value": f"/{route}", "count": 50, "sum": sum(values), "increase": sum(values), "mean": sum(values) / 50, "max": max(values),
                       "series": 1})
    assert top["by"] == "route" and len(top["top"]) == 3 and all(part in wanted for part in top["top"]), top
    sums = [part["sum"] for part in top["top"]]
    assert sums == sorted((part["sum"] for part in wanted), reverse=True)[:3]
    every = {part["value"]: part for part in server.ask("top", by="route", **{"from": START, "to": START + 1000})["top"]}
    assert every["/t"]["increase"] == 9 and every["/d"] == {"value": "/d", "count": 1, "sum": -2, "increase": None, "mean": -2, "max": -2, "series": 1}
    assert server.ask("top", by="nothing")["top"] == []
    server.end()


class Stream:
    """Reads server-sent events."""

    def __init__(self, server, query, **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=240)
        self.connection.request("GET", "/api/v1/live?" + query, headers={**server.authorization(), **{name.replace("_", "-"): value for name, value in headers.items()}})
        self.reply = self.connection.getresponse()
        assert (self.reply.status, self.reply.getheader("Content-Type")) == (200, "text/event-stream"), self.reply.read()
        assert self.reply.readline() == b"retry: 2000\n"
        self.id = None

    def next(self):
        """The next event and its data."""
        name, data = None, None
        while True:
            text = self.reply.readline().decode().rstrip("\n")
            if not text and name:
                return name, json.loads(data)
            key, _, value = text.partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                data = value
            elif key == "id":
                self.id = value

    def values(self, count):
        found = []
        while len(found) < count:
            name, data = self.next()
            assert name == "values", (name, data)
            found += data
        return found

    def close(self):
        self.reply.close()
        self.connection.close()


@case
def values_are_sent_as_they_come_through_packing(folder):
    server = Api(folder, tail=3200)
    server.emit(*[line("l", -1, START)] * 2900)
    one, group = Stream(server, "series=1"), Stream(server, "group=g&inside=true")
    for part in range(8):  # the latest 32nd of the tail, 100 values, is not packed
        server.emit(*[line("l", part * 90 + i, START + i) for i in range(90)])
        assert [value for _, _, value in one.values(90)] == list(range(part * 90, part * 90 + 90)), "each once"
    assert [value for _, _, value in group.values(720)] == list(range(720))
    assert server.query("SELECT count(*) > 0 FROM chunks") == [(1,)]
    last = one.id
    one.close()
    server.emit(line("l", 7, START + 0.5), {**line("n", 8, START), "group": "g.in"}, {**line("n", 9, START), "group": "gg"})
    name, data = group.next()
    assert name == "series" and (data["id"], data["group"], data["name"]) == (2, "g.in", "n"), data
    assert sorted(group.values(2)) == [[1, START + 0.5, 7], [2, START, 8]]
    again = Stream(server, "series=1", Last_Event_ID=last)
    assert again.values(1) == [[1, START + 0.5, 7]], "from where it was"
    again.close()
    group.close()
    server.end()


@case
def a_slow_reader_is_told_what_it_has_lost_and_holds_up_nobody(folder):
    server = Api(folder, tail=200000)
    server.emit(line("l", -1, START))
    slow, count, news = Stream(server, "group=g"), 0, 0
    quick = Stream(server, "group=g")
    while server.query("SELECT count(*) FROM tail")[0][0] < 120000:
        server.emit(*[line("l", count + i, START) for i in range(30000)], line(f"new{news}", -1, START))
        count, news = count + 30000, news + 1
        assert len(server.ask("range", series=1, **{"from": START, "to": START + 1})["series"][0]["points"]) == 1
    assert server.ask("series")["series"][0]["count"] == count + 1
    found, lost, told = [], 0, []
    while len(found) + lost < count + news:
        name, data = slow.next()
        if name == "lost":
            assert data["events"] == 0, data
            lost += data["values"]
        elif name == "series":
            told.append(data["name"])
        else:
            assert name == "values", name
            found += [value for _, _, value in data]
    steps = [value for value in found if value >= 0]
    assert steps == sorted(steps) and len(found) + lost == count + news, (len(found), lost, count)
    assert lost > 0 and told == [f"new{i}" for i in range(news)], (lost, told)
    slow.close()
    quick.close()
    server.end()


@case
def connections_that_listen_are_given_up_when_they_end(folder):
    server = Api(folder, connections=8)
    server.emit(line("l", 1, START))
    for _ in range(5):
        streams = [Stream(server, "series=1") for _ in range(6)]
        for stream in streams:
            stream.close()
        assert server.ask("groups")["groups"][0]["series"] == 1
    kept = Stream(server, "series=1")
    server.end()  # although somebody listens
    kept.close()


@case
def the_values_of_a_run_may_be_centuries_apart(folder):
    server = Api(folder)
    server.post("/api/runs/", RUN)
    for date in ("1700-01-01T00:00:00", "2030-01-01T00:00:00", "2250-01-01T00:00:00"):
        server.add("loss", 1, date)
    server.emit(line("l", 4, 9e9, labels={"run_id": "1"}))
    for points in (10, 300, 5000):
        answer = server.ask("runs/1/metrics", points=points)
        assert answer["from"] <= -2305843009 and answer["to"] >= 4611686018, answer
        assert [[point["t"] for point in one["points"]] for one in answer["series"]] == [[1893456000], []], answer
    server.end()


@case
def runs_have_the_metrics_that_were_posted_and_those_labelled(folder):
    server = Api(folder)
    assert server.ask("runs") == {"runs": []}
    server.post("/api/runs/", RUN)
    server.post("/api/runs/", {**RUN, "name": "run2"})
    for i in range(5):
        server.add("loss", i / 2, f"2030-01-01T00:00:{i:02}")
    server.add("text", "reached", "2030-01-01T00:00:01")
    server.emit(line("l", 4, 1893456001, labels={"run_id": "1"}), line("l", 5, 1893456002, labels={"run_id": "2"}))
    server.patch(1, {"state": "finished"})
    server.patch(2, {"state": "failed"})
    runs = server.ask("runs")["runs"]
    assert [(one["id"], one["name"], one["state"], one["command"], one["metrics"]) for one in runs] == \
        [(1, "run1", "finished", "y", ["l", "loss", "text"]), (2, "run2", "failed", "y", ["l"])], runs
    assert server.ask("runs/1") == runs[0] and runs[0]["finished"] >= runs[0]["created"]
    answer = server.ask("runs/1/metrics")
    assert [(one["id"], one["name"], one["raw"], [(point["t"], point["last"]) for point in one["points"]]) for one in answer["series"]] == [
        (None, "loss", True, [(1893456000 + i, i / 2) for i in range(5)]), (None, "text", True, []), (1, "l", True, [(1893456001, 4)])], answer
    assert [one["name"] for one in server.ask("runs/1/metrics", name="loss", points=10)["series"]] == ["loss"]
    server.refuse("runs/3", "no run 3", 404)
    server.refuse("runs/3/metrics", "no run 3", 404)
    server.refuse("runs/x", "nothing here", 404)
    server.refuse("runs/0", "nothing here", 404)
    marks = server.ask("markers")["markers"]
    assert [(mark["kind"], mark.get("run"), mark["text"]) for mark in marks if "run" in mark] == \
        [("run_started", 1, "run1"), ("run_started", 2, "run2"), ("run_finished", 1, "run1"), ("run_failed", 2, "run2")], marks
    server.emit(line("l", 6, START))
    assert [mark["kind"] for mark in server.ask("markers")["markers"]].count("restart") == 1
    assert server.ask("markers", **{"from": 0, "to": 1000}) == {"markers": []}
    server.end()


@case
def parameters_that_are_wrong_are_refused_by_name(folder):
    server = Api(folder)
    server.emit(line("l", 1, START))
    for path, name, value in (
            ("range", "series", "1 OR 1=1"), ("range", "series", "1,1"), ("range", "series", ","), ("range", "series", "0"), ("range", "series", "-1"),
            ("range", "series", "9" * 400), ("range", "series", ",".join(map(str, range(1, 200)))), ("range", "series", "<b>"), ("range", "series", ""),
            ("range", "from", "yesterday"), ("range", "from", "1e9"), ("range", "from", "99999999999"), ("range", "from", "-5y"),
            ("range", "from", "-99999999999w"), ("range", "to", "1" * 5000), ("range", "to", "0"), ("range", "to", "1.1234567891"),
            ("range", "points", "9"), ("range", "points", "5001"), ("range", "points", "18446744073709551617"), ("range", "percentiles", "yes"),
            ("events", "limit", "0"), ("events", "limit", "10001"), ("events", "before", "1/x"), ("events", "before", "1/99999999"),
            ("top", "n", "0"), ("top", "n", "1.5"), ("series", "ids", "1;DROP TABLE series"), ("series", "label", "novalue"), ("series", "label", "=x"),
            ("series", "search", " ".join("abcdefghijklm")), ("series", "after", "-1"), ("series", "inside", "TRUE"), ("labels", "inside", "1"),
            ("live", "series", "x"), ("range", "nonsense", "1"), ("range", "series ", "1"), ("markers", "\u202e", "1"), ("groups", "", "1")):
        parameters = {"series": "1"} if path in ("range", "events") else {"by": "x"} if path == "top" else {}
        answer = server.ask(path, 400, **{**parameters, name: value})
        shown = name if name.isprintable() else name.encode("unicode_escape").decode()
        wanted = "from" if (name, value) == ("to", "0") else shown
        assert answer["message"].startswith(f'parameter "{wanted}": '), (path, name, answer)
    for query, word in (("range?series=1&series=1", '"series": it is there twice'), ("range?series=%00", "not a list of ids"), ("range?series=1%001", "not a list of ids"),
                        ("series?name=%ff%fe", '"name": its value is not valid UTF-8'), ("series?%c3%28=1", "its name is not valid UTF-8"),
                        ("range", '"series": it is missing'), ("top", '"by": it is missing'), ("range?series=1&from=2&to=1", '"from": it is not before'),
                        ("live", '"series": either'), ("live?series=1&group=g", '"series": either'),
                        ("range?points=5000&series=" + ",".join(map(str, range(1, 51))), "no series 2")):
        status, body, _ = server.call("GET", "/api/v1/" + query)
        assert status == (404 if "no series" in word else 400) and word in json.loads(body)["message"], (query, body)
    for path, status in (("range?series=2", 404), ("events?series=2", 404), ("live?series=2", 404), ("nothing", 404), ("series/1", 404), ("runs//", 404)):
        found, body, _ = server.call("GET", "/api/v1/" + path)
        assert found == status == json.loads(body)["status"], (path, body)
    assert server.ids() == [1], "nothing was changed"
    server.end()


@case
def responses_are_compressed_cached_and_without_bodies_as_asked(folder):
    server = Api(folder)
    server.emit(*[line(f"n{i}", i, START) for i in range(50)])
    status, plain, headers = server.call("GET", "/api/v1/series")
    assert status == 200 and headers["Content-Type"] == "application/json" and headers["Access-Control-Allow-Origin"] is None
    status, packed, more = server.call("GET", "/api/v1/series", Accept_Encoding="gzip")
    assert more["Content-Encoding"] == "gzip" and gzip.decompress(packed) == plain and len(packed) < len(plain) / 4
    assert more["ETag"] == headers["ETag"] and "Accept-Encoding" in more["Vary"]
    assert server.call("GET", "/api/v1/series", If_None_Match=headers["ETag"])[:2] == (304, b"")
    assert server.call("GET", "/api/v1/series?limit=1", If_None_Match=headers["ETag"])[0] == 200
    status, body, head = server.call("HEAD", "/api/v1/series")
    assert (status, body, head["Content-Length"], head["ETag"]) == (200, b"", str(len(plain)), headers["ETag"])
    assert server.call("HEAD", "/api/v1/live?series=1")[:2] == (200, b"")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        status, body, allowed = server.call(method, "/api/v1/series", body=b"")
        assert (status, allowed["Allow"]) == (405, "GET, HEAD"), method
        jsonschema.validate(json.loads(body), Api.document.schema({"$ref": "#/components/schemas/Error"}))
    server.end()


@case
def a_request_that_takes_too_long_is_refused(folder):
    server = Api(folder, tail=10 ** 6, query_timeout="1ms")
    server.emit(*[line("l", i, START) for i in range(60000)])
    def is_refused():
        status, body, _ = server.call("GET", "/api/v1/series?search=l")
        return status == 503 and "query_timeout" in json.loads(body)["message"]
    wait_for(is_refused, "a refusal")
    wait_for(lambda: server.call("GET", "/api/v1/groups")[0] == 200, "what takes less, once the tail is read")
    server.end()


@case
def a_file_that_was_moved_is_opened_anew(folder):
    server = Api(folder)
    server.emit(line("old", 1, START))
    assert [series["name"] for series in server.ask("series")["series"]] == ["old"]
    server.move(os.path.join(folder, "moved.db"))
    assert server.ask("series")["series"] == []
    server.emit(line("new", 2, START), line("new", 3, START))
    assert [(series["name"], series["count"]) for series in server.ask("series")["series"]] == [("new", 2)]
    server.end()


@case
def a_status_with_times_before_1970_is_json(folder):
    server = Api(folder)
    server.emit(line("l", 1, -5.5), line("l", 2, -0.25))
    store = server.ask("status")["store"]
    assert (store["first"], store["last"]) == (-5.5, -0.25), store
    server.end()


@case
def the_latest_markers_are_returned_in_the_order_of_time(folder):
    server = Api(folder)
    with contextlib.closing(sqlite3.connect(server.path, timeout=240)) as db:
        db.executemany("INSERT INTO marks (at_us, kind, text) VALUES (?, 'sender_joined', ?)", [(i * 10**6, str(i)) for i in range(1100)])
        db.commit()
    marks = server.ask("markers", **{"from": 0, "to": 2000})["markers"]
    assert [mark["t"] for mark in marks] == list(range(100, 1100))
    server.end()


@case
def the_document_names_what_there_is(folder):
    server = Api(folder)
    document = Api.document
    assert server.ask("openapi.json") == document.json
    assert document.json["openapi"].startswith("3.0")
    index = server.ask("")
    assert index["api"] == 1 and index["paths"] == list(document.paths)
    for path, item in document.paths.items():
        if path == "/api/v1/status":
            continue
        status, body, _ = server.call("GET", path.replace("{id}", "1") + "?unknown_one=1")
        allowed = json.loads(body)["message"].split("allowed: ")[1]
        named = list(dict.fromkeys(one["name"] for one in item["get"]["parameters"] if one["in"] == "query"))
        assert status == 400 and (allowed.split(" ") if allowed != "none" else []) == named, (path, allowed, named)
    server.end()


main()
