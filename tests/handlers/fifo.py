"""The fifo handler, against real named pipes: readers that come late, go, read slowly, and pipes that are not what they were."""

import array
import fcntl
import json
import os
import re
import select
import shutil
import socket
import stat
import subprocess
import sys
import termios
import time

from judge import (ADDER, BUILD, SOURCE, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, environment, main, run, start,
                   wait_for)

PUPPET = os.path.join(BUILD, "tests", "support", "puppet")
PIPE_BUF = 4096
FULL, REJECTED = 0, 1  # in "dropped"
TIMEOUT, TOO_LARGE, NOT_CREATED = -8, -13, -14


def config_of(path, shutdown="10s", **options):
    handler = {"type": "fifo", "path": path, "retry_min": "10ms", "retry_max": "50ms", "wait_step": "10ms", **options}
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"pipe": handler}, "groups": {"*": "pipe"}}


def make_fifo(folder, name="fifo"):
    path = os.path.join(folder, name)
    os.mkfifo(path)
    return path


class Reader:
    """Has a named pipe open for reading, and reads when it is told to."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.data = b""

    def read(self):
        """Takes what is there; answers whether it was the end of the file."""
        while True:
            try:
                part = os.read(self.fd, 65536)
            except BlockingIOError:
                return False
            if not part:
                return True
            self.data += part

    def read_until(self, condition, what):
        def holds():
            select.select([self.fd], [], [], 0.01)
            self.read()
            return condition()
        wait_for(holds, what, 60)

    def read_lines(self, count):
        self.read_until(lambda: self.data.count(b"\n") >= count, f"{count} lines")
        return self.events()

    def read_to_end_of(self, program):
        """Until a program has ended, and all that it wrote was read."""
        while program.poll() is None:
            select.select([self.fd], [], [], 0.01)
            self.read()
        self.read()
        return self.events()

    def events(self):
        assert not self.data or self.data.endswith(b"\n"), self.data[-100:]
        return [json.loads(line) for line in self.data.decode("ascii").splitlines()]

    def close(self):
        os.close(self.fd)


class Puppet:
    """A program that does one thing after the other."""

    def __init__(self, config, folder, **env):
        self.errors = os.path.join(folder, "errors")
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.program = subprocess.Popen([PUPPET], env=environment(WEIR_CONFIG=config, **env), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, text=True)

    def begin(self, *words):
        self.program.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.program.stdin.flush()

    def answer(self):
        return json.loads(self.program.stdout.readline())

    def do(self, *words):
        self.begin(*words)
        return self.answer()

    def ledger(self):
        stats = self.do("ledger", "pipe")
        assert_handler_ledger(stats)
        return stats

    def said(self):
        with open(self.errors, encoding="utf-8") as file:
            return file.read()

    def end(self):
        self.program.stdin.close()
        assert self.program.wait(60) == 0, self.program.returncode

    def pipes(self):
        """The named pipes that it has open: {descriptor: inode}."""
        return pipes_of(self.program.pid)


def pipes_of(pid):
    """The descriptors of a process that are named pipes open for writing: {descriptor: inode}."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            place, status = os.readlink(f"/proc/{pid}/fd/{name}"), os.stat(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue  # it was closed meanwhile
        if place.startswith("/") and stat.S_ISFIFO(status.st_mode):
            found[int(name)] = status.st_ino
    return found


def values_of(events, name="t0"):
    return [event[name] for event in events if name in event]


# ---- Delivering ------------------------------------------------------------------------------------------------


