"""The system calls of a program's main thread, from strace."""

import re
import shutil

from harness import Skip, run


def of_main_thread(*command, **env):
    """Runs a program, which must succeed. Returns (the whole trace, the lines of its main thread's calls)."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    done = run("strace", "-f", "-qq", "-o", "/dev/stdout", *command, ASAN_OPTIONS="detect_leaks=0",  # LeakSanitizer does not work under ptrace
               **env)
    assert done.returncode == 0, done.stderr
    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    calls = [call for thread, call in lines if thread == lines[0][0]]
    return done.stdout, [call for call in calls if not call.startswith("<... ")]  # the second half of an interrupted line


def between_marks(calls):
    """The calls between the two calls of getsid. Returns (the wake-ups, all others)."""
    marks = [i for i, call in enumerate(calls) if call.startswith("getsid(")]
    assert len(marks) == 2, "\n".join(calls[-40:])
    inner = calls[marks[0] + 1:marks[1]]
    wakes = [call for call in inner if re.match(r"futex\(0x[0-9a-f]+, FUTEX_WAKE_PRIVATE", call)]
    return wakes, [call for call in inner if call not in wakes]
