"""The source collector: MLBench's REST API as its clients use it, and what it refuses."""

import contextlib
import datetime
import io
import json
import os
import signal
import socket
import sqlite3
import time
import urllib.parse
import zipfile

from collectors import RUN, Collector
from harness import WEIR, free_port, main, run, start, wait_for
from sourced import case

NDJSON = "application/x-ndjson"


@case
def runs_are_made_listed_changed_and_deleted(folder):
    server = Collector(folder)
    assert server.get("/api/runs/") == [] == server.get("/api/pods/")
    made = server.post("/api/runs/", RUN)
    assert made["created_at"].endswith("Z") and {**made, "created_at": ""} == {
        "id": 1, "name": "run1", "created_at": "", "finished_at": None, "state": "initialized", "job_id": "", "job_metadata": {},
        "num_workers": 2}, made
    assert server.get("/api/runs") == [made]
    assert server.get("/api/runs/1.json") == {**made, "job_metadata": {"stdout": [], "stderr": []}}
    server.add("loss", "0.5", "2030-01-01 00:00:00")
    assert server.get("/api/runs/1/")["state"] == "started"
    server.patch(1, {"stdout": ["a", ""], "stderr": ["\u00fc"]})
    ended = server.patch(1, {"state": "finished", "stdout": ["b"]})
    assert ended["job_metadata"] == {"stdout": ["a", "", "b"], "stderr": ["\u00fc"]} and ended["finished_at"] and ended["state"] == "finished"
    server.patch(1, {"state": "lost"}, 400)
    server.patch(2, {"state": "failed"}, 404)
    assert server.call("DELETE", "/api/runs/1")[:2] == (204, b"")
    assert server.call("DELETE", "/api/runs/1")[0] == 404 and server.get("/api/metrics/") == {"pod_metrics": {}, "run_metrics": {}}
    server.end()


@case
def the_latest_lines_of_a_runs_output_are_kept(folder):
    server = Collector(folder, body_limit="64MiB")
    server.post("/api/runs/", RUN)
    for first in (0, 80000):
        server.patch(1, {"stdout": [f"{i:069}" for i in range(first, first + 80000)]})
    lines = server.get("/api/runs/1")["job_metadata"]["stdout"]
    assert len(lines) == 8 * 2 ** 20 // 70 and lines[-1] == f"{159999:069}" and lines[0] == f"{160000 - len(lines):069}"
    assert "stderr: it has a NUL byte" in server.patch(1, {"stderr": ["a\0b"]}, 400)["message"]
    server.patch(1, {"stderr": ["\u00fc" * (3 * 2 ** 20)]})
    assert server.get("/api/runs/1")["job_metadata"]["stderr"] == ["\u00fc" * (3 * 2 ** 20)]
    server.patch(1, {"stderr": ["x" * (2 ** 21)]})
    assert server.get("/api/runs/1")["job_metadata"]["stderr"] == ["x" * (2 ** 21)]
    server.end()


@case
def values_are_read_as_they_were_posted(folder):
    server = Collector(folder)
    server.post("/api/runs/", RUN)
    added = server.add("loss", "97.0", "2030-11-21 12:34:56.789012", cumulative="True", metadata="{rank: 0}")
    assert added == {"name": "loss", "value": "97.0", "date": "2030-11-21T12:34:56.789012Z", "metadata": "{rank: 0}", "cumulative": True}
    for second, text in enumerate(("nan", "80% reached", "1e+300", "")):
        server.add("text \u00fc", text, f"2030-11-21T12:34:0{second}+01:00")
    server.add("cpu", "1", "2030-11-21T12:34:00Z", run_id=None, pod_name="pod-1")
    found = server.get("/api/metrics/1/?metric_type=run")
    assert found["loss"] == [{"date": "2030-11-21T12:34:56.789012Z", "value": "97.0", "cumulative": True}]
    assert [value["value"] for value in found["text \u00fc"]] == ["nan", "80% reached", "1e+300", ""]
    assert found["text \u00fc"][0]["date"] == "2030-11-21T11:34:00Z", "no decimals where there are none"
    assert server.get("/api/metrics/pod-1/") == {"cpu": [{"date": "2030-11-21T12:34:00Z", "value": "1", "cumulative": False}]}
    both = server.get("/api/metrics/")
    assert both["run_metrics"]["run1"]["loss"] == [added] and both["pod_metrics"]["pod-1"]["cpu"][0]["date"] == "2030-11-21T12:34:00.000000Z"
    assert server.get("/api/pods/") == [{"name": "pod-1", "labels": "{}", "phase": "Running", "ip": "127.0.0.1"}]
    server.end()


