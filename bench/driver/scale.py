"""The amount of work: FULL for reliable figures, QUICK for a first impression."""

from dataclasses import dataclass

BURST = 2000  # values that a program adds between two pauses; in lines mode the number of values is a multiple of it


@dataclass(frozen=True)
class Scale:
    rounds: int  # not counting the warm-up round
    bursts: int
    values: int  # in lines mode
    arrivals: int
    idle_s: float
    stamps: int
    children: int
    synced: int
    scrapes: int
    datagrams_s: float  # seconds of each try of a rate
    datagrams_steps: int
    lines: int  # into a pipe
    charted: int  # values of all series

    def sizes(self, task, share=1):
        """Returns how much a task adds; share: fraction of the usual number of values."""
        threads = task.get("threads", 1)
        if task.get("mode") == "lines":
            unit = BURST * threads
            return {"values": max(round(self.values * share / unit), 1) * unit}
        return {"bursts": max(self.bursts * 2 // (threads + 1), 10)}


FULL = Scale(rounds=9, bursts=200, values=2000000, arrivals=25, idle_s=10, stamps=20000, children=100, synced=50000, scrapes=20,
             datagrams_s=0.5, datagrams_steps=2, lines=2000000, charted=10000000)
QUICK = Scale(rounds=3, bursts=25, values=200000, arrivals=8, idle_s=2, stamps=2000, children=30, synced=5000, scrapes=5,
              datagrams_s=0.25, datagrams_steps=1, lines=500000, charted=1000000)
