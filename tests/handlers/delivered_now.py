"""Synchronous calls that deliver on their own thread: to a file, a pipe and standard output; and when they cannot."""

import json
import os
import re
import shutil
import subprocess

from harness import ADDER, Skip, assert_ledgers, case, environment, lines_of, main, run, skip_with_coverage, wait_for, whole_lines, without_waits


def config(**handler):
    return {"settings": {"shutdown_timeout": "1m"}, "handlers": {"h": {"delivery": "sync", "block_timeout": "1m", **handler}},
            "groups": {"*": "h"}}


def need_strace():
    if not shutil.which("strace"):
        raise Skip("strace is not installed")


def adding(folder, count, handler, *, stdout=None, traced=True, more=()):
    """Starts a program that adds; returns it, and the path of the trace of its writes."""
    trace = os.path.join(folder, "trace")
    tracing = ["strace", "-f", "-qq", "-s", "200", "-e", "trace=write,pwritev2", "-o", trace] if traced else []
    program = subprocess.Popen([*tracing, ADDER, "-n", str(count), *more], stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=environment(WEIR_CONFIG=config(**handler), ASAN_OPTIONS="detect_leaks=0"))
    return program, trace


def writers(trace):
    """How many of the values were written by the thread that added them, and by others."""
    own = others = 0
    first = None
    for line in lines_of(trace):
        thread = line.split()[0]
        first = first or thread
        if re.search(r'\b(write|pwritev2)\(\d+, .*t0=?.*\\n"', line) and not re.search(r"= -1| <unfinished", line):
            own += thread == main_thread(trace)
            others += thread != main_thread(trace)
    return own, others


def main_thread(trace):
    """The thread that writes last: it prints the ledgers."""
    return lines_of(trace)[-1].split()[0]


def assert_delivered(report, count):
    assert_ledgers(report)
    assert report["handlers"]["h"]["delivered"] == report["handlers"]["h"]["offered"] == count, report


def values_in(lines):
    return [int(re.search(r"t0=(\d+)", line).group(1)) for line in lines]


@case
def a_file_gets_the_values_from_the_calling_thread(folder):
    need_strace()
    path = os.path.join(folder, "out")
    program, trace = adding(folder, 500, {"type": "file", "path": path, "format": "text"}, more=["-H", "h"])
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and without_waits(err) == "", err
    assert_delivered(json.loads(out), 500)
    assert values_in(lines_of(path)) == list(range(500))
    own, others = writers(trace)
    assert own + others == 500 and own > others > 0, (own, others)  # the first one opens the file


@case
def standard_output_that_is_a_file_or_a_pipe_gets_them_from_the_calling_thread(folder):
    need_strace()
    path = os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8") as file:
        program, trace = adding(folder, 300, {"type": "console"}, stdout=file, more=["-q"])
        assert program.communicate(timeout=240)[1] == "" and program.returncode == 0
    assert values_in(lines_of(path)) == list(range(300))
    writing = {line.split()[0] for line in lines_of(trace) if "t0=" in line}
    assert len(writing) == 2, writing  # the worker, for the first value, and the thread that adds
    program, trace = adding(folder, 300, {"type": "console"}, more=["-q"])
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and without_waits(err) == "" and values_in(out.splitlines()) == list(range(300)), err
    assert any("pwritev2(" in line for line in lines_of(trace)) or not can_write_without_waiting()


def can_write_without_waiting():
    reader, writer = os.pipe()
    try:
        os.pwritev(writer, [b"x"], -1, os.RWF_NOWAIT)
    except (AttributeError, OSError):
        return False
    finally:
        os.close(reader)
        os.close(writer)
    return True


@case
def a_full_pipe_is_left_to_the_worker_and_its_mode_is_not_changed(folder):
    reader, writer = os.pipe()
    program, _ = adding(folder, 5000, {"type": "console"}, stdout=writer, traced=False, more=["-q"])
    flags = []
    size = 65536 - 4096
    wait_for(lambda: filled(reader) > size, "the pipe to be full")
    flags.append(os.get_blocking(writer))
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert program.communicate(timeout=240)[1] == "" and program.returncode == 0
    assert values_in(lines) == list(range(5000)) and flags == [True]


def filled(reader):
    import fcntl
    import struct
    import termios
    return struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0\0\0\0"))[0]


@case
def a_pipe_without_a_reader_raises_no_sigpipe(folder):
    reader, writer = os.pipe()
    program, _ = adding(folder, 2000, {"type": "console", "retry_min": "1ms"}, stdout=writer, traced=False, more=["-q"])
    os.close(writer)
    os.read(reader, 100)
    os.close(reader)
    err = program.communicate(timeout=240)[1]
    assert program.returncode == 0 and "gives up" in err, (program.returncode, err)


@case
def a_named_pipe_gets_them_whole_and_in_order(folder):
    path = os.path.join(folder, "pipe")
    os.mkfifo(path)
    program, _ = adding(folder, 20000, {"type": "fifo", "path": path, "format": "text"}, traced=False, more=["-H", "h"])
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and values_in(lines) == list(range(20000)), err
    assert_delivered(json.loads(out), 20000)


@case
def a_full_disk_costs_nothing_that_fits_later(folder):
    skip_with_coverage()
    path = os.path.join(folder, "out")
    done = run("bash", "-c", f"ulimit -f 8; exec {ADDER} -n 300 -q -H h",
               WEIR_CONFIG={**config(type="file", path=path, format="text", retry_min="1ms", block_timeout="20ms"),
                            "settings": {"shutdown_timeout": "100ms"}})
    assert done.returncode >= 0, done  # not killed by SIGXFSZ
    assert "File too large" in done.stderr, done.stderr
    lines = lines_of(path)
    assert values_in(lines) == list(range(len(lines))) and os.path.getsize(path) <= 8 * 1024, "a torn line"


@case
def programs_that_share_a_file_keep_their_lines_whole_and_in_order(folder):
    path = os.path.join(folder, "out")
    programs = [adding(folder, 3000, {"type": "file", "path": path, "format": "text"}, traced=False, more=["-g", letter, "-H", "h"])[0]
                for letter in "abc"]
    for program in programs:
        out, err = program.communicate(timeout=240)
        assert program.returncode == 0, err
        assert_delivered(json.loads(out), 3000)
    lines = lines_of(path)
    for letter in "abc":
        assert values_in([line for line in lines if f"[{letter}]" in line]) == list(range(3000))


@case
def a_file_that_is_moved_away_is_followed(folder):
    path, moved = os.path.join(folder, "out"), os.path.join(folder, "moved")
    program, _ = adding(folder, 400, {"type": "file", "path": path, "format": "text"}, traced=False, more=["-p", "5000000", "-H", "h"])
    wait_for(lambda: whole_lines(path) > 20, "values")
    os.rename(path, moved)
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0, err
    assert_delivered(json.loads(out), 400)
    assert values_in(lines_of(moved) + lines_of(path)) == list(range(400))


if __name__ == "__main__":
    main()
