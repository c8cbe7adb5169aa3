"""Makes each call that can fail do so, one per run of a program, with each handler type: the program must continue and end, nothing may
leak, and every value must be delivered, on disk, or counted.

As an ordinary test it tries a part of the calls; with --whole it tries all, and --kind and --handler select some."""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading

import harness
from harness import BUILD, PLUGINS, SOURCE, WEIR, Skip, case, environment, run, skip_with_coverage
from receivers import Receiver
from scripted import Scripted, reply

VICTIM = os.path.join(BUILD, "tests", "torture", "victim")
SOURCE_VICTIM = os.path.join(BUILD, "tests", "torture", "source_victim")
BREAKER = os.path.join(BUILD, "tests", "torture", ".libs", "breaker.so")
LEAKS = os.path.join(SOURCE, "tests", "torture", "leaks")
KINDS = ("alloc", "mmap", "madvise", "open", "write", "read", "stat", "folder", "name", "lock", "thread", "key", "poll", "network")
SANITIZED = bool(os.environ.get("WEIR_TEST_SANITIZED"))
HANG_S = 60
VALUES = 120  # values that victim adds in one call of add()
MOST_FAILURES = 20  # more say nothing new; and if nothing can be started at all, no run would be the last one


def records_of(lines):
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            raise AssertionError(f"line {number} is no JSON, {error}: {line[:2000]!r}") from None
    return records


class Handler:
    """The destination of one run."""

    options = {}
    settings = {}
    spare = ()  # libraries whose calls never fail
    victim = VICTIM
    input = ""  # the program's standard input
    without_locks = False
    foreign = False  # nearly all allocations are made by other libraries: with a sanitizer, try only some

    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(folder, "out")

    def config(self):
        options = {"retry_min": "1ms", "retry_max": "20ms", "block_timeout": "50ms", "type": self.type, **self.options}
        return {"settings": {"shutdown_timeout": "1s", **self.settings}, "handlers": {"h": options}, "groups": {"victim": "h"}}

    def check(self, reports, log):
        pass

    def close(self):
        pass


class Null(Handler):
    type = "null"


class Console(Handler):
    type = "console"
    options = {"stream": "stderr"}

    def check(self, reports, log):
        lines = sum(line.endswith("]") or "][victim]: " in line for line in log.splitlines())
        assert lines == delivered(reports), (lines, reports)


class File(Handler):
    type = "file"

    def __init__(self, folder):
        super().__init__(folder)
        self.options = {"path": self.path}

    def lines(self):
        """A process that gets no lock may take another's write for an unfinished line, and end it: that leaves an empty one."""
        text = open(self.path, encoding="utf-8").read() if os.path.exists(self.path) else ""
        assert not text or text.endswith("\n"), text[-200:]
        return [line for line in text.splitlines() if line or not self.without_locks]

    def count_lines(self):
        return len(records_of(self.lines()))

    def check(self, reports, log):
        assert self.count_lines() == delivered(reports), reports


class Sources(File):
    """A program whose values come from sources: its standard input, and the machine."""

    victim = SOURCE_VICTIM
    input = "".join(f"line{i % 7}={i}\n" for i in range(200))
    type = "file"

    def __init__(self, folder):
        super().__init__(folder)
        self.options = {"path": self.path, "format": "json", "linger": "0s"}

    def config(self):
        sources = {"in": {"type": "stdin", "parse": "text", "retry_min": "1ms"},
                   "machine": {"type": "system", "interval": "20ms", "retry_min": "1ms"}}
        return {**super().config(), "groups": {"*": "h"}, "sources": sources}


class Mapped(File):
    """An object in the route: new names and labels for all values. Without memory for a series its values are dropped and counted."""

    def __init__(self, folder):
        super().__init__(folder)
        self.options = {"path": self.path, "format": "json"}

    def config(self):
        mapped = {"to": "h", "rename": {"*": "new.*"}, "labels": {"site": "x"}, "drop_labels": ["none"], "except": ["no.*"]}
        return {**super().config(), "groups": {"victim": mapped}}

    def check(self, reports, log):
        super().check(reports, log)
        lines = self.lines()
        assert all('"name":"new.' in line and '"site":"x"' in line for line in lines), lines[:3]


class Summed(File):
    """Summaries in place of values. One value in six is a running total, of which the last one of an interval is written."""

    def __init__(self, folder):
        super().__init__(folder)
        self.options = {"path": self.path, "format": "json", "aggregate": "10ms"}

    def check(self, reports, log):
        counted = sum(record["value"] for record in records_of(self.lines()) if record["name"].endswith(".count"))
        totals = sum(report["offered"] + report["refused"] for report in reports) // 6
        assert delivered(reports) - totals <= counted <= delivered(reports), (counted, reports)


