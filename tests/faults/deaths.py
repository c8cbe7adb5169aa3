"""Programs that die without a journal: what was delivered is whole and in order, and lost is at most what was in rings and queues.
With one nothing is lost: tests/stress/killing.py."""

import json
import os
import random
import signal
import time

from harness import ADDER, case, lines_of, main, run, start, wait_for

KILLS = max(20, int(os.environ.get("WEIR_TEST_KILLS", 0)) // 5)  # each looks at all that its program had written
SANITIZED = os.environ.get("WEIR_TEST_SANITIZED")  # which has signals of its own
RING, QUEUE, BATCH = 4096, 32768, 5000  # samples


def config_of(path):
    return {"handlers": {"disk": {"type": "file", "path": path, "format": "json"}}, "groups": {"*": "disk"}}


def values_of(path):
    """What is in a file, but for an end that was torn: by thread, in order."""
    values = {}
    text = open(path, encoding="utf-8").read()
    for line in text.split("\n")[:-1]:
        sample = json.loads(line)
        values.setdefault(sample["name"], []).append(sample["value"])
    return values


@case
def fault_05_a_signal_without_a_handler_costs_at_most_what_was_in_rings_and_queues(folder):
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL):
        path = os.path.join(folder, number.name)
        # it dies after its last value: more is known to have been added than rings and queues hold
        program = start(ADDER, "-n", 200000, "-x", "sleep", WEIR_CONFIG=config_of(path))
        json.loads(program.stdout.readline())
        program.send_signal(number)
        program.communicate()
        assert program.returncode == -number or SANITIZED and program.returncode, program.returncode
        values = values_of(path)["t0"]
        assert values == list(range(len(values))), number
        assert 200000 - len(values) <= RING + QUEUE + RING + BATCH, len(values)


@case
def fault_06_killed_in_mid_write_what_is_in_the_file_is_an_exact_prefix_of_each_thread(folder):
    seen = 0
    for i in range(KILLS):
        path = os.path.join(folder, str(i))
        program = start(ADDER, "-q", "-t", 2, "-n", 100000000, WEIR_CONFIG=config_of(path))
        wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the first values")
        time.sleep(random.random() / 50)  # somewhere in the middle
        program.kill()
        program.communicate()
        for values in values_of(path).values():
            assert values == list(range(len(values)))
            seen += len(values)
        os.unlink(path)
    assert seen > KILLS
    print(f"# killed {KILLS} times, {seen} values", flush=True)


@case
def fault_13_a_handler_that_crashes_ends_the_process_and_others_have_what_they_took(folder):
    path = os.path.join(folder, "out")
    config = config_of(path)
    config["handlers"]["bad"] = {"type": "crasher"}
    config["groups"]["crash"] = "bad"
    done = run(ADDER, "-q", "-n", 1000, "-f", -1, WEIR_CONFIG=config)
    assert done.returncode == 0 and len(lines_of(path)) == 1000
    done = run(ADDER, "-q", "-g", "crash", "-n", 10, "-f", -1, WEIR_CONFIG=config)
    assert done.returncode == -signal.SIGSEGV or SANITIZED and done.returncode, done
    assert len(lines_of(path)) == 1000


if __name__ == "__main__":
    main()
