"""Wake-ups of a program that adds nothing: context switches of all its threads, as the kernel counts them."""

import os
import re
import subprocess
import time

from jobs import FILE
from programs import Void, write_config

QUIET_S = 1  # rings are put to sleep after 10 ms; the rest is room for a busy machine


def count_switches(pid):
    """How often each thread was put on a processor and taken off again, so far."""
    switches = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
            text = file.read()
        name = re.search(r"^Name:\s*(.*)$", text, re.M).group(1)
        switches[f"{thread} ({name})"] = sum(int(n) for n in re.findall(r"voluntary_ctxt_switches:\s*(\d+)", text))
    return switches


def watch_idle(place, seconds):
    """How many wake-ups there were in so many seconds."""
    config = write_config(place, [{**FILE, "path": place.file("weir.0")}])
    with subprocess.Popen([place.program("weir/idle"), config], env=place.environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as program:
        try:
            if program.stdout.readline() != "idle\n":
                raise Void("idle: ended too early")
            time.sleep(QUIET_S)
            before = count_switches(program.pid)
            time.sleep(seconds)
            after = count_switches(program.pid)
        finally:
            program.stdin.close()
            program.wait(60)
    return {"switches": sum(after.values()) - sum(before.values()), "threads": len(after), "seconds": seconds}
