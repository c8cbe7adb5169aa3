"""The http handler with broken, silent and malicious servers: deadlines hold, memory use is bounded, errors are logged."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import zlib

import certificates
from fifos import ScriptedApp
from harness import ADDER, SOURCE, Skip, assert_handler_ledger, assert_ledgers, case, environment, free_port, main, run, start, without_waits, \
    wait_for
from scripted import Scripted, reply, tls_context

SANITIZED = os.environ.get("WEIR_TEST_SANITIZED", "")
REJECTED = 1


def config_of(url, shutdown="10s", **options):
    handler = {"type": "http", "url": url, "format": "influx", "linger": "0s", "retry_min": "5ms", "retry_max": "50ms",
               "timeout": "20s", **options}
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"push": handler}, "groups": {"*": "push"}}


def add(config, count, *arguments, **env):
    """Adds values and flushes. Returns (the handler's ledger, messages, peak memory in KiB)."""
    command = [ADDER, "-n", str(count), "-f", "-1", "-H", "push", *map(str, arguments)]
    program = subprocess.Popen(command, env=environment(WEIR_CONFIG=config, **env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch = threading.Timer(120, program.kill)
    watch.start()
    log = []
    reader = threading.Thread(target=lambda: log.append(program.stderr.read()))
    reader.start()
    out = program.stdout.read()
    reader.join()
    _, status, usage = os.wait4(program.pid, 0)
    watch.cancel()
    program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0, (program.returncode, log)
    report = json.loads(out)
    assert_ledgers(report)
    return report["handlers"]["push"], log[0], usage.ru_maxrss


def log_of(folder, config, *words):
    """Runs a program that adds a value, until it has logged all of these words, however long its first attempt takes. Returns the log; the
    value is not delivered."""
    app = ScriptedApp(config, folder)
    app.do("add", "a", 1)
    wait_for(lambda: all(word in app.stderr_text() for word in words), f"{words} in the log")
    ledger = app.do("ledger", "push")
    assert_handler_ledger(ledger)
    assert ledger["offered"] == 1 and ledger["delivered"] == 0, ledger
    app.end()
    return app.stderr_text()


class Hanging:
    """Responses that stop in the middle until the test ends."""

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
def fault_24_a_request_without_a_response_in_time_is_repeated():
    for beginning in ([], [b"H"], [b"HTTP/1.1 200 OK\r\nContent-Le"]):
        with Hanging() as hanging:
            state = {"calls": 0}

            def respond(_):
                state["calls"] += 1
                return hanging.after(*beginning) if state["calls"] <= 2 else reply(204)

            with Scripted(respond) as server:
                ledger, log, _ = add(config_of(server.url, timeout="150ms"), 100, "-e", 100)
                assert ledger["delivered"] == 100 and ledger["retries"] >= 2, ledger
                assert f"push: POST {server.url}/: no complete response within 150 ms; retrying" in log, log
                assert server.values()[-100:] == list(range(100))


@case
def fault_24_a_response_takes_effect_when_its_headers_are_complete():
    with Hanging() as hanging:
        for status, delivered in ((200, 10), (400, 0)):
            head = f"HTTP/1.1 {status} OK\r\nContent-Length: 1000\r\n\r\nbecause".encode()
            with Scripted(lambda _: hanging.after(head)) as server:
                ledger, log, _ = add(config_of(server.url, timeout="150ms"), 10)
                assert ledger["delivered"] == delivered and ledger["dropped"][REJECTED] == 10 - delivered, ledger
                assert status == 200 or "returned 400: because" in log, log


@case
def fault_24_a_silent_server_delays_neither_the_program_nor_its_exit():
    with Hanging() as hanging, Scripted(lambda _: hanging.after()) as server:
        done = run(ADDER, "-n", 100000, "-f", 2000, "-H", "push", WEIR_CONFIG=config_of(server.url, "200ms", timeout="1h"), timeout=240)
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert done.returncode == 0 and report["flush"] == -8 and report["handlers"]["push"]["queued"] == 100000, report
        assert re.search(r"push: shutting down while (the handler is busy|failing: .*no response before the time limit for stopping); "
                         r"not delivered in time: 100000 dropped", done.stderr), done.stderr


@case
def a_server_that_accepts_no_connection_causes_a_timeout(folder):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(4):  # the kernel's backlog of a listener that never accepts
            fillers.append(socket.socket())
            fillers[-1].setblocking(False)
            fillers[-1].connect_ex(("127.0.0.1", port))
        log_of(folder, config_of(f"http://127.0.0.1:{port}/", "100ms", connect_timeout="100ms"),
               f"push: connect 127.0.0.1:{port}: no connection within 100 ms; retrying, 1 queued")
        for filler in fillers:
            filler.close()


@case
def a_server_that_accepts_no_connection_costs_no_descriptors(folder):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        app = ScriptedApp(config_of(url, "100ms", connect_timeout="20ms", retry_min="1ms", retry_max="2ms"), folder)
        app.do("add", "a", 1)
        wait_for(lambda: app.do("ledger", "push")["retries"] >= 3, "retries")
        before = len(os.listdir(f"/proc/{app.program.pid}/fd"))
        wait_for(lambda: app.do("ledger", "push")["retries"] >= 40, "more retries")
        assert len(os.listdir(f"/proc/{app.program.pid}/fd")) <= before + 2, (before, os.listdir(f"/proc/{app.program.pid}/fd"))
        app.end()
        for filler in fillers:
            filler.close()


# ---- Too much -------------------------------------------------------------------------------------

def forever(head, piece):
    yield head
    while True:
        yield piece


@case
def fault_26_an_endless_response_is_aborted_and_memory_use_is_bounded():
    with Scripted() as server:
        _, _, plain = add(config_of(server.url, batch=100), 2000)
    for status, delivered in ((200, 2000), (400, 0)):
        head = f"HTTP/1.1 {status} OK\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        with Scripted(lambda _: forever(head, piece)) as server:
            ledger, log, peak = add(config_of(server.url, batch=100), 2000)
            assert ledger["delivered"] == delivered and ledger["dropped"][REJECTED] == 2000 - delivered, ledger
            assert server.sent < len(server.requests) * 16 * 1024 * 1024, "at most the size of the buffers"
            assert SANITIZED or peak < plain + 4096, (plain, peak)
            assert status == 200 or "returned 400: " + "x" * 120 + "..." in log, log


@case
def fault_26_reading_stops_after_64_kib_of_a_response(folder):
    """libcurl reads up to 16 KiB at a time."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    trace = os.path.join(folder, "trace")
    head, piece = b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with Scripted(lambda _: forever(head, piece)) as server:
        run("strace", "-f", "-qq", "-s", "0", "-e", "trace=recvfrom,recvmsg", "-o", trace, ADDER, "-q", "-n", 1, "-f", -1,
            WEIR_CONFIG=config_of(server.url), ASAN_OPTIONS="detect_leaks=0")
        with open(trace, encoding="utf-8") as file:
            sizes = [int(size) for size in re.findall(r"recv\w+.*= (\d+)$", file.read(), re.M)]
        assert len(server.requests) == 1 and 64 * 1024 < sum(sizes) < (64 + 2 * 16) * 1024, (len(server.requests), sum(sizes))


@case
def fault_26_endless_headers_are_aborted():
    for piece in (b"X-Header: " + b"y" * 1000 + b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"z" * 1000):
        state = {"calls": 0}

        def respond(_):
            state["calls"] += 1
            return forever(b"HTTP/1.1 200 OK\r\n", piece) if state["calls"] <= 2 else reply(204)

        with Scripted(respond) as server:
            ledger, log, peak = add(config_of(server.url), 10)
            assert ledger["delivered"] == 10 and ledger["retries"] == 2, ledger
            assert f"push: POST {server.url}/: " in log and "retrying" in log, log
            assert SANITIZED or peak < 64 * 1024, peak


def compress_zeros(mebibytes):
    """Piece by piece: a child's peak is at least that of the process that has started it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)  # gzip
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)) + packer.flush()


@case
def fault_26_a_compressed_response_is_not_decompressed():
    bomb = compress_zeros(200)
    with Scripted(lambda _: reply(200, bomb, Content_Encoding="gzip")) as server:
        ledger, log, peak = add(config_of(server.url), 10)
        assert ledger["delivered"] == 10 and without_waits(log) == "" and (SANITIZED or peak < 64 * 1024), (ledger, log, peak)


# ---- Broken ---------------------------------------------------------------------------------------

@case
def a_connection_closed_before_the_headers_are_complete_is_opened_again():
    for pieces in ([], [b"HTTP/1.1 2"], [b"HTTP/1.1 204 OK\r\n"], [b"HTTP/1.1 204 OK\r\nServer: x\r\n"],
                   [b"HTTP/1.1 100 Continue\r\n\r\n"]):
        state = {"calls": 0}

        def respond(_):
            state["calls"] += 1
            return iter(pieces) if state["calls"] == 1 else reply(204)

        with Scripted(respond) as server:
            ledger, log, _ = add(config_of(server.url), 10, "-e", 10)
            assert ledger["delivered"] == 10 and ledger["retries"] == 1, (pieces, ledger, log)
            assert len(server.requests) == 2 and f"push: POST {server.url}/: " in log, (pieces, log)


@case
def a_connection_closed_within_the_response_body_changes_nothing():
    with Scripted(lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"])) as server:
        ledger, log, _ = add(config_of(server.url), 10)
        assert ledger["delivered"] == 10 and ledger["retries"] == 0 and without_waits(log) == "", (ledger, log)


@case
def a_reply_that_is_not_http_is_an_error():
    for garbage in (b"SSH-2.0-OpenSSH_9.2\r\n", b"\x00\xff\x1b[31m\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"\r\n\r\n"):
        state = {"calls": 0}

        def respond(_):
            state["calls"] += 1
            return iter([garbage]) if state["calls"] == 1 else reply(204)

        with Scripted(respond) as server:
            ledger, log, _ = add(config_of(server.url), 10)
            assert ledger["delivered"] == 10 and ledger["retries"] == 1, (garbage, ledger, log)
            assert f"push: POST {server.url}/: " in log and "\x1b" not in log, (garbage, log)


@case
def a_server_that_is_down_is_logged_and_nothing_is_lost_once_it_starts():
    port = free_port()
    program = start(ADDER, "-n", 2000, "-p", 500000, "-f", -1, "-H", "push",
                    WEIR_CONFIG=config_of(f"http://127.0.0.1:{port}/write?db=x", batch=50))
    first = program.stderr.readline()
    assert f"weir: warning: push: connect 127.0.0.1:{port}: Connection refused; retrying, " in first, first
    with Scripted(port=port) as server:
        out, log = program.communicate(timeout=240)
        assert program.returncode == 0 and re.search(r"push: back after \d+ s, 0 lost", log), log
        assert_ledgers(json.loads(out))
        assert server.values() == list(range(2000))


@case
def a_server_that_restarts_loses_nothing_and_order_is_kept():
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
                server.respond = lambda _: None  # like a killed server: no response, and the connection is closed
                server.wait(lambda s, n=len(server.requests): len(s.requests) > n, "a request without a response")
            else:
                out, log = program.communicate(timeout=240)
            server.close()
            taken += server.values()
    assert program.returncode == 0 and json.loads(out)["handlers"]["push"]["delivered"] == 4000, (out, log)
    assert_ledgers(json.loads(out))
    first_seen = list(dict.fromkeys(taken))
    assert first_seen == list(range(4000)), "all values must arrive, in order at first arrival"


# ---- Names ----------------------------------------------------------------------------------------

@case
def fault_28_an_unknown_name_is_logged(folder):
    log = log_of(folder, config_of("http://user:geheim@no-such-host.invalid/", "100ms", connect_timeout="20s"),
                 "push: resolve no-such-host.invalid:80: unknown name, or no name server responds; retrying")
    assert "geheim" not in log


def run_in_network_namespace(*arguments):
    """Runs tests/support/names.py in a network namespace with its own name server. Returns its JSON output."""
    probe = subprocess.run(["unshare", "-rmn", "true"], capture_output=True)
    if probe.returncode:
        raise Skip("not allowed to create a network namespace")
    done = subprocess.run(["unshare", "-rmn", sys.executable, "-B", os.path.join(SOURCE, "tests", "support", "names.py"), *arguments],
                          env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@case
def fault_28_a_silent_name_server_delays_neither_the_program_nor_its_exit():
    """The resolver itself would wait for 150 seconds."""
    result = run_in_network_namespace("silent")
    assert result["code"] == 0 and result["report"]["process"]["added"] == 100000, result
    assert_ledgers(result["report"])
    assert "push: resolve db.test:" in result["stderr"] and "no response within 100 ms; retrying" in result["stderr"], result


@case
def fault_28_a_changed_address_is_resolved_again():
    result = run_in_network_namespace("moving")
    assert result["code"] == 0 and result["report"]["handlers"]["push"]["delivered"] == 3000, result
    assert_ledgers(result["report"])
    assert result["first"] > 0 and result["second"] > 0 and result["values"] == list(range(3000)), result["stderr"]


# ---- Certificates ---------------------------------------------------------------------------------

@case
def a_certificate_of_a_trusted_authority_is_accepted_over_one_connection(folder):
    certificate, key = certificates.make(folder, "good")
    with Scripted(tls=tls_context(certificate, key), address="127.0.0.1") as server:
        ledger, log, _ = add(config_of(f"https://localhost:{server.port}/", ca_file=certificate, batch=100), 10000)
        assert ledger["delivered"] == 10000 and without_waits(log) == "" and server.connections == 1, (ledger, log)
        assert server.values() == list(range(10000))


def refused(folder, certificate, key, host, **options):
    """Returns the log for a server whose certificate must not be accepted. Nothing may have been sent."""
    with Scripted(tls=tls_context(certificate, key), address="127.0.0.1") as server:
        log = log_of(folder, config_of(f"https://u:geheim@{host}:{server.port}/w", "100ms", **options),
                     f"weir: warning: push: https://{host}:{server.port}/w: the certificate of {host} is not trusted: ",
                     "; retrying, 1 queued")
        assert not server.requests and "geheim" not in log, log
        return log


@case
def fault_27_a_self_signed_certificate_is_refused(folder):
    certificate, key = certificates.make(folder, "own")
    other, _ = certificates.make(folder, "other")
    assert "self-signed" in refused(folder, certificate, key, "localhost")
    refused(folder, certificate, key, "localhost", ca_file=other)


@case
def fault_27_an_expired_certificate_is_refused(folder):
    certificate, key = certificates.make(folder, "old", days=-1)
    assert "expired" in refused(folder, certificate, key, "localhost", ca_file=certificate)


@case
def fault_27_a_certificate_for_another_host_is_refused(folder):
    certificate, key = certificates.make(folder, "elsewhere", host="elsewhere.example")
    assert "localhost" in refused(folder, certificate, key, "localhost", ca_file=certificate).split("not trusted", 1)[1]
    certificate, key = certificates.make(folder, "name", host="localhost")
    refused(folder, certificate, key, "127.0.0.1", ca_file=certificate)


@case
def without_verify_any_certificate_is_accepted(folder):
    certificate, key = certificates.make(folder, "old", host="elsewhere.example", days=-1)
    with Scripted(tls=tls_context(certificate, key)) as server:
        ledger, log, _ = add(config_of(server.url, verify=False), 10)
        assert ledger["delivered"] == 10 and without_waits(log) == "", (ledger, log)


@case
def a_server_may_require_a_client_certificate(folder):
    certificate, key = certificates.make(folder, "server")
    own, own_key = certificates.make(folder, "client")
    with Scripted(tls=tls_context(certificate, key, own)) as server:
        url = f"https://localhost:{server.port}/"
        ledger, log, _ = add(config_of(url, ca_file=certificate, cert_file=own, key_file=own_key), 10, "-e", 10)
        assert ledger["delivered"] == 10 and without_waits(log) == "", (ledger, log)
        log_of(folder, config_of(url, "100ms", ca_file=certificate), "push: ", "retrying, 1 queued")
        assert len(server.requests) == 1, server.requests


@case
def missing_certificate_files_are_named(folder):
    certificate, key = certificates.make(folder, "server")
    with Scripted(tls=tls_context(certificate, key)) as server:
        url = f"https://localhost:{server.port}/"
        for options, expected in (({"ca_file": "/no/such/ca.pem"}, "ca_file: "),
                                  ({"ca_file": certificate, "cert_file": "/no/such/cert.pem"}, "cert_file, key_file: ")):
            log_of(folder, config_of(url, "100ms", **options), "push: " + expected, list(options.values())[-1])
        assert not server.requests


@case
def fault_27_there_is_no_fallback_to_plain_http(folder):
    with Scripted() as server:
        log_of(folder, config_of(f"https://127.0.0.1:{server.port}/", "100ms"), f"push: connect 127.0.0.1:{server.port}: TLS: ")
        assert not server.requests
    certificate, key = certificates.make(folder, "server")
    with Scripted(tls=tls_context(certificate, key)) as server:
        log_of(folder, config_of(f"http://127.0.0.1:{server.port}/", "100ms"), "retrying, 1 queued")
        assert not server.requests


main()
