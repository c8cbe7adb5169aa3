"""Wake-ups of an idle program: the kernel's count of context switches of all its threads."""

import os
import re
import subprocess
import time

from jobs import FILE
from programs import Void, write_config

QUIET_S = 1  # rings become idle after 10 ms; the rest is a margin for a busy machine


def count_switches(pid):
    """Returns the number of context switches of each thread so far."""
    switches = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
            text = file.read()
        name = re.search(r"^Name:\s*(.*)$", text, re.M).group(1)
        switches[f"{thread} ({name})"] = sum(int(n) for n in re.findall(r"voluntary_ctxt_switches:\s*(\d+)", text))
    return switches


def watch_idle(workspace, seconds):
    """Returns the number of wake-ups in the given number of seconds."""
    config = write_config(workspace, [{**FILE, "path": workspace.file("weir.0")}])
    with subprocess.Popen([workspace.program("weir/idle"), config], env=workspace.environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as program:
        try:
            if program.stdout.readline() != "idle\n":
                raise Void("idle: exited early")
            time.sleep(QUIET_S)
            before = count_switches(program.pid)
            time.sleep(seconds)
            after = count_switches(program.pid)
        finally:
            program.stdin.close()
            program.wait(60)
    return {"switches": sum(after.values()) - sum(before.values()), "threads": len(after), "seconds": seconds}
