"""The http handler with scripted servers: what it sends, how it handles responses, and what it logs."""

import base64
import json
import os
import re
import shutil
import tempfile
import time

from fifos import ScriptedApp
from harness import ADDER, BUILD, PLUGINS, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, main, run, start, wait_for, without_waits
from scripted import Scripted, reply
from traces import between_marks, of_main_thread

GUEST = os.path.join(BUILD, "tests", "support", "guest")
REJECTED, UNREPRESENTABLE = 1, 2


def config_of(url, **options):
    handler = {"type": "http", "url": url, "format": "influx", "linger": "0s", "retry_min": "5ms", "retry_max": "50ms", **options}
    return {"settings": {"shutdown_timeout": "10s"}, "handlers": {"push": handler}, "groups": {"*": "push"}}


def add(config, count, *arguments, **env):
    """Adds values, flushes, checks that the ledgers balance. Returns (the handler's ledger, messages)."""
    done = run(ADDER, "-n", count, "-f", -1, "-H", "push", *arguments, WEIR_CONFIG=config, **env)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]["push"], done.stderr


def emit(config, *values, **env):
    return run(WEIR, "emit", "-g", "my_app", "-v", *values, WEIR_CONFIG=config, **env)


# ---- What is sent ---------------------------------------------------------------------------------

@case
def values_come_in_batches_in_order_over_one_connection():
    with Scripted() as server:
        ledger, log = add(config_of(server.url + "/write?db=bench", batch=1000), 10000)
        assert ledger["delivered"] == 10000 and without_waits(log) == "", (ledger, log)
        assert server.values() == list(range(10000))
        assert server.connections == 1 and len(server.requests) >= 10
        first = server.requests[0]
        assert (first.method, first.path) == ("POST", "/write?db=bench")
        assert first.headers["content-type"] == "text/plain; charset=utf-8"
        assert re.fullmatch(r"weir/\d+\.\d+\.\d+", first.headers["user-agent"])
        assert "expect" not in first.headers and "accept-encoding" not in first.headers


@case
def by_default_the_format_is_json_and_values_wait_a_second_for_their_batch():
    with Scripted() as server:
        config = {"handlers": {"push": {"type": "http", "url": server.url}}, "groups": {"*": "push"}}
        done = run(ADDER, "-q", "-n", 1000, WEIR_CONFIG=config)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        assert len(server.requests) < 10 and server.requests[0].headers["content-type"] == "application/x-ndjson"
        assert [json.loads(line)["value"] for request in server.requests for line in request.lines()] == list(range(1000))
        shown = run(WEIR, "handlers", "http").stdout
        for option, standard in (("overflow", "drop_oldest"), ("queue", "16MiB"), ("linger", "1s")):
            assert re.search(rf"^  {option} .*\n +default: {standard};", shown, re.M), shown


@case
def method_headers_and_media_type_are_as_configured():
    with Scripted() as server:
        add(config_of(server.url, method="PUT", headers={"X-Scope": "tenant 1", "content-type": "text/x-own", "X-Empty": ""}), 1)
        request = server.requests[0]
        assert request.method == "PUT" and request.headers["x-scope"] == "tenant 1" and request.headers["x-empty"] == ""
        assert request.headers["content-type"] == "text/x-own"


@case
def credentials_are_sent_with_each_authentication_method():
    basic = "Basic bWU6cMOkc3M="  # me:päss
    for options, url, expected in (
            ({"username": "me", "password": "päss"}, "{}", basic),
            ({}, "http://me:p%C3%A4ss@127.0.0.1:{port}/", basic),
            ({"bearer_token": "abc.def"}, "{}", "Bearer abc.def"),
            ({"headers": {"Authorization": "Token abc:def"}}, "{}", "Token abc:def")):
        with Scripted() as server:
            add(config_of(url.format(server.url, port=server.port), **options), 1)
            assert server.requests[0].headers["authorization"] == expected, server.requests[0].headers


@case
def bodies_are_compressed_if_configured():
    with Scripted() as server:
        ledger, _ = add(config_of(server.url, compress="gzip"), 20000)
        assert ledger["delivered"] == 20000 and server.values() == list(range(20000))
        large = max(server.requests, key=lambda request: len(request.body))
        assert large.headers["content-encoding"] == "gzip" and len(large.raw) < len(large.body) / 3


