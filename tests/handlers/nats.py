"""The nats handler with a real nats-server: acknowledgements, killed servers, repeats, streams, logins, wrong options, forks."""

import collections
import contextlib
import json
import os
import re
import socket
import threading

import certificates
from fifos import ScriptedApp
from harness import ADDER, PLUGINS, SANITIZED, SOURCE, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, free_port, main, run, without_waits, \
    skip_fork_under_sanitizers, start, wait_for
from jetstream import Server

FACTOR = int(os.environ.get("WEIR_TEST_FACTOR", "1"))
REJECTED = 1  # in "dropped"


def config_of(server, labels=None, **options):
    handler = {"type": "nats", "servers": [server.url], "stream": "METRICS", "create": True, "format": "json", "retry_min": "5ms",
               "retry_max": "100ms", "block_timeout": "10m", "connect_timeout": "2m", "ack_timeout": "2m", **options}
    handler = {key: value for key, value in handler.items() if value is not None}
    return {"settings": {"shutdown_timeout": "4m", "labels": labels or {}}, "handlers": {"bus": handler}, "groups": {"*": "bus"}}


def ledger_of(app):
    stats = app.do("ledger", "bus")
    assert_handler_ledger(stats)
    return stats


def deliver(config, count, *more):
    done = run(ADDER, "-n", count, "-f", -1, "-H", "bus", *more, WEIR_CONFIG=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]["bus"]


def emit(config, *arguments):
    return run(WEIR, "emit", *arguments, WEIR_CONFIG=config)


# ---- What is in the stream --------------------------------------------------------------------------------------


@case
def each_event_is_a_message_with_an_id_from_its_origin_and_sequence(folder):
    with Server(folder) as server:
        assert deliver(config_of(server), 3000)["delivered"] == 3000
        messages = server.messages("METRICS")
    assert [json.loads(payload)["value"] for _, _, payload in messages] == list(range(3000))
    assert {subject for subject, _, _ in messages} == {"weir.my_app"}
    origins, numbers = zip(*(found.split("-") for _, found, _ in messages))
    assert len(set(origins)) == 1 and re.fullmatch("[0-9a-f]{32}", origins[0]) and list(map(int, numbers)) == list(range(3000)), messages[0]


@case
def an_event_of_several_values_is_one_message_whose_lines_are_not_torn(folder):
    with Server(folder) as server:
        assert deliver(config_of(server), 100, "-e", 10)["delivered"] == 100
        messages = server.messages("METRICS")
        assert deliver(config_of(server, format="influx", stream="LINES", subject="lines.{group}"), 100, "-e", 10)["delivered"] == 100
        lines = [payload for _, _, payload in server.messages("LINES")]
    assert len(messages) == 10 and [found.split("-")[1] for _, found, _ in messages] == [str(n) for n in range(0, 100, 10)]
    values = [json.loads(line)["value"] for _, _, payload in messages for line in payload.split("\n")]
    assert values == list(range(100)), values
    assert all(not line.endswith("\n") and line.startswith("my_app ") for line in lines), lines[:2]


@case
def fields_of_the_subject_are_escaped_so_that_each_is_a_token(folder):
    with Server(folder) as server:
        config = config_of(server, labels={"host": "db 1.example"}, subject="m.{label.host}.{group}.{name}.{label.route}")
        done = emit(config, "-g", "my app.d>b", "-l", "route=/x", "a.b=1", "c=2")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        done = emit(config, "-g", "my_app", "late.=3")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        subjects = [subject for subject, _, _ in server.messages("METRICS")]
    assert subjects == ["m.db_1_example.my_app.d_b.a_b./x", "m.db_1_example.my_app.late_._"], subjects


@case
def summaries_are_published_as_their_parts(folder):
    with Server(folder) as server:
        stats = deliver(config_of(server, aggregate="1h", block_timeout=None), 1000)
        messages = server.messages("METRICS")
    assert stats["delivered"] == 1000 and sum(stats["dropped"]) == 0, stats
    values = {}
    for _, _, payload in messages:
        for line in payload.split("\n"):
            sample = json.loads(line)
            values[sample["name"]] = sample["value"]
    assert values["t0.count"] == 1000 and values["t0.sum"] == 499500 and values["t0.max"] == 999, values
    assert len({found for _, found, _ in messages}) == len(messages)


# ---- Exactly once -----------------------------------------------------------------------------------------------


