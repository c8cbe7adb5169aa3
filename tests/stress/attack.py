"""Attacks the core, for about a quarter of an hour: what the stress programs do in the tests, many times as often. For ./dev stress.

Forks in six modes while threads of the child use weir first: fork and _Fork, from a thread with a ring and from one without (heirs), from
several threads at once (forkers), in a signal handler (split); with a fork handler that adds (early_child) and beside busy handlers.
Signals at 10 kHz; processes that share journal and spool and are killed while they start; 100 threads at exit; readers of the ledger;
cancelled threads; edited configurations. Each program compares the ledger with what its calls returned. A line for each program and
build, and a total at the end."""

import argparse
import os
import re
import signal
import subprocess
import sys
import time

SOURCE = os.environ["WEIR_TEST_SOURCE"]
DEFAULT_MINUTES = 15
BUILDS = {"plain": ("build", ""), "asan": ("build-asan", "address"), "tsan": ("build-tsan", "thread")}
SLOWER = {"plain": 1, "asan": 4, "tsan": 8}  # how much less is done in a build

# How often a program does what it does in the tests (WEIR_TEST_FACTOR), and how often it is run, in a quarter of an hour.
PROGRAMS = {
    "heirs": (4, 1),
    "forkers": (4, 1),
    "split": (4, 1),
    "early_child": (10, 1),
    "busy_at_fork": (1, 10),
    "torn": (1, 5),
    "interrupts": (1, 5),
    "signals": (1, 3),
    "held": (1, 3),
    "exits": (1, 3),
    "killed_starting": (17, 1),
    "starters": (1, 4),
    "calls_at_exit": (8, 1),
    "shutdown_twice": (300, 1),
    "stats_pollers": (8, 1),
    "cancelled": (5, 1),
    "edits": (15, 1),
    "small_stack": (1, 3),
    "late_config": (1, 5),
    "lifecycle": (1, 5),
}


def read_not_sanitized():
    """Programs that the tests do not run under a sanitizer."""
    with open(os.path.join(SOURCE, "tests/stress/stress.am"), encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    lines = re.findall(r"^(?:stress_forking_programs =|if !SANITIZED\nTESTS \+=) (.*)$", text, re.MULTILINE)
    return re.findall(r"tests/stress/(\w+)\.p", " ".join(lines))


def environment_of(build, factor):
    folder, sanitizer = BUILDS[build]
    folder = os.path.join(SOURCE, folder)
    environment = {name: value for name, value in os.environ.items() if name not in ("WEIR_CONFIG", "WEIR_LOG", "BENCHMARK_AI")}
    return {
        **environment,
        "WEIR_PLUGIN_PATH": ":".join(os.path.join(folder, part) for part in ("plugins/sources/.libs", "plugins/.libs")),
        "WEIR_TEST_BUILD": folder,
        "WEIR_TEST_SANITIZED": sanitizer,
        "WEIR_TEST_FACTOR": str(factor),
        "ASAN_OPTIONS": "verify_asan_link_order=0:detect_stack_use_after_return=1",
        "TSAN_OPTIONS": "report_thread_leaks=0:halt_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run_once(path, environment, limit):
    """Runs a program in a session of its own, so that its processes end with it. Returns its exit status, None if it took too long, and
    its output."""
    with subprocess.Popen(
        [path], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output


def describe(status):
    if status is None:
        return "takes too long"
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def run_program(build, name, scale):
    """Returns "passed", "failed" or "skipped", and a remark."""
    factor, repeats = PROGRAMS[name]
    factor = max(factor * scale / SLOWER[build], min(factor, 1))
    repeats = max(round(repeats * scale / SLOWER[build]), 1)
    path = os.path.join(SOURCE, BUILDS[build][0], "tests/stress", name + ".p")
    for number in range(1, repeats + 1):
        status, output = run_once(path, environment_of(build, factor), 600 + 60 * factor)
        lines = output.strip().splitlines()
        if status == 77:
            return "skipped", lines[-1] if lines else "no reason given"
        if status != 0:
            return "failed", "\n".join([f"run {number}: {describe(status)}"] + ["    " + line for line in lines[-40:]])
    what = f"{factor:.3g} times as much" if factor != 1 else ""
    runs = f"{repeats} runs" if repeats != 1 else ""
    return "passed", ", ".join(filter(None, [what, runs, lines[-1] if lines else ""]))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev stress", description="attacks the core with threads, forks, signals and kills")
    parser.add_argument("--minutes", type=float, default=DEFAULT_MINUTES, help="about how long, on two processors; default: 15")
    parser.add_argument("--build", action="append", choices=list(BUILDS), help="only in this build; default: all")
    parser.add_argument("program", nargs="*", help="only these; default: all")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.program if name not in PROGRAMS]
    if arguments.minutes <= 0 or unknown:
        parser.error(f"no such program: {unknown[0]}; allowed: {', '.join(PROGRAMS)}" if unknown else "--minutes: must be above 0")
    return arguments


def main():
    arguments = parse_arguments()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    not_sanitized = read_not_sanitized()
    for build in arguments.build or BUILDS:
        for name in arguments.program or PROGRAMS:
            start = time.monotonic()
            if build != "plain" and name in not_sanitized:
                result, remark = "skipped", "its forked children start threads, or it has a malloc of its own"
            else:
                result, remark = run_program(build, name, arguments.minutes / DEFAULT_MINUTES)
            counts[result] += 1
            print(f"{result:7} {build:5} {name:15} {time.monotonic() - start:6.1f} s  {remark}", flush=True)
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return counts["failed"] != 0 or counts["passed"] == 0


if __name__ == "__main__":
    sys.exit(main())