@case
def a_proxy_is_used_only_if_configured_and_never_from_the_environment():
    with Scripted() as server, Scripted() as proxy:
        nowhere = {name: "http://127.0.0.1:9" for name in ("http_proxy", "all_proxy", "ALL_PROXY", "HTTP_PROXY")}
        ledger, log = add(config_of(server.url), 10, **nowhere)
        assert ledger["delivered"] == 10 and without_waits(log) == "" and len(server.requests) >= 1
        ledger, log = add(config_of("http://db.example:8086/write", proxy=proxy.url), 10, no_proxy="*")
        assert ledger["delivered"] == 10 and without_waits(log) == "", log
        assert proxy.requests[0].path == "http://db.example:8086/write" and len(proxy.values()) == 10


# ---- Responses ------------------------------------------------------------------------------------

@case
def every_2xx_status_is_success():
    for status in (200, 201, 202, 204, 206, 299):
        with Scripted(lambda request: reply(status, "" if status == 204 else "fine")) as server:
            ledger, log = add(config_of(server.url), 10)
            assert ledger["delivered"] == 10 and without_waits(log) == "" and server.connections == 1, (status, ledger, log)


@case
def fault_25_refused_values_are_counted_by_status_and_the_beginning_of_the_response_is_logged():
    for status in (400, 404, 405, 410, 422, 499):
        text = "unable to parse 'x'\n\x1b[31m: " + "no field " * 200
        with Scripted(lambda request: reply(status, text)) as server:
            done = emit(config_of(server.url + "/write?p=secret"), "a=1", "b=2")
            assert done.returncode == 1 and done.stdout == f"push: 0 delivered, 2 dropped (rejected), status.{status} 2\n", done
            message = f"weir: warning: push: 2 rejected: POST {server.url}/write: returned {status}: unable to parse 'x'"
            assert done.stderr.startswith(message) and "\x1b" not in done.stderr and "secret" not in done.stderr, done.stderr
            assert len(done.stderr) < 400 and len(server.requests) == 1


@case
def a_value_that_a_server_refuses_takes_no_others_with_it():
    """The server refuses each request that contains one of these values, as a database without partial writes does."""
    for status in (400, 422):
        for refused in ([0], [999], [0, 1, 499, 500, 501], [250]):
            accepted = []

            def respond(request):
                lines = request.body.decode().splitlines()
                values = [int(line.split("=")[1].split(" ")[0]) for line in lines]
                if set(values) & set(refused):
                    return reply(status, "unable to parse a line")
                accepted.extend(values)
                return reply(204)

            with Scripted(respond) as server:
                ledger, log = add(config_of(server.url, linger="1s"), 1000)
                assert ledger["delivered"] == 1000 - len(refused) and ledger["dropped"][REJECTED] == len(refused), (refused, ledger)
                assert accepted == [value for value in range(1000) if value not in refused]
                assert "unable to parse a line" in log, log


def partial_writes(is_good, cut_after=None):
    """A server as InfluxDB 1.x: it stores the good lines and names each of the others. Returns (respond, the values stored).
    cut_after: the connection is closed after so many bytes of a reply to a request with several lines."""
    stored = set()

    def respond(request):
        lines = {int(line.split("=")[1].split(" ")[0].split(".")[0]): line for line in request.lines()}
        stored.update(filter(is_good, lines))
        wrong = [f"unable to parse '{line}': invalid field format" for value, line in lines.items() if not is_good(value)]
        if not wrong:
            return reply(204)
        whole = reply(400, json.dumps({"error": "partial write: " + "\n".join(wrong) + " dropped=0"}))
        return iter([whole[:cut_after]]) if cut_after and len(lines) > 1 else whole

    return respond, stored


@case
def of_a_partial_write_each_line_that_is_not_stored_is_counted_however_long_the_reply_is():
    for every in (1, 2, 10, 1000):
        def is_good(value, every=every):
            return value % every != every - 1
        respond, stored = partial_writes(is_good)
        with Scripted(respond) as server:
            ledger, _ = add(config_of(server.url, linger="1s", batch=2000), 4000)
            assert stored == set(filter(is_good, range(4000)))
            assert ledger["dropped"][REJECTED] == 4000 // every and ledger["delivered"] == len(stored), (every, ledger)


