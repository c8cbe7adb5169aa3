"""A scripted server in a process of its own, which keeps in a file what it has taken, so that it can be killed and started again."""

import os
import signal
import subprocess
import sys
import time

from harness import SOURCE


def until_killed(respond, requests):
    """As respond, but the process is killed when it has taken so many requests, before it responds to the last one. 0: never."""
    taken = 0

    def respond_unless_killed(request):
        nonlocal taken
        response = respond(request)
        taken += 1
        if taken == requests:
            os.kill(os.getpid(), signal.SIGKILL)
        return response

    return respond_unless_killed


class Killable:
    """script: a program of tests/support that is called with a port (0: any), the path of the file, and the number of requests after which
    it is killed (until_killed), and prints its port."""

    def __init__(self, folder, script, requests=0):
        self.path, self.port, self.script = os.path.join(folder, "stored"), 0, script
        self.start(requests)

    def start(self, requests=0):
        command = [sys.executable, "-B", os.path.join(SOURCE, "tests", "support", self.script), str(self.port), self.path, str(requests)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        port = self.process.stdout.readline()
        while not port and self.port:  # another process has a connection from this port
            assert self.process.wait() == 1
            self.process.stdout.close()
            time.sleep(0.1)
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            port = self.process.stdout.readline()
        self.port = int(port)

    def await_end(self):
        """Waits until it is killed after its last request."""
        assert self.process.wait(2400) == -signal.SIGKILL
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def lines(self):
        """Those that are stored. The last one may be one that is being written."""
        with open(self.path, encoding="utf-8") as file:
            return file.read().split("\n")[:-1]
