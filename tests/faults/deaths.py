"""Programs that die without a journal: delivered values are complete and in order; at most the contents of rings and queues are lost.
With a journal nothing is lost: tests/stress/killing.py."""

import json
import os
import random
import signal
import time

from harness import ADDER, case, lines_of, main, run, start, wait_for

KILLS = max(20, int(os.environ.get("WEIR_TEST_KILLS", 0)) // 5)  # each one checks all values that its program has written
SANITIZED = os.environ.get("WEIR_TEST_SANITIZED")  # sanitizers have their own signal handlers
RING, QUEUE, BATCH = 4096, 32768, 5000  # samples


def config_of(path):
    return {"handlers": {"disk": {"type": "file", "path": path, "format": "json", "block_timeout": "1m"}}, "groups": {"*": "disk"}}


def values_of(path):
    """The values in a file by thread, without a torn last line."""
    values = {}
    text = open(path, encoding="utf-8").read()
    for line in text.split("\n")[:-1]:
        sample = json.loads(line)
        values.setdefault(sample["name"], []).append(sample["value"])
    return values


@case
def fault_05_a_fatal_signal_loses_at_most_the_contents_of_rings_and_queues(folder):
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL):
        path = os.path.join(folder, number.name)
        # killed after its last value: many more values were added than rings and queues hold
        program = start(ADDER, "-n", 200000, "-x", "sleep", WEIR_CONFIG=config_of(path))
        json.loads(program.stdout.readline())
        program.send_signal(number)
        program.communicate()
        assert program.returncode == -number or SANITIZED and program.returncode, program.returncode
        values = values_of(path)["t0"]
        assert values == list(range(len(values))), number
        assert 200000 - len(values) <= RING + QUEUE + RING + BATCH, len(values)


@case
def fault_06_after_a_kill_during_a_write_the_file_has_an_exact_prefix_of_each_thread(folder):
    seen = 0
    for i in range(KILLS):
        path = os.path.join(folder, str(i))
        program = start(ADDER, "-q", "-t", 2, "-n", 100000000, WEIR_CONFIG=config_of(path))
        wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the first values")
        time.sleep(random.random() / 50)  # kill it at a random point
        program.kill()
        program.communicate()
        for values in values_of(path).values():
            assert values == list(range(len(values)))
            seen += len(values)
        os.unlink(path)
    assert seen > KILLS
    print(f"# killed {KILLS} times, {seen} values", flush=True)


@case
def fault_13_a_crashing_handler_ends_the_process_and_other_handlers_keep_delivered_values(folder):
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
