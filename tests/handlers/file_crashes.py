"""The file handler killed again and again, in the middle of writing, rotating and compressing: what it had written is there, once."""

import collections
import glob
import gzip
import os
import random
import re
import subprocess
import time

from harness import ADDER, case, environment, lines_of, main, wait_for

CRASHES = int(os.environ.get("WEIR_TEST_CRASHES", "40"))


def config_of(path, **options):
    handler = {"type": "file", "path": path, "format": "text", "rotate_size": "8KiB", **options}
    return {"handlers": {"disk": handler}, "groups": {"*": "disk"}}


def start_adding(group, config):
    return subprocess.Popen([ADDER, "-q", "-g", group, "-n", "100000000", "-p", "1000"], env=environment(WEIR_CONFIG=config))


def read(path):
    if path.endswith(".gz"):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read().splitlines()
    return lines_of(path)


def tend(path, config):
    """One more program, which has the time to see to what the dead ones have left."""
    with subprocess.Popen([ADDER, "-q", "-g", "last", "-x", "sleep"], env=environment(WEIR_CONFIG=config)) as program:
        wait_for(lambda: all(name.endswith("Z.gz") for name in glob.glob(path + ".*")), "the old files to be compressed", 120)
        program.kill()


def values_by_group(path):
    """In the order of the files; and how many lines are torn: those whose writers were killed meanwhile."""
    found, torn = collections.defaultdict(list), 0
    for name in [*sorted(glob.glob(path + ".*")), *glob.glob(path)]:  # killed between two files, none has its name
        for line in read(name):
            whole = re.fullmatch(r"\[\d+\.\d{6}\]\[(\w+)\]: t0=(\d+)", line)
            if whole:
                found[whole[1]].append(int(whole[2]))
            else:
                torn += 1
    return found, torn


@case
def what_killed_processes_have_written_is_there_once_and_without_a_gap(folder):
    """Two at a time, one of which is killed, so that there is always one that goes on with what the other has left."""
    path = os.path.join(folder, "out")
    config = config_of(path, compress="gzip")
    chance = random.Random(7)
    programs = [start_adding("p0", config)]
    for number in range(1, CRASHES + 1):
        programs.append(start_adding(f"p{number}", config))
        time.sleep(chance.uniform(0, 0.05))  # somewhere in what it does; not judged
        victim = programs.pop(0)
        victim.kill()
        victim.wait()
    programs[0].kill()
    programs[0].wait()
    tend(path, config)
    found, torn = values_by_group(path)
    assert torn <= CRASHES + 1, torn
    for group, values in found.items():
        assert values == list(range(len(values))), group
    assert len(found) > 1


@case
def a_file_that_is_compressed_while_its_processes_die_is_whole_in_the_end(folder):
    """An old file large enough for each of them to die over."""
    path = os.path.join(folder, "out")
    old = path + ".20200101T000000.000000Z"
    config = config_of(path, compress="gzip")
    with open(old, "w", encoding="utf-8") as file:
        for value in range(200000):
            file.write(f"[1577836800.{value:06}][old]: t0={value}\n")
    chance = random.Random(8)
    for number in range(CRASHES // 2):
        with subprocess.Popen([ADDER, "-q", "-g", f"p{number}", "-x", "sleep"], env=environment(WEIR_CONFIG=config)) as program:
            wait_for(lambda: os.path.exists(old + ".gz.tmp") or not os.path.exists(old), "the compression")
            time.sleep(chance.uniform(0, 0.04))  # somewhere in what it does; not judged
            program.kill()
        assert os.path.exists(old) or subprocess.run(["gzip", "--test", old + ".gz"]).returncode == 0
    tend(path, config)
    found, torn = values_by_group(path)
    assert torn == 0 and found["old"] == list(range(200000))
    assert all(values == [0] for group, values in found.items() if group != "old")


main()
