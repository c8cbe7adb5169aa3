"""Has every call fail that can, one after the other, through the whole life of a program, for handlers of each kind: the program goes on
and ends, nothing leaks, and every value is delivered, on disk, or counted.

As an ordinary test it leaves most out, and says how many it tried; with --whole it leaves nothing out, and --kind and --handler choose."""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading

import harness
from harness import BUILD, PLUGINS, SOURCE, WEIR, Skip, case, environment, run
from scripted import Scripted, reply

VICTIM = os.path.join(BUILD, "tests", "torture", "victim")
BREAKER = os.path.join(BUILD, "tests", "torture", ".libs", "breaker.so")
LEAKS = os.path.join(SOURCE, "tests", "torture", "leaks")
KINDS = ("alloc", "mmap", "madvise", "open", "write", "read", "stat", "folder", "name", "lock", "thread", "key", "poll", "network")
SANITIZED = bool(os.environ.get("WEIR_TEST_SANITIZED"))
HANG_S = 60
VALUES = 120  # that one run through victim's ways of adding makes


class Handler:
    """A destination of its own for each run."""

    options = {}
    settings = {}
    spare = ()  # libraries whose calls are let through
    foreign = False  # nearly all allocations are those of other libraries: under a sanitizer some are enough

    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(folder, "out")

    def config(self):
        options = {"retry_min": "1ms", "retry_max": "20ms", "block_timeout": "50ms", "type": self.type, **self.options}
        return {"settings": {"shutdown_timeout": "1s", **self.settings}, "handlers": {"h": options}, "groups": {"victim": "h"}}

    def check(self, reports, said):
        pass

    def close(self):
        pass


class Null(Handler):
    type = "null"


class Console(Handler):
    type = "console"
    options = {"stream": "stderr"}

    def check(self, reports, said):
        lines = sum(line.endswith("]") or "][victim]: " in line for line in said.splitlines())
        assert lines == delivered(reports), (lines, reports)


class File(Handler):
    type = "file"

    def __init__(self, folder):
        super().__init__(folder)
        self.options = {"path": self.path}

    def count_lines(self):
        lines = open(self.path, encoding="utf-8").read() if os.path.exists(self.path) else ""
        assert not lines or lines.endswith("\n"), lines[-200:]
        return len([json.loads(line) for line in lines.splitlines()])

    def check(self, reports, said):
        assert self.count_lines() == delivered(reports), reports


class Sqlite(Handler):
    type = "sqlite"
    foreign = True

    def __init__(self, folder):
        super().__init__(folder)
        self.options = {"path": self.path}

    def check(self, reports, said):
        rows = 0
        if os.path.exists(self.path) and os.path.getsize(self.path):
            with contextlib.closing(sqlite3.connect(self.path)) as database:
                assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                if database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'samples'").fetchone()[0]:
                    rows = database.execute("SELECT count(*) FROM samples").fetchone()[0]
        assert rows >= delivered(reports), (rows, reports)  # a commit that has to be made anew makes a repeat


class Fifo(Handler):
    type = "fifo"

    def __init__(self, folder):
        super().__init__(folder)
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self.options = {"path": self.path, "format": "json"}
        self.data = b""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        while not self.data.endswith(b"end\n"):
            self.data += os.read(self.fd, 65536)

    def check(self, reports, said):
        os.write(self.fd, b"end\n")
        self.reader.join()
        lines = self.data.decode().splitlines()[:-1]
        assert len([json.loads(line) for line in lines]) == delivered(reports), reports

    def close(self):
        if self.reader.is_alive():
            os.write(self.fd, b"\nend\n")
            self.reader.join()
        os.close(self.fd)


class Http(Handler):
    type = "http"
    foreign = True
    # Libraries that curl brings along have thread-local data: glibc ends the process when a thread that looks at them
    # for the first time gets no memory. OpenSSL falls at exit when it got no key for its own.
    spare = ("ld-linux", "libcrypto")

    def __init__(self, folder):
        super().__init__(folder)
        self.server = Scripted(lambda request: reply(204))
        self.options = {"url": self.server.url, "linger": "0s", "timeout": "2s"}

    def check(self, reports, said):
        lines = [json.loads(line) for request in self.server.requests for line in request.lines()]
        assert len(lines) >= delivered(reports), reports  # an answer that is lost makes a repeat

    def close(self):
        self.server.close()


class Spool(Handler):
    """Everything goes to disk: the file's folder is not there."""

    type = "file"

    def __init__(self, folder):
        super().__init__(folder)
        self.spool = os.path.join(folder, "spool")
        self.options = {"path": os.path.join(folder, "missing", "out"), "spool": self.spool}

    def check(self, reports, said):
        on_disk = len(run(WEIR, "spool", "replay", self.spool).stdout.splitlines()) if os.path.isdir(self.spool) else 0
        kept = sum(report["spooled"] - report["recovered"] for report in reports)
        assert on_disk == kept, (on_disk, reports)