def assert_stored_once(server, stats, threads, each):
    """What is in the stream is what the ledger says, each value once."""
    total = threads * each
    assert stats["delivered"] == total and sum(stats["dropped"]) == 0, stats
    seen, ids = collections.Counter(), set()
    with server.client() as client:
        assert client.count("METRICS") == total, (client.count("METRICS"), stats)
        for _, headers, payload in client.read("METRICS"):
            sample = json.loads(payload)
            seen[sample["name"]] += sample["value"]
            ids.add(re.search(r"Nats-Msg-Id: *(\S+)", headers).group(1))
    assert len(ids) == total, len(ids)
    assert seen == {f"t{k}": each * (each - 1) // 2 for k in range(threads)}, seen


@case
def every_value_of_four_threads_is_stored_once_although_the_server_is_killed_three_times(folder):
    each = 10000 * FACTOR
    with Server(folder) as server:
        app = start(ADDER, "-t", 4, "-n", each, "-f", -1, "-H", "bus", WEIR_CONFIG=config_of(server, ack_timeout="1s"))
        for part in (1, 2, 3):
            wait_for(lambda: server.count("METRICS") >= 4 * each * part // 5 or app.poll() is not None, f"{part} fifths to be stored", 600 * FACTOR)
            server.kill()
            server.start()
        output, errors = app.communicate(timeout=600 * FACTOR)
        assert app.returncode == 0, errors
        report = json.loads(output)
        assert_ledgers(report)
        assert_stored_once(server, report["handlers"]["bus"], 4, each)
    assert "retrying" in errors and "back after" in errors, errors


class Tap:
    """A proxy between the handler and the server, which can swallow what the server sends."""

    def __init__(self, port):
        self.to = port
        self.swallows = False
        self.swallowed = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self.listener.getsockname()[1]}"
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self.listener.accept()
                there = socket.create_connection(("127.0.0.1", self.to))
                self.sockets += [here, there]
                threading.Thread(target=self._copy, args=(here, there, False), daemon=True).start()
                threading.Thread(target=self._copy, args=(there, here, True), daemon=True).start()

    def _copy(self, source, target, from_server):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if from_server and self.swallows:
                    self.swallowed += data
                else:
                    target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        for end in self.sockets:
            end.close()


@case
def a_message_whose_acknowledgement_is_lost_comes_again_and_is_recognised(folder):
    with Server(folder) as server:
        tap = Tap(server.port)
        config = config_of(server, servers=[tap.url], ack_timeout="200ms")
        with ScriptedApp(config, folder) as app:
            assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
            tap.swallows = True
            assert app.do("add", "v", 2)["code"] == 0
            wait_for(lambda: b'"stream":"METRICS"' in tap.swallowed, "the acknowledgement")
            wait_for(lambda: "no acknowledgement for 200 ms" in app.stderr_text(), "the warning")
            tap.swallows = False
            assert app.do("flush", -1)["code"] == 0
            assert ledger_of(app)["delivered"] == 2
            app.end()
        tap.close()
        messages = server.messages("METRICS")
    assert [json.loads(payload)["value"] for _, _, payload in messages] == [1, 2], messages


@case
def values_from_a_spool_have_the_ids_that_they_were_added_with(folder):
    spool = os.path.join(folder, "spool")
    server = Server(folder)
    config = config_of(server, spool=spool)
    config["settings"]["shutdown_timeout"] = "100ms"
    done = run(ADDER, "-n", 500, "-H", "bus", WEIR_CONFIG=config)
    assert done.returncode == 0, done.stderr
    with server:
        assert deliver(config_of(server, spool=spool), 1)["delivered"] == 501
        messages = server.messages("METRICS")
    ids = collections.Counter(found.split("-")[0] for _, found, _ in messages)
    assert sorted(ids.values()) == [1, 500] and len({found for _, found, _ in messages}) == 501, ids


# ---- Streams ----------------------------------------------------------------------------------------------------


def log_until(app, text):
    wait_for(lambda: text in app.stderr_text(), f'"{text}", but: {app.stderr_text()}')


@case
def without_a_stream_for_the_subject_the_message_says_so_and_values_wait(folder):
    with Server(folder) as server:
        with ScriptedApp(config_of(server, stream=None, create=None), folder) as app:
            assert app.do("add", "v", 1)["code"] == 0
            log_until(app, 'no stream takes the subject "weir.{group}": create one, or set "stream" and "create"')
            stats = ledger_of(app)
            assert stats["queued"] == 1 and sum(stats["dropped"]) == 0, stats
            with server.client() as client:
                client.create_stream("OTHER", "weir.>")
            assert app.do("flush", -1)["code"] == 0
            assert ledger_of(app)["delivered"] == 1
            app.end()
        assert server.count("OTHER") == 1


@case
def a_stream_that_is_missing_is_created_only_if_asked_for(folder):
    with Server(folder) as server:
        with ScriptedApp(config_of(server, create=None), folder) as app:
            assert app.do("add", "v", 1)["code"] == 0
            log_until(app, 'the stream "METRICS" does not exist: create it, or set "create": true')
            with server.client() as client:
                client.create_stream("METRICS", "weir.*")
            assert app.do("flush", -1)["code"] == 0
            app.end()
        assert server.count("METRICS") == 1
        made = config_of(server, stream="MADE", subject="made.{group}.x", subjects=["made.>", "also.made"], duplicate_window="3m",
                         storage="memory")
        assert deliver(made, 10)["delivered"] == 10
        assert deliver(made, 10)["delivered"] == 10
        with server.client() as client:
            config = client.api("STREAM.INFO.MADE")["config"]
            assert client.count("MADE") == 20
        assert config["subjects"] == ["made.>", "also.made"] and config["duplicate_window"] == 180 * 10**9, config
        assert config["storage"] == "memory" and config["num_replicas"] == 1, config


@case
def events_do_not_go_to_another_stream_than_the_expected_one(folder):
    with Server(folder) as server:
        with server.client() as client:
            client.create_stream("OTHER", "weir.>")
            client.create_stream("METRICS", "elsewhere.>")
        with ScriptedApp(config_of(server), folder) as app:
            assert app.do("add", "v", 1)["code"] == 0
            log_until(app, "expected stream does not match")
            assert ledger_of(app)["queued"] == 1
            with server.client() as client:
                client.api("STREAM.DELETE.OTHER")
                client.api("STREAM.DELETE.METRICS")
            assert app.do("reload")["code"] == 0
            with server.client() as client:
                client.create_stream("METRICS", "weir.>")
            assert app.do("flush", -1)["code"] == 0
            app.end()
        assert server.count("METRICS") == 1


@case
def a_full_stream_holds_values_back_until_it_has_room(folder):
    with Server(folder) as server:
        with server.client() as client:
            client.request("$JS.API.STREAM.CREATE.METRICS", json.dumps({
                "name": "METRICS", "subjects": ["weir.>"], "retention": "limits", "max_consumers": -1, "max_msgs": 2, "max_bytes": -1,
                "discard": "new", "storage": "file", "num_replicas": 1}).encode())
        with ScriptedApp(config_of(server), folder) as app:
            for value in range(4):
                assert app.do("add", "v", value)["code"] == 0
            log_until(app, "publish: maximum messages exceeded")
            assert ledger_of(app)["delivered"] == 2
            with server.client() as client:
                client.api("STREAM.PURGE.METRICS")
            assert app.do("flush", -1)["code"] == 0
            assert ledger_of(app)["delivered"] == 4
            app.end()
        assert server.count("METRICS") == 2


@case
def an_event_that_is_too_large_is_refused_and_those_around_it_arrive(folder):
    with Server(folder, config="max_payload: 2000") as server:
        with ScriptedApp(config_of(server), folder) as app:
            assert app.do("add", "v", 1)["code"] == 0 and app.do("note", 20000)["code"] == 0 and app.do("add", "v", 2)["code"] == 0
            app.do("flush", -1)
            stats = ledger_of(app)
            assert stats["delivered"] == 2 and stats["dropped"][REJECTED] == 1, stats
            log_until(app, "bytes and the headers are more than the server's max_payload, 2000")
            app.end()
        assert server.count("METRICS") == 2
        with server.client() as client:
            client.create_stream("SMALL", "small.>", max_msg_size=250)
        config = config_of(server, stream="SMALL", subject="small.{group}")
        with ScriptedApp(config, folder) as app:
            assert app.do("add", "v", 1)["code"] == 0 and app.do("add", "v" * 200, 1)["code"] == 0 and app.do("add", "v", 2)["code"] == 0
            app.do("flush", -1)
            stats = ledger_of(app)
            assert stats["delivered"] == 2 and stats["dropped"][REJECTED] == 1, stats
            log_until(app, "message size exceeds maximum allowed (error 10054)")
            app.end()
        assert server.count("SMALL") == 2


@case
def an_event_that_is_too_large_only_with_its_headers_is_refused(folder):
    with Server(folder, config="max_payload: 2000") as server:
        with ScriptedApp(config_of(server), folder) as app:
            for length in range(1700, 2000, 20):
                assert app.do("note", length)["code"] == 0
            app.do("flush", -1)
            stats = ledger_of(app)
            assert stats["delivered"] + stats["dropped"][REJECTED] == 15 and 0 < stats["delivered"] < 15, stats
            log_until(app, "bytes and the headers are more than the server's max_payload, 2000")
            app.end()
        assert server.count("METRICS") == stats["delivered"]


@case
def the_values_of_a_refused_summary_are_those_that_are_counted_as_rejected(folder):
    with Server(folder, config="max_payload: 2000") as server:
        with ScriptedApp(config_of(server, aggregate="1h", block_timeout=None), folder) as app:
            for value in range(99):
                assert app.do("add", "v" * 200, value)["code"] == 0
            assert app.do("add", "w", 1)["code"] == 0
            app.do("flush", -1)
            stats = ledger_of(app)
            assert stats["delivered"] == 1 and stats["dropped"][REJECTED] == 99, stats
            log_until(app, "bytes and the headers are more than the server's max_payload, 2000")
            app.end()
        assert {json.loads(line)["name"].split(".")[0] for _, _, text in server.messages("METRICS") for line in text.split("\n")} == {"w"}


@case
def what_another_subscriber_replies_is_no_acknowledgement(folder):
    with Server(folder, jetstream=False) as server:
        with server.client() as client:
            client.subscribe("weir.>")
            client.send(b"PING\r\n")
            assert client.lines.readline() == b"PONG\r\n"
            with ScriptedApp(config_of(server, stream=None, create=None), folder) as app:
                assert app.do("add", "v", 1)["code"] == 0
                client.publish(client.receive()[1], b'{"status":"ok"}')
                log_until(app, 'publish: the reply is not JetStream\'s: {"status":"ok"}')
                stats = ledger_of(app)
                assert stats["delivered"] == 0 and stats["queued"] == 1, stats
                app.program.kill()
                app.program.wait()


@case
def a_server_without_jetstream_is_named_as_such(folder):
    with Server(folder, jetstream=False) as server:
        with ScriptedApp(config_of(server), folder) as app:
            assert app.do("add", "v", 1)["code"] == 0
            log_until(app, 'the server has no JetStream: start it with -js, or set "jetstream": false')
            app.program.kill()
            app.program.wait()


# ---- Core NATS --------------------------------------------------------------------------------------------------


@case
def without_jetstream_a_subscriber_receives_what_is_delivered(folder):
    with Server(folder, jetstream=False) as server:
        with server.client() as client:
            client.subscribe("weir.>")
            client.send(b"PING\r\n")
            assert client.lines.readline() == b"PONG\r\n"
            stats = deliver(config_of(server, jetstream=False, stream=None, create=None, max_pending=100), 2000)
            assert stats["delivered"] == 2000
            received = [client.receive() for _ in range(2000)]
    assert [json.loads(payload)["value"] for _, _, _, payload in received] == list(range(2000))
    assert {(subject, headers) for subject, _, headers, _ in received} == {("weir.my_app", "")}


# ---- Servers and logins -----------------------------------------------------------------------------------------


@case
def another_server_of_the_list_takes_over(folder):
    with Server(folder) as server:
        config = config_of(server, servers=[f"nats://127.0.0.1:{free_port()}", server.url])
        assert deliver(config, 100)["delivered"] == 100
        assert server.count("METRICS") == 100


@case
def an_idle_connection_replies_to_the_server_and_notices_its_end(folder):
    with Server(folder) as server:
        with ScriptedApp(config_of(server), folder) as app:
            assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
            server.kill()
            server.start()
            assert app.do("add", "v", 2)["code"] == 0 and app.do("flush", -1)["code"] == 0
            assert ledger_of(app)["delivered"] == 2
            app.end()
        assert server.count("METRICS") == 2


LOGINS = [
    ('authorization { user: ada, password: "s3cret" }', {"user": "ada", "password": "s3cret"}, {"user": "ada", "password": "wr0ng"}),
    ('authorization { token: "t0ken" }', {"token": "t0ken"}, {"token": "wr0ng"}),
]


@case
def users_and_tokens_log_in_and_wrong_ones_wait_without_showing_the_secret(folder):
    for number, (text, right, wrong) in enumerate(LOGINS):
        place = os.path.join(folder, str(number))
        os.mkdir(place)
        server = Server(place, config=text)
        server.login = {"user": "ada", "pass": "s3cret"} if number == 0 else {"auth_token": "t0ken"}
        with server:
            assert deliver(config_of(server, **right), 10)["delivered"] == 10
            with ScriptedApp(config_of(server, **wrong), folder) as app:
                assert app.do("add", "v", 1)["code"] == 0
                wait_for(lambda: "uthorization" in app.stderr_text(), "the refusal")
                assert "wr0ng" not in app.stderr_text(), app.stderr_text()
                assert ledger_of(app)["queued"] == 1
                app.program.kill()
                app.program.wait()
            assert server.count("METRICS") == 10


@case
def a_subject_that_the_user_may_not_publish_to_is_named(folder):
    rights = ('authorization {{ users: [{{ user: ada, password: s, permissions: {{ publish: ["$JS.>", "weir.good"{}], subscribe: ["_INBOX.>"] }} }},'
              ' { user: root, password: s }] }').replace("{{", "{").replace("}}", "}")
    for jetstream in (True, False):
        place = os.path.join(folder, str(jetstream))
        os.mkdir(place)
        server = Server(place, config=rights.replace("{}", ', "_INBOX.>"'))
        server.login = {"user": "root", "pass": "s"}
        with server:
            options = {} if jetstream else {"jetstream": False, "stream": None, "create": None}
            config = config_of(server, user="ada", password="s", subject="weir.bad", subjects=["weir.>"] if jetstream else None,
                               ack_timeout="200ms", **options)
            with ScriptedApp(config, folder) as app:
                assert app.do("add", "v", 1)["code"] == 0
                wait_for(lambda: "Permissions Violation for Publish to" in app.stderr_text(), "the refusal: " + app.stderr_text())
                assert ledger_of(app)["queued"] == 1
                app.program.kill()
                app.program.wait()


@case
def tls_checks_the_certificate_and_sends_one_of_its_own(folder):
    paths = {name: certificates.make(folder, name, host="127.0.0.1") for name in ("server", "client", "other")}
    tls = f'tls {{ cert_file: "{paths["server"][0]}", key_file: "{paths["server"][1]}", ca_file: "{paths["client"][0]}", verify: true }}'
    server = Server(folder, config=tls)
    server.scheme = "tls"
    server.is_ready = lambda: "Server is ready" in open(server.log, encoding="utf-8").read()
    mine = {"cert_file": paths["client"][0], "key_file": paths["client"][1]}
    with server:
        stats = deliver(config_of(server, ca_file=paths["server"][0], **mine), 20000)
        assert stats["delivered"] == 20000
        stats = deliver(config_of(server, verify=False, **mine), 10)
        assert stats["delivered"] == 10
        for wrong in ({"ca_file": paths["other"][0], **mine}, {"ca_file": os.path.join(folder, "missing.pem")}, {"verify": False}):
            with ScriptedApp(config_of(server, **wrong), folder) as app:
                assert app.do("add", "v", 1)["code"] == 0
                wait_for(lambda: "retrying" in app.stderr_text(), "the failure")
                assert "connect tls://127.0.0.1" in app.stderr_text(), app.stderr_text()
                assert ledger_of(app)["delivered"] == 0
                app.program.kill()
                app.program.wait()


@case
def check_open_tells_whether_the_server_and_its_stream_are_there(folder):
    server = Server(folder)
    config = config_of(server, create=None)
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    done = run(WEIR, "check", "--open", path)
    assert done.returncode != 0 and f"connect nats://127.0.0.1:{server.port}" in done.stdout + done.stderr, done
    with server:
        done = run(WEIR, "check", "--open", path)
        assert done.returncode != 0 and 'the stream "METRICS" does not exist' in done.stdout + done.stderr, done
        with server.client() as client:
            client.create_stream("METRICS", "weir.>")
        done = run(WEIR, "check", "--open", path)
        assert done.returncode == 0 and "the server accepts connections" in done.stdout, done


# ---- Wrong options ----------------------------------------------------------------------------------------------

WRONG = [
    ({"servers": ["127.0.0.1:4222"]}, 'servers: "127.0.0.1:4222" is not a server; allowed: nats://HOST:PORT, tls://HOST:PORT'),
    ({"servers": ["nats://a:99999"]}, 'servers: "nats://a:99999" is not a server; allowed: nats://HOST:PORT, tls://HOST:PORT'),
    ({"servers": ["nats://u:s3cret@a"]},
     'servers: a URL contains a user or a token; allowed: nats://HOST:PORT, and the options "user", "password", "token"'),
    ({"servers": ["nats://a", "tls://b"]}, 'servers: "nats://a" and "tls://b": allowed: either tls:// for all servers, or for none'),
    ({"subject": "weir.{host}"},
     'subject: "weir.{host}": {host} is not a field; allowed: {group}, {name}, {label.KEY}, and {{ and }} for braces'),
    ({"subject": "weir .x"}, 'subject: "weir .x": a subject to publish to has no blanks, no * and no >'),
    ({"subject": "weir.>"}, 'subject: "weir.>": a subject to publish to has no blanks, no * and no >'),
    ({"subject": "weir..{group}"}, 'subject: "weir..{group}": between dots, and at both ends, there must be text'),
    ({"subject": "$$JS.API.{group}"}, 'subject: "$JS.API.{group}": subjects that begin with $ belong to the server'),
    ({"stream": "a.b"}, 'stream: "a.b" is not the name of a stream: it has no blanks and none of .*>/\\'),
    ({"create": True}, 'create: it requires "stream", the name of the stream'),
    ({"subjects": ["weir.>"]}, 'subjects: it requires "create": true'),
    ({"stream": "A", "create": True, "subjects": ["weir.a>"]},
     'subjects: "weir.a>" is not a subject; allowed: tokens with dots between them, * for any token, > at the end for any rest'),
    ({"jetstream": False, "stream": "A"}, 'stream: it requires "jetstream": true'),
    ({"duplicate_window": "10"}, 'duplicate_window: "10" has no unit'),
    ({"storage": "disk"}, 'storage: "disk" is not allowed; allowed: file, memory'),
    ({"replicas": 6}, "replicas: 6 is out of range; allowed: 1..5"),
    ({"max_pending": 0}, "max_pending: 0 is out of range; allowed: 1..1000000"),
    ({"user": "a", "token": "b"}, 'more than one login is set; allowed: one of "user", "token", "credentials_file"'),
    ({"password": "s3cret"}, 'password: it requires "user"'),
    ({"ca_file": "/ca.pem"}, 'ca_file: it requires "servers" of tls://'),
    ({"servers": ["tls://a"], "key_file": "/key.pem"}, 'key_file: it requires "cert_file"'),
    ({"inbox_prefix": "a..b"}, 'inbox_prefix: "a..b" is not a prefix; allowed: tokens with dots between them, without blanks, * and >'),
    ({"format": "prometheus"}, "nats"),
]


@case
def wrong_options_are_refused_with_their_place_and_what_is_allowed(folder):
    path = os.path.join(folder, "weir.json")
    for options, message in WRONG:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"handlers": {"bus": {"type": "nats", **options}}, "groups": {"*": "bus"}}, file)
        done = run(WEIR, "check", path)
        assert done.returncode == 1 and message in done.stderr + done.stdout, (options, done)
        assert "s3cret" not in done.stderr + done.stdout, done


