"""Values that cross a link whose ends are killed: each is at the destination once, and both ledgers agree.

The receiver's handler is a pipe that nobody reads until the end, so that everything stays in the receiver's journal, and what is delivered in
the end was delivered once."""

import json
import os
import random

from harness import ADDER, assert_ledgers, lines_of, main, start, wait_for
from sourced import Sourced, case

FACTOR = float(os.environ.get("WEIR_TEST_FACTOR") or 1)
COUNT = int(100000 * FACTOR)  # of each sender
SENDERS, KILLS = 4, 5


def receive(folder, **handler):
    held = {"type": "fifo", "path": os.path.join(folder, "nobody"), "queue": "8GiB", "block_timeout": "1h", **handler}
    program = Sourced(folder, {"type": "forward", "listen": ["unix:" + os.path.join(folder, "s")]}, held, journal=os.path.join(folder, "journal"),
                      shutdown_timeout="20m")
    program.await_log("listens at")
    return program


def send(folder, number, count, group):
    up = {"type": "forward", "to": "unix:" + os.path.join(folder, "s"), "retry_min": "5ms", "retry_max": "100ms", "block_timeout": "1h",
          "queue": "4MiB"}
    config = {"settings": {"shutdown_timeout": "20m", "status": "off", "journal": os.path.join(folder, f"journal.{number}")},
              "handlers": {"up": up}, "groups": {"*": "up"}}
    return start(ADDER, "-n", count, "-f", -1, "-H", "up", "-g", group, WEIR_CONFIG=config)


def finish(sender):
    """Returns the ledger of its handler."""
    out, log = sender.communicate(timeout=3000)
    assert sender.returncode == 0, log
    report = json.loads(out)
    assert_ledgers(report)
    return report["handlers"]["up"]


def kill(program):
    program.kill()
    program.communicate()


def await_more(program, senders):
    """Until the receiver has taken some more values, or no sender is left."""
    wanted = program.stats()["added"] + random.randrange(1, max(2, COUNT * SENDERS // (3 * KILLS)))
    wait_for(lambda: program.stats()["added"] >= wanted or all(s.poll() is not None for s in senders), "values", 3000)


def read_numbers(folder):
    numbers = {}
    for line in lines_of(os.path.join(folder, "out")):
        record = json.loads(line)
        numbers.setdefault(record["group"], []).append(record["value"])
    return numbers


@case
def values_cross_a_link_whose_ends_are_killed_once(folder):
    program = receive(folder)
    senders = [send(folder, number, COUNT, f"g{number}") for number in range(SENDERS)]
    for turn in range(KILLS):
        await_more(program, senders)
        program.program.kill()
        program.program.wait()
        if turn < 2:  # two senders are killed, too; their next processes send what they have left
            kill(senders[turn])
            senders[turn] = send(folder, turn, COUNT, f"h{turn}")
        program = receive(folder)
    ledgers = [finish(sender) for sender in senders]
    program.program.kill()
    program.program.wait()
    program = receive(folder, type="file", path=os.path.join(folder, "out"), format="json")
    out, _ = program.program.communicate(timeout=3000)
    assert program.program.returncode == 0, program.log()
    report = json.loads(out)
    assert_ledgers(report)
    numbers = read_numbers(folder)
    for group, come in numbers.items():
        assert sorted(come) == list(range(len(come))), (group, len(come), len(set(come)), max(come))
        assert group in ("g0", "g1") or len(come) == COUNT, (group, len(come))
    assert {"g2", "g3", "h0", "h1"} <= set(numbers) and all(ledger["delivered"] >= COUNT for ledger in ledgers), (numbers.keys(), ledgers)
    assert sum(map(len, numbers.values())) == report["handlers"]["out"]["delivered"], report


main()