@case
def of_a_partial_write_whose_reply_breaks_off_no_line_is_counted_wrongly():
    respond, stored = partial_writes(lambda value: value % 50 != 49, cut_after=300)
    with Scripted(respond) as server:
        ledger, _ = add(config_of(server.url, linger="1s"), 200)
        assert len(stored) == 196 and ledger["dropped"][REJECTED] == 4 and ledger["delivered"] == 196, ledger


@case
def a_server_that_refuses_everything_gets_few_requests():
    with Scripted(lambda request: reply(400, "wrong version")) as server:
        ledger, _ = add(config_of(server.url, batch=1000, linger="1h"), 10000)
        assert ledger["delivered"] == 0 and ledger["dropped"][REJECTED] == 10000, ledger
        assert len(server.requests) <= 80, len(server.requests)


@case
def requests_after_one_that_is_refused_for_another_reason_are_sent():
    with Scripted(lambda request: reply(404 if "=250 " in request.body.decode() else 204)) as server:
        ledger, log = add(config_of(server.url, batch=100), 1000, "-p", 1000)
        assert 0 < ledger["dropped"][REJECTED] <= 100 and ledger["delivered"] == 1000 - ledger["dropped"][REJECTED], ledger
        assert server.values() == list(range(1000)) and " rejected: " in log


@case
def fault_25_after_a_server_error_the_same_values_are_sent_again_in_order_and_nothing_is_lost():
    for status in (408, 429, 500, 502, 503, 504, 599):
        state = {"calls": 0}

        def respond(_):
            state["calls"] += 1
            return reply(204) if state["calls"] % 3 == 0 else reply(status, "come back later")

        with Scripted(respond) as server:
            ledger, log = add(config_of(server.url, batch=100), 300)
            assert ledger["delivered"] == 300 and ledger["retries"] >= 2, ledger
            bodies = [request.body for request in server.requests]
            assert bodies[0] == bodies[1] == bodies[2], "a repeated request must be identical"
            accepted = [value for i in range(2, len(bodies), 3) for value in Scripted.values(_SingleRequest(server.requests[i]))]
            assert accepted == list(range(300))
            assert f"push: POST {server.url}/: returned {status}: come back later; retrying, " in log and "back after" in log, log


class _SingleRequest:
    def __init__(self, request):
        self.requests = [request]


def timed_server(responses):
    """A server that sends one response after the other and records the times of the requests."""
    left = list(responses)

    def respond(_):
        server.times.append(time.monotonic())
        return left.pop(0) if len(left) > 1 else left[0]

    server = Scripted(respond)
    server.times = []
    return server


def measure_delay(server, config):
    """Returns the delay before the second request, and the log. The program neither ends nor flushes: both shorten the delay."""
    program = start(ADDER, "-q", "-x", "sleep", WEIR_CONFIG=config)
    server.wait(lambda s: len(s.requests) == 2, "the second request")
    program.terminate()
    log = program.communicate(timeout=240)[1]
    return server.times[1] - server.times[0], log


@case
def retry_after_is_obeyed_as_seconds_and_as_a_date():
    in_a_day = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 86400))  # however slow the machine is, it is ahead
    for retry_after in ("1", in_a_day):
        with timed_server([reply(429, Retry_After=retry_after), reply(204)]) as server:
            delay, log = measure_delay(server, config_of(server.url, retry_max="2s"))
            assert delay >= 1 and "returned 429; retrying" in log, (delay, log)


@case
def fault_25_absurd_values_of_retry_after_are_clamped_or_ignored():
    absurd = ("0", "-5", "63072000", "99999999999999999999999999", "Tue, 01 Jan 2999 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT",
              "soon", "", "1e9", "5;x", "\x01")
    with timed_server([*(reply(503, Retry_After=value) for value in absurd), reply(204)]) as server:
        ledger, _ = add(config_of(server.url), 1)
        assert ledger["delivered"] == 1 and ledger["retries"] == len(absurd), ledger


