"""Named pipes whose readers are killed within a line: the next reader gets whole lines, and each value that was not read once."""

import fcntl
import json
import os
import re
import subprocess
import sys
from collections import Counter

from fifos import TIMEOUT, Reader, ScriptedApp, config_of, is_full, make_fifo
from harness import become_nobody, case, main, need_access_for_others, wait_for

# Reads so many bytes in small pieces and copies them to a file. If the last argument is 1, it then reads on until it has read the first
# three bytes of an object.
PARTIAL_READER = r"""
import os, sys
pipe, copy, left = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600), int(sys.argv[3])
def take(most):
    data = os.read(pipe, most)
    os.write(copy, data)
    return data
while left:
    left -= len(take(min(left, 997)))
begun = b"" if sys.argv[4] == "1" else b"{"
while not begun.startswith(b"{"):
    while take(1) != b"\n":
        pass
    begun = take(3)
os.close(copy)
os.rename(sys.argv[2], sys.argv[2] + ".done")
sys.stdin.read()  # to the end of the test, if it is not killed before
"""


class PartialReader:
    """Opens the pipe, reads so many bytes, or up to the third byte of a later line, and keeps it open until it is killed."""

    def __init__(self, path, folder, number, size, to_third_byte=False):
        self.copy = os.path.join(folder, f"copy{number}")
        self.process = subprocess.Popen([sys.executable, "-c", PARTIAL_READER, path, self.copy, str(size), str(int(to_third_byte))],
                                        stdin=subprocess.PIPE)

    def wait(self):
        """Waits until it has read everything that it is to read."""
        wait_for(lambda: os.path.exists(self.copy + ".done"), "the reader to read")

    def kill(self):
        """Kills it after that. Returns what it has read."""
        self.wait()
        self.process.kill()
        self.process.wait()
        with open(self.copy + ".done", "rb") as file:
            return file.read()


def lines_in(copies):
    """All lines that have an end."""
    return [line for data in copies for line in data[:data.rfind(b"\n") + 1].splitlines()]


def values_in(copies, prefix):
    """The values whose names begin so, of all whole lines. Each line must be a JSON object."""
    return [value for line in lines_in(copies) for name, value in json.loads(line).items() if name.startswith(prefix)]


def assert_cut(copies):
    assert sum(not data.endswith(b"\n") for data in copies) > len(copies) / 2, "readers were killed within lines"


def name_of(letter, number):
    """Names of different lengths, so that lines begin and end anywhere."""
    return f"{letter}{number}_{'x' * (number % 150)}"


def add_values(app, letter, start, count, base=0):
    for number in range(start, start + count):
        assert app.do("add", name_of(letter, number), base + number)["code"] == 0


def assert_all_delivered(app):
    assert app.do("flush", -1)["code"] == 0
    ledger = app.ledger()
    assert ledger["delivered"] == ledger["offered"] and ledger["queued"] == 0, ledger


@case
def readers_killed_within_a_line_leave_whole_lines_to_the_next_one(folder):
    """The pipe never fills: a call that fails shows that the handler has found the pipe without a reader."""
    path = make_fifo(folder)
    app = ScriptedApp(config_of(path, delivery="sync", max_wait="100ms"), folder)
    rounds, copies = 20, []
    for turn in range(rounds):
        reader = PartialReader(path, folder, turn, 12001 + 97 * turn)
        wait_for(lambda: app.do("add", "open", turn)["code"] == 0, "a reader")
        add_values(app, "v", 150 * turn, 150)
        copies.append(reader.kill())
        wait_for(lambda: app.do("add", "gone", turn)["code"] == TIMEOUT, "the handler to notice")
    last = Reader(path)
    last.read_until(lambda: b'"gone": %d.0}' % (rounds - 1) in last.data, "the last value")
    assert_all_delivered(app)
    last.read()
    app.end()
    assert_cut(copies)
    assert values_in([*copies, last.data], "v") == list(range(150 * rounds)), "each value once, in order"


def read_to_the_end(path, apps, expected):
    """Reads as the last reader, until the last value of each application has come. Returns what it has read."""
    last = Reader(path)
    ends = [b'"%s%d_' % (letter.encode(), count - 1) for letter, count in expected.items()]
    last.read_until(lambda: all(end in last.data for end in ends), "the last values")
    for app in apps:
        assert_all_delivered(app)
        app.end()
    last.read()
    return bytes(last.data)


