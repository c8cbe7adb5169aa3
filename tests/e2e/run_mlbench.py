"""`weir run --mlbench`: the command is a run of an MLBench server, with its values, and is marked as ended."""

import http.server
import json
import os
import re
import socket
import subprocess
import threading

from collectors import Collector
from harness import WEIR, environment, main, wait_for
from sourced import case, keep

PATIENCE_S = 240


def run(*arguments, **env):
    return subprocess.run([WEIR, "run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, env=environment(COLUMNS=200, **env))


def occupy(port=0):
    """A port at which nobody listens, nor will."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", port))
    return held


def emit(*values):
    return f"{WEIR} emit -g train {' '.join(values)}"


@case
def the_run_has_the_values_and_ends_as_the_command(folder):
    server = Collector(folder)
    kept = os.path.join(folder, "kept")
    config = {"settings": {"shutdown_timeout": "4m"}, "handlers": {"f": {"type": "file", "path": kept, "format": "json"}}, "groups": {"*": "f"}}
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="ascii") as file:
        json.dump(config, file)
    url = f"http://127.0.0.1:{server.port}"
    done = run("-c", path, "--mlbench", url, "--", "sh", "-c", f"{emit('loss=0.5')} && {emit('-l', 'phase=b', 'loss=0.25')}; exit 3")
    assert done.returncode == 3, done.stderr
    assert f"run           1 of {url}/api/, failed\n" in done.stderr and "did not reach" not in done.stderr, done.stderr
    assert re.search(r"train\.loss +1 .*\n  train\.loss{phase=b} +1 ", done.stderr), "the run's id is in no name: " + done.stderr
    one = server.get("/api/runs/1/")
    assert (one["name"], one["state"]) == ("sh", "failed") and one["finished_at"], one
    found = server.get("/api/metrics/1/?metric_type=run")
    assert [value["value"] for value in found["train.loss"]] == ["0.5"] and [value["value"] for value in found["train.loss{phase=b}"]] == ["0.25"]
    assert [value["value"] for value in found["process.exit.code"]] == ["3"] and "process.cpu.time{mode=user}" in found
    with open(kept, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert {line["labels"]["run_id"] for line in lines} == {"1"}, "every value has the run's id"
    assert sum(len(values) for values in found.values()) == len(lines), "what was kept is what the run has"
    done = run("-q", "--mlbench", f"{url}/api/", "--", "true")
    assert (done.returncode, done.stderr) == (0, "")
    assert server.get("/api/runs/2/")["state"] == "finished"
    server.end()


@case
def a_command_that_cannot_run_is_a_failed_run(folder):
    server = Collector(folder)
    url = f"http://127.0.0.1:{server.port}"
    assert run("--mlbench", url, "--", "nonesuch").returncode == 127
    assert run("--mlbench", url, "-c", os.path.join(folder, "nonesuch.json"), "--", "true").returncode == 125
    assert [one["state"] for one in server.get("/api/runs/")] == ["failed", "failed"]
    server.end()


class Page(http.server.BaseHTTPRequestHandler):
    """A server that is something else."""

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>welcome</html>")

    def log_message(self, *_arguments):  # pylint: disable=signature-differs
        pass


@case
def without_a_server_the_command_does_not_run(folder):
    mark = os.path.join(folder, "mark")
    held = occupy()
    nobody = f"http://127.0.0.1:{held.getsockname()[1]}"
    other = http.server.HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    for url, problem in (("127.0.0.1:80", '--mlbench: "127.0.0.1:80" is not a URL'), ("http://", "is not a URL"),
                         ("http://x/?a=b", "is not a URL"), (nobody, f"{nobody}/api/runs/: Couldn't connect"),
                         (f"http://127.0.0.1:{other.server_port}", "the server returns status 200: it is not an MLBench server")):
        done = run("--mlbench", url, "--", "touch", mark)
        assert done.returncode == 125 and problem in done.stderr, (done.returncode, done.stderr)
        assert not os.path.exists(mark)
    other.shutdown()
    held.close()


@case
def a_server_that_goes_costs_the_command_nothing(folder):
    server = Collector(folder)
    url = f"http://127.0.0.1:{server.port}"
    script = f"{emit('loss=1')}; echo begun; read x; {emit('loss=2')}"
    program = keep(subprocess.Popen([WEIR, "run", "--mlbench", url, "--", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=environment(COLUMNS=200)))
    assert program.stdout.readline() == "begun\n"
    wait_for(lambda: server.get("/api/runs/1/")["state"] == "started", "its first value")
    server.end()
    held = occupy(server.port)
    _, log = program.communicate("\n", timeout=PATIENCE_S)
    held.close()
    assert program.returncode == 0, log
    assert "Couldn't connect" in log and re.search(r"run +1 of .*, not marked as ended\n", log), log
    assert re.search(r"train\.loss +2 ", log) and re.search(r"\n  [\d,]+ values did not reach the server of the run\n", log), log


main()