@case
def after_wrong_credentials_values_are_kept_and_retried_after_retry_max():
    for status in (401, 403, 407):
        with timed_server([reply(status, "who are you?"), reply(204)]) as server:
            delay, log = measure_delay(server, config_of(server.url, retry_min="1ms", retry_max="1s"))
            assert delay >= 0.8 and f"returned {status}: who are you?; retrying" in log, (delay, log)
            assert server.requests[0].body == server.requests[1].body


@case
def a_request_too_large_is_halved_until_it_fits_and_grows_again():
    with Scripted(lambda request: reply(204 if len(request.body) <= 3000 else 413, "too large")) as server:
        ledger, log = add(config_of(server.url), 5000)
        assert ledger["delivered"] == 5000 and without_waits(log) == "" and ledger["retries"] == 0, (ledger, log)
        accepted = [request for request in server.requests if len(request.body) <= 3000]
        assert [float(line.split("=")[1].split()[0]) for request in accepted for line in request.lines()] == list(range(5000))
        assert len(server.requests) < 2 * len(accepted), "the limit must be kept between requests"


@case
def an_event_that_is_too_large_by_itself_is_refused_and_the_others_are_not():
    with Scripted(lambda request: reply(204 if len(request.lines()) == 1 and len(request.body) <= 60 else 413)) as server:
        config = config_of(server.url)
        done = run(ADDER, "-n", 8, "-e", 1, "-g", "g" * 20, "-f", -1, "-H", "push", WEIR_CONFIG=config)
        assert json.loads(done.stdout)["handlers"]["push"]["delivered"] == 8
        done = emit(config, *(f"name{i}=1" for i in range(20)))
        assert done.stdout == "push: 0 delivered, 20 dropped (rejected), status.413 20\n", done
        assert "returned 413" in done.stderr


@case
def documents_are_halved_too():
    def respond(request):
        values = [line for line in request.lines() if not line.startswith("#")]
        return reply(204 if len(values) <= 1 else 413)
    with Scripted(respond) as server:
        done = run(ADDER, "-t", 4, "-n", 50, "-f", -1, "-H", "push", WEIR_CONFIG=config_of(server.url, format="prometheus"))
        ledger = json.loads(done.stdout)["handlers"]["push"]
        assert_ledgers(json.loads(done.stdout))
        assert ledger["delivered"] == 200, ledger
        last = {}
        for request in server.requests:
            values = [line for line in request.lines() if not line.startswith("#")]
            if len(values) == 1:
                last.update([values[0].split()])
        assert last == {f"my_app_t{i}": "49" for i in range(4)}, last


@case
def fault_26_a_redirect_is_not_followed_and_its_target_is_logged_without_secrets():
    with Scripted() as other:
        for status in (301, 302, 303, 307, 308):
            target = f"http://user:geheim@127.0.0.1:{other.port}/else?token=geheim"
            with timed_server([reply(status, Location=target), reply(204)]) as server:
                ledger, log = add(config_of(server.url, retry_max="100ms"), 5, "-e", 5)
                assert ledger["delivered"] == 5 and len(server.requests) == 2, ledger
                expected = f"returned {status}, a redirect to http://127.0.0.1:{other.port}/...; redirects are not followed; retrying"
                assert expected in log and "geheim" not in log, log
        for target in ("file:///etc/passwd", "gopher://127.0.0.1/x", "https://127.0.0.1/", "//", "\x01"):
            with timed_server([reply(302, Location=target), reply(204)]) as server:
                ledger, log = add(config_of(server.url), 5)
                assert ledger["delivered"] == 5 and "redirects are not followed" in log, log
        assert other.connections == 0


# ---- One request for each value -------------------------------------------------------------------

MLBENCH = {"type": "mlbench", "run_id": "7"}


def records(server):
    from urllib.parse import parse_qs
    return [float(parse_qs(request.body.decode(), strict_parsing=False)["value"][0]) for request in server.requests]


@case
def records_are_sent_one_by_one_over_one_connection():
    with Scripted(lambda request: reply(201, "{}")) as server:
        ledger, log = add(config_of(server.url + "/api/metrics/", format=MLBENCH), 200, "-e", 4)
        assert ledger["delivered"] == 200 and without_waits(log) == "" and server.connections == 1, (ledger, log)
        assert records(server) == list(range(200))
        assert server.requests[0].headers["content-type"] == "application/x-www-form-urlencoded"


