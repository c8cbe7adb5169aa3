"""A scripted server in a process of its own, which keeps in a file what it has taken, so that it can be killed and started again."""

import os
import subprocess
import sys

from harness import SOURCE, size_of


class Killable:
    """script: a program of tests/support that is called with a port (0: any) and the path of the file, and prints its port."""

    def __init__(self, folder, script):
        self.path, self.port, self.script = os.path.join(folder, "stored"), 0, script
        self.start()

    def start(self):
        command = [sys.executable, "-B", os.path.join(SOURCE, "tests", "support", self.script), str(self.port), self.path]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def size(self):
        return size_of(self.path)

    def lines(self):
        """Those that are stored. The last one may be one that is being written."""
        with open(self.path, encoding="utf-8") as file:
            return file.read().split("\n")[:-1]
