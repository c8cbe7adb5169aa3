"""A small file system for tests that fill it."""

import os
import subprocess

from harness import Skip


class Disk:
    """A small file system."""

    def __init__(self, folder, size):
        self.path = os.path.join(folder, "small")
        os.mkdir(self.path)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", self.path],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("not allowed to mount a file system")
        self.filler = os.path.join(self.path, "filler")

    def fill(self):
        file = os.open(self.filler, os.O_CREAT | os.O_WRONLY)
        try:
            while os.write(file, bytes(4096)):
                pass
        except OSError:
            pass
        finally:
            os.close(file)

    def resize(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", self.path], check=True)

    def remove(self):
        subprocess.run(["umount", "-l", self.path], check=True)