@case
def a_reader_gets_every_event_as_a_json_object(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    program = start(ADDER, "-t", 4, "-n", 30000, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(path))
    events = reader.read_to_end_of(program)
    out, err = program.communicate()
    assert program.returncode == 0 and err == "", err
    report = json.loads(out)
    assert_ledgers(report)
    assert report["flush"] == 0 and report["handlers"]["pipe"]["delivered"] == 120000
    assert all(len(event) == 1 for event in events)
    for thread in range(4):
        assert values_of(events, f"t{thread}") == list(range(30000))


@case
def what_is_queued_at_the_end_of_the_program_reaches_a_reader_that_reads(folder):
    """Much more than the pipe holds."""
    path = make_fifo(folder)
    reader = Reader(path)
    program = start(ADDER, "-q", "-n", 50000, WEIR_CONFIG=config_of(path, shutdown="1m", queue="8MiB"))
    assert values_of(reader.read_to_end_of(program)) == list(range(50000))
    assert program.communicate()[1] == ""


@case
def other_formats_go_through_it_too(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    program = start(ADDER, "-q", "-n", 100, WEIR_CONFIG=config_of(path, format="json"))
    events = reader.read_to_end_of(program)
    assert program.wait() == 0
    assert [event["value"] for event in events] == list(range(100)) and events[0]["group"] == "my_app"


@case
def two_writers_never_mix_their_lines(folder):
    """Long group names make long lines: many writes that nearly fill a page."""
    path = make_fifo(folder)
    reader = Reader(path)
    config = config_of(path, shutdown="1m", format="json", pipe_size="64KiB")
    programs = [start(ADDER, "-q", "-g", letter * 200, "-n", 30000, WEIR_CONFIG=config) for letter in "abc"]
    for program in programs:
        reader.read_to_end_of(program)
        assert program.returncode == 0 and program.communicate()[1] == ""
    events = reader.events()
    for letter in "abc":
        assert [e["value"] for e in events if e["group"] == letter * 200] == list(range(30000))


@case
def writes_are_whole_lines_of_at_most_a_pipe_buf_by_a_thread_that_adds_nothing(folder):
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    path, trace = make_fifo(folder), os.path.join(folder, "trace")
    reader = Reader(path)
    program = start("strace", "-f", "-qq", "-y", "-s", "5000", "-e", "trace=write,writev,open,openat,mknod,mknodat", "-o", trace,
                    ADDER, "-q", "-n", 20000, WEIR_CONFIG=config_of(path, shutdown="1m"), ASAN_OPTIONS="detect_leaks=0")
    events = reader.read_to_end_of(program)
    assert program.returncode == 0 and values_of(events) == list(range(20000)), program.communicate()
    with open(trace, encoding="utf-8") as file:
        calls = file.read().splitlines()
    writes = [call for call in calls if f"<{path}>" in call and " write(" in call]
    lengths = [int(re.search(r", (\d+)(\) += | <unfinished)", call).group(1)) for call in writes]
    assert lengths and max(lengths) <= PIPE_BUF, max(lengths)
    assert all(re.search(r'\\n", \d+', call) for call in writes)
    adding, threads = calls[0].split()[0], {call.split()[0] for call in calls if path in call}
    assert len(threads) == 1 and adding not in threads, "a thread that adds opens or writes"


@case
def the_example_configuration_does_what_it_says(folder):
    path, config = make_fifo(folder), os.path.join(SOURCE, "examples", "config", "fifo.json")
    reader = Reader(path)
    program = start(os.path.join(BUILD, "examples", "first_metric"), WEIR_CONFIG=config, METRICS_FIFO=path)
    assert reader.read_to_end_of(program) == [{"calculate_latency": 12.375}]
    assert program.communicate() == ("", "")
    done = run(WEIR, "check", config)
    assert done.returncode == 0 and "overflow=drop_oldest" in done.stdout, done


# ---- Readers that go ---------------------------------------------------------------------------------------------

# Reads whole pipes full, has every line parsed, and notes the first and the last value of each; one line a read.
CAREFUL_READER = r"""
import json, os, sys
pipe = os.open(sys.argv[1], os.O_RDONLY)
notes = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
while True:
    data = os.read(pipe, 1 << 20)
    if not data:
        break
    values = [json.loads(line)["t0"] for line in data.decode().splitlines()]
    whole = data.endswith(b"\n") and values == list(range(int(values[0]), int(values[0]) + len(values)))
    os.write(notes, b"%d %d %d\n" % (whole, values[0], values[-1]))
"""


def start_careful_reader(path, notes):
    return subprocess.Popen([sys.executable, "-c", CAREFUL_READER, path, notes], stderr=subprocess.PIPE)


def notes_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        return [tuple(int(word) for word in line.split()) for line in file]


@case
def a_reader_that_is_killed_ten_times_sees_no_torn_line_and_nothing_is_lost_but_what_it_held(folder):
    path, count = make_fifo(folder), 1000000
    program = start(ADDER, "-n", count, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(path, shutdown="1m", block_timeout="1h"))
    notes = [os.path.join(folder, f"notes{turn}") for turn in range(11)]
    for turn in range(10):
        reader = start_careful_reader(path, notes[turn])
        wait_for(lambda: len(notes_of(notes[turn])) >= 3, f"reader {turn} to read")
        reader.kill()
        assert reader.communicate()[1] == b""
    reader = start_careful_reader(path, notes[10])
    out, err = program.communicate(timeout=120)
    assert program.returncode == 0, err
    assert reader.communicate(timeout=60)[1] == b""
    report = json.loads(out)
    assert_ledgers(report)
    assert report["handlers"]["pipe"]["delivered"] == count and report["flush"] == 0, report
    reads = [note for path in notes for note in notes_of(path)]
    assert all(whole for whole, _, _ in reads)
    ends = [-1] + [last for _, _, last in reads]
    gaps = [first - 1 - end for end, (_, first, _) in zip(ends, reads)]
    assert min(gaps) == 0 and ends[-1] == count - 1, "a value came twice, or the last ones are missing"
    # a killed reader takes along what it has read and not yet noted: one read at most
    assert sum(gap > 0 for gap in gaps) <= 10 and max(gaps) <= 65536 / len('{"t0": 0.0}\n'), gaps
    assert "nobody reads the named pipe" in err and re.search(r"pipe: back after \d+ s, 0 lost", err), err


@case
def what_the_pipe_holds_waits_there_for_the_next_reader(folder):
    path = make_fifo(folder)
    first = Reader(path)
    puppet = Puppet(config_of(path), folder)
    assert puppet.do("add", "a", 1)["code"] == 0 and puppet.do("flush", -1)["code"] == 0
    first.close()
    puppet.do("add", "b", 2)
    wait_for(lambda: "nobody reads the named pipe" in puppet.said(), "the warning")
    second = Reader(path)
    assert puppet.do("flush", -1)["code"] == 0
    assert second.read_lines(2) == [{"a": 1}, {"b": 2}]
    assert puppet.ledger()["delivered"] == 2
    puppet.end()


@case
def a_synchronous_program_survives_its_reader_and_delivers_to_the_next(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path, delivery="sync", max_wait="100ms"), folder)
    assert puppet.do("add", "a", 1) == {"code": 0, "error": ""}
    assert reader.read_lines(1) == [{"a": 1}], "a synchronous value is there when the call returns"
    reader.close()
    answer = puppet.do("add", "b", 2)
    assert answer["code"] == TIMEOUT, answer
    assert re.fullmatch(f'handler "pipe": nobody reads the named pipe {path}, waited \\d+ ms', answer["error"]), answer
    reader = Reader(path)
    wait_for(lambda: puppet.do("add", "c", 3)["code"] == 0, "a call that delivers")
    events = reader.read_lines(2)
    assert events[0] == {"b": 2} and events[1:] == [{"c": 3}] * (len(events) - 1)
    assert puppet.ledger()["queued"] == 0
    puppet.end()


# ---- Pipes that are not there ------------------------------------------------------------------------------------


@case
def synchronous_calls_and_flushes_fail_by_name_after_max_wait_where_nobody_creates_the_pipe(folder):
    path = os.path.join(folder, "fifo")
    puppet = Puppet(config_of(path, shutdown="200ms", delivery="sync", max_wait="300ms"), folder)
    began = time.monotonic()
    for words in (("add", "a", 1), ("add", "b", 2), ("event", 3), ("flush", -1)):
        answer = puppet.do(*words)
        assert time.monotonic() - began >= 0.3, "the first call waits as long as it was told to"
        assert answer["code"] == NOT_CREATED, answer
        assert re.fullmatch(f'handler "pipe": nobody has created the named pipe {path}, waited \\d+ ms', answer["error"]), answer
    assert puppet.ledger()["queued"] == 5
    puppet.end()
    said = puppet.said()
    assert f"weir: warning: pipe: nobody has created the named pipe {path}, waited" in said, said
    assert re.search("pipe: shutting down while failing: nobody has created .*; not delivered in time: 5 dropped", said), said


@case
def a_synchronous_call_waits_longer_than_block_timeout_when_max_wait_says_so(folder):
    path = os.path.join(folder, "fifo")
    config = config_of(path, shutdown="0s", delivery="sync", max_wait="1500ms", block_timeout="200ms")
    puppet = Puppet(config, folder)
    assert puppet.do("add", "a", 1)["code"] == NOT_CREATED
    puppet.end()


@case
def a_pipe_that_is_created_while_a_synchronous_call_waits_is_found(folder):
    path = os.path.join(folder, "fifo")
    puppet = Puppet(config_of(path, delivery="sync", max_wait="1h"), folder)
    puppet.begin("add", "a", 1)
    wait_for(lambda: len(os.listdir(f"/proc/{puppet.program.pid}/task")) > 2, "the handler's thread")
    make_fifo(folder)
    reader = Reader(path)
    assert puppet.answer()["code"] == 0
    assert reader.read_lines(1) == [{"a": 1}]
    assert puppet.said() == "", "nothing went wrong"
    puppet.end()


@case
def what_was_queued_when_calls_failed_arrives_when_the_pipe_is_there(folder):
    path = os.path.join(folder, "fifo")
    puppet = Puppet(config_of(path, delivery="sync", max_wait="0s"), folder)
    for number in range(100):
        assert puppet.do("add", "n", number)["code"] == NOT_CREATED
    make_fifo(folder)
    reader = Reader(path)
    wait_for(lambda: puppet.do("flush", -1)["code"] == 0, "a flush that succeeds")
    assert values_of(reader.read_lines(100), "n") == list(range(100))
    assert puppet.do("add", "n", 100)["code"] == 0
    assert puppet.ledger()["delivered"] == 101
    puppet.end()
    assert re.search(r"pipe: back after \d+ s, 0 lost", puppet.said()), puppet.said()


@case
def an_asynchronous_program_goes_on_without_the_pipe_and_ends_within_shutdown_timeout(folder):
    """With a max_wait of an hour: whatever waited for that would be seen by the judge's own time limit."""
    for create in (False, True):
        path = os.path.join(folder, f"fifo{create}")
        done = run(ADDER, "-n", 10000, "-f", 50, "-H", "pipe", timeout=60,
                   WEIR_CONFIG=config_of(path, shutdown="100ms", max_wait="1h", wait_step="1h", create=create))
        assert done.returncode == 0, done
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["flush"] == TIMEOUT and report["handlers"]["pipe"]["queued"] == 10000, report
        words = "nobody reads the named pipe" if create else "nobody has created the named pipe"
        assert re.search(f"pipe: shutting down while failing: {words} {path}.*; not delivered in time: 10000 dropped", done.stderr), done


@case
def a_flush_of_an_asynchronous_program_comes_back_by_name_too(folder):
    path = os.path.join(folder, "fifo")
    done = run(ADDER, "-n", 10, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(path, shutdown="0s", max_wait="100ms"))
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["flush"] == NOT_CREATED, report


@case
def a_pipe_and_a_reader_that_come_late_get_everything(folder):
    path = os.path.join(folder, "fifo")
    program = start(ADDER, "-n", 20000, "-f", 60000, "-H", "pipe",
                    WEIR_CONFIG=config_of(path, shutdown="1m", max_wait="1h", queue="1MiB"))
    wait_for(lambda: len(os.listdir(f"/proc/{program.pid}/task")) > 2, "the handler's thread")
    make_fifo(folder)
    reader = Reader(path)
    events = reader.read_to_end_of(program)
    out, err = program.communicate()
    assert err == "" and values_of(events) == list(range(20000)), err
    report = json.loads(out)
    assert_ledgers(report)
    assert report["flush"] == 0, report


# ---- Creating ----------------------------------------------------------------------------------------------------


@case
def create_makes_the_pipe_with_the_mode_that_was_asked_for_whatever_the_umask(folder):
    for umask in ("077", "000"):
        for mode, expected in ((None, 0o600), ("0622", 0o622), ("666", 0o666)):
            path = os.path.join(folder, f"{umask}-{expected:o}")
            options = {"mode": mode} if mode else {}
            env = environment(WEIR_CONFIG=config_of(path, shutdown="0s", max_wait="0s", create=True, **options))
            done = subprocess.run(["sh", "-c", f"umask {umask}; exec {ADDER} -q -f -1"], env=env, timeout=60, capture_output=True)
            assert done.returncode == 0
            assert oct(os.lstat(path).st_mode) == oct(0o010000 | expected), (umask, mode)


@case
def create_leaves_a_pipe_that_exists_as_it_is_and_removes_none(folder):
    path = make_fifo(folder)
    os.chmod(path, 0o640)
    inode = os.lstat(path).st_ino
    reader = Reader(path)
    run(ADDER, "-q", "-n", 3, WEIR_CONFIG=config_of(path, create=True, mode="0666"))
    assert values_of(reader.read_lines(3)) == [0, 1, 2]
    assert os.lstat(path).st_ino == inode and os.lstat(path).st_mode & 0o7777 == 0o640


@case
def what_cannot_be_created_is_said_with_the_reason(folder):
    path = os.path.join(folder, "no", "such", "fifo")
    puppet = Puppet(config_of(path, shutdown="0s", create=True, max_wait="1h"), folder)
    puppet.do("add", "a", 1)
    answer = puppet.do("flush", -1)
    assert answer == {"code": NOT_CREATED, "error": f'handler "pipe": create {path}: No such file or directory'}, answer
    assert puppet.ledger()["queued"] == 1
    puppet.end()


@case
def a_mode_that_is_none_is_refused_when_configuring(folder):
    done = run(ADDER, "-q", WEIR_CONFIG=config_of("x", mode="rw"))
    assert 'handlers.pipe.mode: "rw" is not a mode; allowed: octal digits, like 0640' in done.stderr, done.stderr


@case
def the_pipe_is_as_large_as_was_asked_for(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path, pipe_size="1MiB"), folder)
    puppet.do("add", "a", 1)
    assert reader.read_lines(1) == [{"a": 1}]
    assert fcntl.fcntl(reader.fd, fcntl.F_GETPIPE_SZ) == 1 << 20
    puppet.end()


