"""The effects of weir on its host program: allocations and system calls per call, and the process state it must not change."""

import glob
import json
import os

from harness import ADDER, BUILD, case, lines_of, main, run, start, wait_for, without_waits
from traces import between_marks, of_main_thread

GUEST = os.path.join(BUILD, "tests", "support", "guest")
NULL = {"groups": {"*": "null"}}


@case
def after_the_first_use_of_a_name_a_call_allocates_nothing():
    done = run(GUEST, "allocations", WEIR_CONFIG=NULL)
    assert done.returncode == 0 and done.stdout == "0 allocations\n", done


@case
def after_the_first_use_of_a_name_a_call_makes_no_system_call_except_a_wake_up():
    _, calls = of_main_thread(GUEST, "syscalls", WEIR_CONFIG=NULL)
    wakes, others = between_marks(calls)
    assert not others and len(wakes) <= 3, wakes + others


@case
def the_process_state_of_the_program_is_not_changed():
    done = run(GUEST, "state", WEIR_CONFIG={"groups": {"*": "console"}})
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr


@case
def descriptors_are_closed_on_exec_and_threads_block_all_signals(folder):
    config = {"handlers": {"disk": {"type": "file", "path": os.path.join(folder, "out")}}, "groups": {"*": "disk"}}
    done = run(GUEST, "threads", WEIR_CONFIG=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr


# Runs the adder with its three standard streams closed.
CLOSED = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]


@case
def nothing_is_written_into_a_file_in_place_of_a_closed_standard_stream(folder):
    path = os.path.join(folder, "out")
    config = {"settings": {"journal": os.path.join(folder, "journal"), "status": os.path.join(folder, "status")},
              "handlers": {"disk": {"type": "file", "path": path, "spool": os.path.join(folder, "spool")}}, "groups": {"*": "disk"}}
    process = start(*CLOSED, ADDER, "-q", "-n", 100000, "-p", 1000000, WEIR_CONFIG=config, WEIR_LOG="debug")
    try:
        wait_for(lambda: os.path.exists(path) and glob.glob(os.path.join(folder, "status", "*")), "the files")
        # a file that was just opened has such a number until it is moved
        wait_for(lambda: not [fd for fd in ("0", "1", "2") if os.path.exists(f"/proc/{process.pid}/fd/{fd}")],
                 "no file in place of a standard stream")
    finally:
        process.kill()
        process.wait()
    run(*CLOSED, ADDER, "-q", "-n", 100, WEIR_CONFIG=config, WEIR_LOG="debug")
    assert all(json.loads(line)["group"] == "my_app" for line in lines_of(path))


@case
def weir_log_selects_what_is_logged():
    config = {"handlers": {"disk": {"type": "file", "path": "/no/such/folder/x"}}, "groups": {"*": "disk"},
              "settings": {"shutdown_timeout": "1s"}}
    assert run(ADDER, "-q", WEIR_CONFIG=config, WEIR_LOG="off").stderr == ""
    errors = run(ADDER, "-q", WEIR_CONFIG=config, WEIR_LOG="error").stderr
    assert errors.count("\n") == 1 and errors.startswith("weir: error: disk: "), errors
    assert "weir: warning: disk: open" in run(ADDER, "-q", WEIR_CONFIG=config).stderr
    assert "allowed: off, error, warning, info, debug" in run(ADDER, "-q", WEIR_LOG="loud").stderr


main()
