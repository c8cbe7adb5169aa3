"""System errors that are hard to provoke, and a program that must not trust its environment."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess

from fifos import ScriptedApp
from harness import BUILD, PLUGINS, SOURCE, Skip, assert_handler_ledger, case, environment, lines_of, main, need_access_for_others, wait_for

VICTIM = os.path.join(BUILD, "tests", "torture", "victim")
BREAKER = os.path.join(BUILD, "tests", "torture", ".libs", "breaker.so")
SHIM = os.path.join(BUILD, "tests", "support", "preload", ".libs", "shim.so")
LEAKS = os.path.join(SOURCE, "tests", "torture", "leaks")


def write_config(folder, **options):
    path, config = os.path.join(folder, "out"), os.path.join(folder, "config.json")
    handler = {"type": "file", "path": path, "retry_min": "1ms", "retry_max": "20ms", **options}
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"handlers": {"h": handler}, "groups": {"victim": "h"}}, file)
    return path, config


def run_victim(config, **fault):
    """Runs a program with a system call that fails. Returns (delivered, dropped, log)."""
    if "thread" in os.environ.get("WEIR_TEST_SANITIZED", ""):
        raise Skip("ThreadSanitizer does not work with a preloaded library")
    env = environment(LD_PRELOAD=BREAKER, LSAN_OPTIONS=f"suppressions={LEAKS}:print_suppressions=0", **fault)
    done = subprocess.run([VICTIM, config, "victim", "h", "20000", "nofork"], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    offered, _, delivered, dropped, spooled, _, _, _ = map(int, done.stdout.split())
    assert offered == delivered + dropped + spooled, done.stdout
    return delivered, dropped, done.stderr


@case
def fault_19_an_input_output_error_is_logged_and_retried_and_nothing_is_torn(folder):
    path, config = write_config(folder)
    delivered, dropped, log = run_victim(config, BREAK_KIND="write", BREAK_AT=1, BREAK_FOR=1, BREAK_ERROR=errno.EIO)
    assert "Input/output error; retrying" in log and "h: back after" in log, log
    assert dropped == 0 and len([json.loads(line) for line in lines_of(path)]) == delivered > 0


@case
def fault_29_after_a_sleep_of_the_machine_back_off_continues_and_times_follow_the_wall_clock(folder):
    """The process is stopped while the wall clock advances by an hour and the monotonic clock does not."""
    if "thread" in os.environ.get("WEIR_TEST_SANITIZED", ""):
        raise Skip("ThreadSanitizer does not work with a preloaded library")
    place, slept = os.path.join(folder, "later"), os.path.join(folder, "slept")
    path = os.path.join(place, "out")
    handler = {"type": "file", "path": path, "format": "json", "retry_min": "10ms", "retry_max": "50ms"}
    app = ScriptedApp({"handlers": {"h": handler}, "groups": {"*": "h"}}, folder, LD_PRELOAD=SHIM, WEIR_SHIM="suspend",
                    WEIR_SHIM_SINCE=slept)
    assert app.do("add", "x", 1)["code"] == 0
    wait_for(lambda: "retrying" in app.stderr_text(), "the first failure")
    app.program.send_signal(signal.SIGSTOP)
    open(slept, "w", encoding="utf-8").close()
    os.mkdir(place)
    app.program.send_signal(signal.SIGCONT)
    assert app.do("flush", 60000)["code"] == 0, app.stderr_text()
    assert app.do("add", "x", 2)["code"] == 0
    assert app.do("flush", 60000)["code"] == 0, app.stderr_text()
    back = re.search(r"h: back after (\d+) s, 0 lost", app.stderr_text())
    assert back and int(back.group(1)) < 1800, app.stderr_text()
    stats = app.do("ledger", "h")
    assert_handler_ledger(stats)
    assert stats["delivered"] == 2 and sum(stats["dropped"]) == 0, stats
    app.end()
    before, after = [json.loads(line)["timestamp"] for line in lines_of(path)]
    assert after - before >= 3600, (before, after)


@case
def fault_34_without_descriptors_opening_is_retried_until_there_are_some(folder):
    path, config = write_config(folder)
    delivered, dropped, log = run_victim(config, BREAK_KIND="open", BREAK_AT=3, BREAK_FOR=5)
    assert "Too many open files" in log, log
    assert dropped == 0 and len(lines_of(path)) == delivered > 0


@case
def fault_34_open_files_work_without_descriptors(folder):
    path, config = write_config(folder)
    # the first ones are its configuration and its file: afterwards no open succeeds
    delivered, dropped, log = run_victim(config, BREAK_KIND="open", BREAK_AT=5)
    assert dropped == 0 and len(lines_of(path)) == delivered > 0, log


def setuid_copy(folder):
    if os.getuid() != 0:
        raise Skip("only root can create a setuid program of another user")
    need_access_for_others()
    os.chmod(folder, 0o755)
    copy = os.path.join(folder, "victim")
    shutil.copy(VICTIM, copy)
    os.chown(copy, 65534, 65534)
    os.chmod(copy, 0o4755)
    return copy


@case
def fault_38_a_setuid_program_ignores_its_environment(folder):
    if os.environ.get("WEIR_TEST_SANITIZED"):
        raise Skip("a setuid program cannot load the sanitizers' libraries")
    copy = setuid_copy(folder)
    target = os.path.join(folder, "place")
    os.mkdir(target)
    os.chmod(target, 0o777)
    path = os.path.join(target, "out")
    env = environment(WEIR_CONFIG={"handlers": {"h": {"type": "file", "path": path}}, "groups": {"*": "h"}}, WEIR_LOG="debug",
                      BENCHMARK_AI="stdout")
    env["WEIR_PLUGIN_PATH"] = PLUGINS
    for program, uses_environment in ((VICTIM, True), (copy, False)):
        done = subprocess.run([program, "/missing.json", "victim", "h", "5000", "nofork"], env=env, capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, done.stderr
        assert os.path.exists(path) == uses_environment, done.stderr
        assert uses_environment or "{" not in done.stdout and "debug" not in done.stderr, done
        if uses_environment:
            os.unlink(path)


if __name__ == "__main__":
    main()