# ---- What is no pipe ---------------------------------------------------------------------------------------------


def make_wrong(folder, name, kind):
    path = os.path.join(folder, name)
    if kind == "a regular file":
        open(path, "wb").close()
    elif kind == "a symbolic link":
        os.symlink(make_fifo(folder, name + "-target"), path)
    elif kind == "a folder":
        os.mkdir(path)
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
    return path


KINDS = ("a regular file", "a symbolic link", "a folder", "a socket")


@case
def anything_but_a_pipe_is_refused(folder):
    for number, kind in enumerate(KINDS):
        path = make_wrong(folder, str(number), kind)
        puppet = Puppet(config_of(path, shutdown="0s", max_wait="1h"), folder)
        puppet.do("add", "a", 1)
        answer = puppet.do("flush", -1)
        assert answer == {"code": NOT_CREATED, "error": f'handler "pipe": {path} is {kind}, not a named pipe'}, answer
        assert puppet.ledger()["queued"] == 1
        puppet.end()
        assert not os.path.isfile(path) or os.path.getsize(path) == 0


@case
def a_device_is_refused_and_not_even_opened(folder):
    puppet = Puppet(config_of("/dev/null", shutdown="0s", max_wait="1h"), folder)
    puppet.do("add", "a", 1)
    answer = puppet.do("flush", -1)
    assert answer["error"] == 'handler "pipe": /dev/null is a device, not a named pipe', answer
    puppet.end()