@case
def values_are_selected_and_summarized(folder):
    server = Collector(folder)
    server.post("/api/runs/", RUN)
    for i in range(10):
        server.add("a", float(i), f"2030-01-01T00:00:{i:02}.5")
    server.add("b", "x", "2030-01-01T00:00:00")
    def values(query):
        return {name: [value["value"] for value in found] for name, found in server.get("/api/metrics/1/?metric_type=run&" + query).items()}
    assert values("summarize=3") == {"a": ["1.5", "5.5"], "b": ["x"]}, "groups of four; the last two are dropped"
    assert values("summarize=10&last_n=2") == {"a": ["8.0", "9.0"], "b": ["x"]}
    assert values("last_n=-8") == {"a": ["8.0", "9.0"]}, "names without values are left out"
    for since in ("2030-01-01T00:00:08.0Z", "2030-01-01 00:00:08.000000"):
        assert values("metric_filter=a&since=" + urllib.parse.quote(since)) == {"a": ["8.0", "9.0"]}
    for query in ("summarize=x", "last_n=1.5", "since=yesterday"):
        server.get("/api/metrics/1/?metric_type=run&" + query, 400)
    server.end()


@case
def an_archive_has_a_file_for_each_metric(folder):
    server = Collector(folder)
    server.post("/api/runs/", {**RUN, "name": "run-2"})
    server.add("loss @ 0", "0.5", "2040-01-01T00:00:00.123456")
    server.add("../up", "1", "2040-01-01T00:00:00")
    server.add("marks", "\x7f \u20ac \U0001f600 \" \\ / \t \x1f", "2040-01-01T00:00:00")
    server.add("old", "1", "2000-01-01T00:00:00")
    server.add("TaskResult @ 0", "reached \u00fc", "2040-01-01T00:00:01")
    status, body, headers = server.call("GET", "/api/metrics/1/?metric_type=run&format=zip")
    assert (status, headers["Content-Type"], headers["Content-Disposition"]) == \
        (200, "application/octet-stream", "attachment; filename=metrics_run-2.zip")
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["official_result.txt", "result_.._up.json", "result_loss @ 0.json", "result_marks.json"], archive.namelist()
        assert all(entry.external_attr >> 16 == 0o100600 and entry.compress_type == zipfile.ZIP_DEFLATED for entry in archive.infolist())
        text = archive.read("result_loss @ 0.json").decode()
        assert text == json.dumps([{"date": "2040-01-01T00:00:00.123Z", "value": "0.5", "cumulative": False}], indent=4), text
        text = archive.read("result_marks.json").decode()
        assert text == json.dumps(json.loads(text), indent=4) and "\\u007f \\u20ac \\ud83d\\ude00" in text, text
        assert archive.read("official_result.txt").decode() == "reached \u00fc"
    server.end()


def encoded(form):
    """As python3-requests encodes data and params: None is left out, lists and dictionaries repeat the key."""
    return urllib.parse.urlencode({key: list(value) if isinstance(value, dict) else value for key, value in form.items() if value is not None}, doseq=True)