@case
def an_interrupted_event_is_resumed():
    state = {"calls": 0}

    def respond(_):
        state["calls"] += 1
        return reply(503) if state["calls"] % 3 == 0 else reply(201)

    with Scripted(respond) as server:
        ledger, _ = add(config_of(server.url, format=MLBENCH), 40, "-e", 10)
        assert ledger["delivered"] == 40, ledger
        accepted = [value for i, value in enumerate(records(server), 1) if i % 3]
        assert accepted == list(range(40)), accepted


@case
def a_refused_record_affects_no_other_even_if_its_event_is_interrupted():
    refused, unavailable = {3, 4, 17, 39}, {5, 19}

    def respond(request):
        value = int(records(_SingleRequest(request))[0])
        if value in unavailable:
            unavailable.discard(value)
            return reply(503)
        return reply(404 if value in refused else 201, "no such run")

    with Scripted(respond) as server:
        ledger, log = add(config_of(server.url, format=MLBENCH), 40, "-e", 10)
        assert ledger["delivered"] == 36 and ledger["dropped"][REJECTED] == 4, ledger
        assert sorted(set(records(server))) == list(range(40)) and len(server.requests) == 42
        assert "rejected: POST" in log and "returned 404: no such run" in log, log


@case
def a_record_whose_response_is_500_is_rejected_and_named_and_the_others_arrive():
    def respond(request):
        if request.method == "GET":
            return reply(200, "{}")
        return reply(500, "too long") if "too_long" in request.body.decode() else reply(201)

    with Scripted(respond) as server:
        done = run(WEIR, "emit", "-g", "my_app", "-v", "a=1", "too_long=2", "b=3",
                   WEIR_CONFIG=config_of(server.url, format=MLBENCH))
        assert "2 delivered, 1 dropped" in done.stdout, done
        assert '"too_long" of group "my_app"' in done.stderr and "returned 500: too long" in done.stderr, done.stderr
        posted = [request.body.decode() for request in server.requests if request.method == "POST"]
        assert sum("too_long" in body for body in posted) == 5 and "name=b" in posted[-1], posted
        assert all(request.body == b"" for request in server.requests if request.method == "GET")


@case
def a_record_that_is_refused_while_the_program_ends_costs_the_records_behind_it_nothing():
    """A name of more than 50 characters: MLBench on PostgreSQL keeps names in a varchar(50)."""
    def respond(request):
        if request.method == "GET":
            return reply(200, "{}")
        name = re.search("name=([^&]*)", request.body.decode()).group(1)
        return reply(500, "value too long for type character varying(50)") if len(name) > 50 else reply(201)

    with Scripted(respond) as server:
        config = config_of(server.url, format=MLBENCH, linger="1h", retry_min="1h", retry_max="1h")
        config["settings"]["shutdown_timeout"] = "30s"
        config["sources"] = {"in": {"type": "stdin", "parse": "statsd"}}
        with tempfile.TemporaryFile("w+") as lines:
            lines.write("n" * 51 + ":1|g\na:2|g\nb:3|g\n")
            lines.seek(0)
            done = run(WEIR, "relay", stdin=lines, WEIR_CONFIG=config)
        names = [re.search("name=([^&]*)", request.body.decode()).group(1) for request in server.requests if request.method == "POST"]
        assert names == ["n" * 51] * 5 + ["a", "b"], (names, done)


@case
def records_are_kept_while_every_response_is_500():
    state = {"requests": 0}

    def respond(_):
        state["requests"] += 1
        return reply(500) if state["requests"] <= 30 else reply(201)

    with Scripted(respond) as server:
        ledger, log = add(config_of(server.url, format=MLBENCH), 20)
        assert ledger["delivered"] == 20 and sum(ledger["dropped"]) == 0 and "back after" in log, (ledger, log)


@case
def no_record_is_refused_while_posts_are_answered_502_503_or_504_although_gets_succeed():
    """As behind a proxy or cache that serves what it has, while the server itself is down."""
    for status in (502, 503, 504):
        state = {"posts": 0}

        def respond(request):
            if request.method == "GET":
                return reply(200, "{}")
            state["posts"] += 1
            return reply(status) if state["posts"] <= 20 else reply(201)

        with Scripted(respond) as server:
            ledger, log = add(config_of(server.url, format=MLBENCH), 10)
            assert ledger["delivered"] == 10 and sum(ledger["dropped"]) == 0 and "rejects" not in log, (status, ledger, log)
            assert all(request.method == "POST" for request in server.requests)


