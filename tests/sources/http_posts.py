"""The source type http: real clients, each format, refusals, tokens, tenants, and senders that mean no good."""

import gzip
import json
import os
import re
import resource
import socket
import stat
import threading

import requests
from harness import ADDER, SANITIZED, assert_ledgers, free_port, main, run, wait_for
from peers import prometheus_client, prometheus_parsers
from sourced import Sourced, case

MIB = 1 << 20
MOST_MEMORY = 160 * MIB
FACTOR = float(os.environ.get("WEIR_TEST_FACTOR", "1"))


def start(folder, handler=None, **options):
    return Sourced(folder, {"type": "http", "listen": "127.0.0.1:0", **options}, handler)


def port_of(program):
    return program.port("http://127.0.0.1")


def url_of(program, path=""):
    return f"http://127.0.0.1:{port_of(program)}/{path}"


def post(program, body, path="", **headers):
    return requests.post(url_of(program, path), data=body, headers={name.replace("_", "-"): text for name, text in headers.items()},
                         timeout=240)


def exchange(program, sent):
    """The whole answer to raw bytes, until the server closes."""
    with socket.create_connection(("127.0.0.1", port_of(program))) as client:
        client.settimeout(240)
        answer = b""
        try:
            client.sendall(sent)
            while piece := client.recv(65536):
                answer += piece
        except ConnectionError:
            pass
        return answer


def write_token(folder, name, token):
    path = os.path.join(folder, name)
    with open(path + ".new", "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(token + "\n")
    os.rename(path + ".new", path)
    return path


@case
def each_format_is_taken_by_its_path_type_or_parameter(folder):
    program = start(folder)
    assert post(program, b'{"name":"a","value":1}\n', "ingest", Content_Type="application/json").json() == {
        "added": 1, "refused": 0, "lines": 1}
    assert post(program, b"# TYPE b gauge\nb 2\n", Content_Type="text/plain; version=0.0.4").json()["added"] == 1
    answer = post(program, b"m,host=h c=3 1700000000", "api/v2/write?precision=s")
    assert (answer.status_code, answer.content) == (204, b""), answer.content
    assert post(program, b"m c=4 1700000000000", "write?precision=ms").status_code == 204
    assert post(program, gzip.compress(b"d=5\n"), "?parse=text", Content_Encoding="gzip").json()["added"] == 1
    assert post(program, (piece for piece in (b"e=", b"6\n", b"f=7")), "ingest").json()["added"] == 2  # chunked
    counts = program.end()
    assert [value for _, value in program.values()] == [1, 2, 3, 4, 5, 6, 7]
    times = [{key: line[key] for key in line if "time" in key} for line in program.written() if line["value"] in (3, 4)]
    assert len(times) == 2 and times[0] == times[1] and times[0], times
    assert counts["added"] == 7 and counts["bad_lines"] == counts["refused"] == 0, counts


def registry_of_a_client():
    """All types of Prometheus' own client, with values."""
    client = prometheus_client()
    registry = client.CollectorRegistry()
    took = client.Histogram("took", 'How "long".', ["a"], unit="seconds", buckets=(0.1, 1, 10), registry=registry)
    took.labels("x").observe(0.5)
    took.labels("y").observe(5)
    client.Counter("hits", "Hits.", registry=registry).inc(3)
    client.Gauge("level", "Level.", registry=registry).set(-1.5)
    client.Summary("size", "Size.", registry=registry).observe(2)
    client.Info("build", "Build.", registry=registry).info({"version": "1"})
    client.Enum("state", "State.", states=["on", "off"], registry=registry).state("off")
    return registry


def samples_of(page, parse):
    """(name, labels): value, and the types of the families; without weir's own."""
    families = [family for family in parse(page) if not family.name.startswith("weir_")]
    samples = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for family in families for sample in family.samples}
    return samples, {family.name: family.type for family in families}


