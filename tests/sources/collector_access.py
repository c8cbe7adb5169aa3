"""Who may ask a collector what, and requests that are made to deceive it or what is in front of it."""

import contextlib
import json
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request

from collectors import RUN, Collector
from harness import WEIR, free_port, main, run, start, wait_for
from sourced import case, keep

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
TICKETS = {"once": 600, "session": 30 * 86400}


def token_of(folder):
    with open(os.path.join(folder, "access", "token"), encoding="ascii") as file:
        return file.read().strip()


def ticket_in(folder, kind="once", age=0):
    """As `weir serve --url` makes one."""
    name, secret = os.urandom(16).hex(), os.urandom(16).hex()
    path = os.path.join(folder, "access", f"{kind}-{name}")
    with open(path, "w", encoding="ascii") as file:
        file.write(secret)
    os.utime(path, (time.time() - age,) * 2)
    return name + secret


def exchange(port, request, shut=True):
    """Sends bytes, and returns all that comes back until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=240) as connection:
        connection.sendall(request)
        if shut:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while part := connection.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        return received


def statuses(received):
    return [int(found) for found in re.findall(rb"^HTTP/1\.1 (\d+)", received, re.M)]


# ---- Who ----------------------------------------------------------------------------------------------


@case
def pages_and_queries_need_a_session_or_a_token(folder):
    server = Collector(folder)
    token = token_of(folder)
    for path in ("/", "/api/v1/status", "/api/v1/series", "/app.js", "/api/v1/../runs", "//api/runs", "/api/runsx"):
        assert server.call("GET", path)[0] == 401, path
    for path in ("/healthz", "/readyz", "/api/runs/", "/api/metrics/", "/api/pods/"):
        assert server.call("GET", path)[0] == 200, path
    for given, status in (("Bearer " + token, 200), ("bearer  " + token, 200), ("Bearer " + token[:-1], 401), ("Bearer " + token + "0", 401),
                          ("Bearer ", 401), ("Basic " + token, 401), ("Bearer " + "x" * 2000, 401), (token, 401)):
        assert server.call("GET", "/api/v1/status", Authorization=given)[0] == status, given
    status, body, headers = server.call("GET", "/api/v1/status")
    assert headers["WWW-Authenticate"] == "Bearer" and "weir serve --url" in json.loads(body)["message"]
    forms = {path: json.loads(server.call("GET", path)[1])["status"] for path in ("/api/v1/status", "/api/v1/", "/api/v1", "/api/v1x", "/app.js")}
    assert forms == {"/api/v1/status": 401, "/api/v1/": 401, "/api/v1": 401, "/api/v1x": "Unauthorized", "/app.js": "Unauthorized"}, forms
    for path in ("/api/v1/status", "/healthz", "/readyz"):
        status, _, headers = server.call("POST", path, body=b"x", Authorization="Bearer " + token)
        assert (status, headers["Allow"]) == (405, "GET"), path
    answer = json.loads(server.call("POST", "/api/v1/status", body=b"x", Authorization="Bearer " + token)[1])
    assert answer["status"] == 405, answer
    status, body, headers = server.call("GET", "/", **BROWSER)
    assert status == 401 and b"<pre>weir serve --url</pre>" in body and b"valid once" in body and headers["Content-Type"].startswith("text/html")
    server.end()


@case
def a_url_begins_a_session_once(folder):
    server = Collector(folder)
    def begin(ticket, **headers):
        return exchange(server.port, (f"GET /session/{ticket} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode())
    ticket = ticket_in(folder)
    refusal = exchange(server.port, f"HEAD /session/{ticket} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert statuses(refusal) == [405] and b"\r\nAllow: GET\r\n" in refusal, "it is still valid"
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(begin(ticket))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses(reply)[0] for reply in replies) == [303] + [403] * 7, replies
    (reply,) = (reply for reply in replies if statuses(reply) == [303])
    cookie = re.search(rb"^Set-Cookie: (weir_session_\d+=[0-9a-f]{64}); (.*)\r$", reply, re.M)
    assert b"HttpOnly" in cookie.group(2) and b"SameSite=Strict" in cookie.group(2) and b"Path=/" in cookie.group(2), reply
    session = cookie.group(1).decode()
    assert re.search(rb"^Location: /\r$", reply, re.M)
    assert server.call("GET", "/api/v1/status", Cookie=session)[0] == 200
    assert server.call("GET", "/api/v1/status", Cookie="a=b; " + session + "; c=d")[0] == 200
    for wrong in (session[:-1], session + "0", session[:-1] + ("0" if session[-1] != "0" else "1"), session.split("=")[0] + "=" + ticket):
        assert server.call("GET", "/api/v1/status", Cookie=wrong)[0] == 401, wrong
    assert statuses(begin(ticket, Cookie=session)) == [303], "a browser that opens its pages again"
    for wrong in (ticket, "", "x", "0" * 64, ticket_in(folder, age=700), ticket_in(folder, "session"), "../token", "%2e%2e%2ftoken"):
        assert statuses(begin(wrong)) == [403], wrong
    status, body, headers = server.call("GET", f"/session/{ticket}", **BROWSER)
    assert status == 403 and headers["Content-Type"].startswith("text/html"), body
    server.program.kill()
    server.program.communicate()
    server.begin()
    assert server.call("GET", "/api/v1/status", Cookie=session)[0] == 200, "a session outlives the process"
    assert server.call("GET", "/api/v1/status", Cookie=session.split("=")[0] + "=" + ticket_in(folder, "session", 31 * 86400))[0] == 401
    server.end()


@case
def other_machines_need_the_token_for_all(folder):
    token_file, token, port = os.path.join(folder, "token"), "a-long-token", free_port()
    with open(os.open(token_file, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(token + "\n")
    server = Collector(folder, token_file=token_file, hosts=["weir.example"])
    server.end()
    server.port, server.config["sources"]["c"]["listen"] = port, f"0.0.0.0:{port}"
    server.program = keep(start(WEIR, "relay", WEIR_CONFIG=server.config))
    wait_for(lambda: server.is_listening(), "the server")
    for path in ("/healthz", "/readyz", "/api/runs/", "/api/v1/status", "/"):
        assert server.call("GET", path)[0] == 401, path
    for path in ("/healthz", "/api/runs/", "/api/v1/status"):
        assert server.call("GET", path, Authorization="Bearer " + token)[0] == 200, path
    for host, status in (("192.168.1.2", 200), ("[fe80::1]:80", 200), ("weir.example", 200), ("weir.example.evil", 403), ("evil", 403), ("1.2.3.4.evil", 403)):
        assert server.call("GET", "/healthz", Authorization="Bearer " + token, Host=host)[0] == status, host
    with open(token_file + ".new", "w", encoding="ascii") as file:
        os.chmod(file.name, 0o600)
        file.write("another-token\n")
    os.rename(token_file + ".new", token_file)
    wait_for(lambda: server.call("GET", "/healthz", Authorization="Bearer another-token")[0] == 200, "the new token")
    assert server.call("GET", "/healthz", Authorization="Bearer " + token)[0] == 401
    server.end()


@case
def a_folder_that_others_can_enter_gives_no_access(folder):
    os.makedirs(os.path.join(folder, "access"), 0o755)
    server = Collector(folder)
    assert not os.listdir(os.path.join(folder, "access")) and server.call("GET", "/api/v1/status")[0] == 401
    server.program.terminate()
    _, log = server.program.communicate(timeout=240)
    assert "can be entered by others" in log, log


# ---- How ----------------------------------------------------------------------------------------------


@case
def each_reply_forbids_other_sites_to_use_it(folder):
    server = Collector(folder)
    for path in ("/", "/healthz", "/api/runs/", "/api/v1/status"):
        headers = server.call("GET", path)[2]
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "DENY", path
        assert headers["Referrer-Policy"] == "no-referrer" and headers["Cross-Origin-Resource-Policy"] == "same-origin", path
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy and "*" not in policy, policy
        assert not any(name.lower().startswith("access-control") for name in headers), headers
    server.end()


SMUGGLED = "GET /api/runs/9 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@case
def a_request_whose_end_is_in_doubt_ends_the_connection(folder):
    server = Collector(folder, request_timeout="2s", idle_timeout="2s")
    server.post("/api/runs/", RUN)
    body = "0\r\n\r\n" + SMUGGLED
    doubtful = {
        "both lengths": f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked\r\n\r\n{body}",
        "both, the other way round": f"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n{body}",
        "two lengths": f"Content-Length: 0\r\nContent-Length: {len(SMUGGLED)}\r\n\r\n{SMUGGLED}",
        "two equal lengths": f"Content-Length: 0\r\nContent-Length: 0\r\n\r\n{SMUGGLED}",
        "a list of lengths": f"Content-Length: 0, 0\r\n\r\n{SMUGGLED}",
        "a signed length": f"Content-Length: +0\r\n\r\n{SMUGGLED}",
        "a negative length": f"Content-Length: -1\r\n\r\n{SMUGGLED}",
        "a hexadecimal length": f"Content-Length: 0x0\r\n\r\n{SMUGGLED}",
        "a length that overflows": f"Content-Length: 18446744073709551616\r\n\r\n{SMUGGLED}",
        "another coding": f"Transfer-Encoding: xchunked\r\n\r\n{body}",
        "two codings": f"Transfer-Encoding: gzip, chunked\r\n\r\n{body}",
        "two headers with codings": f"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{body}",
        "no length": f"\r\n{SMUGGLED}",
        "a blank before the colon": f"Content-Length : {len(SMUGGLED)}\r\n\r\n{SMUGGLED}",
        "a folded header": f"Content-Length:\r\n {len(SMUGGLED)}\r\n\r\n{SMUGGLED}",
        "a folded coding": f"Transfer-Encoding:\r\n chunked\r\n\r\n{body}",
        "a header of no name": f": x\r\nContent-Length: 0\r\n\r\n{SMUGGLED}",
        "a header without a colon": f"nonsense\r\nContent-Length: 0\r\n\r\n{SMUGGLED}",
        "a bare line feed": f"X: y\nContent-Length: {len(SMUGGLED)}\r\n\r\n{SMUGGLED}",
        "bare line feeds": f"Content-Length: 0\n\n{SMUGGLED}",
        "a bare carriage return": f"X: y\rContent-Length: {len(SMUGGLED)}\r\n\r\n{SMUGGLED}",
        "a chunk's size that overflows": f"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n{SMUGGLED}",
        "a chunk's size with a sign": f"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n{SMUGGLED}",
        "a chunk that ends too late": f"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n{SMUGGLED}",
        "a NUL": f"X: a\0b\r\nContent-Length: 0\r\n\r\n{SMUGGLED}",
    }
    for name, rest in doubtful.items():
        received = exchange(server.port, f"POST /api/runs/ HTTP/1.1\r\nHost: 127.0.0.1\r\n{rest}".encode())
        assert statuses(received)[0] >= 400 and b"Run not found" not in received, (name, received)
        received = exchange(server.port, f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n{rest}".encode())
        assert b"Run not found" not in received, (name, received)
    assert b"Run not found" in exchange(server.port, SMUGGLED.encode()), "what is smuggled is a request"
    assert len(server.get("/api/runs/")) == 1
    server.end()


@case
def paths_and_headers_that_are_made_to_deceive_are_refused(folder):
    server = Collector(folder)
    def status(line, *headers):
        found = exchange(server.port, "\r\n".join([line, *(headers or ("Host: 127.0.0.1",)), "Connection: close", "", ""]).encode("latin-1"))
        assert b"root:" not in found and b"\r\nX-Injected" not in found, found
        return (statuses(found) or [0])[0]
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/..\\..\\etc\\passwd", "/static/../../etc/passwd"):
        assert status(f"GET {path} HTTP/1.1") == 401, path
    for path in ("/healthz%00", "/healthz%00.html", "/healthz%0d%0aX-Injected:%20y", "/%0a", "/" + "a" * 5000, "healthz", "*", "http://evil/healthz"):
        assert status(f"GET {path} HTTP/1.1") in (0, 400, 401, 404, 414), path
    assert status("GET /healthz HTTP/1.1", "X: y") == 400, "no Host"
    assert status("GET /healthz HTTP/1.1", "Host: 127.0.0.1", "Host: evil") == 403
    assert status("GET /healthz HTTP/1.1", "Host: 127.0.0.1@evil") == 403
    assert status("GET /healthz HTTP/1.1", "Host: 127.0.0.1:80@evil") == 403
    for method in ("POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "X" * 100):
        assert status(f"{method} /healthz HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 0") in (0, 400, 405), method
    assert status("GET /api/runs/?name=%0d%0aX-Injected:%20y HTTP/1.1") == 200
    server.end()


@case
def sizes_counts_and_times_are_limited(folder):
    server = Collector(folder, body_limit="1KiB", connections=4, idle_timeout="300ms", request_timeout="300ms")
    assert server.call("POST", "/api/runs/", body=b"x" * 2000)[0] == 413
    chunked = b"POST /api/runs/ HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n" \
        + b"400\r\n" + b"x" * 1024 + b"\r\n0\r\n\r\n"
    assert statuses(exchange(server.port, chunked)) == [413]
    many = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 100) for i in range(5000)) + b"\r\n"
    assert 200 not in statuses(exchange(server.port, many, shut=False))
    assert exchange(server.port, b"GET /healthz HTTP/1.1\r\nHost: 127", shut=False) == b"", "headers that do not come"
    assert 201 not in statuses(exchange(server.port, b"POST /api/runs/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nx", shut=False))
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=240) for _ in range(20)]
    assert server.call("GET", "/healthz")[0] == 200, "those before it were closed"
    for connection in idle:
        connection.close()
    server.end()


@case
def another_collector_with_the_folder_takes_the_url_away_only_for_a_moment(folder):
    server = Collector(folder)
    url = os.path.join(folder, "access", "url")
    with open(url, encoding="ascii") as file:
        own = file.read()
    with open(url, "w", encoding="ascii") as file:
        file.write("http://127.0.0.1:1\n")
    wait_for(lambda: server.call("GET", "/readyz")[0] == 200, "a check")
    with open(url, encoding="ascii") as file:
        assert file.read() == "http://127.0.0.1:1\n"
    os.remove(url)
    wait_for(lambda: os.path.exists(url) and os.path.getsize(url) > 0, "the URL")
    with open(url, encoding="ascii") as file:
        assert file.read() == own
    server.end()
    assert not os.path.exists(url)


@case
def it_is_ready_while_its_store_and_sources_work(folder):
    port = free_port()
    server = Collector(folder)
    server.end()
    server.config["sources"]["other"] = {"type": "http", "listen": f"127.0.0.1:{port}", "retry_min": "5ms", "retry_max": "50ms"}
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        server.begin()
        wait_for(lambda: b"source other: it does not run" in server.call("GET", "/readyz")[1], "the source that cannot listen")
        assert server.call("GET", "/readyz")[0] == 503
        _, body, _ = server.call("GET", "/api/v1/status", Authorization="Bearer " + token_of(folder))
        problems = json.loads(body)["problems"]
        assert problems[0]["severity"] == "error" and problems[0]["where"] == "source other" and "in use" in problems[0]["text"], problems
    wait_for(lambda: server.call("GET", "/readyz")[0] == 200, "the source")
    server.end()


@case
def without_a_file_it_replies_to_all_requests(folder):
    place = os.path.join(folder, "place")
    os.mkdir(place)
    server = Collector(folder, path=os.path.join(place, "m.db"))
    os.rename(place, place + "2")
    for path, status in (("/readyz", 503), ("/api/v1/groups", 503), ("/api/runs/", 503), ("/nothing", 404), ("/healthz", 200)):
        assert server.call("GET", path, Authorization="Bearer " + token_of(folder))[0] == status, path
    server.end()


@case
def a_problem_of_a_source_has_the_number_of_its_values(folder):
    port = free_port()
    server = Collector(folder)
    server.end()
    server.config["sources"]["other"] = {"type": "http", "listen": f"127.0.0.1:{port}", "series_limit": 1}
    server.begin()
    def texts():
        _, body, _ = server.call("GET", "/api/v1/status", Authorization="Bearer " + token_of(folder))
        return [problem["text"] for problem in json.loads(body)["problems"] if problem["where"] == "source other"]
    for count, text in ((1, "1 value was refused:"), (2, "2 values were refused:")):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/?parse=text", data=b"a=1\nb=1\n")
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=240):
            pass
        wait_for(lambda: any(found.startswith(str(count)) for found in texts()), count)
        assert any(found.startswith(text) for found in texts()), texts()
    server.end()


main()
