"""The http handler with a spool: servers that are down for a while or for longer than the program runs."""

import glob
import json
import os
import re
import socket
import threading
from urllib.parse import parse_qs

from harness import ADDER, SANITIZED, assert_ledgers, case, free_port, main, run, start, wait_for
from scripted import Scripted, reply


def config_of(folder, port, shutdown="1m", **options):
    handler = {"type": "http", "url": f"http://127.0.0.1:{port}/", "format": "json", "linger": "0s", "queue": "256KiB", "overflow": "block",
               "block_timeout": "1m", "retry_min": "5ms", "retry_max": "20ms", "spool": os.path.join(folder, "spool"), **options}
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"push": handler}, "groups": {"*": "push"}}


class SwitchableServer(Scripted):
    """A server that can be switched off: it then closes each connection without a response."""

    def __init__(self, **options):
        self.away, self.taken = False, []
        super().__init__(self.take, **options)

    def take(self, request):
        if self.away:
            return None
        self.taken += [json.loads(line)["value"] for line in request.lines()]
        return reply(204)


def on_disk(folder):
    return glob.glob(os.path.join(folder, "spool", "*", "*.seg"))


@case
def values_that_a_program_could_not_send_are_sent_first_by_the_next_one(folder):
    port = free_port()
    done = run(ADDER, "-n", 50000, "-H", "push", WEIR_CONFIG=config_of(folder, port, shutdown="200ms"))
    assert done.returncode == 0 and "50000 spooled" in done.stderr, done.stderr
    assert_ledgers(json.loads(done.stdout))
    with SwitchableServer(port=port) as server:
        done = run(ADDER, "-n", 1000, "-f", -1, "-H", "push", WEIR_CONFIG=config_of(folder, port))
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["flush"] == 0 and report["handlers"]["push"]["recovered"] == 50000, (report, done.stderr)
        assert server.taken == list(range(50000)) + list(range(1000))
    assert on_disk(folder) == []


@case
def a_server_that_is_down_five_times_gets_everything_in_order_and_callers_do_not_wait(folder):
    with SwitchableServer() as server:
        program = start(ADDER, "-n", 60000, "-p", 1000, "-f", -1, "-H", "push", WEIR_CONFIG=config_of(folder, server.port, queue="16KiB"))
        for _ in range(5):
            server.away = True
            wait_for(lambda: on_disk(folder) or program.poll() is not None, "values on disk")
            taken = len(server.taken)
            server.away = False
            wait_for(lambda: len(server.taken) > taken or program.poll() is not None, "values sent after the outage")
        out, err = program.communicate(timeout=240)
        report = json.loads(out)
        assert_ledgers(report)
        assert program.returncode == 0 and "spooling to" in err, err
        assert server.taken == list(range(60000)) and report["handlers"]["push"]["dropped"][0] == 0, (len(server.taken), report)


@case
def a_server_that_accepts_and_never_responds_costs_nothing_while_the_spool_has_room(folder):
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        count = 50000 if SANITIZED else 500000  # of each of four threads
        handler = {"type": "http", "url": f"http://127.0.0.1:{listener.getsockname()[1]}/", "block_timeout": "1m",
                   "spool": os.path.join(folder, "spool"), **({"queue": "1MiB"} if SANITIZED else {})}
        config = {"settings": {"shutdown_timeout": "300ms"}, "handlers": {"push": handler}, "groups": {"*": "push"}}
        done = run(ADDER, "-n", count, "-t", 4, "-s", "-b", "handle", "-H", "push", WEIR_CONFIG=config)
        report = json.loads(done.stdout)
        assert_ledgers(report)
        account = report["handlers"]["push"]
        assert done.returncode == 0 and sum(account["dropped"]) == 0 and account["spooled"] > count, (report, done.stderr)
        assert f"{4 * count} spooled" in done.stderr, done.stderr


@case
def what_a_server_has_taken_of_a_batch_is_settled_before_it_stops_to_respond(folder):
    taken, away = [], threading.Event()

    def respond(request):
        if len(taken) == 30 and not away.is_set():
            return (b"" for _ in iter(away.wait, True))
        taken.append(int(float(parse_qs(request.body.decode())["value"][0])))
        return reply(201)
    with Scripted(respond) as server:
        options = {"format": {"type": "mlbench", "run_id": "1"}, "linger": "1ms"}
        done = run(ADDER, "-n", 100, "-H", "push", WEIR_LOG="info", WEIR_CONFIG=config_of(folder, server.port, shutdown="3s", **options))
        away.set()
        ledger = re.search(r'"push": 100 offered, (\d+) delivered, 0 dropped, 0 queued, (\d+) spooled', done.stderr)
        assert ledger and int(ledger[1]) + int(ledger[2]) == 100, done.stderr
        repeated = len(taken) - int(ledger[1])
        assert taken and repeated in (0, 1), (taken, done.stderr, "the reply of the last one may have come too late")
        done = run(ADDER, "-n", 1, "-f", -1, "-H", "push", WEIR_CONFIG=config_of(folder, server.port, **options))
        assert_ledgers(json.loads(done.stdout))
    assert taken[-1] == 0 and set(taken) == set(range(100)) and len(taken) == 101 + repeated, taken


main()