# ---- Forks, vetting ---------------------------------------------------------------------------------------------


@case
def parents_and_children_both_publish(folder):
    skip_fork_under_sanitizers()
    with Server(folder) as server:
        with ScriptedApp(config_of(server), folder) as app:
            assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
            for number in range(5):
                assert app.do("fork", f"child{number}")["code"] > 0 and app.do("reap")["code"] == 0
            assert app.do("add", "v", 2)["code"] == 0 and app.do("flush", -1)["code"] == 0
            assert ledger_of(app)["delivered"] == 2
            app.end()
        names = collections.Counter(json.loads(payload)["name"] for _, _, payload in server.messages("METRICS"))
    assert names == {"v": 2, **{f"child{number}": 1 for number in range(5)}}, names


@case
def the_handler_passes_vetting(folder):
    if SANITIZED:
        raise Skip("vet counts memory")
    with Server(folder) as server:
        options = {"servers": [server.url], "stream": "METRICS", "create": True, "format": "json"}
        reader = os.path.join(SOURCE, "tests", "support", "jetstream.py")
        done = run(WEIR, "vet", os.path.join(PLUGINS, "nats.so"), "--options", json.dumps(options), "--read", f"python3 -B {reader} {server.port} METRICS", "--fuzz", 1, "--deadline", "5m",
                   timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


main()