class Sqlite(Handler):
    type = "sqlite"
    foreign = True

    def __init__(self, folder):
        super().__init__(folder)
        self.options = {"path": self.path}

    def check(self, reports, log):
        rows = 0
        if os.path.exists(self.path) and os.path.getsize(self.path):
            with contextlib.closing(sqlite3.connect(self.path)) as database:
                assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                if database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'samples'").fetchone()[0]:
                    rows = database.execute("SELECT count(*) FROM samples").fetchone()[0]
        assert rows >= delivered(reports), (rows, reports)  # a repeated commit stores values twice


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

    def check(self, reports, log):
        os.write(self.fd, b"end\n")
        self.reader.join()
        lines = self.data.decode().splitlines()[:-1]
        assert len(records_of(lines)) == delivered(reports), reports

    def close(self):
        if self.reader.is_alive():
            os.write(self.fd, b"\nend\n")
            self.reader.join()
        os.close(self.fd)


class Socket(Handler):
    """A stream: what a lost connection had not acknowledged is sent again, so lines may arrive twice."""

    type = "socket"
    foreign = True  # the resolver

    def __init__(self, folder):
        super().__init__(folder)
        self.receiver = Receiver("tcp")
        self.options = {"to": self.receiver.to, "connect_timeout": "2s", "send_timeout": "2s"}

    def check(self, reports, log):
        harness.wait_for(lambda: self.receiver.data().count(b"\n") >= delivered(reports), f"{delivered(reports)} lines")
        assert all(records_of(self.receiver.lines()))

    def close(self):
        self.receiver.stop()


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

    def check(self, reports, log):
        lines = records_of(line for request in self.server.requests for line in request.lines())
        assert len(lines) >= delivered(reports), reports  # a lost response makes a repetition

    def close(self):
        self.server.close()


class Spool(Handler):
    """All values go to the spool: the file's folder does not exist."""

    type = "file"

    def __init__(self, folder):
        super().__init__(folder)
        self.spool = os.path.join(folder, "spool")
        self.options = {"path": os.path.join(folder, "missing", "out"), "spool": self.spool}

    def check(self, reports, log):
        on_disk = len(run(WEIR, "spool", "replay", self.spool).stdout.splitlines()) if os.path.isdir(self.spool) else 0
        kept = sum(report["spooled"] - report["recovered"] for report in reports)
        assert on_disk == kept, (on_disk, reports)


class Recovered(File):
    """Values that an earlier program left in the spool are delivered too."""

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
    """Values for a file are in the journal until they are written."""

    inherited = 0  # values in the journal at the start

    def __init__(self, folder):
        super().__init__(folder)
        self.journal = os.path.join(folder, "journal")
        self.settings = {"journal": self.journal}

    def check(self, reports, log):
        """The next program delivers exactly the kept values."""
        super().check(reports, log)
        kept = self.inherited + sum(report["spooled"] - report["recovered"] for report in reports)
        replayed = ""
        if os.path.isdir(self.journal):
            replayed = run(WEIR, "journal", "replay", self.journal, "-c", os.path.join(self.folder, "config.json"))
            assert replayed.returncode == 0, replayed
        lines = self.count_lines()
        assert lines == delivered(reports) + kept, (lines, kept, reports, replayed)


class Kept(Journal):
    """All values stay in the journal: the file's folder does not exist until the next program runs."""

    def __init__(self, folder):
        super().__init__(folder)
        self.path = os.path.join(folder, "missing", "out")
        self.options = {"path": self.path}

    def check(self, reports, log):
        os.mkdir(os.path.dirname(self.path))
        super().check(reports, log)


class Adopted(Journal):
    """Values that an earlier program left in its journal are delivered too."""

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


HANDLERS = {"null": Null, "console": Console, "file": File, "sources": Sources, "mapped": Mapped, "summed": Summed, "fifo": Fifo, "http": Http, "socket": Socket, "spool": Spool,
            "recovered": Recovered, "sqlite": Sqlite, "journal": Journal, "kept": Kept, "adopted": Adopted}
if not os.path.exists(os.path.join(PLUGINS, "sqlite.so")):
    del HANDLERS["sqlite"]


def delivered(reports):
    return sum(report["delivered"] for report in reports)


def reports_of(out):
    names = ("offered", "recovered", "delivered", "dropped", "spooled", "refused", "failed", "silent")
    return [dict(zip(names, map(int, line.split()))) for line in out.splitlines()]


def stacks_of(pid):
    """The stacks of all threads of a program, if gdb is installed."""
    if not shutil.which("gdb"):
        return "(gdb is not installed)"
    return subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout


def try_once(handler, kind, first, count):
    """Runs the victim once. Returns whether a call has failed."""
    note, config = os.path.join(handler.folder, "note"), os.path.join(handler.folder, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(handler.config(), file)
    env = environment(WEIR_LOG="off", LD_PRELOAD=BREAKER, BREAK_AT=first, BREAK_FOR=count, BREAK_NOTE=note,
                      LSAN_OPTIONS=f"suppressions={LEAKS}:print_suppressions=0")
    if kind:
        env["BREAK_KIND"] = kind
        # libc's calls must not fail in the sanitizer's threads
        env["BREAK_SPARE"] = ":".join((*handler.spare, *(["libc.so"] if SANITIZED else [])))
    # A plugin that cannot see whether descriptors are still its own gives up curl's handles, or SQLite's connection, with their memory.
    if isinstance(handler, (Http, Sqlite)) and kind == "stat":
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    timeout_ms = "300" if kind and count == 0 or isinstance(handler, (Spool, Kept)) else "5000"
    command = [handler.victim, config, "victim", "h", timeout_ms] + (["nofork"] if SANITIZED else [])
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            out, log = program.communicate(handler.input, timeout=HANG_S)
        except subprocess.TimeoutExpired:
            where = stacks_of(program.pid)
            program.kill()
            raise AssertionError(f"it hangs\n{where}") from None
    assert program.returncode == 0, f"exit status {program.returncode}: {log}"
    reports = reports_of(out)
    # a thread without its own ring has no space for an error message
    assert kind == "mmap" or not any(report["silent"] for report in reports), reports
    handler.without_locks = kind == "lock"
    handler.check(reports, log)
    return os.path.exists(note)


def try_in_folder(name, kind, first, count):
    folder = tempfile.mkdtemp(prefix="weir-test-")
    handler = None
    try:
        handler = HANDLERS[name](folder)
        return try_once(handler, kind, first, count)
    except (AssertionError, OSError) as error:
        raise AssertionError(f"{name}: {kind} number {first}{' and all that follow' if count == 0 else ''}: {error}") from None
    finally:
        if handler:
            handler.close()
        shutil.rmtree(folder)


def torture(name, kind, numbers, count, failures):
    """Runs the victim until no call fails any more, or too much went wrong. Returns the number of runs with a failure."""
    tried = 0
    for first in numbers:
        if len(failures) >= MOST_FAILURES:
            break
        try:
            if not try_in_folder(name, kind, first, count):
                break
        except AssertionError as error:
            failures.append(str(error))
            print("not survived:", str(error)[:20000], file=sys.stderr, flush=True)
        tried += 1
    return tried


def torture_all(handlers, kinds, step, step_for_good, workers, report=lambda key, count: None):
    failures, tried = [], {}
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = {}
        for name, kind in itertools.product(handlers, kinds):
            if SANITIZED and kind == "key":  # the sanitizer itself does not support that
                continue
            once = step * 29 if SANITIZED and kind == "alloc" and HANDLERS[name].foreign else step
            jobs[name, kind, "once"] = pool.submit(torture, name, kind, itertools.count(1 + len(jobs) % once, once), 1, failures)
            if SANITIZED and kind == "alloc":  # nor threads that never get memory
                continue
            jobs[name, kind, "from then on"] = pool.submit(torture, name, kind, itertools.count(1, step_for_good), 0, failures)
        for key, job in jobs.items():
            tried[key] = job.result()
            report(key, tried[key])
    for earlier in (Recovered, Adopted):
        if earlier.left:
            shutil.rmtree(earlier.left)
            earlier.left = None
    return tried, failures


@case
def after_any_failing_call_a_program_continues_and_the_ledger_is_correct():
    skip_with_coverage()
    if "thread" in os.environ.get("WEIR_TEST_SANITIZED", ""):
        raise Skip("ThreadSanitizer does not work with a preloaded library")
    step, step_for_good = (61, 211) if SANITIZED else (29, 97)
    handlers = [name for name in HANDLERS if name not in ("http", "kept", "adopted")]  # these take longest
    if SANITIZED:  # to find leaks, most of them in the core; ./dev torture tries all handlers
        handlers = ["file", "spool", "journal"]
    tried, failures = torture_all(handlers, KINDS, step, step_for_good, 2)
    print(f"# {sum(tried.values())} failing calls tried", flush=True)
    assert sum(tried.values()) > (30 if SANITIZED else 60), tried
    assert not failures, "\n".join(failures)


def break_each(name, kind):
    """Makes each call of one kind fail, one per run, with several runs in parallel."""
    if SANITIZED:
        raise Skip("only with ./dev torture")
    failures, workers = [], 4
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(torture, name, kind, itertools.count(1 + i, workers), 1, failures) for i in range(workers)]
        tried = sum(job.result() for job in jobs)
    assert tried > workers, tried
    assert not failures, "\n".join(failures)


@case
def a_child_does_not_open_a_database_that_it_cannot_stat():
    if "sqlite" not in HANDLERS:
        raise Skip("the handler type sqlite is not built")
    break_each("sqlite", "stat")


@case
def a_failing_readdir_loses_no_values_in_the_journal():
    break_each("kept", "folder")


def print_one(key, count):
    name, kind, how = key
    if count:
        print(f"{name:10} {kind:8} {how:13} {count:5} failing calls tried", flush=True)


def print_all():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--whole", action="store_true")
    arguments.add_argument("--handler", action="append", choices=HANDLERS)
    arguments.add_argument("--kind", action="append", choices=KINDS)
    arguments.add_argument("--step", type=int, default=1)
    options = arguments.parse_args()
    tried, failures = torture_all(options.handler or HANDLERS, options.kind or KINDS, options.step, 7 * options.step, count_workers(), print_one)
    print(f"{sum(tried.values())} failing calls tried, {len(failures)} failures")
    return 1 if failures else 0


def count_workers():
    return (os.cpu_count() or 1) + 1


if __name__ == "__main__":
    if "--whole" in sys.argv:
        sys.exit(print_all())
    harness.main()