def served_again(folder, body, kind):
    """What the handler type prometheus shows of a page that is posted twice: samples and types."""
    where = f"127.0.0.1:{free_port()}"
    program = start(folder, {"type": "prometheus", "listen": where}, group="app")
    answers = [post(program, body, Content_Type=kind).json() for _ in range(2)]
    assert answers[0] == answers[1] and answers[0]["refused"] == 0, answers
    page = {}

    def is_shown():
        page["text"] = requests.get(f"http://{where}/metrics", headers={"Accept": "application/openmetrics-text"}, timeout=240).text
        return program.stats()["added"] == 2 * answers[0]["added"] and "app_state" in page["text"]

    wait_for(is_shown, "the page")
    program.end()
    return page["text"]


@case
def pages_of_prometheus_own_client_are_served_with_the_same_values_and_types(folder):
    client, parsers = prometheus_client(), prometheus_parsers()
    registry = registry_of_a_client()
    sent, _ = samples_of(client.openmetrics.exposition.generate_latest(registry).decode(), parsers[1])
    renamed = {"app_build_info": "app_build_info_value", "app_size_count": "app_size_count_total", "app_size_sum": "app_size_sum_total"}
    expected = {(renamed.get("app_" + name, "app_" + name), labels): value for (name, labels), value in sent.items()
                if not name.endswith("_created")}
    types = {"app_took_seconds": "histogram", "app_hits": "counter", "app_level": "gauge", "app_size_count": "counter",
             "app_size_sum": "counter", "app_build_info_value": "gauge", "app_state": "gauge"}
    for kind, body in (("application/openmetrics-text; version=1.0.0", client.openmetrics.exposition.generate_latest(registry)),
                       ("text/plain; version=0.0.4", client.generate_latest(registry))):
        page = served_again(folder, body, kind)
        samples, shown = samples_of(page, parsers[1])
        shown = {name: type for name, type in shown.items() if "created" not in name}
        samples = {key: value for key, value in samples.items() if "created" not in key[0]}
        assert samples == expected and shown == types, page


@case
def curl_sends_with_expect_100_continue(folder):
    program = start(folder)
    path = os.path.join(folder, "body")
    with open(path, "w", encoding="ascii") as file:
        file.write("a=1\n" * 300000)
    done = run("curl", "-sS", "--fail", "-H", "Expect: 100-continue", "--data-binary", "@" + path, url_of(program, "?parse=text"))
    assert done.returncode == 0 and json.loads(done.stdout)["added"] == 300000, done
    assert program.end()["added"] == 300000


@case
def weir_sends_to_weir(folder):
    for format, path in (("influx", "write"), ("json", "ingest")):
        program = start(folder)
        config = os.path.join(folder, "sender.json")
        with open(config, "w", encoding="ascii") as file:
            json.dump({"settings": {"shutdown_timeout": "2m"}, "handlers": {"push": {
                "type": "http", "url": url_of(program, path), "format": format, "block_timeout": "1h"}}, "groups": {"*": "push"}}, file)
        done = run(ADDER, "-n", "20000", "-f", "-1", "-H", "push", WEIR_CONFIG=config)
        assert done.returncode == 0, done
        ledger = json.loads(done.stdout)["handlers"]["push"]
        assert ledger["delivered"] == ledger["offered"] == program.end()["added"] == 20000, ledger


@case
def a_bad_line_is_named_and_the_good_ones_are_added(folder):
    program = start(folder)
    answer = post(program, b"a=1\nb=x\nc=3\nd=y\n", "?parse=text")
    assert answer.status_code == 400, answer.text
    body = answer.json()
    assert (body["added"], body["refused"], body["lines"]) == (2, 2, 4) and "line 2" in body["error"] and "x" in body["error"], body
    again = post(program, b"a=1\nb=z", "?parse=text").json()
    assert "line 2" in again["error"] and "z" in again["error"], "also what is logged no more"
    counts = program.end()
    assert counts["added"] == 3, counts


