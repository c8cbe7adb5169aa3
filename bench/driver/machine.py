"""The machine, its load, and the CPU time stolen by the host."""

import os
import platform


def describe():
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"processor": model, "processors": os.cpu_count(), "kernel": platform.release(), "load": os.getloadavg()[0]}


def is_busy(machine):
    return machine["load"] > 0.5 * machine["processors"]


def processor_time():
    """Returns clock ticks since boot: (stolen, total). Stolen ticks are those that the host of a virtual machine gave to others while a
    processor here had work."""
    with open("/proc/stat", encoding="utf-8") as file:
        ticks = [int(count) for count in file.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def stolen_share(before, after):
    """Returns the stolen share of the CPU time between two calls of processor_time, from 0 to 1."""
    return (after[0] - before[0]) / max(after[1] - before[1], 1)