@case
def a_series_of_which_a_record_was_refused_gets_five_tries_again_once_one_is_delivered():
    """Until then one is enough."""
    tries = {}

    def respond(request):
        if request.method == "GET":
            return reply(200, "{}")
        value = int(records(_SingleRequest(request))[0])
        tries[value] = tries.get(value, 0) + 1
        return reply(201 if value == 3 else 500)

    with Scripted(respond) as server:
        ledger, log = add(config_of(server.url, format=MLBENCH), 6)
        assert ledger["delivered"] == 1 and ledger["dropped"][REJECTED] == 5, ledger
        assert tries == {0: 5, 1: 1, 2: 1, 3: 1, 4: 5, 5: 1}, tries
        assert log.count("rejects ") == 2, log


# ---- Configurations -------------------------------------------------------------------------------

WRONG = [
    ({}, 'handlers.push: the option "url" is missing'),
    ({"url": "127.0.0.1:8086"}, "handlers.push.url: the value is not a URL"),
    ({"url": "http://"}, "handlers.push.url: the value is not a URL"),
    ({"url": "http://a b/"}, "handlers.push.url: the value is not a URL"),
    ({"url": "http://u:geheim@h\nx/"}, "handlers.push.url: the value is not a URL"),
    ({"url": "http://u:gehe/im@h/"}, "handlers.push.url: the value is not a URL"),
    ({"url": "ftp://u:geheim@h/"}, "handlers.push.url: ftp://h/ is neither HTTP nor HTTPS; allowed: http://..., https://..."),
    ({"url": "file:///etc/passwd"}, "handlers.push.url: "),
    ({"url": 5}, "handlers.push.url: 5 is not a string"),
    ({"url": "http://h/", "method": "GET"}, 'handlers.push.method: "GET" is not allowed; allowed: POST, PUT, PATCH'),
    ({"url": "http://h/", "headers": {"X-A": "geheim\r\nX-B: c"}}, 'handlers.push.headers: "X-A" has a control character in its value'),
    ({"url": "http://h/", "headers": {"X-A": "geheim\n"}}, 'handlers.push.headers: "X-A" has a control character in its value'),
    ({"url": "http://h/", "headers": {"X A": "geheim"}}, 'handlers.push.headers: "X A" is not a header name'),
    ({"url": "http://h/", "headers": {"X-A\r\nX-B": "geheim"}}, "handlers.push.headers: "),
    ({"url": "http://h/", "headers": {"": "geheim"}}, "handlers.push.headers: "),
    ({"url": "http://h/", "headers": {"content-length": "5"}}, '"content-length" is set by the handler itself'),
    ({"url": "http://h/", "headers": ["X-A: geheim"]}, "handlers.push.headers: an array is not an object"),
    ({"url": "http://h/", "headers": {"X-A": 5}}, "handlers.push.headers.X-A: a number is not a string"),
    ({"url": "http://h/", "password": "geheim"}, 'handlers.push.password: it requires "username"'),
    ({"url": "http://h/", "username": "a:b", "password": "geheim"}, "handlers.push.username: the value contains a colon"),
    ({"url": "http://h/", "bearer_token": "geheim\nx"}, "handlers.push.bearer_token: the value contains a control character"),
    ({"url": "http://h/", "bearer_token": "geheim", "username": "u"}, "handlers.push: more than one authentication method is set"),
    ({"url": "http://u:geheim@h/", "headers": {"authorization": "x"}}, "handlers.push: more than one authentication method is set"),
    ({"url": "http://h/", "key_file": "/k"}, 'handlers.push.key_file: it requires "cert_file"'),
    ({"url": "http://h/", "proxy": "socks5://u:geheim@p:1080"}, "handlers.push.proxy: socks5://p:1080/ is neither HTTP nor HTTPS"),
    ({"url": "http://h/", "proxy": "p:3128"}, "handlers.push.proxy: "),
    ({"url": "http://h/", "timeout": "0s"}, 'handlers.push.timeout: "0s" is out of range; allowed: 10ms..1h'),
    ({"url": "http://h/", "compress": "zstd"}, 'handlers.push.compress: "zstd" is not allowed; allowed: none, gzip'),
    ({"url": "http://h/", "timeut": "1s"}, 'did you mean "timeout"?'),
    ({"url": "http://h/", "format": "mlbench"}, 'handlers.push.format: format "mlbench": the option "run_id" or "pod_name" is missing'),
]