@case
def requests_that_are_not_allowed_are_refused_with_a_reason(folder):
    program = start(folder, body_limit="1KiB")
    post_line = b"POST / HTTP/1.1\r\nHost: a\r\n"
    wrong = [(405, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
             (404, b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
             (413, post_line + b"Content-Length: 1025\r\n\r\n"),
             (413, post_line + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n800\r\n" + b"a" * 2048 + b"\r\n0\r\n\r\n"),
             (400, post_line + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
             (400, post_line + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\na=1\n"),
             (400, post_line + b"Content-Length: 4\r\nContent-Length: 9\r\n\r\na=1\n"),
             (400, post_line + b"Content-Length: -4\r\n\r\na=1\n"),
             (400, post_line + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
             (400, b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\na=1\n"),
             (411, post_line + b"\r\n"),
             (415, post_line + b"Content-Type: image/png\r\nContent-Length: 4\r\n\r\na=1\n"),
             (415, post_line + b"Content-Encoding: br\r\nContent-Length: 4\r\n\r\na=1\n"),
             (415, b"POST /?parse=statsd HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\na=1\n"),
             (400, b"POST /write?precision=h HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\na=1\n"),
             (431, post_line + b"X: " + b"x" * 100000 + b"\r\n\r\n")]
    for status, sent in wrong:
        answer = exchange(program, sent)
        assert answer.split(b" ")[1:2] == [str(status).encode()], (status, sent[:100], answer)
        assert status != 405 or b"Allow: POST" in answer, answer
    assert program.end()["added"] == 0


@case
def tokens_choose_the_tenant_whose_labels_and_limits_hold(folder):
    one, two = write_token(folder, "one", "token-of-one"), write_token(folder, "two", "token-of-two")
    program = start(folder, labels={"site": "own"}, group="g", group_prefix="p", token_file=write_token(folder, "zero", "token-zero"),
                    tenants={"a": f"token_file={one} group_prefix=pa label.site=x label.who=a max_series=2",
                             "b": f"token_file={two} rate=1"})
    lines = b'{"name":"v","value":1,"labels":{"site":"s","who":"w","free":"f"}}\n'
    for given in (None, "Bearer wrong-token", "Basic token-of-one", "Bearer token-of-on", "Bearer ", "Bearer " + "x" * 2000):
        answer = post(program, lines, "ingest?parse=json", **({"Authorization": given} if given else {}))
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer", (given, answer.text)
    assert post(program, lines, "?parse=json", Authorization="Token token-of-one").status_code == 200
    assert post(program, lines, "?parse=json", Authorization="bearer token-zero").status_code == 200
    answer = post(program, b"x=1\ny=2\nv=3\n", "?parse=text", Authorization="Bearer token-of-one")
    assert answer.status_code == 400 and "max_series" in answer.json()["error"] and answer.json()["added"] == 1, answer.text
    assert post(program, b"r=1\n" * 5000, "?parse=text", Authorization="Bearer token-of-two").status_code == 200
    answer = post(program, b"r=1\n", "?parse=text", Authorization="Bearer token-of-two")
    assert answer.status_code == 429 and int(answer.headers["Retry-After"]) > 1, answer.text
    write_token(folder, "one", "another-token")
    wait_for(lambda: post(program, b"x=9", "?parse=text", Authorization="Bearer another-token").status_code == 200, "the new token")
    assert post(program, b"x=9", "?parse=text", Authorization="Bearer token-of-one").status_code == 401
    program.end()
    written = program.written()
    assert (written[0]["group"], written[0]["labels"]) == ("p.pa.g", {"site": "own", "who": "a", "free": "f"}), written[0]
    assert (written[1]["group"], written[1]["labels"]) == ("p.g", {"site": "own", "who": "w", "free": "f"}), written[1]


@case
def a_token_file_that_is_refused_once_is_refused_until_it_is_changed(folder):
    path = os.path.join(folder, "token")
    os.mkfifo(path)  # whose opening waits for the next try
    program = start(folder, token_file=path)
    program.await_log("token: is not a regular file")
    for _ in range(3):
        os.close(os.open(path, os.O_WRONLY))
    assert "listens at" not in program.log(), program.log()
    write_token(folder, "token", "the-good-token")
    assert post(program, b"a=1\n", "?parse=text", Authorization="Bearer the-good-token").status_code == 200
    assert program.end()["added"] == 1


@case
def an_id_is_added_once(folder):
    program = start(folder)
    for _ in range(3):
        assert post(program, b"a=1\n", "?parse=text", Idempotency_Key="k1").status_code == 200
    assert post(program, b"a=2\n", "?parse=text", X_Weir_Id="k1").json() == {"added": 0, "refused": 0, "lines": 0, "repeated": True}
    assert post(program, b"a=3\n", "?parse=text", X_Weir_Id="k2").json()["added"] == 1
    program.end()
    assert [value for _, value in program.values()] == [1, 3]


def held_handler(folder):
    return {"type": "fifo", "path": os.path.join(folder, "nobody"), "format": "json", "block_timeout": "1h"}


@case
def stored_is_answered_when_the_journal_has_the_values(folder):
    program = Sourced(folder, {"type": "http", "listen": "127.0.0.1:0", "ack": "stored", "ack_timeout": "1h", "parse": "text"},
                      held_handler(folder), journal=os.path.join(folder, "journal"))
    for i in range(20):
        answer = post(program, b"a=%d\nb=%d" % (i, i))
        assert (answer.status_code, answer.json()["added"]) == (200, 2), answer.text
    program.program.kill()
    program.program.wait()
    survivor = Sourced(folder, {"type": "http", "listen": "127.0.0.1:0"}, journal=os.path.join(folder, "journal"))
    wait_for(lambda: len(survivor.values()) == 40 if os.path.exists(os.path.join(folder, "out")) else False, "all values")
    survivor.program.communicate(timeout=300)
    assert sorted(survivor.values()) == sorted((name, i) for i in range(20) for name in "ab")


@case
def delivered_is_answered_when_the_handler_has_delivered(folder):
    program = start(folder, ack="delivered", ack_timeout="1h", parse="text")
    for i in range(10):
        body, path, wanted = (b"m a=%d" % i, "write", 204) if i % 2 else (b"a=%d" % i, "", 200)
        answer = post(program, body, path, Idempotency_Key=str(i))
        assert answer.status_code == wanted, answer.text
        assert program.values() == [("a", n) for n in range(i + 1)]
    again = post(program, b"m a=3", "write", Idempotency_Key="3")
    assert again.status_code == 204
    program.end()
    assert len(program.values()) == 10


@case
def what_is_not_settled_in_time_is_told_and_a_repeat_waits_for_it_too(folder):
    program = Sourced(folder, {"type": "http", "listen": "127.0.0.1:0", "ack": "delivered", "ack_timeout": "1ms", "parse": "text"},
                      held_handler(folder))
    for repeated in (None, True):
        answer = post(program, b"a=1", Idempotency_Key="x")
        assert answer.status_code == 504 and "not delivered within ack_timeout" in answer.json()["error"], answer.text
        assert answer.json().get("repeated") == repeated, answer.text
    bad = post(program, b"b=1\nwrong\n")
    assert bad.status_code == 400 and bad.json()["added"] == 1, bad.text
    assert program.stats()["added"] == 2
    program.program.kill()


@case
def values_that_are_dropped_are_told(folder):
    handler = {"type": "socket", "to": "udp://127.0.0.1:9", "format": "json", "datagram_bytes": "64B", "linger": "5ms"}
    program = Sourced(folder, {"type": "http", "listen": "127.0.0.1:0", "ack": "delivered", "ack_timeout": "1h", "parse": "text"}, handler)
    answer = post(program, b"a_name_with_which_the_line_of_the_value_is_longer_than_a_datagram=1")
    assert answer.status_code == 500 and "has dropped values" in answer.json()["error"], answer.text
    program.stop()
    out, _ = program.program.communicate(timeout=300)
    report = json.loads(out.splitlines()[-1])
    assert_ledgers(report)
    assert sum(report["handlers"]["out"]["dropped"]) == report["sources"]["in"]["added"] == 1, report


@case
def what_finds_no_room_is_answered_with_429_and_what_was_added_is_told(folder):
    path = os.path.join(folder, "pipe")
    os.mkfifo(path)
    program = start(folder, {"type": "fifo", "path": path, "format": "json", "queue": "64KiB", "overflow": "block", "block_timeout": "1h",
                             "linger": "5ms"}, full_timeout="100ms")
    first = post(program, b"a=1\n" * 50000, "?parse=text")
    assert first.status_code == 429 and int(first.headers["Retry-After"]) >= 1, first.text
    assert 0 < first.json()["added"] < 50000, first.text
    second = post(program, b"a=1\n", "?parse=text")
    assert second.status_code == 429 and second.json()["added"] == 0, second.text
    taken = []
    reader = threading.Thread(target=lambda: taken.extend(open(path, "rb").read().splitlines()))
    reader.start()
    wait_for(lambda: post(program, b"b=1\n", "?parse=text").status_code == 200, "room")
    added = program.end()["added"]
    reader.join()
    assert added == first.json()["added"] + 1 == len(taken), (added, first.text, len(taken))


@case
def hostile_bodies_are_bounded(folder):
    program = start(folder, line_bytes="64KiB", body_limit="4MiB")
    bomb = gzip.compress(bytes(int(200 * MIB * FACTOR)))
    assert post(program, bomb, "?parse=text", Content_Encoding="gzip").status_code == 413
    assert post(program, gzip.compress(b"a=1\n")[:-4], "?parse=text", Content_Encoding="gzip").status_code == 400
    assert post(program, b"no gzip", "?parse=text", Content_Encoding="gzip").status_code == 400
    for name in ("json", "influx", "prometheus", "openmetrics", "csv", "text"):
        for body in (b"\0" * 70000, b"\xff\xc3" * 3000, os.urandom(100000), b"{" * 100000, "é=1\n".encode()[1:]):
            assert post(program, body, "?parse=" + name).status_code in (200, 400)
    with socket.create_connection(("127.0.0.1", port_of(program))) as client:  # a line without an end
        try:
            client.sendall(b"POST /?parse=text HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(int(1024 * FACTOR)):
                client.sendall(b"100000\r\n" + b"a" * MIB + b"\r\n")
        except ConnectionError:
            pass
    added = program.stats()["added"]
    assert post(program, b"alive=1", "?parse=text").status_code == 200
    if not SANITIZED:
        assert program.memory() < MOST_MEMORY, program.memory()
    assert program.end()["added"] == added + 1


@case
def a_body_as_long_as_the_memory_of_all_is_taken_and_less_memory_is_refused(folder):
    program = start(folder, body_limit="1100KiB", body_memory="1100KiB")
    body = b"a=1\n" * 275000
    for _ in range(2):
        assert post(program, body, "?parse=text").status_code == 200
    assert program.end()["added"] == 550000
    program = start(folder, body_limit="2MiB", body_memory="1MiB")
    program.await_log("body_memory: 1048576 bytes; must be at least body_limit")
    assert program.program.wait(240) == 1


@case
def slow_and_many_connections_do_not_keep_others_out(folder):
    most = min(1000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    program = start(folder, connections=most, idle_timeout="1s", request_timeout="1s")
    port = port_of(program)
    tried = 0
    while tried < int(4000 * FACTOR):
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(most)]
        for number, client in enumerate(clients):
            try:
                client.sendall((b"", b"P", b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na=")[number % 4])
            except ConnectionError:
                pass
        tried += most
        if tried >= int(4000 * FACTOR):
            assert post(program, b"alive=1", "?parse=text").status_code == 200  # once the slow ones are ended
        for client in clients:
            client.close()
    assert program.end()["added"] == 1


@case
def a_lack_of_descriptors_is_logged_once_and_ends(folder):
    program = start(folder)
    port, pid = port_of(program), program.program.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (4, limits[1]))
    with socket.create_connection(("127.0.0.1", port)):
        program.await_log("connections cannot be accepted yet: Too many open files")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert post(program, b"a=1\n", "?parse=text").status_code == 200
    assert program.end()["added"] == 1
    assert program.log().count("cannot be accepted") == 1, program.log()


# ---- A Unix socket -----------------------------------------------------------------------------


def start_unix(folder, **options):
    path = os.path.join(folder, "http.sock")
    program = start(folder, listen="unix:" + path, parse="text", **options)
    return program, path


def curl(path, body):
    """The response to a POST, or why there is none."""
    done = run("curl", "-sS", "--fail", "--max-time", 240, "--unix-socket", path, "--data-binary", body, "http://weir/")
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def await_listening(program, times):
    wait_for(lambda: program.log().count("listens at unix:") == times, "the socket")


@case
def a_unix_socket_takes_posts_from_those_whom_its_mode_permits(folder):
    os.chmod(folder, 0o755)
    for mode, shown in ((None, 0o600), ("0666", 0o666)):
        program, path = start_unix(folder, **({"mode": mode} if mode else {}))
        await_listening(program, 1)
        assert stat.S_IMODE(os.stat(path).st_mode) == shown, oct(os.stat(path).st_mode)
        assert curl(path, "a=1\nb=2") == {"added": 2, "refused": 0, "lines": 2}
        if os.geteuid() == 0:
            script = "import os,socket,sys; os.setgid(65534); os.setuid(65534); socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
            done = run("python3", "-c", script, path)
            assert (done.returncode == 0) == bool(mode), done
        assert program.end()["added"] == 2
        assert not os.path.exists(path), "it is removed at the end"
    assert program.values() == [("a", 1), ("b", 2)] * 2


@case
def the_socket_of_a_dead_process_is_replaced_and_one_that_is_in_use_is_not(folder):
    dead, path = start_unix(folder)
    await_listening(dead, 1)
    dead.program.kill()
    dead.program.wait()
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    program, _ = start_unix(folder)
    await_listening(program, 1)
    second = os.path.join(folder, "second")
    os.mkdir(second)
    other = start(second, listen="unix:" + path, parse="text")
    other.await_log("Address already in use")
    assert curl(path, "a=1")["added"] == 1
    assert program.stats()["added"] == 1, "the first one still has it"
    os.remove(path)
    other.await_log("listens at unix:")  # it tries again, and the first one has lost it
    assert curl(path, "b=1")["added"] == 1
    assert other.stats()["added"] == 1
    program.await_log("the path was removed or replaced")
    assert program.end()["added"] == 1
    assert curl(path, "c=1")["added"] == 1, "an end removes no socket of another process"
    assert other.end()["added"] == 2


@case
def a_file_in_the_place_of_the_socket_stays_and_a_socket_that_was_removed_comes_back(folder):
    with open(os.path.join(folder, "http.sock"), "w", encoding="ascii") as file:
        file.write("kept")
    program, path = start_unix(folder)
    program.await_log("File exists")
    with open(path, encoding="ascii") as file:
        assert file.read() == "kept"
    for times in (1, 2):
        os.remove(path)
        await_listening(program, times)
        assert curl(path, "a=1")["added"] == 1
    assert program.end()["added"] == 2


@case
def what_other_machines_could_reach_needs_a_token(folder):
    long_path = "unix:/" + "x" * 107
    for options, words in (({"listen": "0.0.0.0:0"}, "token_file"), ({"listen": "[::]:0"}, "token_file"), ({"listen": "nowhere"}, "allowed"),
                           ({"listen": "unix:relative"}, "unix:/PATH with an absolute path"), ({"listen": long_path}, "at most 107 bytes"),
                           ({"listen": "unix:/a", "mode": "rw"}, '"rw" is not a mode'),
                           ({"formats": ["xml"]}, '"xml" is not a format'),
                           ({"tenants": {"a": "rate=5"}}, "has no token_file"), ({"tenants": {"a": "token_file=/a rate=-5"}}, "rate=-5"),
                           *(({"tenants": {"a": f"token_file=/a group_prefix={group}"}}, f'"group_prefix={group}" is not allowed; allowed: ')
                             for group in ("*", "a..b", ".a", "a."))):
        program = start(folder, **options)
        assert program.program.wait(240) != 0 and words in program.log(), (options, program.log())
    path = write_token(folder, "t", "token-zero")
    os.chmod(path, 0o644)
    program = start(folder, token_file=path)
    program.await_log("can be read by others")
    os.chmod(path, 0o600)
    program.await_log("listens at http")
    program.end()


main()
