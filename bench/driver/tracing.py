"""A private LTTng session daemon: its own home, none of the system's sockets, terminated by its PID.

If run as root, LTTng would use the system's folders and could conflict with a running daemon. Daemon, client and traced program then
run as user nobody, with a copy of the program in the temporary home, because that user has no access to the build folder."""

import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time

from programs import Void, arguments

SESSION = "weir_bench"
CHANNEL = ["--subbuf-size=1M", "--num-subbuf=4"]


class Tracing:
    def __init__(self, workspace):
        self.workspace = workspace
        self.home = tempfile.mkdtemp(prefix="weir-bench-lttng-")
        self.user = {}
        self.daemon = None
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.daemon:
            self.daemon.terminate()
            try:
                self.daemon.wait(30)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def environment(self):
        return {"LTTNG_HOME": self.home, "HOME": self.home, "PATH": os.environ.get("PATH", ""),
                "LTTNG_UST_ALLOW_BLOCKING": "1"}

    def lttng(self, *command):
        return self.workspace.run("lttng", "--no-sessiond", *command, env=self.environment(), cwd=self.home, **self.user)

    def start(self):
        """Starts the daemon, which runs for the whole benchmark; without a session it sleeps."""
        if self.daemon:
            return
        self.program = shutil.copy(self.workspace.program("peers/lttng"), self.home)
        no_streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.environment(), cwd=self.home, **no_streams, **self.user)
        end = time.monotonic() + 30
        while not self.is_ready():
            if time.monotonic() > end or self.daemon.poll() is not None:
                raise Void("lttng-sessiond could not be started")
            time.sleep(0.05)

    def is_ready(self):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(os.path.join(self.home, ".lttng", "client-lttng-sessiond"))
            except OSError:
                return False
        return True

    def measure(self, blocking=False, **task):
        """Traces a program and checks the number of recorded events. blocking: it waits for buffer space, as for "lines"."""
        self.start()
        trace = os.path.join(self.home, "trace")
        self.lttng("create", SESSION, "--output=" + trace)
        try:
            waits = ["--blocking-timeout=inf"] if blocking else []
            self.lttng("enable-channel", "--userspace", "--session=" + SESSION, *CHANNEL, *waits, "values")
            self.lttng("enable-event", "--userspace", "--session=" + SESSION, "--channel=values", SESSION + ":value")
            self.lttng("start", SESSION)
            report = self.workspace.run(self.program, *arguments(**task), env=self.environment(), cwd=self.home, **self.user)
        finally:
            self.lttng("destroy", SESSION)
        figures, recorded = json.loads(report), self.count(trace)
        shutil.rmtree(trace)
        if recorded != figures["values"]:
            raise Void(f"lttng: {recorded} of {figures['values']} values were recorded")
        return figures

    def count(self, trace):
        output = self.workspace.run("babeltrace2", "--component=sink.utils.counter", "--params=step=+0", trace)
        return int(re.search(r"(\d+) Event messages", output).group(1))
