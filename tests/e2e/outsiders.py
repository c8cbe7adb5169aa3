"""The handlers in examples/ are built by their own Makefiles against an installed weir, and used."""

import atexit
import contextlib
import csv
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import threading

from fifos import ScriptedApp
from installed import environment_of, install, pkg_config
from harness import ADDER, SOURCE, WEIR, Skip, assert_ledgers, case, free_port, main, skip_fork_under_sanitizers, wait_for


# ---- Building ---------------------------------------------------------------------------------------------------


_prefixes = []


def installed():
    """The folder where weir is installed, once for all cases."""
    if not _prefixes:
        folder = tempfile.mkdtemp(prefix="weir-test-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        install(folder)
        _prefixes.append(folder)
    return _prefixes[0]


def build(folder, name, **variables):
    """Copies an example out of the tree and builds it there. Returns its folder and its environment."""
    weir = installed()
    place = shutil.copytree(os.path.join(SOURCE, "examples", name), os.path.join(folder, name))
    env = environment_of(weir)
    # the sysroot applies to weir only, not to libraries in the system's folders
    flags = {"WEIR_CFLAGS": " ".join(pkg_config(weir, "--cflags")), "WEIR_LIBS": " ".join(pkg_config(weir, "--libs"))}
    flags["WEIR_STATIC_LIBS"] = " ".join(pkg_config(weir, "--static", "--libs"))
    command = ["make", "-C", place, "CFLAGS=-O1 -g -Wall -Wextra -Werror", "CXXFLAGS=-O1 -g -Wall -Wextra -Wpedantic -Wold-style-cast -Werror"]
    env = {key: value for key, value in env.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run([*command, *(f"{k}={v}" for k, v in {**flags, **variables}.items())], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    env["WEIR_PLUGIN_PATH"] = place
    return place, env


def need(package):
    if subprocess.run(["pkg-config", "--exists", package]).returncode:
        raise Skip(f"{package} is not installed")


def run(env, *command, config=None, timeout=240, **more):
    if config is not None:
        env = {**env, "WEIR_CONFIG": json.dumps(config)}
    return subprocess.run([str(part) for part in command], env={**env, **more}, capture_output=True, text=True, timeout=timeout)


def deliver(env, config, count, handler, *more):
    """Runs a program that adds `count` values, and checks its ledger. Returns its report."""
    done = run(env, ADDER, "-n", count, "-f", -1, "-H", handler, *more, config=config)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["handlers"][handler]["delivered"] == count, report
    return report


@case
def every_example_handler_is_built_here():
    folders = {entry.name for entry in os.scandir(os.path.join(SOURCE, "examples")) if entry.is_dir()} - {"config"}
    assert folders >= {"stdout_handler", "syslog_handler", "sqlite_handler", "nats_handler", "cxx_handler"}, folders


# ---- Plugin, registered, static ---------------------------------------------------------------------------------

PRINTED = r"\[\d{10}\]\[my_app\]: latency=12\.5\n\[\d{10}\]\[my_app\]: requests=3\n"


@case
def one_handler_source_works_as_a_plugin_registered_and_linked_statically(folder):
    place, env = build(folder, "stdout_handler")
    config = {"groups": {"*": "stdout_handler"}}
    done = run(env, os.path.join(place, "program"), config=config)
    assert done.returncode == 0 and re.fullmatch(PRINTED, done.stdout) and done.stderr == "", done
    os.remove(os.path.join(place, "stdout_handler.so"))
    assert run(env, os.path.join(place, "program"), config=config).stdout == ""
    for program in ("registered", "static"):
        done = run(env, os.path.join(place, program), config=config)
        assert done.returncode == 0 and re.fullmatch(PRINTED, done.stdout) and done.stderr == "", (program, done)
    needed = subprocess.run(["readelf", "-d", os.path.join(place, "static")], capture_output=True, text=True, check=True).stdout
    assert "libweir" not in needed and "libc.so" in needed, needed
    done = subprocess.run(["sh", "-c", f'exec "{place}/registered" >/dev/full'], env={**env, "WEIR_CONFIG": json.dumps(config)},
                          capture_output=True, text=True)
    assert done.returncode == 1 and "standard output: write failed" in done.stderr, done


# ---- syslog -----------------------------------------------------------------------------------------------------

LISTEN = r"""
mount --bind "$1" /dev
shift
exec "$@"
"""


@case
def syslog_receives_one_line_per_value(folder):
    place, env = build(folder, "syslog_handler")
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        raise Skip("not permitted to mount a /dev of its own")
    devices = os.path.join(folder, "dev")
    os.mkdir(devices)
    open(os.path.join(devices, "null"), "w", encoding="utf-8").close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(os.path.join(devices, "log"))
        log.settimeout(60)
        config = {"handlers": {"log": {"type": "syslog_handler", "ident": "app", "facility": "local3", "level": "notice"}},
                  "groups": {"*": "log"}}
        done = run({**env, "WEIR_CONFIG": json.dumps(config)}, "unshare", "-rm", "sh", "-c", LISTEN, "sh", devices,
                   WEIR, "emit", "-g", "my_app", "a=1", "b=2.5")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        lines = [log.recv(4096).decode().rstrip("\0") for _ in range(2)]
    for line, words in zip(lines, ("a=1", "b=2.5")):
        assert line.startswith(f"<{19 * 8 + 5}>") and re.search(r"app: \[\d+\.\d{6}\]\[my_app\]: " + re.escape(words) + "$", line), line
    done = run(env, WEIR, "emit", "-g", "g", "a=1", config={"handlers": {"log": {"type": "syslog_handler", "level": "loud"}}, "groups": {"*": "log"}})
    assert 'handlers.log.level: "loud"' in done.stderr and "debug|info|notice|warning" in done.stderr.replace(", ", "|"), done.stderr


# ---- sqlite -----------------------------------------------------------------------------------------------------


@case
def sqlite_is_built_out_of_tree_from_the_source_of_the_plugin(folder):
    need("sqlite3")
    _, env = build(folder, "sqlite_handler", SOURCE=os.path.join(SOURCE, "plugins", "sqlite"))
    path = os.path.join(folder, "m.db")
    deliver(env, {"handlers": {"db": {"type": "sqlite", "path": path}}, "groups": {"*": "db"}}, 1000, "db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*), max(value) FROM samples").fetchall() == [(1000, 999)]


# ---- C++ --------------------------------------------------------------------------------------------------------


@case
def the_handler_in_cxx_writes_whole_events(folder):
    _, env = build(folder, "cxx_handler")
    path = os.path.join(folder, "m.csv")
    config = {"handlers": {"csv": {"type": "cxx_handler", "path": path}}, "groups": {"*": "csv"}}
    deliver(env, config, 3000, "csv", "-e", 10)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert [int(value) for _, _, _, value in rows] == list(range(3000)) and {row[1] for row in rows} == {"my_app"}, rows[:3]
    done = run(env, ADDER, "-n", 10, "-f", 2000, "-H", "csv",
               config={**config, "settings": {"shutdown_timeout": "1s"}, "handlers": {"csv": {"type": "cxx_handler", "path": "/dev/full"}}})
    assert_ledgers(json.loads(done.stdout))
    assert "write /dev/full: No space left on device" in done.stderr and "10 dropped" in done.stderr, done.stderr


# ---- NATS -------------------------------------------------------------------------------------------------------


class Server:
    """A nats-server on a free port, and a subscriber that collects the messages."""

    def __init__(self):
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        command = ["nats-server", "-a", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.messages = []
        wait_for(self._subscribe, "nats-server")

    def _subscribe(self):
        """Speaks the NATS protocol directly, one command per line."""
        try:
            self._socket = socket.create_connection(("127.0.0.1", self.port))
        except ConnectionRefusedError:
            return False
        lines = self._socket.makefile("rb")
        self._socket.sendall(b'CONNECT {"verbose":false}\r\nSUB weir.> 1\r\nPING\r\n')
        while lines.readline().strip() != b"PONG":
            pass
        threading.Thread(target=self._read, args=(lines, self.messages), daemon=True).start()
        return True

    def _read(self, lines, messages):
        with contextlib.suppress(OSError, ValueError):
            while line := lines.readline():
                words = line.split()
                if words[0] == b"MSG":
                    messages.append((words[1].decode(), lines.read(int(words[-1])).decode()))
                    lines.readline()
                elif words[0] == b"PING":
                    self._socket.sendall(b"PONG\r\n")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._socket.close()

    def values(self):
        return [json.loads(text)["value"] for _, text in self.messages]


@contextlib.contextmanager
def server_of():
    if not shutil.which("nats-server"):
        raise Skip("nats-server is not installed")
    server = Server()
    try:
        yield server
    finally:
        server.kill()


def nats_config(server, **options):
    handler = {"type": "nats_handler", "url": server.url, "retry_min": "5ms", "retry_max": "50ms", "format": "json", **options}
    return {"settings": {"shutdown_timeout": "1s"}, "handlers": {"pipe": handler}, "groups": {"*": "pipe"}}


@case
def nats_receives_every_value_and_survives_a_restart_of_the_server(folder):
    need("libnats")
    with server_of() as server:
        _, env = build(folder, "nats_handler")
        deliver(env, nats_config(server), 5000, "pipe")
        wait_for(lambda: len(server.messages) == 5000, "messages")
        assert server.values() == list(range(5000)) and {subject for subject, _ in server.messages} == {"weir.my_app"}

        # the server discards messages without a subscriber, so the retry must happen in the flush, after a subscriber exists
        patient = nats_config(server, timeout="500ms", retry_min="1h", retry_max="1h")
        app = ScriptedApp(patient, folder, WEIR_PLUGIN_PATH=env["WEIR_PLUGIN_PATH"])
        assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
        server.kill()
        assert app.do("add", "v", 2)["code"] == 0 and app.do("add", "v", 3)["code"] == 0
        wait_for(lambda: "retrying" in app.stderr_text(), "the warning")
        wait_for(lambda: app.ledger()["queued"] == 2, "both to be queued")
        stats = app.ledger()
        assert stats["delivered"] == 1 and sum(stats["dropped"]) == 0, stats
        server.start()
        assert app.do("flush", -1)["code"] == 0
        wait_for(lambda: {2, 3} <= set(server.values()), "the late values")
        assert app.ledger()["delivered"] == 3
        app.end()


@case
def a_child_of_a_process_that_used_nats_does_not_use_it(folder):
    need("libnats")
    skip_fork_under_sanitizers()
    with server_of() as server:
        _, env = build(folder, "nats_handler")
        app = ScriptedApp(nats_config(server), folder, WEIR_PLUGIN_PATH=env["WEIR_PLUGIN_PATH"])
        assert app.do("add", "v", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
        assert app.do("fork", "of_child")["code"] > 0 and app.do("reap")["code"] == 0
        assert "libnats cannot be used in a child of a process that used it" in app.stderr_text(), app.stderr_text()
        assert app.do("add", "v", 2)["code"] == 0 and app.do("flush", -1)["code"] == 0
        assert app.ledger()["delivered"] == 2
        app.end()
        wait_for(lambda: server.values() == [1, 2], "both values")


main()