@case
def the_calls_of_mlbenchs_client_are_understood(folder):
    server = Collector(folder)
    def post(path, form):
        status, body, _ = server.call("POST", path, body=encoded(form).encode())
        assert status == 201, body
        return json.loads(body)
    made = post("/api/runs/", {**RUN, "max_bandwidth": 1000, "use_horovod": "false", "run_all_nodes": False})
    assert made["name"] == "run1" and made["num_workers"] == 2, made
    when, name = datetime.datetime(2040, 1, 2, 3, 4, 5), "val_loss @ 0"
    for date, value, metadata in ((when, 97.0, ""), (when.replace(microsecond=7), 1e300, {"rank": 0, "epoch": 1}), (when, float("nan"), "")):
        sent = post("/api/metrics/", {"run_id": 1, "name": name, "cumulative": False, "date": str(date), "value": value, "metadata": metadata})
        assert sent["value"] == str(value) and sent["metadata"] == ("epoch" if metadata else ""), sent
    for since, count in ((str(when.replace(microsecond=1)), 1), (str(when), 3), ("2040-01-02T03:04:05.000001Z", 1), (None, 3)):
        found = server.get("/api/metrics/1?" + encoded({"metric_type": "run", "since": since, "summarize": None, "metric_filter": name}))
        assert len(found[name]) == count, (since, found)
    last = server.get("/api/metrics/1?" + encoded({"metric_type": "run", "metric_filter": name, "last_n": 1}))
    assert last == {name: [{"date": "2040-01-02T03:04:05.000007Z", "value": "1e+300", "cumulative": False}]}, last
    _, archive, _ = server.call("GET", "/api/metrics/1?metric_type=run", Accept="application/octet-stream")
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.namelist() == ["result_val_loss @ 0.json"]
        assert [value["date"] for value in json.loads(opened.read(opened.namelist()[0]))] == ["2040-01-02T03:04:05Z"] * 2 + ["2040-01-02T03:04:05.000Z"]
    for date, wanted in (("2030-01-02 03:04", "2030-01-02T03:04:00"), ("2030-01-02T03:04:05.5+01", "2030-01-02T02:04:05.500000"),
                         ("2030-01-02T03:04:05-0130", "2030-01-02T04:34:05"), ("2030-01-02T03:04:05.123456+01:00", "2030-01-02T02:04:05.123456")):
        assert server.add("dates", "1", date)["date"][:len(wanted)] == wanted, date
    for path in ("metrics/", "runs/", "runs/1", "pods/"):
        server.get("/api/" + path)
    assert server.call("DELETE", "/api/runs/1")[0] == 204
    server.end()


@case
def many_values_are_posted_as_lines(folder):
    server = Collector(folder)
    server.post("/api/runs/", RUN)
    lines = b'{"name":"b","value":1.5,"timestamp":1700000000.25}\n\n{"name":"b","value":7}\n'
    status, body, _ = server.call("POST", "/api/metrics/?run_id=1", body=lines, Content_Type=NDJSON)
    assert (status, json.loads(body)) == (201, {"added": 2}), body
    for bad in (b'{"name":"b","value":2}\nno\n', b'{"name":"b","value":2}\n{"name":"b"}\n'):
        status, body, _ = server.call("POST", "/api/metrics/?run_id=1", body=bad, Content_Type=NDJSON)
        assert status == 400 and "line 2" in json.loads(body)["message"], body
    found = server.get("/api/metrics/1/?metric_type=run")["b"]
    assert [value["value"] for value in found] == ["1.5", "7"] and found[0]["date"] == "2023-11-14T22:13:20.250000Z", found
    server.end()


@case
def lines_are_stored_as_they_are_or_refused(folder):
    server = Collector(folder)
    server.post("/api/runs/", RUN)
    def post(lines):
        status, body, _ = server.call("POST", "/api/metrics/?run_id=1", body=lines, Content_Type=NDJSON)
        return status, json.loads(body)
    for bad, word in ((b'{"name":"b","value":1}\0{"name":"b","value":2}', "NUL"), (b'{"name":"b","value":1} {"name":"b","value":2}', "line 1"),
                      (b'{"name":"b","value":1,"timestamp":"2026-11-21T12:34:56Z"}', "timestamp"), (b'{"name":"b","value":1,"timestamp":1700000000000}', "timestamp"),
                      (b'{"name":"b","value":1,"timestamp":5e10}', "timestamp"), (b'{"name":"b","value":1,"timestamp":-9.3e9}', "timestamp"),
                      (b'{"name":"b","value":1,"timestamp":NaN}', "timestamp"), (b'{"name":"b\xff","value":1}', "line 1: it is not valid UTF-8"),
                      (b'{"name":"b","value":"a\\u0000b"}', "value: it has a NUL"), (b'{"name":"b\\u0000","value":1}', "name: it has a NUL")):
        status, reply = post(bad)
        assert status == 400 and word in reply["message"], (bad, reply)
    numbers = ["100000000000000000000", "-100000000000000000000", "18446744073709551615", "-9223372036854775808", "9223372036854775807"]
    lines = [f'{{"name":"b","metadata":"12345678901234567890 \\\\" ,"value": {number} ,"timestamp":{i}}} \r\n' for i, number in enumerate(numbers)]
    assert post("".join(lines).encode()) == (201, {"added": 5})
    assert [value["value"] for value in server.get("/api/metrics/1/?metric_type=run")["b"]] == numbers
    for field, text in (("name", "%FFx"), ("value", "a%00b"), ("metadata", "%C0%80")):
        form = "run_id=1&" + "&".join(f"{key}={text if key == field else given}" for key, given in
                                      (("name", "n"), ("cumulative", "False"), ("date", "2030-01-01T00:00:00"), ("value", "1"), ("metadata", "")))
        status, body, _ = server.call("POST", "/api/metrics/", body=form.encode())
        assert status == 400 and json.loads(body)["message"].startswith(field + ": "), body
    assert list(server.get("/api/metrics/")["run_metrics"]["run1"]) == ["b"]
    server.end()


