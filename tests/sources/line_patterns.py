"""`"parse": "patterns"`: what regular expressions find in the lines of sources, and what no line can do."""

import base64
import json
import os
import re
import signal
import socket

from fifos import make_fifo
from harness import PLUGINS, SOURCE_PLUGINS, WEIR, Skip, lines_of, main, run, start, wait_for
from peers import Nginx
from sourced import Sourced, case

PLUGIN = os.path.join(PLUGINS, "patterns.parser.so")
NUMBER = {"name": "x", "pattern": r"^x=(\d+)$", "instrument": "gauge", "unit": "ms"}


def need_patterns():
    if not os.path.exists(PLUGIN):
        raise Skip("PCRE2 is missing")


def fifo(folder, patterns, **options):
    need_patterns()
    return Sourced(folder, {"type": "fifo", "path": make_fifo(folder, "in"), "parse": "patterns", "patterns": patterns, **options})


def put(folder, text):
    fds = []

    def is_open():
        try:
            fds.append(os.open(os.path.join(folder, "in"), os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # nobody reads yet
            return False
        return True

    wait_for(is_open, "a reader")
    os.set_blocking(fds[0], True)
    with open(fds[0], "wb") as pipe:
        pipe.write(text if isinstance(text, bytes) else text.encode())


@case
def matches_in_the_lines_of_a_pipe_are_values_with_labels(folder):
    inline = [NUMBER, {"name": "took", "pattern": r"(?<step>\w+) took (?<value>[\d,]+)s", "replace": {",": "."}}]
    program = fifo(folder, inline, group="job", labels={"host": "h"})
    put(folder, "x=1\nload took 2,5s, save took 1s\nnothing\nx=x\n\nx=7\n")
    program.await_stats(lines=5)
    counts = program.end()
    assert program.values() == [("x", 1), ("took", 2.5), ("took", 1), ("x", 7)]
    assert [(line["group"], line["labels"]) for line in program.written()] == [
        ("job", {"host": "h"}), ("job", {"host": "h", "step": "load"}), ("job", {"host": "h", "step": "save"}), ("job", {"host": "h"})]
    assert (counts["lines"], counts["bad_lines"], counts["added"], counts["refused"]) == (6, 0, 4, 0), counts


@case
def patterns_are_read_from_a_file_and_in_benchmarkais_form(folder):
    path = os.path.join(folder, "patterns.json")
    for patterns in ([NUMBER], NUMBER, {"name": "x", "units": "", "pattern": base64.b64encode(rb"^x=(\d+)$").decode()}):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(patterns, file)
        program = fifo(folder, path)
        put(folder, "x=3\n")
        program.await_stats(added=1)
        assert program.end()["added"] == 1 and program.values()[-1] == ("x", 3)
        os.remove(os.path.join(folder, "in"))


def request(port, text):
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(text)
        while client.recv(65536):
            pass


@case
def an_access_log_of_nginx_is_followed_with_the_preset(folder):
    need_patterns()
    log = os.path.join(folder, "access.log")
    http = ('log_format timed \'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
            '"$http_referer" "$http_user_agent" rt=$request_time\';')
    server = f'access_log {log} timed;\nlocation = /a {{ return 200 "12345"; }}\nlocation = /no {{ return 404 "x"; }}'
    with open(log, "w", encoding="ascii"):
        pass
    program = Sourced(folder, {"type": "file", "path": log, "state": os.path.join(folder, "state"), "parse": "patterns", "patterns": "nginx",
                               "group": "nginx"})
    wait_for(lambda: os.path.exists(os.path.join(folder, "state")), "the file to be followed")
    with Nginx(folder, "http://127.0.0.1:1", server, http) as nginx:
        for number in range(200):
            request(nginx.port, b"GET /%s HTTP/1.0\r\nUser-Agent: a\" 200 9 rt=77\r\n\r\n" % (b"no" if number % 4 == 3 else b"a"))
        wait_for(lambda: len([line for line in open(log, "rb") if b"weir-ready" not in line]) == 200, "the log")
        program.await_stats(lines=len(lines_of(log)))
    counts = program.end()
    values = [line for line in program.written() if line["labels"]["status"] != "204"]  # of /weir-ready
    requests = [line["labels"]["status"] for line in values if line["name"] == "requests"]
    assert (requests.count("200"), requests.count("404"), len(requests)) == (150, 50, 200), requests
    sizes = [line["value"] for line in values if line["name"] == "bytes_sent"]
    assert (sizes.count(5), sizes.count(1), len(sizes)) == (150, 50, 200), sizes
    times = [line["value"] for line in values if line["name"] == "request_time"]
    assert len(times) == 200 and max(times) < 60 and {line["group"] for line in values} == {"nginx"}
    assert counts["bad_lines"] == counts["refused"] == 0 and counts["added"] == 3 * counts["lines"], counts


@case
def no_line_can_hold_up_the_next(folder):
    program = fifo(folder, [{"name": "nested", "pattern": "(a+)+$"}, {"name": "pairs", "pattern": r"(?<key>\w+)=(\d+)", "value": 1},
                            {"name": "x", "pattern": r"^x=(\d+)"}])
    long = "a" * 1_000_000
    put(folder, f"{long} !\nx=1\n{long} = 1\nx=2\n")
    program.await_stats(lines=4, added=4)
    counts = program.end()
    assert [value for name, value in program.values() if name == "x"] == [1, 2] and counts["refused"] >= 2, (program.values(), counts)
    # on a slow machine the limit of time comes first
    assert re.search('the pattern of "nested": (match limit exceeded|the line takes more than 1 s)', program.log()), program.log()


@case
def standard_input_is_read_with_patterns_and_lines_of_any_bytes(folder):
    need_patterns()
    config = {"sources": {"in": {"type": "stdin", "parse": "patterns", "patterns": [NUMBER], "line_bytes": "64B"}},
              "handlers": {"out": {"type": "file", "path": os.path.join(folder, "out")}}, "groups": {"*": "out"}}
    path = os.path.join(folder, "input")
    with open(path, "wb") as file:
        file.write(b"x=1\n\xff\xfe\n\0\nx=\xc3\n" + b"x" * 100 + b"\nx=2\n")
    with open(path, encoding="latin-1") as file:
        done = run(WEIR, "relay", "-v", stdin=file, WEIR_CONFIG=config)
    assert done.returncode == 0 and "in: ended, 6 lines (1 invalid), 2 values added, 0 refused\nout: 2 delivered\n" in done.stderr, done
    assert [json.loads(line)["value"] for line in lines_of(os.path.join(folder, "out"))] == [1, 2]


@case
def faults_of_the_configuration_name_the_place_the_pattern_and_the_offset(folder):
    need_patterns()
    path = os.path.join(folder, "patterns.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write('[\n  {"name": "ä", "pattern": "(ä"}]')
    wrong = {
        f'"parse": "patterns", "patterns": "{path}"': f'{path}:2:28: pattern of "ä": missing closing parenthesis (at offset 2 of the expression)',
        '"parse": "patterns",\n /* [ ä */ "patterns": [ // ]\n {"name": "a]", "pattern": "\\\\d(b"}]':
            ':3:28: pattern of "a]": missing closing parenthesis (at offset 4 of the expression)',
        '"parse": "patterns", "patterns": {"name": "a", "patern": "b"}': ':1:85: unknown key "patern"; allowed are name',
        '"parse": "patterns", "patterns": []': ":1:71: there are no patterns",
        '"parse": "patterns", "patterns": "apache"': '"apache" is neither a preset (nginx) nor a file (a path with a slash)',
        '"parse": "patterns", "patterns": "/no/such"': "sources.in.patterns: /no/such: No such file",
        '"parse": "patterns", "patterns": 5': "sources.in.patterns: 5 is not a string",
        '"parse": "patterns"': '"parse": "patterns" needs the option patterns: a file, the preset nginx, or an array of patterns',
        '"patterns": "nginx"': 'sources.in.patterns: only with "parse": "patterns"',
        '"patterns": []': 'sources.in.patterns: only with "parse": "patterns"',
    }
    config = os.path.join(folder, "weir.json")
    for text, problem in wrong.items():
        with open(config, "w", encoding="utf-8") as file:
            file.write('{"sources": {"in": {"type": "stdin", ' + text + '}}, "groups": {"*": "null"}}')
        for command in (["check", config], ["relay", "-c", config]):
            done = run(WEIR, *command)
            assert done.returncode == 1 and problem in done.stderr, (text, problem, done)


@case
def a_changed_file_of_patterns_is_in_force_after_a_reload(folder):
    need_patterns()
    path, pipe, out = (os.path.join(folder, name) for name in ("patterns.json", "in", "out"))

    def write(name):
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({**NUMBER, "name": name}, file)
        os.rename(path + ".new", path)

    def arrived(name):
        """One more value is written each time, by a writer that comes and goes. It has no reader while the source is replaced."""
        try:
            put(folder, "x=1\n")
        except BrokenPipeError:
            return False
        return os.path.exists(out) and f'"name":"{name}"' in "".join(lines_of(out))

    write("before")
    make_fifo(folder, "in")
    config = os.path.join(folder, "relay.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"sources": {"in": {"type": "fifo", "path": pipe, "parse": "patterns", "patterns": path}},
                   "handlers": {"out": {"type": "file", "path": out, "block_timeout": "1h"}}, "groups": {"*": "out"}}, file)
    relay = start(WEIR, "relay", "-v", "-c", config)
    wait_for(lambda: arrived("before"), "a value")
    write("after")
    relay.send_signal(signal.SIGHUP)
    wait_for(lambda: arrived("after"), "the new name")
    relay.terminate()
    log = relay.communicate(timeout=240)[1]
    assert relay.returncode == 0 and f"out: {len(lines_of(out))} delivered\n" in log, log


@case
def without_the_plugin_the_configuration_is_refused(folder):
    plugins = os.path.join(folder, "plugins")
    os.mkdir(plugins)
    for built, name in ((SOURCE_PLUGINS, "stdin.source.so"), (PLUGINS, "null.so")):
        os.symlink(os.path.join(built, name), os.path.join(plugins, name))
    config = {"sources": {"in": {"type": "stdin", "parse": "patterns", "patterns": "nginx"}}, "groups": {"*": "null"}}
    done = run(WEIR, "relay", WEIR_CONFIG=config, WEIR_PLUGIN_PATH=plugins)
    assert done.returncode == 1 and "needs the plugin patterns.parser.so" in done.stderr and "PCRE2" in done.stderr, done
    with open(os.path.join(plugins, "patterns.parser.so"), "wb") as file:
        file.write(b"no plugin")
    os.chmod(os.path.join(plugins, "patterns.parser.so"), 0o755)
    done = run(WEIR, "relay", WEIR_CONFIG=config, WEIR_PLUGIN_PATH=plugins)
    assert done.returncode == 1 and "patterns.parser.so" in done.stderr, done


@case
def programs_are_not_linked_with_PCRE2(folder):
    program = Sourced(folder, {"type": "fifo", "path": make_fifo(folder, "in"), "parse": "text"})
    put(folder, "x=1\n")
    program.await_stats(added=1)
    with open(f"/proc/{program.program.pid}/maps", encoding="ascii") as file:
        assert "pcre" not in file.read()
    program.end()


if __name__ == "__main__":
    main()
