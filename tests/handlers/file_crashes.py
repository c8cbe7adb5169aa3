"""The file handler killed many times while it writes, rotates and compresses: what it had written is in the files exactly once."""

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


def has_written(group, path):
    """Whether the newest file has a value of the group. There may be none while it is rotated."""
    try:
        return any(f"[{group}]" in line for line in lines_of(path))
    except FileNotFoundError:
        return False


def finish_maintenance(path, config):
    """Runs one more program until it has completed what the killed ones left unfinished."""
    with subprocess.Popen([ADDER, "-q", "-g", "last", "-x", "sleep"], env=environment(WEIR_CONFIG=config)) as program:
        wait_for(lambda: all(name.endswith("Z.gz") for name in glob.glob(path + ".*")), "the old files to be compressed", 120)
        program.kill()


def values_by_group(path):
    """The values of each group in the order of the files, and the number of torn lines, whose writers were killed."""
    found, torn = collections.defaultdict(list), 0
    for name in [*sorted(glob.glob(path + ".*")), *glob.glob(path)]:  # a process killed while rotating leaves no file of that name
        for line in read(name):
            match = re.fullmatch(r"\[\d+\.\d{6}\]\[(\w+)\]: t0=(\d+)", line)
            if match:
                found[match[1]].append(int(match[2]))
            else:
                torn += 1
    return found, torn


@case
def values_written_by_killed_processes_are_there_once_and_without_gaps(folder):
    """Two at a time, one of which is killed: the other one continues with the files that it leaves."""
    path = os.path.join(folder, "out")
    config = config_of(path, compress="gzip")
    rng = random.Random(7)
    programs = [start_adding("p0", config)]
    wait_for(lambda: has_written("p0", path), "the first program to write")
    for number in range(1, CRASHES + 1):
        programs.append(start_adding(f"p{number}", config))
        time.sleep(rng.uniform(0, 0.05))  # kill it at a random point; no assertion depends on the time
        victim = programs.pop(0)
        victim.kill()
        victim.wait()
    wait_for(lambda: has_written(f"p{CRASHES}", path), "the last program to write")
    programs[0].kill()
    programs[0].wait()
    finish_maintenance(path, config)
    found, torn = values_by_group(path)
    assert torn <= CRASHES + 1, torn
    for group, values in found.items():
        assert values == list(range(len(values))), group
    assert len(found) > 1


@case
def a_file_is_complete_although_processes_that_compress_it_are_killed(folder):
    """The old file is so large that each process is killed while compressing it."""
    path = os.path.join(folder, "out")
    old = path + ".20200101T000000.000000Z"
    config = config_of(path, compress="gzip")
    with open(old, "w", encoding="utf-8") as file:
        for value in range(200000):
            file.write(f"[1577836800.{value:06}][old]: t0={value}\n")
    rng = random.Random(8)
    for number in range(CRASHES // 2):
        with subprocess.Popen([ADDER, "-q", "-g", f"p{number}", "-x", "sleep"], env=environment(WEIR_CONFIG=config)) as program:
            wait_for(lambda: os.path.exists(old + ".gz.tmp") or not os.path.exists(old), "the compression")
            time.sleep(rng.uniform(0, 0.04))  # kill it at a random point; no assertion depends on the time
            program.kill()
        assert os.path.exists(old) or subprocess.run(["gzip", "--test", old + ".gz"]).returncode == 0
    finish_maintenance(path, config)
    found, torn = values_by_group(path)
    assert torn == 0 and found["old"] == list(range(200000))
    assert all(values == [0] for group, values in found.items() if group != "old")


main()