class Recovered(File):
    """What an earlier program left on disk is delivered as well."""

    left = None
    lock = threading.Lock()

    def __init__(self, folder):
        super().__init__(folder)
        spool = os.path.join(folder, "spool")
        shutil.copytree(self.leave_behind(), spool)
        self.options = {"path": self.path, "spool": spool}

    @classmethod
    def leave_behind(cls):
        with cls.lock:
            if not cls.left:
                cls.left = tempfile.mkdtemp(prefix="weir-test-")
                before = Spool(cls.left)
                assert not try_once(before, None, 0, 0)
        return os.path.join(cls.left, "spool")


class Journal(File):
    """What a file's handler is sent is in the journal until it is there."""

    inherited = 0  # values that were in the journal before

    def __init__(self, folder):
        super().__init__(folder)
        self.journal = os.path.join(folder, "journal")
        self.settings = {"journal": self.journal}

    def check(self, reports, said):
        """What was kept comes with the next program, and only that."""
        super().check(reports, said)
        kept = self.inherited + sum(report["spooled"] - report["recovered"] for report in reports)
        replayed = ""
        if os.path.isdir(self.journal):
            replayed = run(WEIR, "journal", "replay", self.journal, "-c", os.path.join(self.folder, "config.json"))
            assert replayed.returncode == 0, replayed
        lines = self.count_lines()
        assert lines == delivered(reports) + kept, (lines, kept, reports, replayed)


class Kept(Journal):
    """Everything stays in the journal: the file's folder is not there, until the next program comes."""

    def __init__(self, folder):
        super().__init__(folder)
        self.path = os.path.join(folder, "missing", "out")
        self.options = {"path": self.path}

    def check(self, reports, said):
        os.mkdir(os.path.dirname(self.path))
        super().check(reports, said)


class Adopted(Journal):
    """What an earlier program left in its journal is delivered as well."""

    left = None
    lock = threading.Lock()

    def __init__(self, folder):
        super().__init__(folder)
        shutil.copytree(self.leave_behind(), self.journal)

    @classmethod
    def leave_behind(cls):
        with cls.lock:
            if not cls.left:
                cls.left = tempfile.mkdtemp(prefix="weir-test-")
                before = Kept(cls.left)
                before.check = cls.inherit
                assert not try_once(before, None, 0, 0)
        return os.path.join(cls.left, "journal")

    @classmethod
    def inherit(cls, reports, _):
        cls.inherited = sum(report["spooled"] for report in reports)


HANDLERS = {"null": Null, "console": Console, "file": File, "fifo": Fifo, "http": Http, "spool": Spool, "recovered": Recovered,
            "sqlite": Sqlite, "journal": Journal, "kept": Kept, "adopted": Adopted}
if not os.path.exists(os.path.join(PLUGINS, "sqlite.so")):
    del HANDLERS["sqlite"]


def delivered(reports):
    return sum(report["delivered"] for report in reports)


def reports_of(out):
    names = ("offered", "recovered", "delivered", "dropped", "spooled", "refused", "failed", "silent")
    return [dict(zip(names, map(int, line.split()))) for line in out.splitlines()]


def stacks_of(pid):
    """What all threads of a program are doing, if there is a debugger to tell."""
    if not shutil.which("gdb"):
        return "(no gdb to tell where)"
    return subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout


