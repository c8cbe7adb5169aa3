"""Measures Python's print of the lines that weir writes, each of which is flushed: prints.py COUNT RESULT"""

import sys
import time


def main():
    count = int(sys.argv[1])
    start = time.perf_counter()
    for i in range(count):
        print(f"[{time.time():.6f}][my_app]: latency={i % 100000 / 1000}", flush=True)
    elapsed_us = (time.perf_counter() - start) * 1e6
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(f'{{"event_us":{elapsed_us / count:.3f}}}\n')


main()