@case
def what_takes_the_place_of_the_pipe_is_refused_until_there_is_a_pipe_again(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path, max_wait="1h"), folder)
    sent = 0
    for number, kind in enumerate(KINDS):
        puppet.do("add", "n", sent)
        assert puppet.do("flush", -1)["code"] == 0
        sent += 1
        assert values_of(reader.read_lines(1), "n") == [sent - 1]
        wrong = make_wrong(folder, str(number), kind)
        os.unlink(path)
        os.rename(wrong, path)
        puppet.do("reload")
        puppet.do("add", "n", sent)
        answer = puppet.do("flush", -1)
        assert answer == {"code": NOT_CREATED, "error": f'handler "pipe": {path} is {kind}, not a named pipe'}, answer
        if kind == "a regular file":
            assert os.path.getsize(path) == 0
        os.rmdir(path) if kind == "a folder" else os.unlink(path)
        reader.read_until(lambda: reader.read(), "the end of the old pipe")
        reader.close()
        make_fifo(folder)
        reader = Reader(path)
        wait_for(lambda: puppet.do("flush", -1)["code"] == 0, "a flush that succeeds")
        assert values_of(reader.read_lines(1), "n") == [sent]
        reader.data = b""
        sent += 1
    assert puppet.ledger()["delivered"] == sent
    puppet.end()