@case
def what_is_at_fault_is_named(folder):
    server = Collector(folder, body_limit="1KiB")
    server.post("/api/runs/", RUN)
    good = {"run_id": "1", "name": "x", "cumulative": "False", "date": "2030-01-01T00:00:00", "value": "1", "metadata": ""}
    for change, word, status in (({"run_id": None}, "Run ID has to be supplied", 400), ({"run_id": "9"}, "Run not found", 404),
                                 ({"run_id": "x"}, "run_id", 400), ({"date": "2030-02-30T00:00:00"}, "date", 400), ({"date": "now"}, "date", 400),
                                 ({"date": "9999-01-01T00:00:00"}, "date", 400), ({"date": "0001-01-01T00:00:00"}, "date", 400),
                                 ({"cumulative": "maybe"}, "cumulative", 400), ({"name": "n" * 256}, "name", 400), ({"value": None}, "value", 400),
                                 ({"metadata": None}, "metadata", 400), ({"value": "v" * 2000}, "body_limit", 413)):
        form = {key: text for key, text in {**good, **change}.items() if text is not None}
        assert word in server.post("/api/metrics/", form, status)["message"], change
    for change, word in (({"name": "-a"}, "name"), ({"name": ""}, "name"), ({"num_workers": "0"}, "num_workers"), ({"backend": None}, "backend"),
                         ({"custom_image_name": None}, "custom_image_name"), ({"light_target": None}, "light_target")):
        form = {key: text for key, text in {**RUN, **change}.items() if text is not None}
        assert word in server.post("/api/runs/", form, 400)["message"], change
    for path in ("/api/runs/2/", "/api/runs/x", "/api/metrics/nobody/", "/api/metrics/7/?metric_type=run", "/api/runs/1/2"):
        assert server.call("GET", path)[0] == 404, path
    for path in ("/api/", "/../etc/passwd"):
        assert server.call("GET", path)[0] == 401, path
    for method, path in (("PUT", "/api/runs/"), ("POST", "/api/pods/"), ("DELETE", "/api/metrics/")):
        status, _, headers = server.call(method, path, {})
        assert status == 405 and "GET" in headers["Allow"], path
    assert server.get("/api/metrics/")["run_metrics"] == {}
    server.end()