def wait_until_full(path):
    """The pipe has a reader."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    wait_for(lambda: is_full(fd), "a full pipe")
    os.close(fd)


def wait_until_noticed(app):
    """With a value, since a handler without one does not look."""
    def notices():
        assert app.do("add", "gone", 1)["code"] == 0
        return "has no reader" in app.do("flush", -1)["error"]
    wait_for(notices, "the handler to notice")


@case
def of_a_full_pipe_no_line_is_torn_or_lost(folder):
    """Data that is written again may take more room than before: what does not fit follows."""
    path = make_fifo(folder)
    app = ScriptedApp(config_of(path, shutdown="1m", max_wait="100ms", queue="8MiB"), folder)
    rounds, count, copies = 10, 1500, []
    for turn in range(rounds):
        reader = PartialReader(path, folder, turn, 5001 + 97 * turn)
        add_values(app, "v", count * turn, count)  # about two pipes
        reader.wait()
        wait_until_full(path)
        copies.append(reader.kill())
        wait_until_noticed(app)
    copies.append(read_to_the_end(path, [app], {"v": rounds * count}))
    assert_cut(copies[:-1])
    assert values_in(copies, "v") == list(range(count * rounds)), "each value once, in order"


def assert_lines_of_several(copies, bases, count):
    """Each line arrives once, whole or, of those that a reader had begun, its rest. Some of these were completed."""
    whole = [b'{"%s": %d.0}' % (name_of(letter, number).encode(), base + number) for letter, base in bases.items() for number in range(count)]
    rests = {line[3:]: line for line in whole}
    lines = [line for line in lines_in(copies) if line not in (b'{"gone": 1.0}', b'one": 1.0}')]
    assert sorted(rests.get(line, line) for line in lines) == sorted(whole), "each value once"
    begun = Counter(data[-3:] for data in copies[:-1])
    torn = Counter(rests[line][:3] for line in lines if line in rests)
    assert not torn - begun and torn.total() < begun.total(), (torn, begun)


@case
def several_writers_of_a_full_pipe_lose_nothing_and_tear_only_lines_that_a_reader_had_begun(folder):
    """All of them wait for room, so they find the pipe without a reader at the same moment. One that is held up between its check of the
    lock and its write may keep another from completing a line. No two writers add the same value, so no rest of a line is taken for
    another's."""
    path, apps = make_fifo(folder), {}
    for letter in "abcd":
        os.mkdir(os.path.join(folder, letter))
        config = config_of(path, shutdown="1m", max_wait="100ms", queue="8MiB", retry_min="1ms", wait_step="1ms")
        apps[letter] = ScriptedApp(config, os.path.join(folder, letter))
    rounds, count, copies = 15, 500, []
    bases = {letter: number * 1000000 for number, letter in enumerate(apps)}
    for turn in range(rounds):
        reader = PartialReader(path, folder, turn, 5001 + 97 * turn, to_third_byte=True)
        for letter, app in apps.items():
            add_values(app, letter, count * turn, count, bases[letter])
        reader.wait()
        wait_until_full(path)
        copies.append(reader.kill())
        for app in apps.values():
            wait_until_noticed(app)
    copies.append(read_to_the_end(path, apps.values(), {letter: rounds * count for letter in apps}))
    assert_lines_of_several(copies, bases, rounds * count)


@case
def data_of_other_programs_is_kept_although_its_lines_are_too_long_for_a_write(folder):
    path = make_fifo(folder)
    app = ScriptedApp(config_of(path, delivery="sync", max_wait="100ms"), folder)
    reader = PartialReader(path, folder, 0, 100)
    wait_for(lambda: app.do("add", "open", 1)["code"] == 0, "a reader")
    add_values(app, "v", 0, 200)
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, b"x" * 10000 + b"\n")
    os.close(fd)
    copy = reader.kill()
    wait_for(lambda: app.do("add", "gone", 1)["code"] == TIMEOUT, "the handler to notice")
    last = Reader(path)
    last.read_until(lambda: b'"gone": 1.0}' in last.data, "the last value")
    assert_all_delivered(app)
    last.read()
    app.end()
    assert b"\n" + b"x" * 10000 + b"\n" in last.data
    assert values_in([copy, last.data.replace(b"x" * 10000, b"{}")], "v") == list(range(200))