# ---- The descriptor ----------------------------------------------------------------------------------------------


@case
def the_descriptor_stays_open_while_idle_over_reloads_and_over_other_configurations(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    config = os.path.join(folder, "config.json")

    def write(**more):
        with open(config, "w", encoding="utf-8") as file:
            json.dump({**config_of(path), **more}, file)

    write()
    puppet = Puppet("", folder)
    assert puppet.do("configure", config)["code"] == 0
    puppet.do("add", "a", 1)
    assert puppet.do("flush", -1)["code"] == 0
    pipes = puppet.pipes()
    assert list(pipes.values()) == [os.stat(path).st_ino], pipes
    assert not reader.read(), "the end of the file, with an idle writer"
    for number in range(3):
        assert puppet.do("reload")["code"] == 0
        puppet.do("add", "b", number)
        assert puppet.do("flush", -1)["code"] == 0
        assert puppet.pipes() == pipes and not reader.read()
    write(groups={"*": "pipe", "my_app.noise": []})
    assert puppet.do("configure", config)["code"] == 0
    puppet.do("add", "c", 1)
    assert puppet.do("flush", -1)["code"] == 0
    assert puppet.pipes() == pipes and not reader.read()
    assert len(reader.events()) == 5
    assert puppet.ledger()["delivered"] == 5
    puppet.end()
    assert reader.read(), "at the end of the program comes the end of the file"
    assert puppet.said() == "", puppet.said()


@case
def the_descriptor_is_closed_on_exec_and_does_not_block(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path), folder)
    puppet.do("add", "a", 1)
    puppet.do("flush", -1)
    (number,) = puppet.pipes()
    with open(f"/proc/{puppet.program.pid}/fdinfo/{number}", encoding="ascii") as file:
        flags = int(re.search(r"flags:\s*(\d+)", file.read()).group(1), 8)
    assert flags & os.O_NONBLOCK and flags & os.O_CLOEXEC and flags & os.O_ACCMODE == os.O_WRONLY, oct(flags)
    puppet.end()
    reader.close()