def try_once(handler, kind, first, count):
    """Runs the victim once; answers whether anything was broken by then."""
    note, config = os.path.join(handler.folder, "note"), os.path.join(handler.folder, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(handler.config(), file)
    env = environment(WEIR_LOG="off", LD_PRELOAD=BREAKER, BREAK_AT=first, BREAK_FOR=count, BREAK_NOTE=note,
                      LSAN_OPTIONS=f"suppressions={LEAKS}:print_suppressions=0")
    if kind:
        env["BREAK_KIND"] = kind
        # libc needs it for the sanitizer's threads
        env["BREAK_SPARE"] = ":".join((*handler.spare, *(["libc.so"] if SANITIZED else [])))
    if isinstance(handler, Http) and kind == "stat":  # curl's handles are left alone: nobody can tell whose descriptors they hold
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    patience = "300" if kind and count == 0 or isinstance(handler, (Spool, Kept)) else "5000"
    command = [VICTIM, config, "victim", "h", patience] + (["nofork"] if SANITIZED else [])
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            out, said = program.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            where = stacks_of(program.pid)
            program.kill()
            raise AssertionError(f"it hangs\n{where}") from None
    assert program.returncode == 0, f"exit status {program.returncode}: {said}"
    reports = reports_of(out)
    # a thread without a ring of its own has no place for words
    assert kind == "mmap" or not any(report["silent"] for report in reports), reports
    handler.check(reports, said)
    return os.path.exists(note)


def try_in_folder(name, kind, first, count):
    folder = tempfile.mkdtemp(prefix="weir-test-")
    handler = None
    try:
        handler = HANDLERS[name](folder)
        return try_once(handler, kind, first, count)
    except AssertionError as error:
        raise AssertionError(f"{name}: {kind} number {first}{' and all that follow' if count == 0 else ''}: {error}") from None
    finally:
        if handler:
            handler.close()
        shutil.rmtree(folder)


def torture(name, kind, numbers, count, failures):
    """Until a run comes to its end with nothing broken; answers how many runs were tortured."""
    tried = 0
    for first in numbers:
        try:
            if not try_in_folder(name, kind, first, count):
                break
        except AssertionError as error:
            failures.append(str(error))
            print("not survived:", str(error)[:20000], file=sys.stderr, flush=True)
        tried += 1
    return tried


def torture_all(handlers, kinds, step, step_for_good, workers, tell=lambda key, count: None):
    failures, tried = [], {}
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # for the servers; programs get it back
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = {}
        for name, kind in itertools.product(handlers, kinds):
            if SANITIZED and kind == "key":  # the sanitizer itself does not survive that
                continue
            once = step * 29 if SANITIZED and kind == "alloc" and HANDLERS[name].foreign else step
            jobs[name, kind, "once"] = pool.submit(torture, name, kind, itertools.count(1 + len(jobs) % once, once), 1, failures)
            if SANITIZED and kind == "alloc":  # nor that its threads never have any memory
                continue
            jobs[name, kind, "from then on"] = pool.submit(torture, name, kind, itertools.count(1, step_for_good), 0, failures)
        for key, job in jobs.items():
            tried[key] = job.result()
            tell(key, tried[key])
    for earlier in (Recovered, Adopted):
        if earlier.left:
            shutil.rmtree(earlier.left)
            earlier.left = None
    return tried, failures


@case
def whatever_fails_a_program_goes_on_and_counts_and_its_values_are_where_the_ledger_says():
    if "thread" in os.environ.get("WEIR_TEST_SANITIZED", ""):
        raise Skip("ThreadSanitizer does not go with a library in front of it")
    step, step_for_good = (61, 211) if SANITIZED else (29, 97)
    handlers = [name for name in HANDLERS if name not in ("http", "kept", "adopted")]  # they take longest
    if SANITIZED:  # for leaks, of which most are the core's; ./dev torture looks at all
        handlers = ["file", "spool", "journal"]
    tried, failures = torture_all(handlers, KINDS, step, step_for_good, 2)
    print(f"# {sum(tried.values())} failures in turn", flush=True)
    assert sum(tried.values()) > (30 if SANITIZED else 60), tried
    assert not failures, "\n".join(failures)


def break_each(name, kind):
    """Each call of one kind by itself, none left out, by some at once."""
    if SANITIZED:
        raise Skip("left to ./dev torture")
    failures, workers = [], 4
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(torture, name, kind, itertools.count(1 + i, workers), 1, failures) for i in range(workers)]
        tried = sum(job.result() for job in jobs)
    assert tried > workers, tried
    assert not failures, "\n".join(failures)


@case
def a_database_that_cannot_be_looked_at_is_not_opened_by_a_child_whose_parent_has_it_open():
    if "sqlite" not in HANDLERS:
        raise Skip("there is no SQLite")
    break_each("sqlite", "stat")


@case
def a_folder_that_cannot_be_read_to_its_end_costs_nothing_that_a_journal_keeps():
    break_each("kept", "folder")


def tell_one(key, count):
    name, kind, how = key
    if count:
        print(f"{name:10} {kind:8} {how:13} {count:5} calls failed in turn", flush=True)


def tell_all():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--whole", action="store_true")
    arguments.add_argument("--handler", action="append", choices=HANDLERS)
    arguments.add_argument("--kind", action="append", choices=KINDS)
    arguments.add_argument("--step", type=int, default=1)
    asked = arguments.parse_args()
    tried, failures = torture_all(asked.handler or HANDLERS, asked.kind or KINDS, asked.step, 7 * asked.step, judge_workers(), tell_one)
    print(f"{sum(tried.values())} failures tried, {len(failures)} not survived")
    return 1 if failures else 0


def judge_workers():
    return (os.cpu_count() or 1) + 1


if __name__ == "__main__":
    if "--whole" in sys.argv:
        sys.exit(tell_all())
    harness.main()
