"""`weir emit --parse patterns`: what regular expressions find in lines is delivered exactly, and no line can hold it up."""

import base64
import json
import os
import re
import socket
import subprocess

from harness import BUILD, WEIR, Skip, case, environment, lines_of, main, run, wait_for
from peers import Nginx

GENEROUS_S = 600


def config_to(path):
    return {"handlers": {"disk": {"type": "file", "path": path, "format": "json"}}, "groups": {"*": "disk"}}


def need_patterns():
    done = run(WEIR, "emit", "-g", "g", "--parse", "patterns", "-", WEIR_CONFIG={"groups": {"*": "null"}})
    if "built without PCRE2" in done.stderr:
        raise Skip("PCRE2 is missing")


class Emitted:
    """What came out of a run: the values in the file, all of which were counted as delivered."""

    def __init__(self, folder, text, *arguments, **env):
        need_patterns()
        out, path = os.path.join(folder, "out"), os.path.join(folder, "input")
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        with open(path, "rb") as file:
            done = subprocess.run([WEIR, "emit", "-v", "-g", "g", "-", "--parse", "patterns", *arguments], stdin=file, capture_output=True,
                                  env=environment(WEIR_CONFIG=config_to(out), **env), timeout=GENEROUS_S, check=False)
        self.status, self.shown, self.errors = done.returncode, done.stdout.decode(), done.stderr.decode()
        self.values = [json.loads(line) for line in lines_of(out)] if os.path.exists(out) else []
        counted = re.search(r"^stdin: (\d+) lines, (\d+) values, \d+ invalid lines\ndisk: (\d+) delivered$", self.shown, re.M)
        assert counted, (self.shown, self.errors)
        self.lines = int(counted[1])
        assert int(counted[2]) == int(counted[3]) == len(self.values), self.shown

    def of(self, name):
        return [value["value"] for value in self.values if value["name"] == name]


