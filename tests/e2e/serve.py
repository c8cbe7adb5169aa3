"""`weir serve` collects values of programs, shows them, and loses none that was acknowledged.

WEIR_TEST_FACTOR=100 adds 10 million values each by HTTP and by the handler forward."""

import json
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import threading
import time

from harness import ADDER, SANITIZED, WEIR, free_port, main, run, start, wait_for
from serving import Serving
from sourced import case, keep

FACTOR = float(os.environ.get("WEIR_TEST_FACTOR") or 1)
VALUES = max(1, int(10 * FACTOR) // (5 if SANITIZED else 1)) * 10000
SERIES = 1000
SIZE = 10000  # of a body; VALUES is a multiple


def forwarding(server):
    return {"handlers": {"up": {"type": "forward", "to": "unix:" + server.socket, "block_timeout": "1h"}}, "groups": {"*": "up"},
            "settings": {"shutdown_timeout": "4m"}}


def memory_of(program):
    with open(f"/proc/{program.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1))


# ---- The command --------------------------------------------------------------------------------------


@case
def without_a_configuration_it_is_a_collector_of_this_user(folder):
    server = Serving(folder)
    assert re.fullmatch(rf"http://127.0.0.1:{server.port}/session/[0-9a-f]{{64}}", server.url), server.greeting
    assert "WEIR_CONFIG='{\"groups\":{\"*\":\"forward\"}}' ./your_program" in server.greeting[6]
    assert stat.S_IMODE(os.stat(server.state).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(os.path.join(server.state, "collector", "token")).st_mode) == 0o600
    done = run(ADDER, "-n", 1000, WEIR_CONFIG=forwarding(server))
    assert done.returncode == 0, done.stderr
    wait_for(lambda: server.delivered() == 1000, "the values")
    assert server.post([{"group": "g", "name": "a", "value": 1}])[0] == 200
    wait_for(lambda: server.get("/api/v1/status")["senders"], "the sender's counts")
    wait_for(lambda: server.get("/api/v1/status")["store"]["values"] == 1001, "the store's figures, which may be a second old")
    found = server.status()
    assert [source["name"] for source in found["sources"]] == ["collector", "http", "forward"] and found["problems"] == [], found
    assert found["senders"][0]["delivered"] == 1000 and found["senders"][0]["source"] == "forward", found
    assert found["store"]["values"] == 1001 and found["store"]["series"] == 2 and found["store"]["size_bytes"] > 0, found
    assert found["started"] <= found["store"]["first"] <= found["store"]["last"] <= found["now"] + 1, found
    server.end()
    assert server.count() == 1001


@case
def an_address_in_use_is_named_with_its_option(folder):
    server = Serving(folder)
    other, free = os.path.join(folder, "other"), f"127.0.0.1:{free_port()}"
    addresses = {"--listen": f"127.0.0.1:{server.port}", "--http": f"127.0.0.1:{server.http_port}", "--forward": server.socket}
    for option, taken in addresses.items():
        given = {"--listen": free, "--http": "off", "--forward": "off", option: taken}
        done = run(WEIR, "serve", "--state", other, *(word for pair in given.items() for word in pair))
        assert done.returncode == 1 and taken in done.stderr and option in done.stderr, (option, done)
    server.end()


@case
def the_socket_that_is_checked_is_the_one_of_the_source(folder):
    place, state = os.path.join(folder, "weir"), os.path.join(folder, "state")
    os.mkdir(place)
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(os.path.join(place, "forward.sock"))
        taken.listen()
        for runtime, is_taken in ((folder, True), (".", False)):
            done = run(WEIR, "serve", "--state", state, "--listen", f"127.0.0.1:{free_port()}", "--http", "off", cwd=folder,
                       XDG_RUNTIME_DIR=runtime, WEIR_PLUGIN_PATH=folder)  # where no plugins are, so that it ends
            assert done.returncode == 1 and (f"{runtime}/weir/forward.sock: another process listens" in done.stderr) == is_taken, (runtime, done)


@case
def what_lets_others_connect_needs_a_token(folder):
    listen = f"0.0.0.0:{free_port()}"
    done = run(WEIR, "serve", "--state", folder, "--listen", listen)
    assert done.returncode == 1 and "--listen-anywhere" in done.stderr, done
    done = run(WEIR, "serve", "--state", folder, "--listen-anywhere", listen)
    assert done.returncode == 2 and "--token-file" in done.stderr, done
    done = run(WEIR, "serve", "-c", "x", "--listen", listen)
    assert done.returncode == 2 and "with -c" in done.stderr, done


@case
def a_file_is_its_configuration(folder):
    path, port = os.path.join(folder, "serve.json"), free_port()
    config = {"handlers": {"db": {"type": "store", "path": "m.db"}}, "groups": {"*": "db"}, "sources": {"in": {"type": "fifo", "path": "in"}}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    done = run(WEIR, "serve", "-c", path, "--state", folder, cwd=folder)
    assert done.returncode == 1 and "no source of type collector" in done.stderr, done
    config["sources"]["web"] = {"type": "collector", "path": "m.db", "listen": f"127.0.0.1:{port}", "access": os.path.join(folder, "collector")}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    program = keep(start(WEIR, "serve", "-c", path, "--state", folder, cwd=folder))
    assert f"http://127.0.0.1:{port}/session/" in "".join(program.stdout.readline() for _ in range(8))
    program.send_signal(signal.SIGHUP)
    program.terminate()
    _, log = program.communicate(timeout=240)
    assert program.returncode == 0, log


@case
def a_new_url_is_printed_while_it_runs(folder):
    server = Serving(folder)
    done = run(WEIR, "serve", "--url", "--state", server.state)
    url = done.stdout.strip()
    assert done.returncode == 0 and url != server.url and server.ask(url[url.index("/session"):])[0] == 303, done
    server.end()
    done = run(WEIR, "serve", "--url", "--state", server.state)
    assert done.returncode == 1 and "no collector runs" in done.stderr, done


# ---- Its state ----------------------------------------------------------------------------------------


@case
def its_state_is_shown_in_a_terminal(folder):
    server = Serving(folder)
    assert server.post([{"group": "g", "name": "a", "value": 1}])[0] == 200
    url, token = f"http://127.0.0.1:{server.port}", os.path.join(server.state, "collector", "token")
    done = run(WEIR, "status", url, "--token-file", token)
    assert done.returncode == 0 and "nothing is wrong" in done.stdout and "1 values in 1 series" in done.stdout, done
    assert re.search(r"^store +open +1 +1 +0 +0 +0$", done.stdout, re.M), done.stdout
    done = run(WEIR, "status", url, "--json", "--token-file", token)
    assert json.loads(done.stdout)["handlers"][0]["delivered"] == 1, done
    done = run(WEIR, "status", url, STATE_DIRECTORY=server.state)
    assert done.returncode == 0, "the token of this user's collector is found: " + done.stderr
    for before, code in (("", 0), ("127.0.0.1:x@", 1), ("127.0.0.1:1@", 1), ("localhost@", 1), ("[::1]:@", 1)):
        done = run(WEIR, "status", f"http://{before}localhost:{server.port}", STATE_DIRECTORY=server.state)
        assert done.returncode == code and ("status 401" in done.stderr) == code, ("who stands before the host gets no token", done)
    done = run(WEIR, "status", url, STATE_DIRECTORY=folder)
    assert done.returncode == 1 and "status 401" in done.stderr, done
    watching = keep(start(WEIR, "status", "--watch", "--every", "100ms", url, "--token-file", token))
    assert watching.stdout.readline().startswith(url)
    server.end()
    _, log = watching.communicate(timeout=240)
    assert watching.returncode == 1 and url in log, log


@case
def senders_that_join_and_leave_are_marked(folder):
    server = Serving(folder)
    def marks(kind):
        return [mark["text"] for mark in server.get("/api/v1/markers")["markers"] if mark["kind"] == kind]
    def join():
        sender = keep(start(WEIR, "emit", "-g", "g", "--parse", "text", "-", stdin=subprocess.PIPE, WEIR_CONFIG=forwarding(server)))
        sender.stdin.write("a=1\n")
        sender.stdin.flush()
        wait_for(lambda: any(f"[{sender.pid}]" in text for text in marks("sender_joined")), "the marker")
        return sender
    ends, vanishes = join(), join()
    ends.stdin.close()
    assert ends.wait(timeout=240) == 0, ends.stderr.read()
    vanishes.kill()
    vanishes.communicate()
    wait_for(lambda: len(marks("sender_left")) == 2, "the markers")
    found = {text.partition("(")[0].partition("[")[2].partition("]")[0]: text for text in marks("sender_left")}
    assert found[str(ends.pid)].endswith("(source forward) has ended") and found[str(vanishes.pid)].endswith(" has vanished"), found
    assert len(marks("sender_joined")) == 2 and all("handler up (source forward) has joined" in text for text in marks("sender_joined"))
    server.status()
    server.end()
    assert server.count() == 2


@case
def a_group_may_send_by_the_socket(folder):
    server = Serving(folder, "--forward-group", str(os.getegid()))
    found = os.stat(server.socket)
    assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, os.getegid()), found
    done = run(ADDER, "-n", 10, WEIR_CONFIG=forwarding(server))
    assert done.returncode == 0, done.stderr
    wait_for(lambda: server.delivered() == 10, "the values")
    server.end()
    assert server.count() == 10


@case
def what_is_wrong_is_told_worst_first(folder):
    path, port, blocked = os.path.join(folder, "c.json"), free_port(), os.path.join(folder, "missing", "out")
    config = {"settings": {"shutdown_timeout": "1s"},
              "handlers": {"db": {"type": "store", "path": os.path.join(folder, "m.db")},
                           "disk": {"type": "file", "path": blocked, "create_folders": False, "retry_min": "10ms", "retry_max": "50ms"}},
              "groups": {"*": ["db", "disk"], "nowhere": []},
              "sources": {"web": {"type": "collector", "path": os.path.join(folder, "m.db"), "listen": f"127.0.0.1:{port}",
                                  "access": os.path.join(folder, "collector")},
                          "in": {"type": "fifo", "path": os.path.join(folder, "in"), "parse": "json"},
                          "wrong": {"type": "fifo", "path": os.path.join(folder, "missing", "pipe"), "retry_min": "10ms", "retry_max": "50ms"}}}
    os.mkdir(os.path.join(folder, "missing"))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    program = keep(start(WEIR, "serve", "-c", path, "--state", folder))
    program.stdout.readline()
    os.rename(os.path.join(folder, "missing"), os.path.join(folder, "gone"))
    wait_for(lambda: os.path.exists(os.path.join(folder, "in")), "the pipe")
    with open(os.path.join(folder, "in"), "w", encoding="utf-8") as pipe:
        pipe.write('{"group": "g", "name": "a", "value": 1}\nnonsense\n{"group": "nowhere", "name": "b", "value": 1}\n')
    token = os.path.join(folder, "collector", "token")
    def problems():
        done = run(WEIR, "status", f"http://127.0.0.1:{port}", "--json", "--token-file", token)
        return [(found["severity"], found["where"]) for found in json.loads(done.stdout)["problems"]] if done.returncode == 0 else []
    wait_for(lambda: ("warning", "source in") in problems() and ("warning", "process") in problems(), "the problems")
    severities = [severity for severity, _ in problems()]
    assert severities == sorted(severities) and "error" in severities, problems()
    program.terminate()
    program.communicate(timeout=240)


# ---- Nothing that was acknowledged is lost ------------------------------------------------------------


def post_until_killed(server, acknowledged, stop):
    """Posts numbered values one after the other; remembers those that were acknowledged."""
    number = 0
    while not stop.is_set():
        try:
            if server.post([{"group": "posted", "name": "n", "value": number}])[0] == 200:
                acknowledged.append(number)
        except OSError:
            time.sleep(0.01)
        number += 1


@case
def kills_lose_nothing_that_was_acknowledged_by_http(folder):
    server, acknowledged, stop = Serving(folder), [], threading.Event()
    sender = threading.Thread(target=post_until_killed, args=(server, acknowledged, stop))
    sender.start()
    try:
        for turn in range(3):
            had = len(acknowledged)
            wait_for(lambda: len(acknowledged) >= had + 20, "acknowledgements")
            server.kill()
            server.begin()
    finally:
        stop.set()
        sender.join()
    server.status()
    server.end()
    stored = values_of(server, "posted", "n")
    assert set(acknowledged) <= set(stored), sorted(set(acknowledged) - set(stored))


def values_of(server, group, name):
    """The values of a series; the file has to be small enough for its tail."""
    with sqlite3.connect(os.path.join(server.state, "weir.db")) as db:
        return [row[0] for row in db.execute("SELECT value FROM tail JOIN series ON series.id = series WHERE group_name = ? AND name = ?", (group, name))]


@case
def kills_lose_and_repeat_nothing_that_was_forwarded(folder):
    server = Serving(folder)
    config = forwarding(server)
    config["handlers"]["up"].update(retry_min="10ms", retry_max="50ms", batch=500)
    sender = keep(start(ADDER, "-n", 20000, "-p", 20000, "-f", "-1", WEIR_CONFIG=config))
    for turn in range(3):
        had = server.delivered()
        wait_for(lambda: server.delivered() > had or sender.poll() is not None, "values")
        server.kill()
        server.begin()
    _, log = sender.communicate(timeout=240)
    assert sender.returncode == 0, log
    wait_for(lambda: server.get("/api/v1/status")["store"]["values"] >= 20000, "all values")
    server.status()
    server.end()
    assert sorted(values_of(server, "my_app", "t0")) == list(range(20000))


# ---- Much ---------------------------------------------------------------------------------------------


def many_lines():
    return "".join(json.dumps({"group": "many", "name": f"series{i % SERIES}", "value": i}) + "\n" for i in range(SIZE))


def report_rate(what, seconds, memory):
    print(f"# {what}: {VALUES} values in {seconds:.1f} s, {VALUES / seconds:.0f} a second; memory {memory[0]} to {memory[-1]} kB")


def wait_for_values(server, count, memory):
    def are_there():
        memory.append(memory_of(server.program))
        return server.delivered() >= count
    wait_for(are_there, f"{count} values", 3600)


@case
def many_values_of_many_series_come_by_http(folder):
    server, memory, began = Serving(folder), [], time.monotonic()
    body = many_lines()
    for _ in range(VALUES // SIZE):
        assert server.post(body)[0] == 200
        memory.append(memory_of(server.program))
    wait_for_values(server, VALUES, memory)
    report_rate("http", time.monotonic() - began, memory)
    server.status()
    server.end()
    assert server.count() == VALUES
    if not SANITIZED:
        assert max(memory) < 300000, memory


@case
def many_values_of_many_series_come_by_forward(folder):
    server, memory, began = Serving(folder), [], time.monotonic()
    sender = keep(start(WEIR, "emit", "-t", "4m", "--parse", "json", "-", stdin=subprocess.PIPE, WEIR_CONFIG=forwarding(server)))
    body = many_lines()
    feeder = threading.Thread(target=lambda: [sender.stdin.write(body) for _ in range(VALUES // SIZE)] and sender.stdin.close())
    feeder.start()
    wait_for_values(server, VALUES, memory)
    feeder.join()
    report_rate("forward", time.monotonic() - began, memory)
    assert sender.wait(timeout=240) == 0, sender.stderr.read()
    server.status()
    server.end()
    assert server.count() == VALUES
    if not SANITIZED:
        assert max(memory) < 300000, memory


main()
