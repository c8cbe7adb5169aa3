"""Runs the measured programs: their paths, arguments and configurations, and the check of their output."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

TIMEOUT_S = 600


class Void(Exception):
    """The measurement is void; the text is the reason."""


class Workspace:
    """The folder of the release build, and a temporary folder that all programs write to."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.folder = tempfile.mkdtemp(prefix="weir-bench-")
        self.plugins = os.path.join(self.build, "plugins", ".libs")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def program(self, name):
        return os.path.join(self.build, "bench", name)

    def file(self, name):
        """Returns a path in the temporary folder; an existing file is removed."""
        path = os.path.join(self.folder, name)
        if os.path.exists(path):
            os.remove(path)
        return path

    def has_plugin(self, name):
        return os.path.exists(os.path.join(self.plugins, name + ".so"))

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "BENCHMARK_AI"))}
        return {**kept, "WEIR_PLUGIN_PATH": f"{self.build}/plugins/sources/.libs:{self.plugins}", **more}

    def run(self, *command, env=None, **options):
        """Runs a program to its end and returns its standard output. Raises Void if it fails."""
        result = subprocess.run([str(c) for c in command], env=env or self.environment(), timeout=TIMEOUT_S, check=False,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
        if result.returncode:
            name = os.path.basename(str(command[0]))
            raise Void(f"{name}: {describe_end(result.returncode)}: {result.stderr.strip() or 'no message'}")
        return result.stdout

    def measure(self, name, *prefix, **task):
        """Runs a measured program with its task and returns its figures."""
        return json.loads(self.run(*prefix, self.program(name), *arguments(**task)))

    def verify(self, path, figures, task):
        """Raises Void unless the file contains exactly the added values. Removes the file."""
        try:
            self.run(self.program("support/verify"), path, task.get("format", "text"),
                     "random" if task.get("random") else "plain", task.get("threads", 1), figures["values"])
        finally:
            os.remove(path)


def describe_end(status):
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def arguments(**task):
    return [f"{key}={int(value) if isinstance(value, bool) else value}" for key, value in task.items()]


def write_config(workspace, handlers, settings=None):
    """Writes a configuration that routes everything to the handlers h1, h2, ...; returns its path."""
    names = {f"h{number}": handler for number, handler in enumerate(handlers, 1)}
    path = workspace.file("weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"settings": settings or {}, "handlers": names, "groups": {"*": list(names)}}, file)
    return path
