"""The configurations of doc/scale.md: each is valid, and the processes of a step hand the values on as it says."""

import glob
import json
import os
import re

from harness import ADDER, SOURCE, WEIR, assert_ledgers, case, free_port, lines_of, main, run, start, wait_for, whole_lines
from scripted import Scripted, reply

CONFIGS = os.path.join(SOURCE, "examples", "config")
VALUES = 1000


def config(name):
    return os.path.join(CONFIGS, name)


def add(file, *more, **env):
    done = run(ADDER, "-n", VALUES, "-f", -1, *more, WEIR_CONFIG=config(file), **env)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]


def relay(file, **env):
    return start(WEIR, "relay", "-c", config(file), **env)


def stop(program):
    program.terminate()
    assert program.wait(240) == 0


@case
def all_configurations_are_valid(folder):
    files = glob.glob(config("scale_*.json"))
    assert len(files) >= 6, files
    for file in files:
        done = run(WEIR, "check", file)
        assert done.returncode == 0 and done.stderr == "", (file, done)


@case
def step_1_one_process_writes_a_file(folder):
    out = os.path.join(folder, "out")
    handlers = add("scale_1_process.json", "-H", "disk", METRICS_FILE=out)
    assert handlers["disk"]["delivered"] == VALUES == len(lines_of(out)), handlers


@case
def step_2_programs_hand_their_values_to_the_relay_of_the_machine(folder):
    env = {"RELAY_SOCKET": os.path.join(folder, "s"), "RELAY_SPOOL": os.path.join(folder, "spool"), "RELAY_JOURNAL": os.path.join(folder, "journal"),
           "RELAY_FILE": os.path.join(folder, "out"), "XDG_RUNTIME_DIR": folder}
    program = relay("scale_2_relay.json", **env)
    handlers = add("scale_2_program.json", "-H", "relay", **env)
    assert handlers["relay"]["delivered"] == VALUES, handlers
    wait_for(lambda: whole_lines(env["RELAY_FILE"]) == VALUES, "the values")
    stop(program)


@case
def step_3_machines_send_to_the_site_which_pushes_summaries(folder):
    env = {"RELAY_SOCKET": os.path.join(folder, "s"), "RELAY_SPOOL": os.path.join(folder, "spool"), "SITE": f"127.0.0.1:{free_port()}",
           "SLOW_FILE": os.path.join(folder, "slow"), "SITE_SPOOL": os.path.join(folder, "spool.site"), "XDG_RUNTIME_DIR": folder}
    with Scripted(lambda _: reply(204)) as database:
        site = relay("scale_3_site.json", RELAY_JOURNAL=os.path.join(folder, "journal.site"), DATABASE_URL=database.url, **env)
        machine = relay("scale_3_machine.json", RELAY_JOURNAL=os.path.join(folder, "journal"), **env)
        add("scale_2_program.json", "-H", "relay", **env)

        def counts():
            found = (re.search(r"\bt0.count=([0-9]+)", line) for request in database.requests for line in request.lines())
            return sum(int(one.group(1)) for one in found if one)

        wait_for(lambda: counts() == VALUES, "the summaries")
        stop(machine)
        stop(site)


main()