@case
def fault_39_invalid_options_are_refused_with_their_place_and_without_secrets(folder):
    path = os.path.join(folder, "weir.json")
    for options, expected in WRONG:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"handlers": {"push": {"type": "http", **options}}, "groups": {"*": "push"}}, file)
        done = run(WEIR, "check", path)
        assert done.returncode == 1 and expected in done.stderr, (options, done.stderr)
        assert "geheim" not in done.stderr + done.stdout and "\r" not in done.stderr and done.stderr.count("\n") == 1, done.stderr


@case
def secrets_are_masked_wherever_options_are_shown():
    config = config_of("https://user:geheim@h/write?db=x&p=geheim", headers={"X-Key": "geheim"}, proxy="http://u:geheim@p:3128/")
    shown = run(WEIR, "check", WEIR_CONFIG=config)
    assert shown.returncode == 0 and "geheim" not in shown.stdout and "user" not in shown.stdout, shown
    assert 'url="https://***@h/write?db=x&p=***"' in shown.stdout and "headers=***" in shown.stdout, shown.stdout
    for secret in ({"username": "u", "password": "geheim"}, {"bearer_token": "geheim"}):
        shown = run(WEIR, "check", WEIR_CONFIG=config_of("http://h/", **secret))
        assert shown.returncode == 0 and "geheim" not in shown.stdout and f"{list(secret)[-1]}=***" in shown.stdout, shown


@case
def a_secret_in_a_response_is_masked_in_messages():
    for options, authority in (({"username": "u", "password": "geheim"}, ""), ({"bearer_token": "geheim"}, ""),
                               ({"headers": {"X-Key": "geheim"}}, ""), ({}, "u:ge%68eim@")):
        with Scripted(lambda request: reply(400, "bad: geheim, really geheim")) as server:
            done = emit(config_of(f"http://{authority}127.0.0.1:{server.port}/", **options), "a=1")
            assert "returned 400: bad: ******, really ******" in done.stderr and "geheim" not in done.stderr, done.stderr


@case
def every_form_of_a_secret_is_masked_in_messages():
    basic = base64.b64encode(b"u:geheim").decode()
    for options, query, echoed in (({"username": "u", "password": "geheim"}, "", basic),
                                   ({"headers": {"Authorization": "Basic " + basic}}, "", basic),
                                   ({}, "?access-token=ge/heim", "ge/heim ge%2Fheim"), ({}, "?x=ge%2Fheim", "ge/heim ge%2Fheim"),
                                   ({"password": "ge heim", "username": "u"}, "", "ge%20heim")):
        with Scripted(lambda request, echoed=echoed: reply(400, "bad: " + echoed)) as server:
            done = emit(config_of(server.url + "/" + query, **options), "a=1")
            assert "returned 400: bad: ***" in done.stderr and not any(word in done.stderr for word in echoed.split()), (echoed, done.stderr)
        location = "http://127.0.0.1:1/" + echoed.replace(" ", "/")
        with timed_server([reply(302, Location=location), reply(204)]) as server:
            done = emit(config_of(server.url + "/" + query, retry_max="50ms", **options), "a=1")
            assert "a redirect to http://127.0.0.1:1/...;" in done.stderr, done.stderr


@case
def a_redirect_to_the_same_url_with_a_slash_says_what_to_change():
    with timed_server([reply(301, Location="/api/metrics/"), reply(204)]) as server:
        done = emit(config_of(server.url + "/api/metrics", retry_max="50ms"), "a=1")
        assert f'a redirect to {server.url}/api/metrics/; add the slash to "url"' in done.stderr, done.stderr