def write_patterns(folder, patterns):
    path = os.path.join(folder, "patterns.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(patterns if isinstance(patterns, str) else json.dumps(patterns))
    return path


def emit(folder, text, patterns):
    return Emitted(folder, text, "--patterns", write_patterns(folder, patterns))


# ---- Values -------------------------------------------------------------------------------------------


@case
def matches_arrive_with_labels_and_times(folder):
    patterns = [{"name": "loss", "pattern": r"loss=(?<value>\S+) epoch=(?<epoch>\d+)", "unit": "1", "instrument": "gauge",
                 "replace": {",": ""}},
                {"name": "errors", "pattern": r"^(?<time>\S+ \S+) ERROR", "value": 1, "time": "%Y-%m-%d %H:%M:%S,%f%z"}]
    done = emit(folder, "loss=1,234.5 epoch=3 loss=2 epoch=4\n2026-11-21 12:34:56,789Z ERROR\nother\n", patterns)
    assert done.status == 0 and done.errors == "" and done.lines == 3, done.errors
    assert [(value["value"], value["labels"]) for value in done.values[:2]] == [(1234.5, {"epoch": "3"}), (2, {"epoch": "4"})], done.values
    assert done.values[2]["timestamp"] == 1795264496.789 and done.of("errors") == [1], done.values


@case
def a_value_that_is_no_number_is_reported_with_its_place_and_the_rest_arrives(folder):
    done = emit(folder, "x=1 x=bad x=2\nx=3\n", {"name": "x", "pattern": r"x=(\S+)"})
    assert done.status == 1 and done.of("x") == [1, 2, 3], done.values
    assert 'stdin:1:7: "x": "bad" is not a number' in done.errors, done.errors
    assert "1 values were left out" in done.errors, done.errors


@case
def benchmarkais_variable_is_read_as_it_is(folder):
    def form(name, pattern):
        return {"name": name, "units": "%", "pattern": base64.b64encode(pattern.encode()).decode()}

    metrics = [form("acc", r"acc=([-+]?\d*\.\d+|\d+)"), form("iter", r"Iter: (.*?)\s")]
    done = Emitted(folder, "Iter: 12 acc=20.34 acc=7\n", ANUBIS_METRICS=json.dumps(metrics))
    assert done.status == 0 and done.of("acc") == [20.34, 7] and done.of("iter") == [12], done.values
    os.remove(os.path.join(folder, "out"))
    done = Emitted(folder, "Iter: 12 acc=20.34\n", ANUBIS_METRICS=json.dumps(metrics[0]))
    assert done.of("acc") == [20.34] and len(done.values) == 1, done.values


# ---- nginx --------------------------------------------------------------------------------------------


def request(port, text):
    """Sends bytes as they are, and reads to the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=240) as connection:
        connection.sendall(text)
        while connection.recv(65536):
            pass


@case
def the_preset_reads_what_nginx_writes(folder):
    log = os.path.join(folder, "access.log")
    http = """log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
        '"$http_referer" "$http_user_agent" "$http_x_forwarded_for" rt=$request_time uct="$upstream_connect_time"';"""
    server = f'access_log {log} timed;\nlocation = /a {{ return 200 "12345"; }}\nlocation = /no {{ return 404 "x"; }}'
    hostile = (b'User-Agent: a" 200 9 rt=77\r\nReferer: \\" rt=77 \xff\r\nX-Forwarded-For: " rt=77\r\n'
               b"Authorization: Basic " + base64.b64encode(b'a] "GET / HTTP/1.1" 200 77 :x') + b"\r\n")
    with Nginx(folder, "http://127.0.0.1:1", server, http) as nginx:
        for _ in range(3):
            request(nginx.port, b"GET /a HTTP/1.0\r\n\r\n")
        request(nginx.port, b"GET /no HTTP/1.0\r\n" + hostile + b"\r\n")
        request(nginx.port, b"\x16\x03\x01\r\n\r\n")
        wait_for(lambda: len([line for line in open(log, "rb") if b"weir-ready" not in line]) == 5, "the log")
    with open(log, "rb") as file:
        text = b"".join(line for line in file if b"weir-ready" not in line)
    done = Emitted(folder, text, "--patterns", "nginx")
    assert done.status == 0, done.errors
    statuses = sorted(value["labels"]["status"] for value in done.values if value["name"] == "requests")
    assert statuses == ["200", "200", "200", "400", "404"], (text, statuses)
    assert done.of("requests") == [1] * 5 and 77 not in done.of("request_time") + done.of("bytes_sent"), (text, done.values)
    assert len(done.of("request_time")) == 5 and all(value < 60 for value in done.of("request_time")), done.values
    sizes = sorted(value["value"] for value in done.values if value["name"] == "bytes_sent" and value["labels"]["status"] != "400")
    assert sizes == [1, 5, 5, 5], sizes


# ---- Hostile lines ------------------------------------------------------------------------------------


@case
def backtracking_without_end_costs_a_fault_and_the_next_line_arrives(folder):
    long = "a" * 1_000_000
    patterns = [{"name": "nested", "pattern": "(a+)+$"}, {"name": "x", "pattern": r"^x=(\d+)"}]
    done = emit(folder, f"{long} !\nx=1\n{long}= 1\nx=2\n", patterns)
    assert done.status == 1 and done.of("x") == [1, 2] and len(done.values) == 2 and done.lines == 4, done.errors
    # on a slow machine the limit of time comes first
    assert re.search('stdin:1:1: the pattern of "nested": (match limit exceeded|the line takes more than 1 s)', done.errors), done.errors


@case
def a_line_that_takes_too_long_costs_a_fault_and_the_next_line_arrives(folder):
    text = f"{'a' * 1_000_000} = 1\nx=1\n"
    done = emit(folder, text, [{"name": "pairs", "pattern": r"(?<key>\w+)=(\d+)", "value": 1}, {"name": "x", "pattern": r"^x=(\d+)"}])
    assert done.status == 1 and done.of("x") == [1] and done.of("pairs") == [1], done.errors
    assert 'stdin:1:1: the pattern of "pairs": the line takes more than 1 s of processor time' in done.errors, done.errors


@case
def lines_of_a_MiB_are_read_and_longer_ones_refused(folder):
    count = 1000  # more would take a slow machine more than a second
    done = emit(folder, ("x=123456 " * count).ljust(1 << 20) + "\n" + "x=1 " * (1 << 19) + "\nx=2\n", {"name": "x", "pattern": r"x=(\d+)"})
    assert done.of("x") == [123456] * count + [2] and done.lines == 3, len(done.values)
    assert "stdin:2: longer than 1MiB" in done.errors, done.errors


@case
def any_bytes_may_be_around_matches(folder):
    done = emit(folder, b"\xff\xfex=1\xff\0x=2\xc3\nx=3\0\n\xed\xa0\x80x=\xff4\n\0\n", {"name": "x", "pattern": r"x=(\d)"})
    assert done.status == 0 and done.of("x") == [1, 2, 3] and done.lines == 4, done.errors


# ---- Refusals -----------------------------------------------------------------------------------------


def assert_refused(folder, patterns, message):
    path, out = write_patterns(folder, patterns), os.path.join(folder, "out")
    done = run(WEIR, "emit", "-g", "g", "-", "--parse", "patterns", "--patterns", path, stdin=subprocess.DEVNULL, WEIR_CONFIG=config_to(out))
    assert done.returncode == 1 and done.stderr == f"weir: {path}:{message}\n" and not os.path.exists(out), done.stderr


@case
def wrong_patterns_are_refused_with_their_place(folder):
    need_patterns()
    assert_refused(folder, '[\n{"name": "a", "pattern": "a(b"}]',
                   '2:26: pattern of "a": missing closing parenthesis (at offset 3 of the expression)')
    assert_refused(folder, {"name": "a", "pattern": "b", "units": "%"},
                   '1:26: pattern: must be a regular expression in base64, since there are "units", got "b"')
    assert_refused(folder, {"name": "a", "pattern": "b", "patern": "c"},
                   '1:31: unknown key "patern"; allowed are name, pattern, unit, instrument, value, time and replace; did you mean "pattern"?')
    assert_refused(folder, '{"name": "a", "name": "b"}', '1:15: duplicate key: "name"')


@case
def without_patterns_in_benchmarkais_variable_nothing_is_to_be_done():
    need_patterns()
    done = run(WEIR, "emit", "-g", "g", "--parse", "patterns", "-", stdin=subprocess.DEVNULL, WEIR_CONFIG={"groups": {"*": "null"}}, ANUBIS_METRICS="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


@case
def what_is_missing_is_a_usage_error(folder):
    need_patterns()
    config = {"groups": {"*": "null"}}
    for arguments, message in (
            (["-g", "g", "--parse", "patterns"], "no patterns: --patterns FILE is missing, and ANUBIS_METRICS is not set"),
            (["--parse", "patterns", "--patterns", "nginx"], "-g GROUP is missing, since patterns name no group"),
            (["-g", "g", "--patterns", "nginx"], "--patterns needs --parse patterns")):
        done = run(WEIR, "emit", *arguments, "-", stdin=subprocess.DEVNULL, WEIR_CONFIG=config)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    missing = os.path.join(folder, "missing")
    done = run(WEIR, "emit", "-g", "g", "--parse", "patterns", "--patterns", missing, "-", stdin=subprocess.DEVNULL, WEIR_CONFIG=config)
    assert done.returncode == 1 and f"{missing}: No such file or directory" in done.stderr, done.stderr


@case
def the_library_does_not_need_PCRE2():
    done = run("readelf", "-d", os.path.join(BUILD, "lib", ".libs", "libweir.so"))
    assert done.returncode == 0 and "pcre" not in done.stdout and "libc.so" in done.stdout, done.stdout


if __name__ == "__main__":
    main()
