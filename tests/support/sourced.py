"""Shared by the tests of sources: runs the program `sourced` with a configuration, and asks it for its ledgers."""

import json
import os
import re
import subprocess

import harness
from harness import BUILD, assert_ledgers, environment, lines_of, wait_for

SOURCED = os.path.join(BUILD, "tests", "support", "sourced")

_programs = []


def keep(program):
    """The case ends it, if it does not end before."""
    _programs.append(program)
    return program


def case(function):
    """As harness.case. A case that fails leaves no program behind."""
    def run_case(folder):
        try:
            function(*[folder][:function.__code__.co_argcount])
        finally:
            for program in _programs:
                if program.poll() is None:
                    program.kill()
                program.wait()
                for pipe in (program.stdin, program.stdout):
                    if pipe:
                        pipe.close()
            _programs.clear()
    run_case.__name__ = function.__name__
    return harness.case(run_case)


def write_config(folder, source, handler=None, metrics=None, **settings):
    """One source "in" to one handler "out", by default a file "out" in the folder. Returns the file's path."""
    path = os.path.join(folder, "weir.json")
    given = {"type": "file", "path": os.path.join(folder, "out"), "format": "json", "linger": "5ms", "block_timeout": "1h"}
    source = {"retry_min": "5ms", "retry_max": "50ms", **source}
    config = {"settings": {"shutdown_timeout": "2m", **settings}, "sources": {"in": source}, "handlers": {"out": handler or given},
              "groups": {"*": "out"}, "metrics": metrics or {}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


class Sourced:
    """A running program."""

    def __init__(self, folder, source, handler=None, env=(), **settings):
        self.folder = folder
        self.config = write_config(folder, source, handler, **settings)
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.program = subprocess.Popen([SOURCED, self.config], env=environment(WEIR_LOG="info", **dict(env)), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        _programs.append(self.program)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def await_log(self, pattern):
        """Returns the match."""
        wait_for(lambda: re.search(pattern, self.log()) or self.program.poll() is not None, pattern)
        match = re.search(pattern, self.log())
        assert match, self.log()
        return match

    def port(self, start):
        """The port that the source has logged, of the address that starts so: "udp://127.0.0.1"."""
        return int(self.await_log(re.escape("listens at " + start) + r":(\d+)\n")[1])

    def ask(self, word):
        self.program.stdin.write(word + "\n")
        self.program.stdin.flush()
        answer = self.program.stdout.readline()
        assert answer, (self.program.poll(), self.log())
        return json.loads(answer)

    def stats(self):
        return self.ask("stats")["sources"]["in"]

    def await_stats(self, **wanted):
        """Waits until all these counts are at least so high."""
        wait_for(lambda: all(self.stats()[key] >= count for key, count in wanted.items()), str(wanted))

    def memory(self):
        """The most bytes that it has used."""
        with open(f"/proc/{self.program.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) * 1024

    def stop(self):
        """Requests that it stops. Only `log` and `end` may follow."""
        self.program.stdin.close()
        self.program.stdin = None

    def end(self):
        """Stops the source. Checks the ledgers. Returns the source's counts."""
        out, _ = self.program.communicate(timeout=300)
        assert self.program.returncode == 0, (self.program.returncode, self.log())
        report = json.loads(out.splitlines()[-1])
        assert_ledgers(report)
        source, handler = report["sources"]["in"], report["handlers"]["out"]
        assert report["process"]["added"] == source["added"] == handler["offered"], report
        assert handler["delivered"] == source["added"], report
        return source

    def written(self):
        """What the file has: objects."""
        return [json.loads(line) for line in lines_of(os.path.join(self.folder, "out"))]

    def values(self):
        return [(line["name"], line["value"]) for line in self.written()]