@case
def a_proxy_that_refuses_a_tunnel_for_wrong_credentials_is_asked_after_retry_max(folder):
    with Scripted(lambda request: reply(407)) as proxy:
        config = config_of("https://127.0.0.1:1/", proxy=f"http://u:geheim@127.0.0.1:{proxy.port}", retry_max="1h")
        config["settings"]["shutdown_timeout"] = "1s"
        app = ScriptedApp(config, folder)
        app.do("add", "a", 1)
        wait_for(lambda: f"connect 127.0.0.1:{proxy.port}: the proxy returned 407" in app.stderr_text(), "the message")
        ledger = app.do("ledger", "push")
        assert_handler_ledger(ledger)
        assert ledger["queued"] == 1, ledger
        app.end()
        assert "geheim" not in app.stderr_text(), app.stderr_text()
        tried = [request for request in proxy.requests if request.method == "CONNECT"]
        assert 1 <= len(tried) <= 4, len(tried)  # a flush and a shutdown cut the delay short


@case
def a_program_with_raised_privileges_cannot_use_the_handler(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("it takes root and setpriv to make and run a setuid program")
    program, log = os.path.join(folder, "weir"), os.path.join(folder, "keys")
    shutil.copy(WEIR, program)
    os.chmod(folder, 0o755)
    os.chmod(program, 0o4755)
    config = os.path.join(folder, "weir.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"handlers": {"push": {"type": "http", "plugin": os.path.join(PLUGINS, "http.so"), "url": "https://127.0.0.1:1/"}},
                   "groups": {"*": "push"}}, file)
    done = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "emit", "-c", config, "-g", "my_app", "a=1",
               SSLKEYLOGFILE=log)
    assert "not available in a program with raised privileges" in done.stderr and not os.path.exists(log), done


# ---- The process ---------------------------------------------------------------------------------

@case
def threads_that_add_values_do_no_network_calls():
    with Scripted() as server:
        trace, calls = of_main_thread(GUEST, "syscalls", WEIR_CONFIG=config_of(server.url))
        assert not between_marks(calls)[1], calls
        network = re.compile(r"(socket|connect|sendto|sendmsg|recvfrom|recvmsg|bind)\(.*AF_INET|(sendto|sendmsg)\(")
        assert not [call for call in calls if network.match(call)], "no network call, not even for the first value"
        assert re.search(r"^\d+ +sendto\(.*POST / HTTP", trace, re.M), "another thread must have sent them"


@case
def signal_handlers_are_unchanged_and_descriptors_are_closed_on_exec():
    with Scripted() as server:
        for what in ("state", "threads"):
            done = run(GUEST, what, WEIR_CONFIG=config_of(server.url))
            assert done.returncode == 0 and without_waits(done.stderr) == "", done
        if shutil.which("strace"):
            done = run("strace", "-f", "-qq", "-e", "trace=rt_sigaction", "-o", "/dev/stdout", ADDER, "-q", "-n", 100,
                       WEIR_CONFIG=config_of(server.url), ASAN_OPTIONS="detect_leaks=0")
            assert done.returncode == 0 and "SIGPIPE, {" not in done.stdout, done.stdout


@case
def a_program_that_closes_all_descriptors_continues_with_new_ones_and_other_files_are_untouched(folder):
    strangers = os.path.join(folder, "strangers")
    with Scripted() as server:
        done = run(os.path.join(BUILD, "tests", "support", "closer"), strangers, WEIR_CONFIG=config_of(server.url),
                   ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")  # libcurl's old handles are leaked
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        assert os.path.getsize(strangers) == 0 and server.connections == 2
        assert [line.split(" ")[1] for request in server.requests for line in request.lines()] == ["before=1", "after=2"]


@case
def a_reload_with_other_options_loses_nothing(folder):
    with Scripted() as first, Scripted() as second:
        files = []
        for number, server in enumerate((first, second)):
            files += ["-c", os.path.join(folder, f"{number}.json")]
            with open(files[-1], "w", encoding="utf-8") as file:
                json.dump(config_of(server.url, overflow="block"), file)
        done = run(ADDER, "-n", 4000, "-p", 20000, "-t", 2, "-r", 20, "-f", -1, "-H", "push", *files, WEIR_CONFIG="")
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        report = json.loads(done.stdout)
        assert_ledgers(report)
        accepted = first.values() + second.values()
        assert len(accepted) == report["handlers"]["push"]["delivered"] == 8000 - report["process"]["unrouted"]
        assert first.requests and second.requests


main()
