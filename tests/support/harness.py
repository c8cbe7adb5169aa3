"""Shared by the Python tests: paths of built files, running programs, and TAP output.

A test script is a file of functions marked with @case. A function's name is the sentence shown in the output; it checks with plain
assert statements."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = os.environ.get("WEIR_TEST_BUILD", os.path.join(os.getcwd(), "build"))
SOURCE = os.environ.get("WEIR_TEST_SOURCE", os.getcwd())
PLUGINS = os.path.join(BUILD, "plugins", ".libs")
SOURCE_PLUGINS = os.path.join(BUILD, "plugins", "sources", ".libs")
PLUGIN_PATH = SOURCE_PLUGINS + ":" + PLUGINS
TEST_PLUGINS = os.path.join(BUILD, "tests", "support", "plugins", ".libs")
ADDER = os.path.join(BUILD, "tests", "support", "adder")
SANITIZED = os.environ.get("WEIR_TEST_SANITIZED", "")  # the compiler's options for sanitizers

_cases = []


def __getattr__(name):
    """`from harness import WEIR`: the path of the command. In a build without it (--disable-tools) the script skips."""
    if name != "WEIR":
        raise AttributeError(name)
    if os.environ.get("WEIR_TEST_WITHOUT_COMMAND"):
        print("1..0 # SKIP needs the weir command")
        sys.exit(0)
    return os.path.join(BUILD, "tools", "weir")


class Skip(Exception):
    """Raised by a case that cannot run on this machine; its text is the reason."""


def skip_with_coverage():
    """For cases that such a program fails: it has symbols of its own, and writes files of its own when it ends."""
    if "--coverage" in os.environ.get("WEIR_TEST_CC", ""):
        raise Skip("not with a program that counts which lines it runs")


def case(function):
    _cases.append(function)
    return function


def environment(**more):
    """The environment of a program under test, without the caller's variables that weir reads."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_CONFIG", "WEIR_LOG", "WEIR_TEE", "BENCHMARK_AI"))}
    env["WEIR_PLUGIN_PATH"] = PLUGIN_PATH + ":" + TEST_PLUGINS
    for key, value in more.items():
        env[key] = json.dumps(value) if isinstance(value, dict) else str(value)
    return env


def skip_fork_under_sanitizers():
    if SANITIZED:
        raise Skip("the sanitizers' allocators and thread lists do not survive a fork of a threaded program")


def need_access_for_others():
    """For cases in which root runs a built program as another user: who may not even enter the folder of the checkout, if it is private."""
    folder = PLUGINS
    while os.geteuid() == 0 and folder != "/":
        if not os.stat(folder).st_mode & 0o001:
            raise Skip(f"other users cannot enter {folder}")
        folder = os.path.dirname(folder)


def become_nobody():
    """For preexec_fn: root becomes a user without rights."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def run(*command, timeout=300, cwd=None, stdin=None, **env):
    """Runs a program to its end. Returns a subprocess.CompletedProcess with text in stdout and stderr."""
    return subprocess.run([str(c) for c in command], env=environment(**env), timeout=timeout, cwd=cwd, stdin=stdin,
                          capture_output=True, text=True, errors="surrogateescape")


def start(*command, cwd=None, stdin=None, **env):
    """Starts a program. The caller ends it."""
    return subprocess.Popen([str(c) for c in command], env=environment(**env), cwd=cwd, stdin=stdin, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def start_in_steps(*arguments, **env):
    """Starts the adder with the option -i N: it waits after every N values for `go_on`, or for
    `communicate`, which ends all waiting."""
    return start(ADDER, *arguments, stdin=subprocess.PIPE, **env)


def go_on(program):
    program.stdin.write("\n")
    program.stdin.flush()


def wait_for(condition, what, seconds=240):
    """Waits until a condition holds. The time limit only bounds a failure; it is not an assertion on speed."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out waiting for " + what
        time.sleep(0.01)


def is_idle(pid):
    """Whether all threads of a process wait or are stopped. One that is ready and gets no processor does not wait."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[0] not in "ST":
                    return False
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return True


def wait_until_still(pid, read, what):
    """Waits until a program can do nothing more: at 50 looks its threads wait, and `read` has returned the same since the first of them, which
    is not 0. What a thread does that gets no processor is waited for, so this does not depend on the machine's speed."""
    last, looks = None, 0

    def is_still():
        nonlocal last, looks
        before, last = last, read()
        if not last or last != before:
            looks = 0
        elif is_idle(pid):
            looks += 1
        return looks >= 50
    wait_for(is_still, what)


def free_port(kind=socket.SOCK_STREAM):
    """A port of this machine that is free, and that the system gives to no program which asks for any port."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    while True:
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", random.randrange(10000, first) if first > 12000 else 0))
                return probe.getsockname()[1]
            except OSError:
                continue


def await_day():
    """Waits if the day, UTC, is about to end: an interval of a day would end in the middle of the case."""
    while time.time() % 86400 > 86400 - 60:
        time.sleep(1)


def size_of(path):
    """0: there is no such file."""
    return os.path.getsize(path) if os.path.exists(path) else 0


def whole_lines(path):
    """How many lines a file has that is being written: the last one may not be whole yet. 0: there is no such file."""
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as file:
        return file.read().count(b"\n")


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def without_waits(log):
    """The log without the warning that a shutdown takes longer than a second: a busy machine can cause it."""
    return "".join(line for line in log.splitlines(True) if "shutting down: waiting" not in line)


def assert_process_ledger(stats):
    assert stats["added"] == stats["taken"] + stats["in_rings"], stats


def assert_handler_ledger(stats):
    received = stats["offered"] + stats["recovered"]
    accounted = stats["delivered"] + sum(stats["dropped"]) + stats["queued"] + stats["spooled"] + stats.get("summing", 0)
    assert received == accounted, stats


def assert_ledgers(report):
    """The ledgers that `adder` prints."""
    assert_process_ledger(report["process"])
    for stats in report["handlers"].values():
        assert_handler_ledger(stats)


def _report(number, function, folder):
    name = function.__name__.replace("_", " ")
    try:
        if function.__code__.co_argcount:
            function(folder)
        else:
            function()
        print(f"ok {number} - {name}", flush=True)
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}", flush=True)
    except Exception:  # any exception in a case fails that case only
        for line in traceback.format_exc().splitlines():
            print("# " + line)
        print(f"not ok {number} - {name}", flush=True)


def main():
    """SIGPIPE stays ignored, as Python has it: a write to a peer that has gone is an exception. Programs get the default again."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores SIGINT in background jobs
    wanted = sys.argv[1:]
    cases = [c for c in _cases if not wanted or any(w in c.__name__ for w in wanted)]
    print(f"1..{len(cases)}", flush=True)
    for number, function in enumerate(cases, 1):
        folder = tempfile.mkdtemp(prefix="weir-test-")
        try:
            _report(number, function, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