def enlarge(path, size):
    """As a reader or another writer may do at any time."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, size) >= size
    os.close(fd)


@case
def the_data_of_a_pipe_that_was_enlarged_later_is_whole_for_the_next_reader(folder):
    path = make_fifo(folder)
    app = ScriptedApp(config_of(path, max_wait="100ms", queue="8MiB"), folder)
    rounds, count, copies = 3, 2500, []
    for turn in range(rounds):
        reader = PartialReader(path, folder, turn, 5001 + 97 * turn)
        wait_for(lambda: app.do("add", "open", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0, "a reader")
        enlarge(path, 1 << 20)
        add_values(app, "v", count * turn, count)
        assert_all_delivered(app)
        copies.append(reader.kill())
        wait_until_noticed(app)
    copies.append(read_to_the_end(path, [app], {"v": rounds * count}))
    assert_cut(copies[:-1])
    assert values_in(copies, "v") == list(range(count * rounds)), "each value once, in order"


def app_with_lines_that_do_not_fit(folder, **options):
    """Another program has written lines that share the pipe's pages; written again one by one, they need a page each."""
    path = make_fifo(folder, "full")
    app = ScriptedApp(config_of(path, shutdown="1s", max_wait="100ms", **options), folder)
    reader = Reader(path)
    wait_for(lambda: app.do("add", "open", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0, "a pipe")
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    length = os.sysconf("SC_PAGE_SIZE") // 2 + 50
    assert os.write(fd, (b"x" * (length - 1) + b"\n") * 28) == 28 * length
    os.close(fd)
    assert len(os.read(reader.fd, 5)) == 5
    reader.close()
    wait_until_noticed(app)
    app.ledger()
    return app, path, 12 * length


@case
def lines_that_no_longer_fit_are_logged_before_the_program_ends_without_them(folder):
    app, path, waiting = app_with_lines_that_do_not_fit(folder)
    app.end()
    assert re.search(rf"shutting down while failing: .* {path} has no reader.*; {waiting} bytes to be written again", app.stderr_text())


@case
def lines_that_no_longer_fit_are_logged_if_a_spool_keeps_the_values_behind_them(folder):
    app, path, waiting = app_with_lines_that_do_not_fit(folder, spool=os.path.join(folder, "spool"))
    app.end()
    assert f"pipe: {waiting} bytes of lines that did not fit into {path} again" in app.stderr_text(), app.stderr_text()


@case
def a_lock_that_another_program_keeps_holds_up_no_value(folder):
    """It keeps the handler from completing the line, nothing else."""
    path = make_fifo(folder)
    app = ScriptedApp(config_of(path, delivery="sync", max_wait="100ms"), folder)
    reader = PartialReader(path, folder, 0, 5001)
    wait_for(lambda: app.do("add", "open", 1)["code"] == 0, "a reader")
    add_values(app, "v", 0, 150)
    with open(path, "wb", buffering=0) as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        copy = reader.kill()
        assert app.do("add", "gone", 1)["code"] == TIMEOUT
        last = Reader(path)
        wait_for(lambda: app.do("add", "back", 1)["code"] == 0, "a call that delivers")
        assert_all_delivered(app)
        app.end()
        last.read()
    assert values_in([copy + last.data], "v") == list(range(150)), "read in turn, the data is complete"


@case
def a_program_that_may_not_read_the_pipe_logs_that_lines_may_be_torn(folder):
    """Only the line that the reader had begun is torn."""
    need_access_for_others()
    path = make_fifo(folder)
    os.chmod(folder, 0o711)
    os.chmod(path, 0o222)
    app = ScriptedApp(config_of(path, delivery="sync", max_wait="100ms"), folder, user=become_nobody)
    copies = []
    for turn in range(3):
        reader = PartialReader(path, folder, turn, 5001 + 97 * turn)
        wait_for(lambda: app.do("add", "open", turn)["code"] == 0, "a reader")
        add_values(app, "v", 150 * turn, 150)
        copies.append(reader.kill())
        wait_for(lambda: app.do("add", "gone", turn)["code"] == TIMEOUT, "the handler to notice")
    last = Reader(path)
    last.read_until(lambda: b'"gone": 2.0}' in last.data, "the last value")
    assert_all_delivered(app)
    last.read()
    app.end()
    message = f"pipe: {path} cannot be opened for reading (Permission denied): its next reader may start within a line"
    assert app.stderr_text().count(message) == 1, app.stderr_text()
    assert values_in([b"".join(copies) + last.data], "v") == list(range(450)), "read in turn, the data is complete"
    assert_cut(copies)


main()