@case
def pages_of_other_sites_are_refused(folder):
    server = Collector(folder)
    for headers in ({"Host": "evil.example"}, {"Host": "localhost.evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert server.call("GET", "/api/runs/", **headers)[0] == 403, headers
    assert server.call("GET", "/api/runs/", Host="localhost:1", Origin="http://localhost:1")[0] == 200
    server.end()
    config = {"sources": {"c": {"type": "collector", "listen": "0.0.0.0:0", "path": server.path}}, "handlers": {"n": {"type": "null"}}, "groups": {"*": "n"}}
    done = run(WEIR, "relay", WEIR_CONFIG=config)
    assert done.returncode != 0 and "sources.c.listen" in done.stderr and "token_file" in done.stderr, done.stderr


@case
def what_was_answered_survives_a_kill(folder):
    server = Collector(folder, create_runs=True)
    for i in range(20):
        server.add("v", i, "2030-01-01T00:00:00", run_id=5)
    server.program.send_signal(signal.SIGKILL)
    server.program.communicate()
    server.begin()
    assert [value["value"] for value in server.get("/api/metrics/5/?metric_type=run")["v"]] == [str(i) for i in range(20)], "in order of arrival"
    server.end()


def stored(path, query):
    with contextlib.closing(sqlite3.connect(path, timeout=240)) as db:
        return db.execute(query).fetchall()


@case
def what_is_posted_after_the_file_was_moved_is_in_the_new_one(folder):
    server, old = Collector(folder, create_runs=True), os.path.join(folder, "old.db")
    server.add("v", "before", "2030-01-01T00:00:00")
    server.move(old)
    server.add("v", "after", "2030-01-01T00:00:00")
    assert [value["value"] for value in server.get("/api/metrics/1/?metric_type=run")["v"]] == ["after"]
    for path, values in ((server.path, [("after",)]), (old, [("before",)])):
        assert stored(path, "SELECT value FROM metrics") == values, path
    assert server.call("GET", "/readyz")[0] == 200
    server.end()
    assert stored(server.path, "SELECT value FROM metrics") == [("after",)] and stored(server.path, "PRAGMA integrity_check") == [("ok",)]


@case
def nothing_is_acknowledged_that_cannot_be_stored(folder):
    place = os.path.join(folder, "place")
    os.mkdir(place)
    server = Collector(folder, create_runs=True, path=os.path.join(place, "m.db"))
    server.add("v", "1", "2030-01-01T00:00:00")
    os.rename(place, place + "2")
    assert "the database: " in server.add("v", "2", "2030-01-01T00:00:00", 503)["message"]
    status, body, _ = server.call("GET", "/readyz")
    assert status == 503 and b"cannot be opened" in body, body
    os.mkdir(place)
    server.add("v", "3", "2030-01-01T00:00:00")
    assert stored(os.path.join(place, "m.db"), "SELECT value FROM metrics") == [("3",)]
    server.end()


@case
def slow_and_broken_connections_disturb_nobody(folder):
    server = Collector(folder, connections=4, idle_timeout="200ms", request_timeout="200ms")
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
    for connection in slow:
        connection.sendall(b"POST /api/metrics/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nab")
    with socket.create_connection(("127.0.0.1", server.port)) as other:
        other.sendall(b"\x00\xff nonsense\r\n\r\n")
    assert server.get("/api/runs/") == []
    for connection in slow:
        connection.close()
    server.end()


@case
def what_takes_too_long_or_is_too_much_is_refused(folder):
    server = Collector(folder, create_runs=True, query_timeout="1ms", body_limit="1GiB")
    lines = b"".join(json.dumps({"name": "n", "value": i}).encode() + b"\n" for i in range(20000))
    assert server.call("POST", "/api/metrics/?run_id=1", body=lines, Content_Type=NDJSON)[0] == 201
    for path in ("/api/metrics/", "/api/metrics/1/?metric_type=run"):
        assert "query_timeout" in server.get(path, 503)["message"]
    server.add("n", "1", "2030-01-01T00:00:00")
    server.end()
    server.config["sources"]["c"]["query_timeout"] = "1m"
    server.begin()
    assert len(server.get("/api/metrics/1/?metric_type=run")["n"]) == 20001
    lines = b"".join(json.dumps({"name": "n", "value": "v" * 65000}).encode() + b"\n" for i in range(1100))
    assert server.call("POST", "/api/metrics/?run_id=1", body=lines, Content_Type=NDJSON)[0] == 201
    for path in ("/api/metrics/", "/api/metrics/1/?metric_type=run"):
        assert "metric_filter" in server.get(path, 503)["message"]
    server.end()


@case
def a_reply_is_sent_for_as_long_as_the_client_takes_it(folder):
    server = Collector(folder, create_runs=True, connections=1, idle_timeout="1s")
    lines = b"".join(json.dumps({"name": "n", "value": "v" * 60000}).encode() + b"\n" for _ in range(120))
    for _ in range(2):
        assert server.call("POST", "/api/metrics/?run_id=1", body=lines, Content_Type=NDJSON)[0] == 201
    def ask(size):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        client.settimeout(240)
        client.connect(("127.0.0.1", server.port))
        client.sendall(b"GET /api/metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return client
    with ask(1 << 16) as slow, slow.makefile("rb") as reply:
        headers = b"".join(iter(reply.readline, b"\r\n"))
        length = int(headers.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        got = 0
        while part := reply.read(min(1 << 18, length - got)):
            got += len(part)
            time.sleep(0.1)  # how slow the client is
        assert got == length > 14 * 10 ** 6, (got, length)
    with ask(1 << 12):  # takes nothing, and holds the only connection until it is ended
        assert server.get("/api/runs/")[0]["id"] == 1
    server.end()


main()
