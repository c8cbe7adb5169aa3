"""What strace shows of a program's main thread."""

import re
import shutil

from harness import Skip, run


def of_main_thread(*command, **env):
    """Runs a program to its good end; answers (the whole trace, the beginnings of its main thread's calls)."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    done = run("strace", "-f", "-qq", "-o", "/dev/stdout", *command, ASAN_OPTIONS="detect_leaks=0", **env)  # which cannot be traced
    assert done.returncode == 0, done.stderr
    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    calls = [call for thread, call in lines if thread == lines[0][0]]
    return done.stdout, [call for call in calls if not call.startswith("<... ")]  # the end of a call already told


def between_marks(calls):
    """Of a main thread's calls those between the two calls of getsid; answers (the wake-ups, all others)."""
    marks = [i for i, call in enumerate(calls) if call.startswith("getsid(")]
    assert len(marks) == 2, "\n".join(calls[-40:])
    inner = calls[marks[0] + 1:marks[1]]
    wakes = [call for call in inner if re.match(r"futex\(0x[0-9a-f]+, FUTEX_WAKE_PRIVATE", call)]
    return wakes, [call for call in inner if call not in wakes]
