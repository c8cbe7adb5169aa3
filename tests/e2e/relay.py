"""`weir relay` reads from the sources of a configuration until it is told to end, and delivers everything."""

import json
import os
import re
import signal
import socket
import tempfile
import threading
import time

from harness import SOURCE, WEIR, Skip, case, free_port, lines_of, main, run, start, wait_for, without_waits

PATIENCE_S = 240


def write_config(folder, sources, handlers=None, name="relay.json", **settings):
    """A new file takes the place of the old one: a relay reads the one or the other."""
    path = os.path.join(folder, name)
    handlers = handlers or {"out": {"type": "file", "path": os.path.join(folder, "out.jsonl")}}
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"settings": {"shutdown_timeout": "2m", **settings}, "sources": sources, "handlers": handlers,
                   "groups": {"*": list(handlers)}}, file)
    os.rename(path + ".new", path)
    return path


def fifo_of(folder, name="in", **more):
    return {"type": "fifo", "path": os.path.join(folder, name), "retry_max": "50ms", "retry_min": "10ms", **more}


def delivered(folder):
    """The values that have arrived; a line that is being written is left out."""
    path = os.path.join(folder, "out.jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["value"] for line in file.read().split("\n")[:-1]]


def ledger_of(log):
    """(added, delivered) as the relay reports them at its end with WEIR_LOG=info: nothing else may have become of a value."""
    process = re.search(r"ledger: process \d+: (\d+) values added, 0 of them unrouted, 0 refused$", log, re.M)
    handlers = re.findall(r'ledger: handler "?\w+"?: (\d+) offered, (\d+) delivered, 0 dropped, 0 queued, 0 spooled', log)
    assert process and len(handlers) <= 1, log
    added = int(process.group(1))
    assert all((int(offered), int(done)) == (added, added) for offered, done in handlers) and (handlers or not added), log
    return added


class Supervisor:
    """What systemd is to a service: a socket that it reports its state to."""

    def __init__(self, folder=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if folder:
            self.name = os.path.join(folder, "notify")
            self.socket.bind(self.name)
        else:
            self.socket.bind("")  # the kernel chooses an abstract name
            self.name = "@" + self.socket.getsockname()[1:].decode()
        self.socket.settimeout(PATIENCE_S)

    def next(self):
        message = self.socket.recv(65536).decode()
        assert message.endswith("\n"), message
        return dict(line.split("=", 1) for line in message.splitlines())

    def expect(self, **wanted):
        """The next message has these members."""
        message = self.next()
        assert all(message.get(key) == value for key, value in wanted.items()), (message, wanted)
        return message


class Relay:
    """A running relay, which has read its configuration."""

    def __init__(self, folder, config, *arguments, **env):
        self.supervisor = Supervisor(tempfile.mkdtemp(dir=folder))
        self.process = start(WEIR, "relay", "-c", config, *arguments, NOTIFY_SOCKET=self.supervisor.name, **{"WEIR_LOG": "info", **env})
        self.ready = self.supervisor.expect(READY="1")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self.supervisor.socket.close()

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        """Returns (exit status, log)."""
        if number:
            self.send(number)
        out, log = self.process.communicate(timeout=PATIENCE_S)
        assert out == "", out
        return self.process.returncode, log

    def reload(self):
        self.send(signal.SIGHUP)
        began = self.supervisor.expect(RELOADING="1")
        assert 0 < int(began["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000, began
        return self.supervisor.expect(READY="1")["STATUS"]


def put(path, *values):
    """A writer that comes and goes."""
    wait_for(lambda: os.path.exists(path), path)
    with open(path, "w", encoding="utf-8") as pipe:
        for value in values:
            pipe.write(json.dumps({"x": value}) + "\n")


# ---- Input that ends ----------------------------------------------------------------------------------


@case
def standard_input_is_read_to_its_end_and_delivered(folder):
    config = write_config(folder, {"in": {"type": "stdin", "group": "g"}})
    lines = os.path.join(folder, "lines")
    with open(lines, "w", encoding="utf-8") as file:
        file.writelines(f"x={i}\n" for i in range(5000))
    with open(lines, encoding="utf-8") as file:
        done = run(WEIR, "relay", "-c", config, stdin=file, WEIR_LOG="info")
    assert (done.returncode, done.stdout) == (0, ""), done
    assert ledger_of(done.stderr) == 5000
    assert delivered(folder) == list(range(5000))


@case
def nothing_is_printed_unless_it_is_asked_for(folder):
    config = write_config(folder, {"in": {"type": "stdin"}})
    lines = os.path.join(folder, "lines")
    with open(lines, "w", encoding="utf-8") as file:
        file.write("x=1\ny=2 z=3\n")
    for options, shown in (([], ""), (["-v"], "in: ended, 2 lines (0 invalid), 3 values added, 0 refused\nout: 3 delivered\n")):
        with open(lines, encoding="utf-8") as file:
            done = run(WEIR, "relay", "-c", config, *options, stdin=file)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", shown), done
    assert delivered(folder) == [1, 2, 3, 1, 2, 3]


@case
def with_strict_what_a_source_refuses_is_a_failure(folder):
    config = write_config(folder, {"in": {"type": "stdin"}})
    lines = os.path.join(folder, "lines")
    said = 'weir: the source "in": {} lines were not understood, {} values refused, 0 lost\n'
    for text, options, status, shown in (("x=1\n", ["--strict"], 0, None), ("x=1\nbad\n", [], 0, None), ("x=1\nbad\n", ["--strict"], 1, said.format(1, 0)),
                                         ('{"x": 1, "y": "z"}\n', ["--strict"], 1, said.format(0, 1))):
        with open(lines, "w", encoding="utf-8") as file:
            file.write(text)
        with open(lines, encoding="utf-8") as file:
            done = run(WEIR, "relay", "-c", config, *options, stdin=file)
        assert done.returncode == status and (shown in done.stderr if shown else "the source" not in done.stderr), (text, options, done)
    assert delivered(folder) == [1, 1, 1, 1]


@case
def that_the_limit_of_all_series_is_reached_is_said_once(folder):
    lines = os.path.join(folder, "lines")
    with open(lines, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"name": "x", "value": 1, "labels": {"k": f"v{number}"}}) + "\n" for number in range(50))
    for most in (20, 21):
        config = write_config(folder, {"in": {"type": "stdin"}}, max_series=most)
        with open(lines, encoding="utf-8") as file:
            done = run(WEIR, "relay", "-c", config, stdin=file, WEIR_LOG="info")
        assert done.returncode == 0 and done.stderr.count(f'settings.max_series ({most}) is reached, first by group "in"') == 1, done
        assert ledger_of(done.stderr) == 50


@case
def without_a_configuration_what_comes_by_statsd_is_printed():
    port, connections = free_port(), []
    relay = start(WEIR, "relay", "--statsd", f"127.0.0.1:{port}", WEIR_LOG="info")

    def is_connected():
        assert relay.poll() is None, relay.communicate()
        try:
            connections.append(socket.create_connection(("127.0.0.1", port)))
        except ConnectionRefusedError:
            return False
        return True
    wait_for(is_connected, "the source")
    connections[0].sendall(b"app.hits:1|c\nusers:bob|s\ntime:3|ms|#route:/x\n")
    lines = [relay.stdout.readline().split("]: ", 1)[1] for _ in range(3)]
    connections[0].close()
    relay.terminate()
    out, log = relay.communicate(timeout=PATIENCE_S)
    assert lines == ["app.hits=1\n", 'users=1 metadata="bob"\n', 'time=3 {route="/x"}\n'] and out == "", (lines, out)
    assert relay.returncode == 0 and ledger_of(log) == 3, log
    for arguments, why in (["-c", "x"], "only one of -c and --statsd is allowed"), (["a:1", "b:2"], 'no further arguments are allowed: "b:2"'):
        done = run(WEIR, "relay", "--statsd", *arguments)
        assert done.returncode == 2 and why in done.stderr, done


@case
def the_address_of_statsd_is_a_port_or_an_address_with_one(folder):
    path = os.path.join(folder, "socket")
    for kept in "", "127.0.0.1", "localhost":
        port = free_port()
        address = f"{kept or '127.0.0.1'}:{port}"
        for given in ([str(port), f":{port}", address] if not kept else [address]):
            with_both = [f"weir: info: statsd: listens at {scheme}://{address}" for scheme in ("udp", "tcp")]
            assert_listens(given, with_both)
    port = free_port()
    assert_listens(f"udp://127.0.0.1:{port}", [f"weir: info: statsd: listens at udp://127.0.0.1:{port}"])
    assert_listens(f"unix-dgram:{path}", [f"weir: info: statsd: listens at unix-dgram:{path}"])
    assert_listens(f"0.0.0.0:{port}", [f"weir: info: statsd: listens at {scheme}://0.0.0.0:{port}" for scheme in ("udp", "tcp")], "--insecure")


def assert_listens(address, lines, *options):
    relay = start(WEIR, "relay", "--statsd", address, *options, WEIR_LOG="info")
    assert [relay.stderr.readline().strip() for _ in lines] == lines, address
    relay.terminate()
    relay.communicate(timeout=PATIENCE_S)
    assert relay.returncode == 0, address


@case
def an_address_of_statsd_that_is_not_allowed_is_refused_with_the_option():
    allowed = "allowed: PORT, ADDRESS:PORT with an IP address or localhost, udp://ADDRESS:PORT, tcp://ADDRESS:PORT, unix-dgram:/PATH"
    for address in '$x"y', "", ":", "0x1", "65536", "metrics.example:8125", "::1:8125", "127.1:8125", "unix-dgram:x", "http://127.0.0.1:8125":
        done = run(WEIR, "relay", "--statsd", address)
        assert done.returncode == 2 and done.stderr.startswith(f'weir relay: --statsd: "{address}" is not an address; {allowed}\n'), done
    for address in "0.0.0.0:8125", "[::]:8125", "tcp://192.0.2.1:8125":
        done = run(WEIR, "relay", "--statsd", address)
        why = f'weir relay: --statsd: "{address}" is not a loopback address: anybody who reaches it can add values; --insecure allows it\n'
        assert done.returncode == 2 and done.stderr.startswith(why), done
    done = run(WEIR, "relay", "--insecure")
    assert done.returncode == 2 and "--insecure is allowed only with --statsd" in done.stderr, done


@case
def the_variable_names_the_configuration_unless_an_option_does(folder):
    config = write_config(folder, {"in": {"type": "stdin"}})
    lines = os.path.join(folder, "lines")
    with open(lines, "w", encoding="utf-8") as file:
        file.write("x=1\n")
    for arguments, variable in (([], config), (["-c", config], {"no": "configuration"})):
        with open(lines, encoding="utf-8") as file:
            done = run(WEIR, "relay", *arguments, stdin=file, WEIR_CONFIG=variable, WEIR_LOG="info")
        assert done.returncode == 0 and ledger_of(done.stderr) == 1, done
    assert delivered(folder) == [1, 1]


@case
def values_that_are_not_delivered_are_reported(folder):
    handlers = {"out": {"type": "file", "path": os.path.join(folder, "no", "out")}}
    config = write_config(folder, {"in": {"type": "stdin"}}, handlers, shutdown_timeout="100ms")
    lines = os.path.join(folder, "lines")
    with open(lines, "w", encoding="utf-8") as file:
        file.write("x=1\nx=2\n")
    with open(lines, encoding="utf-8") as file:
        done = run(WEIR, "relay", "-c", config, stdin=file, WEIR_LOG="off")
    assert done.returncode == 1 and done.stdout == "", done
    assert re.fullmatch(r"weir: values were dropped or not delivered:\nout: 0 delivered, 2 dropped \(shutdown\).*\n", done.stderr), done


@case
def what_a_spool_keeps_is_delivered_by_the_next_relay(folder):
    place = os.path.join(folder, "no")
    handlers = {"out": {"type": "file", "path": os.path.join(place, "out"), "spool": os.path.join(folder, "spool")}}
    config = write_config(folder, {"in": {"type": "stdin"}}, handlers, shutdown_timeout="10s")
    lines = os.path.join(folder, "lines")
    with open(lines, "w", encoding="utf-8") as file:
        file.write("x=1\nx=2\n")
    with open(lines, encoding="utf-8") as file:
        done = run(WEIR, "relay", "-c", config, "-v", stdin=file, WEIR_LOG="off")
    assert done.returncode == 0 and "out: 0 delivered, 2 on disk" in done.stderr, done
    os.mkdir(place)
    done = run(WEIR, "relay", "-c", config, "-v", stdin=open(os.devnull, encoding="utf-8"), WEIR_LOG="off")
    assert done.returncode == 0 and "out: 2 delivered (2 recovered from disk)" in done.stderr, done
    assert [json.loads(line)["value"] for line in lines_of(os.path.join(place, "out"))] == [1, 2]


@case
def a_source_that_fails_for_good_is_reported(folder):
    config = write_config(folder, {"in": {"type": "stdin"}})
    done = run("sh", "-c", 'exec "$@" <&-', "sh", WEIR, "relay", "-c", config)
    assert done.returncode == 1 and 'weir: the source "in" has failed\n' in done.stderr, done
    assert "in: standard input: Bad file descriptor; it has ended" in done.stderr and delivered(folder) == [], done


# ---- Signals ------------------------------------------------------------------------------------------


class SteadyWriter(threading.Thread):
    """Keeps a pipe open, and writes each value once, again only if there was no reader."""

    def __init__(self, path, count):
        super().__init__(daemon=True)
        self.path, self.count, self.written = path, count, 0
        self.may_end = threading.Event()

    def run(self):
        wait_for(lambda: os.path.exists(self.path), "the pipe")
        fd = os.open(self.path, os.O_WRONLY)
        while self.written < self.count or not self.may_end.is_set():
            if self.written == self.count:
                self.may_end.wait(PATIENCE_S)
                continue
            try:
                os.write(fd, b'{"x": %d}\n' % self.written)
                self.written += 1
            except BrokenPipeError:
                time.sleep(0.001)
        os.close(fd)


@case
def values_survive_restarts_while_a_writer_keeps_the_pipe_open(folder):
    config = write_config(folder, {"in": fifo_of(folder)})
    pipe = os.path.join(folder, "in")
    writer = SteadyWriter(pipe, 20000)
    added, guests = 0, 0
    for turn in range(4):
        with Relay(folder, config) as relay:
            if turn == 0:
                writer.start()
            before = len(delivered(folder))
            for _ in range(3):
                guests += 1
                put(pipe, -guests)
            if turn < 3:
                wait_for(lambda: len(delivered(folder)) > before, "values of this turn")
            else:
                writer.may_end.set()
                wait_for(lambda: len(delivered(folder)) == 20000 + guests, "all values")
            status, log = relay.end(signal.SIGINT if turn == 1 else signal.SIGTERM)
            assert status == 0, log
            added += ledger_of(log)
    writer.join(PATIENCE_S)
    assert writer.written == 20000 and not writer.is_alive()
    values = delivered(folder)
    assert sorted(values) == sorted(list(range(20000)) + [-1 - i for i in range(guests)]) and added == len(values)
    assert [value for value in values if value >= 0] == list(range(20000)), "in order"


@case
def a_second_signal_ends_it_at_once(folder):
    """The destination accepts nothing, and the shutdown may take an hour."""
    handlers = {"out": {"type": "file", "path": os.path.join(folder, "no", "out")}}
    config = write_config(folder, {"in": fifo_of(folder)}, handlers, shutdown_timeout="1h", status=os.path.join(folder, "status"))
    with Relay(folder, config) as relay:
        put(os.path.join(folder, "in"), 1, 2, 3)
        one = wait_for_status(folder, relay, lambda one: one["handlers"] and one["handlers"][0]["queued"] == 3)
        assert one["added"] == 3 and one["handlers"][0]["offered"] == 3, one
        relay.send(signal.SIGTERM)
        relay.supervisor.expect(STOPPING="1", EXTEND_TIMEOUT_USEC=str(3610 * 10**6))
        wait_for(lambda: relay.send(signal.SIGTERM) or relay.process.poll() is not None, "the second signal")
        status, log = relay.end(0)
        assert status == 1 and "weir: ended by a second signal: what is queued was not delivered\n" in log, log


@case
def two_signals_in_a_moment_are_one_request(folder):
    """As timeout(1) sends them: to the process, and to its process group."""
    handlers = {"out": {"type": "file", "path": os.path.join(folder, "late", "out"), "retry_min": "10ms", "retry_max": "100ms"}}
    config = write_config(folder, {"in": fifo_of(folder)}, handlers, shutdown_timeout="5m", status=os.path.join(folder, "status"))
    with Relay(folder, config) as relay:
        put(os.path.join(folder, "in"), 1, 2, 3)
        wait_for_status(folder, relay, lambda one: one["handlers"] and one["handlers"][0]["queued"] == 3)
        relay.send(signal.SIGTERM)
        relay.send(signal.SIGINT)  # of two equal ones the kernel may keep one
        relay.supervisor.expect(STOPPING="1")
        os.mkdir(os.path.join(folder, "late"))
        status, log = relay.end(0)
        assert status == 0 and "second signal" not in log, log
    assert len(lines_of(os.path.join(folder, "late", "out"))) == 3


@case
def the_state_is_reported_to_a_socket_in_a_folder_and_to_an_abstract_one(folder):
    config = write_config(folder, {"in": fifo_of(folder), "second": fifo_of(folder, "second")})
    for supervisor in (Supervisor(folder), Supervisor()):
        relay = start(WEIR, "relay", "-c", config, NOTIFY_SOCKET=supervisor.name)
        supervisor.expect(READY="1", STATUS="reading from 2 sources")
        relay.send_signal(signal.SIGHUP)
        assert "MONOTONIC_USEC" in supervisor.expect(RELOADING="1")
        supervisor.expect(READY="1", STATUS="reading from 2 sources")
        relay.send_signal(signal.SIGTERM)
        supervisor.expect(STOPPING="1", EXTEND_TIMEOUT_USEC=str(130 * 10**6))
        out, err = relay.communicate(timeout=PATIENCE_S)
        assert (out, without_waits(err), relay.returncode) == ("", "", 0), err


@case
def a_socket_that_does_not_exist_does_not_stop_the_relay(folder):
    config = write_config(folder, {"in": {"type": "stdin"}})
    for name in (os.path.join(folder, "nobody"), "nonsense"):
        done = run(WEIR, "relay", "-c", config, stdin=open(os.devnull, encoding="utf-8"), NOTIFY_SOCKET=name)
        assert done.returncode == 0 and re.fullmatch(r'weir: NOTIFY_SOCKET: ".*": .*\n', done.stderr), done


# ---- Reload -------------------------------------------------------------------------------------------


def wait_for_status(folder, relay, condition):
    seen = []

    def look():
        done = run(WEIR, "status", relay.process.pid, "--json", "--folder", os.path.join(folder, "status"))
        seen.extend(json.loads(done.stdout) if done.returncode == 0 else [])
        return seen and condition(seen[-1])

    wait_for(look, "the status of the relay")
    return seen[-1]


def has_reader(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return True
    except OSError:
        return False


@case
def a_reload_adds_and_removes_sources(folder):
    settings = {"status": os.path.join(folder, "status")}
    first, second = fifo_of(folder, "first"), fifo_of(folder, "second")
    config = write_config(folder, {"a": first}, **settings)
    with Relay(folder, config) as relay:
        assert relay.ready["STATUS"] == "reading from 1 source"
        put(first["path"], 1)
        wait_for(lambda: delivered(folder) == [1], "the first value")
        write_config(folder, {"a": first, "b": second}, **settings)
        assert relay.reload() == "reading from 2 sources"
        put(second["path"], 2)
        wait_for(lambda: delivered(folder) == [1, 2], "the value of the new source")
        one = wait_for_status(folder, relay, lambda one: [source["added"] for source in one["sources"]] == [1, 1])
        assert [(s["name"], s["type"], s["state"], s["lines"], s["bad_lines"], s["records"], s["refused"]) for s in one["sources"]] == [
            ("a", "fifo", "running", 1, 0, 1, 0), ("b", "fifo", "running", 1, 0, 1, 0)] and one["sources_more"] == 0, one
        shown = run(WEIR, "status", relay.process.pid, "--folder", os.path.join(folder, "status")).stdout
        assert re.search(r"^  source b \(fifo\): running\n    lines +1, 0 invalid\n    records +1\n    added +1\n    refused +0\n", shown, re.M), shown
        write_config(folder, {"b": second}, **settings)
        assert relay.reload() == "reading from 1 source"
        assert not has_reader(first["path"])
        put(second["path"], 3)
        wait_for(lambda: delivered(folder) == [1, 2, 3], "the value after the reload")
        status, log = relay.end()
        assert status == 0 and ledger_of(log) == 3 and log.count("configuration reloaded") == 2, log


@case
def a_reload_that_changes_standard_input_cuts_no_line(folder):
    """A read of much data ends within a line, which the changed source begins behind of."""
    name, stop, written, out = "n" * 200, threading.Event(), [], os.path.join(folder, "out.jsonl")
    config = write_config(folder, {"in": {"type": "stdin"}})
    reading, writing = os.pipe()

    def write():
        while not stop.is_set():
            block = range(len(written), len(written) + 500)
            written.extend(block)
            data = "".join(f'{{"{name}":{i}}}\n' for i in block).encode()
            while data:
                data = data[os.write(writing, data):]
        os.close(writing)

    with Relay(folder, config, stdin=reading) as relay:
        os.close(reading)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for turn in range(5):
                had = os.path.getsize(out) if turn else -1
                wait_for(lambda: os.path.exists(out) and os.path.getsize(out) > had, "values")  # pylint: disable=cell-var-from-loop
                write_config(folder, {"in": {"type": "stdin", "labels": {"turn": str(turn)}}})
                assert relay.reload() == "reading from 1 source"
        finally:
            stop.set()
            writer.join()
        status, log = relay.end(None)
        assert status == 0 and ledger_of(log) == len(written) and delivered(folder) == written, log


def own_metrics(folder, source):
    """The latest totals of weir's own metrics of a source, by name; a line that is being written is left out."""
    with open(os.path.join(folder, "health.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file.read().split("\n")[:-1]]
    assert all(line["group"] == "weir" for line in lines), lines
    return {line["name"]: line["value"] for line in lines if line["labels"] == {"source": source}}


@case
def a_relay_reports_what_its_sources_have_read(folder):
    pipe, datagrams = fifo_of(folder), {"type": "statsd", "listen": ["udp://127.0.0.1:0"]}
    config = write_config(folder, {"a": pipe, "b": datagrams}, stats_interval="10ms")
    with open(config, encoding="utf-8") as file:
        given = json.load(file)
    given["handlers"]["health"] = {"type": "file", "path": os.path.join(folder, "health.jsonl"), "linger": "5ms"}
    given["groups"]["weir"] = "health"
    with open(config, "w", encoding="utf-8") as file:
        json.dump(given, file)
    with Relay(folder, config) as relay:
        put(pipe["path"], 1, "no number", 2)
        sent = sum(len(json.dumps({"x": value}) + "\n") for value in (1, "no number", 2))
        wanted = {"lines": 3, "bad_lines": 0, "bytes": sent, "records": 2, "added": 2, "refused": 1}
        wait_for(lambda: os.path.exists(given["handlers"]["health"]["path"]) and own_metrics(folder, "a") == wanted, str(wanted))
        assert not any(own_metrics(folder, "b")[name] for name in wanted), own_metrics(folder, "b")
        status, log = relay.end()
    assert status == 0, log


@case
def a_configuration_that_is_invalid_is_refused_and_the_present_one_stays(folder):
    config = write_config(folder, {"a": fifo_of(folder)})
    with Relay(folder, config) as relay:
        for sources, problem in (({"a": fifo_of(folder, parse="xml")}, 'sources.a.parse: "xml"'), ({"a": {"type": "nonsense"}}, "nonsense")):
            write_config(folder, sources)
            status = relay.reload()
            assert status.startswith("reading from 1 source; not reloaded: ") and problem in status, status
        put(os.path.join(folder, "in"), 7)
        wait_for(lambda: delivered(folder) == [7], "a value of the present source")
        status, log = relay.end()
        assert status == 0 and ledger_of(log) == 1, log
        assert log.count("; the configuration in force stays\n") == 2, log


@case
def unknown_keys_of_sources_are_logged_once_until_they_change(folder):
    config = write_config(folder, {"a": fifo_of(folder, pares="json")}, unknown_keys="warn")
    with Relay(folder, config) as relay:
        for value in range(3):
            relay.reload()
            put(os.path.join(folder, "in"), value)
            wait_for(lambda: len(delivered(folder)) == value + 1, "the value")  # pylint: disable=cell-var-from-loop
        write_config(folder, {"a": fifo_of(folder, colour="json")}, unknown_keys="warn")
        relay.reload()
        relay.reload()
        status, log = relay.end()
        assert status == 0 and ledger_of(log) == 3, log
        assert log.count("sources.a.pares: unknown option, ignored") == log.count("sources.a.colour: unknown option, ignored") == 1, log


@case
def without_sources_after_a_reload_it_waits_for_the_next(folder):
    source = fifo_of(folder)
    config = write_config(folder, {"a": source})
    with Relay(folder, config) as relay:
        write_config(folder, {})
        assert relay.reload() == "reading from 0 sources"
        wait_for(lambda: not has_reader(source["path"]), "the end of the source")
        write_config(folder, {"a": source})
        assert relay.reload() == "reading from 1 source"
        put(source["path"], 5)
        wait_for(lambda: delivered(folder) == [5], "a value of the new source")
        status, log = relay.end()
        assert status == 0 and ledger_of(log) == 1, log
        assert log.count("has no sources any more") <= 1, log


@case
def a_summary_is_printed_at_intervals(folder):
    config = write_config(folder, {"in": fifo_of(folder)})
    with Relay(folder, config, "--every", "100ms", WEIR_LOG="warning") as relay:
        put(os.path.join(folder, "in"), 1, 2)
        shown = ""
        while "in: running, 2 lines (0 invalid), 2 values added, 0 refused\nout: 2 delivered\n" not in shown:
            line = relay.process.stderr.readline()
            assert line, shown
            shown += line
        assert relay.end()[0] == 0 and delivered(folder) == [1, 2]


@case
def the_example_reads_from_a_pipe_and_can_be_inspected(folder):
    pipe = os.path.join(folder, "pipe")
    places = {"RELAY_FIFO": pipe, "RELAY_FILE": os.path.join(folder, "out.jsonl"), "RELAY_SPOOL": os.path.join(folder, "spool"),
              "XDG_RUNTIME_DIR": folder}
    with Relay(folder, os.path.join(SOURCE, "examples", "config", "relay.json"), **places) as relay:
        put(pipe, 1, 2)
        wait_for(lambda: delivered(folder) == [1, 2], "the values")
        wait_for(lambda: run(WEIR, "status", relay.process.pid, XDG_RUNTIME_DIR=folder).stdout.count("source jobs (fifo): running") == 1,
                 "its status")
        status, log = relay.end()
        assert status == 0 and ledger_of(log) == 2, log
    first = json.loads(lines_of(os.path.join(folder, "out.jsonl"))[0])
    assert (first["group"], first["name"], first["labels"]) == ("jobs", "x", {"host": socket.gethostname()}), first


# ---- Configurations -----------------------------------------------------------------------------------


@case
def a_relay_needs_a_configuration_with_sources(folder):
    path = os.path.join(folder, "relay.json")
    for text, problem in (('{"groups":{"*":"null"}}', f'{path}: the configuration has no sources: "sources" is missing or empty'),
                          ('{"sources":{}}', f"{path}: the configuration has no sources"),
                          ('{"sources":', f"{path}:1:12: "),
                          ('{"sources":{"a":{"type":"stdin","color":1}}}', f"{path}:1:33: sources.a.color: unknown option"),
                          ('{"sources":{"a":{"type":"no_such"}}}', f'{path}:1:25: sources.a.type: "no_such" is not an installed source type')):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = run(WEIR, "relay", "-c", path)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("weir: " + problem), (text, done)
        if "no sources" not in problem:
            assert run(WEIR, "check", path).stderr == done.stderr, text
    done = run(WEIR, "relay", "-c", os.path.join(folder, "missing.json"))
    assert done.returncode == 1 and "missing.json: No such file or directory" in done.stderr, done
    done = run(WEIR, "relay", WEIR_CONFIG={"sources": {"a": {"type": "stdin", "parse": "xml"}}})
    assert done.returncode == 1 and 'sources.a.parse: "xml"' in done.stderr, done


@case
def without_an_option_and_a_variable_the_configuration_of_the_machine_is_read():
    if os.path.exists("/etc/weir/relay.json"):
        raise Skip("this machine has /etc/weir/relay.json")
    done = run(WEIR, "relay")
    assert done.returncode == 1 and done.stderr == "weir: /etc/weir/relay.json: No such file or directory\n", done


@case
def wrong_arguments_are_refused():
    for arguments, problem in ((["x"], 'no arguments are allowed: "x"'), (["--every", "1ms"], '--every: "1ms" is not a duration'),
                               (["--every", "often"], '--every: "often" is not a duration'), (["--nonsense"], "unrecognized option")):
        done = run(WEIR, "relay", *arguments)
        assert done.returncode == 2 and problem in done.stderr and "usage: weir relay" in done.stderr, done


@case
def check_validates_sources_and_names_place_value_and_what_is_allowed(folder):
    path = os.path.join(folder, "weir.json")
    for source, problem in (
            ('{"type":"stdin","parse":"xml"}', r'1:\d+: sources\.s\.parse: "xml" .*auto.*prometheus'),
            ('{"type":"stdin","line_bytes":"1B"}', r'1:\d+: sources\.s\.line_bytes: .*64B.*64MiB'),
            ('{"type":"stdin","pares":"text"}', r'1:\d+: sources\.s\.pares: unknown option; did you mean "parse"\?'),
            ('{"type":"stdin","retry_min":"1h","retry_max":"1s"}', r"1:\d+: sources\.s\.retry_min: a retry_min of 1h is longer than the retry_max of 1s"),
            ('{"type":"stdni"}', r'1:\d+: sources\.s\.type: "stdni" is not an installed source type .*did you mean "stdin"'),
            ('{"type":"stdin","plugin":"/no/such.source.so"}', r"1:\d+: sources\.s\.plugin: /no/such\.source\.so: No such file or directory"),
            ('{"type":"fifo","mode":"rw"}', r"1:\d+: sources\.s\.mode: .*rw")):
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"sources":{"s":%s},"groups":{"*":"null"}}' % source)
        done = run(WEIR, "check", path)
        assert done.returncode == 1 and re.match(rf"weir: {re.escape(path)}:{problem}", done.stderr), (source, done)


@case
def unknown_keys_of_sources_are_ignored_and_listed_if_the_configuration_says_so(folder):
    config = write_config(folder, {"in": {"type": "stdin", "pares": "json"}}, unknown_keys="warn")
    problem = 'sources.in.pares: unknown option, ignored; did you mean "parse"?'
    done = run(WEIR, "check", config)
    assert done.returncode == 0 and "unknown keys\n" in done.stdout and done.stdout.count(problem) == 1, done
    done = run(WEIR, "relay", "-c", config, stdin=open(os.devnull, encoding="utf-8"))
    assert done.returncode == 0 and done.stderr.count(problem) == 1, done


@case
def check_lists_sources_with_the_options_that_differ_from_the_defaults(folder):
    done = run(WEIR, "check", write_config(folder, {"job": fifo_of(folder, group="train", labels={"k": "v"}), "in": {"type": "stdin"}}))
    assert done.returncode == 0 and done.stderr == "", done
    assert f'sources\n  job            fifo path="{folder}/in" parse=bai group="train" labels=' in done.stdout, done.stdout
    assert "\n  in             stdin\nhandlers\n" in done.stdout, done.stdout
    assert not os.path.exists(os.path.join(folder, "in")), "nothing is opened or created"


@case
def sources_are_listed_and_described(folder):
    listed = json.loads(run(WEIR, "sources", "--json").stdout)
    assert {"fifo", "stdin"} <= {one["name"] for one in listed}, listed
    lines = run(WEIR, "sources").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [one["name"] for one in listed], lines
    for one in listed:
        assert json.loads(run(WEIR, "sources", one["name"], "--json").stdout) == one
        shown = run(WEIR, "sources", one["name"]).stdout
        assert shown.startswith(f"{one['name']} - {one['summary']}\n"), shown
        for option in one["options"] + one["common_options"]:
            assert re.search(rf"^  {option['name']} ", shown, re.M), (option, shown)
    fifo = next(one for one in listed if one["name"] == "fifo")
    assert [option["default"] for option in fifo["common_options"] if option["name"] == "parse"] == ["bai"], fifo
    done = run(WEIR, "sources", "stdni")
    assert done.returncode == 1 and 'did you mean "stdin"' in done.stderr, done


@case
def a_plugin_that_is_no_source_type_is_reported_and_skipped(folder):
    broken = os.path.join(folder, "broken.source.so")
    with open(broken, "w", encoding="utf-8") as file:
        file.write("not a shared object")
    done = run("sh", "-c", 'WEIR_PLUGIN_PATH="$1:$WEIR_PLUGIN_PATH"; shift; exec "$@"', "sh", folder, WEIR, "sources")
    assert done.returncode == 1 and broken in done.stderr and "\nstdin " in "\n" + done.stdout, done


main()