@case
def a_pipe_that_was_replaced_is_left_for_the_new_one(folder):
    path = make_fifo(folder)
    old = Reader(path)
    puppet = Puppet(config_of(path), folder)
    for reload in (True, False):
        puppet.do("add", "before", 1)
        assert puppet.do("flush", -1)["code"] == 0
        os.rename(make_fifo(folder, "other"), path)
        new = Reader(path)
        if reload:
            puppet.do("reload")
            puppet.do("add", "after", 2)
            assert puppet.do("flush", -1)["code"] == 0
        else:  # noticed by itself, half a second later
            def adds_until_it_arrives():
                assert puppet.do("add", "after", 2)["code"] == 0 and puppet.do("flush", -1)["code"] == 0
                new.read()
                return new.data
            wait_for(adds_until_it_arrives, "values in the new pipe")
        assert new.read_lines(1)[-1] == {"after": 2}
        old.read_until(lambda: old.read(), "the end of the old pipe")
        assert old.events()[0] == {"before": 1}
        old.close()
        old, old.data = new, b""
    ledger = puppet.ledger()
    assert ledger["delivered"] == ledger["offered"]
    puppet.end()


@case
def a_pipe_that_was_removed_is_waited_for_anew(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path, max_wait="100ms"), folder)
    puppet.do("add", "a", 1)
    assert puppet.do("flush", -1)["code"] == 0
    os.unlink(path)
    puppet.do("reload")
    puppet.do("add", "b", 2)
    assert puppet.do("flush", -1)["code"] == NOT_CREATED
    reader.read_until(lambda: reader.read(), "the end of the old pipe")
    make_fifo(folder)
    other = Reader(path)
    wait_for(lambda: puppet.do("flush", -1)["code"] == 0, "a flush that succeeds")
    assert reader.events() == [{"a": 1}] and other.read_lines(1) == [{"b": 2}]
    assert puppet.ledger()["delivered"] == 2
    puppet.end()


