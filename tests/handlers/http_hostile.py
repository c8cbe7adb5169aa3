"""The http handler against servers that fail, lie, hang and never end: deadlines hold, memory stays flat, and each case has its words."""

import gzip
import json
import os
import re
import socket
import subprocess
import sys
import threading

import certificates
from harness import ADDER, SOURCE, Skip, assert_ledgers, case, environment, main, run, start
from scripted import Scripted, reply, tls_context

SANITIZED = os.environ.get("WEIR_TEST_SANITIZED", "")
PATIENCE_MS = 8000 if SANITIZED else 1000  # a first handshake takes its time there
REJECTED = 1


def config_of(url, shutdown="10s", **options):
    handler = {"type": "http", "url": url, "format": "influx", "linger": "0s", "retry_min": "5ms", "retry_max": "50ms",
               "timeout": "20s", **options}
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"push": handler}, "groups": {"*": "push"}}


def add(config, count, *arguments, **env):
    """Adds values and waits until the handler has answered for all; answers (handler's ledger, messages, KiB of memory at the most)."""
    command = [ADDER, "-n", str(count), "-f", "-1", "-H", "push", *map(str, arguments)]
    program = subprocess.Popen(command, env=environment(WEIR_CONFIG=config, **env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch = threading.Timer(120, program.kill)
    watch.start()
    said = []
    reader = threading.Thread(target=lambda: said.append(program.stderr.read()))
    reader.start()
    out = program.stdout.read()
    reader.join()
    _, status, usage = os.wait4(program.pid, 0)
    watch.cancel()
    program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0, (program.returncode, said)
    report = json.loads(out)
    assert_ledgers(report)
    return report["handlers"]["push"], said[0], usage.ru_maxrss


class Hanging:
    """Answers that stop in the middle until the case is over."""

    def __init__(self):
        self.over = threading.Event()

    def after(self, *pieces):
        yield from pieces
        self.over.wait(120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()


# ---- Too slow -------------------------------------------------------------------------------------

@case
def fault_24_a_server_that_answers_too_slowly_is_given_up_and_asked_again():
    for beginning in ([], [b"H"], [b"HTTP/1.1 200 OK\r\nContent-Le"]):
        with Hanging() as hanging:
            state = {"calls": 0}

            def answer(_):
                state["calls"] += 1
                return hanging.after(*beginning) if state["calls"] <= 2 else reply(204)

            with Scripted(answer) as server:
                ledger, said, _ = add(config_of(server.url, timeout="150ms"), 100, "-e", 100)
                assert ledger["delivered"] == 100 and ledger["retries"] >= 2, ledger
                assert f"push: POST {server.url}/: no complete response within 150 ms; retrying" in said, said
                assert server.values()[-100:] == list(range(100))


@case
def fault_24_an_answer_counts_when_its_headers_are_complete_however_slow_the_rest_is():
    with Hanging() as hanging:
        for status, delivered in ((200, 10), (400, 0)):
            head = f"HTTP/1.1 {status} OK\r\nContent-Length: 1000\r\n\r\nbecause".encode()
            with Scripted(lambda _: hanging.after(head)) as server:
                ledger, said, _ = add(config_of(server.url, timeout="150ms"), 10)
                assert ledger["delivered"] == delivered and ledger["dropped"][REJECTED] == 10 - delivered, ledger
                assert status == 200 or "returned 400: because" in said, said


@case
def fault_24_a_server_that_never_answers_delays_neither_the_program_nor_its_end():
    with Hanging() as hanging, Scripted(lambda _: hanging.after()) as server:
        done = run(ADDER, "-n", 100000, "-f", 100, "-H", "push", WEIR_CONFIG=config_of(server.url, "200ms", timeout="1h"), timeout=60)
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert done.returncode == 0 and report["flush"] == -8 and report["handlers"]["push"]["queued"] == 100000, report
        assert re.search(r"push: shutting down while (the handler is busy|failing: .*no response before the time limit for stopping); "
                         r"not delivered in time: 100000 dropped", done.stderr), done.stderr


@case
def a_server_that_accepts_no_connection_is_given_up():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(4):  # what the kernel takes for a listener that accepts nothing
            fillers.append(socket.socket())
            fillers[-1].setblocking(False)
            fillers[-1].connect_ex(("127.0.0.1", port))
        done = run(ADDER, "-f", 500, "-H", "push", timeout=60,
                   WEIR_CONFIG=config_of(f"http://127.0.0.1:{port}/", "100ms", connect_timeout="100ms"))
        for filler in fillers:
            filler.close()
        assert f"push: connect 127.0.0.1:{port}: no connection within 100 ms; retrying, 1 queued" in done.stderr, done.stderr


# ---- Too much -------------------------------------------------------------------------------------

def forever(head, piece):
    yield head
    while True:
        yield piece


@case
def fault_26_an_endless_reply_is_cut_off_and_memory_stays_flat():
    with Scripted() as server:
        _, _, plain = add(config_of(server.url, batch=100), 2000)
    for status, delivered in ((200, 2000), (400, 0)):
        head = f"HTTP/1.1 {status} OK\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        with Scripted(lambda _: forever(head, piece)) as server:
            ledger, said, most = add(config_of(server.url, batch=100), 2000)
            assert ledger["delivered"] == delivered and ledger["dropped"][REJECTED] == 2000 - delivered, ledger
            assert server.sent < len(server.requests) * 16 * 1024 * 1024, "no more than what buffers hold"
            assert SANITIZED or most < plain + 4096, (plain, most)
            assert status == 200 or "returned 400: " + "x" * 120 + "..." in said, said


@case
def fault_26_headers_without_an_end_are_cut_off():
    for piece in (b"X-Header: " + b"y" * 1000 + b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"z" * 1000):
        state = {"calls": 0}

        def answer(_):
            state["calls"] += 1
            return forever(b"HTTP/1.1 200 OK\r\n", piece) if state["calls"] <= 2 else reply(204)

        with Scripted(answer) as server:
            ledger, said, most = add(config_of(server.url), 10)
            assert ledger["delivered"] == 10 and ledger["retries"] == 2, ledger
            assert f"push: POST {server.url}/: " in said and "retrying" in said, said
            assert SANITIZED or most < 64 * 1024, most


@case
def fault_26_a_reply_that_would_grow_is_left_as_it_is():
    bomb = gzip.compress(bytes(200 * 1024 * 1024), 9)
    with Scripted(lambda _: reply(200, bomb, Content_Encoding="gzip")) as server:
        ledger, said, most = add(config_of(server.url), 10)
        assert ledger["delivered"] == 10 and said == "" and (SANITIZED or most < 64 * 1024), (ledger, said, most)


# ---- Broken ---------------------------------------------------------------------------------------

@case
def a_connection_that_is_closed_before_the_headers_are_complete_is_made_anew():
    for pieces in ([], [b"HTTP/1.1 2"], [b"HTTP/1.1 204 OK\r\n"], [b"HTTP/1.1 204 OK\r\nServer: x\r\n"],
                   [b"HTTP/1.1 100 Continue\r\n\r\n"]):
        state = {"calls": 0}

        def answer(_):
            state["calls"] += 1
            return iter(pieces) if state["calls"] == 1 else reply(204)

        with Scripted(answer) as server:
            ledger, said, _ = add(config_of(server.url), 10, "-e", 10)
            assert ledger["delivered"] == 10 and ledger["retries"] == 1, (pieces, ledger, said)
            assert len(server.requests) == 2 and f"push: POST {server.url}/: " in said, (pieces, said)


@case
def a_connection_that_is_closed_within_the_answers_body_changes_nothing():
    with Scripted(lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"])) as server:
        ledger, said, _ = add(config_of(server.url), 10)
        assert ledger["delivered"] == 10 and ledger["retries"] == 0 and said == "", (ledger, said)


@case
def what_is_no_http_is_no_answer():
    for garbage in (b"SSH-2.0-OpenSSH_9.2\r\n", b"\x00\xff\x1b[31m\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"\r\n\r\n"):
        state = {"calls": 0}

        def answer(_):
            state["calls"] += 1
            return iter([garbage]) if state["calls"] == 1 else reply(204)

        with Scripted(answer) as server:
            ledger, said, _ = add(config_of(server.url), 10)
            assert ledger["delivered"] == 10 and ledger["retries"] == 1, (garbage, ledger, said)
            assert f"push: POST {server.url}/: " in said and "\x1b" not in said, (garbage, said)


@case
def a_server_that_is_down_is_said_and_when_it_comes_nothing_is_lost():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = start(ADDER, "-n", 2000, "-p", 500000, "-f", -1, "-H", "push",
                    WEIR_CONFIG=config_of(f"http://127.0.0.1:{port}/write?db=x", batch=50))
    first = program.stderr.readline()
    assert f"weir: warning: push: connect 127.0.0.1:{port}: Connection refused; retrying, " in first, first
    with Scripted(port=port) as server:
        out, said = program.communicate(timeout=60)
        assert program.returncode == 0 and re.search(r"push: back after \d+ s, 0 lost", said), said
        assert_ledgers(json.loads(out))
        assert server.values() == list(range(2000))


@case
def a_server_that_goes_and_comes_again_loses_nothing_and_order_is_kept():
    program = None
    taken, port = [], 0
    for turn in range(4):
        with Scripted(port=port) as server:
            port = server.port
            if not program:
                program = start(ADDER, "-n", 4000, "-p", 200000, "-f", -1, "-H", "push",
                                WEIR_CONFIG=config_of(server.url, batch=50, timeout="1s"))
            if turn < 3:
                server.wait(lambda s: len(s.requests) > 5, "requests")
                server.answer = lambda _: None  # as a killed one would: no answer, and the connection is gone
                server.wait(lambda s, n=len(server.requests): len(s.requests) > n, "a request that is not answered")
            else:
                out, said = program.communicate(timeout=60)
            server.close()
            taken += server.values()
    assert program.returncode == 0 and json.loads(out)["handlers"]["push"]["delivered"] == 4000, (out, said)
    assert_ledgers(json.loads(out))
    first_seen = list(dict.fromkeys(taken))
    assert first_seen == list(range(4000)), "each came, and for the first time in order"


# ---- Names ----------------------------------------------------------------------------------------

@case
def fault_28_a_name_that_is_not_known_is_said():
    done = run(ADDER, "-f", 1000, "-H", "push", timeout=60,
               WEIR_CONFIG=config_of("http://user:geheim@no-such-host.invalid/", "100ms", connect_timeout="20s"))
    assert "push: resolve no-such-host.invalid:80: unknown name, or no name server responds; retrying" in done.stderr, done.stderr
    assert "geheim" not in done.stderr


def inside_own_network(*arguments):
    """Runs tests/support/names.py where nobody minds another name server; answers what it prints, as JSON."""
    probe = subprocess.run(["unshare", "-rmn", "true"], capture_output=True)
    if probe.returncode:
        raise Skip("no right to a network of our own")
    done = subprocess.run(["unshare", "-rmn", sys.executable, "-B", os.path.join(SOURCE, "tests", "support", "names.py"), *arguments],
                          env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@case
def fault_28_a_name_server_that_never_answers_delays_neither_the_program_nor_its_end():
    """The resolver would wait for 150 seconds."""
    told = inside_own_network("silent")
    assert told["code"] == 0 and told["report"]["process"]["added"] == 100000, told
    assert_ledgers(told["report"])
    assert "push: resolve the name of db.test:" in told["said"] and "no answer within 100 ms; retrying" in told["said"], told


@case
def fault_28_an_address_that_changes_is_found_anew():
    told = inside_own_network("moving")
    assert told["code"] == 0 and told["report"]["handlers"]["push"]["delivered"] == 3000, told
    assert_ledgers(told["report"])
    assert told["first"] > 0 and told["second"] > 0 and told["values"] == list(range(3000)), told["said"]


# ---- Certificates ---------------------------------------------------------------------------------

@case
def a_certificate_of_a_trusted_authority_is_accepted_over_one_connection(folder):
    certificate, key = certificates.make(folder, "good")
    with Scripted(tls=tls_context(certificate, key), address="127.0.0.1") as server:
        ledger, said, _ = add(config_of(f"https://localhost:{server.port}/", ca_file=certificate, batch=100), 10000)
        assert ledger["delivered"] == 10000 and said == "" and server.connections == 1, (ledger, said)
        assert server.values() == list(range(10000))


def refused(folder, certificate, key, host, **options):
    """What is said when a server shows a certificate that must not be accepted; nothing may have been sent."""
    with Scripted(tls=tls_context(certificate, key), address="127.0.0.1") as server:
        done = run(ADDER, "-f", 1000, "-H", "push", timeout=60,
                   WEIR_CONFIG=config_of(f"https://u:geheim@{host}:{server.port}/w", "100ms", **options))
        assert not server.requests and "geheim" not in done.stderr, done.stderr
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["handlers"]["push"]["delivered"] == 0
        head = f"weir: warning: push: https://{host}:{server.port}/w: the certificate of {host} is not trusted: "
        assert head in done.stderr and "; retrying, 1 queued" in done.stderr, done.stderr
        return done.stderr


@case
def fault_27_a_certificate_that_nobody_vouches_for_is_refused(folder):
    certificate, key = certificates.make(folder, "own")
    other, _ = certificates.make(folder, "other")
    assert "self-signed" in refused(folder, certificate, key, "localhost")
    refused(folder, certificate, key, "localhost", ca_file=other)


@case
def fault_27_a_certificate_that_has_expired_is_refused(folder):
    certificate, key = certificates.make(folder, "old", days=-1)
    assert "expired" in refused(folder, certificate, key, "localhost", ca_file=certificate)


@case
def fault_27_a_certificate_for_another_host_is_refused(folder):
    certificate, key = certificates.make(folder, "elsewhere", host="elsewhere.example")
    assert "localhost" in refused(folder, certificate, key, "localhost", ca_file=certificate).split("not accepted", 1)[1]
    certificate, key = certificates.make(folder, "name", host="localhost")
    refused(folder, certificate, key, "127.0.0.1", ca_file=certificate)


@case
def any_certificate_will_do_when_told_so(folder):
    certificate, key = certificates.make(folder, "old", host="elsewhere.example", days=-1)
    with Scripted(tls=tls_context(certificate, key)) as server:
        ledger, said, _ = add(config_of(server.url, verify=False), 10)
        assert ledger["delivered"] == 10 and said == "", (ledger, said)


@case
def a_server_may_ask_for_a_certificate(folder):
    certificate, key = certificates.make(folder, "server")
    own, own_key = certificates.make(folder, "client")
    with Scripted(tls=tls_context(certificate, key, own)) as server:
        url = f"https://localhost:{server.port}/"
        ledger, said, _ = add(config_of(url, ca_file=certificate, cert_file=own, key_file=own_key), 10, "-e", 10)
        assert ledger["delivered"] == 10 and said == "", (ledger, said)
        done = run(ADDER, "-f", 1000, "-H", "push", WEIR_CONFIG=config_of(url, "100ms", ca_file=certificate), timeout=60)
        assert "push: " in done.stderr and "retrying, 1 queued" in done.stderr and len(server.requests) == 1, done.stderr


@case
def files_of_certificates_that_are_missing_are_named(folder):
    certificate, key = certificates.make(folder, "server")
    with Scripted(tls=tls_context(certificate, key)) as server:
        url = f"https://localhost:{server.port}/"
        for options, expected in (({"ca_file": "/no/such/ca.pem"}, "ca_file: "),
                                  ({"ca_file": certificate, "cert_file": "/no/such/cert.pem"}, "cert_file, key_file: ")):
            done = run(ADDER, "-f", 1000, "-H", "push", WEIR_CONFIG=config_of(url, "100ms", **options), timeout=60)
            assert "push: " + expected in done.stderr and list(options.values())[-1] in done.stderr, done.stderr
        assert not server.requests


@case
def fault_27_there_is_no_falling_back_to_plain(folder):
    with Scripted() as server:
        done = run(ADDER, "-f", PATIENCE_MS, "-H", "push", timeout=60, WEIR_CONFIG=config_of(f"https://127.0.0.1:{server.port}/", "100ms"))
        assert f"push: connect 127.0.0.1:{server.port}: TLS: " in done.stderr and not server.requests, done.stderr
    certificate, key = certificates.make(folder, "server")
    with Scripted(tls=tls_context(certificate, key)) as server:
        done = run(ADDER, "-f", PATIENCE_MS, "-H", "push", timeout=60, WEIR_CONFIG=config_of(f"http://127.0.0.1:{server.port}/", "100ms"))
        assert "retrying, 1 queued" in done.stderr and not server.requests, done.stderr


main()