@case
def a_descriptor_that_now_belongs_to_somebody_else_is_left_alone(folder):
    path, strangers = make_fifo(folder), os.path.join(folder, "strangers")
    reader = Reader(path)
    program = start(os.path.join(BUILD, "tests", "support", "closer"), strangers, WEIR_CONFIG=config_of(path))
    assert reader.read_to_end_of(program) == [{"before": 1}, {"after": 2}]
    assert program.returncode == 0, program.communicate()
    assert os.path.getsize(strangers) == 0


# ---- Slow readers ------------------------------------------------------------------------------------------------


@case
def a_reader_that_does_not_read_stops_nobody_under_the_drop_policies(folder):
    """With a block_timeout and a max_wait of an hour: whatever waited for those would be seen by the judge's own time limit."""
    path = make_fifo(folder)
    reader = Reader(path)
    for policy in ("drop_newest", "drop_oldest"):
        config = config_of(path, shutdown="100ms", overflow=policy, queue="64KiB", block_timeout="1h", max_wait="1h")
        done = run(ADDER, "-t", 2, "-n", 100000, "-H", "pipe", timeout=60, WEIR_CONFIG=config)
        assert done.returncode == 0, done
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["process"]["added"] == 200000 and report["handlers"]["pipe"]["dropped"][FULL] > 0, report
        assert "not delivered in time" in done.stderr, done.stderr
    reader.read()
    reader.events()


@case
def a_full_pipe_is_said_and_recovers(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    config = config_of(path, shutdown="1m", max_wait="300ms", overflow="drop_newest")
    program = start(ADDER, "-n", 20000, "-f", 0, "-H", "pipe", "-x", "sleep", WEIR_CONFIG=config)
    report = json.loads(program.stdout.readline())
    assert report["flush"] == TIMEOUT
    assert_ledgers(report)
    said = program.stderr.readline()
    assert re.search(f"pipe: the reader of the named pipe {path} takes nothing, waited \\d+ ms; retrying", said), said
    assert values_of(reader.read_lines(20000)) == list(range(20000))
    assert re.search("pipe: back after", program.stderr.readline())
    program.kill()
    program.communicate()


@case
def a_slow_reader_makes_progress_that_calls_wait_for(folder):
    """A batch takes the reader longer than block_timeout, but it is never without progress for so long."""
    path = make_fifo(folder)
    reader = Reader(path)
    config = config_of(path, shutdown="1m", overflow="block", block_timeout="2s", queue="640KiB", batch=20000)
    program = start(ADDER, "-n", 40000, "-f", -1, "-H", "pipe", WEIR_CONFIG=config)
    while program.poll() is None:
        select.select([reader.fd], [], [], 0.04)
        try:
            reader.data += os.read(reader.fd, 4096)
        except BlockingIOError:
            continue
        time.sleep(0.03)  # not judged: makes it slow
    reader.read()
    out, err = program.communicate()
    report = json.loads(out)
    assert_ledgers(report)
    assert report["handlers"]["pipe"]["delivered"] == 40000 and err == "", (report, err)
    assert values_of(reader.events()) == list(range(40000))


# ---- Large events ------------------------------------------------------------------------------------------------


@case
def a_line_longer_than_a_pipe_buf_is_refused_counted_and_said(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path, delivery="sync"), folder)
    assert puppet.do("add", "a", 1)["code"] == 0
    answer = puppet.do("event", 1000)
    assert answer["code"] == TOO_LARGE, answer
    assert re.fullmatch('handler "pipe": an event of \\d{5} bytes: a line of it is longer than the 4096 bytes that a named pipe '
                        'takes at once', answer["error"]), answer
    assert puppet.do("add", "b", 2)["code"] == 0
    assert reader.read_lines(2) == [{"a": 1}, {"b": 2}]
    ledger = puppet.ledger()
    assert ledger["delivered"] == 2 and ledger["dropped"][REJECTED] == 1000, ledger
    puppet.end()
    assert re.search("pipe: 1000 refused for good: an event of", puppet.said()), puppet.said()


@case
def small_and_too_large_events_in_one_batch_each_go_their_way(folder):
    """All are queued before the pipe is there, so that they come in one batch."""
    path = os.path.join(folder, "fifo")
    puppet = Puppet(config_of(path, max_wait="1h"), folder)
    sizes = (1, 1000, 1, 1, 900, 300, 1, 100, 800, 1)
    for size in sizes:
        puppet.do("event", size)
    make_fifo(folder)
    reader = Reader(path)
    assert puppet.do("flush", 60000)["code"] == -9, "some were dropped"
    events = reader.read_lines(6)
    assert [len(event) for event in events] == [size for size in sizes if size < 300]
    ledger = puppet.ledger()
    assert ledger["delivered"] == 105 and ledger["dropped"][REJECTED] == 3000, ledger
    puppet.end()


@case
def a_line_of_exactly_a_pipe_buf_fits_and_one_byte_more_does_not(folder):
    """json with metadata: the text's length decides on the line's."""
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path, format="json", delivery="sync"), folder)
    assert puppet.do("note", 100)["code"] == 0
    rest = len(reader_line(reader)) - 100
    assert puppet.do("note", PIPE_BUF - rest)["code"] == 0
    assert len(reader_line(reader)) == PIPE_BUF
    assert puppet.do("note", PIPE_BUF - rest + 1)["code"] == TOO_LARGE
    puppet.end()
    reader.read()
    assert reader.data == b""


def reader_line(reader):
    reader.read_lines(1)
    line, reader.data = reader.data, b""
    return line


@case
def an_event_of_many_lines_goes_out_in_whole_lines(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path, format="json", delivery="sync"), folder)
    puppet.begin("event", 1000)
    events = reader.read_lines(1000)
    assert puppet.answer()["code"] == 0
    assert [event["name"] for event in events] == [f"n{i}" for i in range(1000)]
    assert puppet.ledger()["delivered"] == 1000
    puppet.end()


# ---- Fork --------------------------------------------------------------------------------------------------------


@case
def a_forked_child_writes_through_a_descriptor_of_its_own_and_one_that_adds_nothing_has_none(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    puppet = Puppet(config_of(path), folder)
    puppet.do("add", "parent", 1)
    assert puppet.do("flush", -1)["code"] == 0
    pipes = puppet.pipes()
    idle = puppet.do("fork")["code"]
    assert pipes
    wait_for(lambda: pipes_of(idle) == {}, "the child to give up what it inherited")
    puppet.do("fork", "child")
    assert puppet.do("reap")["code"] == 0
    puppet.do("add", "parent", 2)
    assert puppet.do("flush", -1)["code"] == 0
    assert puppet.pipes() == pipes
    assert reader.read_lines(3) == [{"parent": 1}, {"child": 1}, {"parent": 2}]
    assert puppet.ledger()["delivered"] == 2
    puppet.end()


@case
def a_fork_gets_through_while_the_handler_waits_for_the_pipe_or_for_room_in_it(folder):
    for waiting in ("pipe", "room"):
        os.makedirs(os.path.join(folder, waiting))
        path = os.path.join(folder, waiting, "fifo")
        puppet = Puppet(config_of(path, shutdown="1m", max_wait="1h", queue="8MiB"), folder)
        if waiting == "room":
            os.mkfifo(path)
            reader = Reader(path)
            for _ in range(400):  # some 200 KiB
                puppet.do("event", 40)
            wait_for(lambda: puppet.ledger()["delivered"] > 0 and is_full(reader), "a full pipe")
        else:
            puppet.do("event", 40)
        puppet.do("fork", "child")
        if waiting == "pipe":
            os.mkfifo(path)
            reader = Reader(path)
        expected = 402 if waiting == "room" else 2
        puppet.begin("reap")
        reader.read_until(lambda: b'"child": 1.0' in reader.data, "the child's value")
        assert puppet.answer()["code"] == 0
        puppet.do("add", "parent", 1)
        assert puppet.do("flush", -1)["code"] == 0
        reader.read_lines(expected)
        assert puppet.ledger()["queued"] == 0
        puppet.end()
        assert "fork" not in puppet.said(), puppet.said()
        reader.close()


def is_full(reader):
    """Whether there is so much in the pipe that its writer is waiting, or soon will be."""
    held = array.array("i", [0])
    fcntl.ioctl(reader.fd, termios.FIONREAD, held)
    return held[0] > 48 * 1024


main()
