"""A guest in somebody else's program: what a call costs the system, and what weir leaves alone."""

import os

from harness import BUILD, case, main, run
from traces import between_marks, of_main_thread

GUEST = os.path.join(BUILD, "tests", "support", "guest")
NULL = {"groups": {"*": "null"}}


@case
def after_the_first_use_of_a_name_a_call_allocates_nothing():
    done = run(GUEST, "allocations", WEIR_CONFIG=NULL)
    assert done.returncode == 0 and done.stdout == "0 allocations\n", done


@case
def after_the_first_use_of_a_name_a_call_makes_no_system_call_but_the_wake_up():
    _, calls = of_main_thread(GUEST, "syscalls", WEIR_CONFIG=NULL)
    wakes, others = between_marks(calls)
    assert not others and len(wakes) <= 3, wakes + others


@case
def nothing_of_the_programs_is_changed():
    done = run(GUEST, "manners", WEIR_CONFIG={"groups": {"*": "console"}})
    assert done.returncode == 0 and done.stderr == "", done.stderr


@case
def descriptors_are_closed_on_exec_and_threads_block_all_signals(folder):
    config = {"handlers": {"disk": {"type": "file", "path": os.path.join(folder, "out")}}, "groups": {"*": "disk"}}
    done = run(GUEST, "threads", WEIR_CONFIG=config)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@case
def weir_log_says_what_is_said():
    config = {"handlers": {"disk": {"type": "file", "path": "/no/such/folder/x"}}, "groups": {"*": "disk"},
              "settings": {"shutdown_timeout": "1s"}}
    from harness import ADDER
    assert run(ADDER, "-q", WEIR_CONFIG=config, WEIR_LOG="off").stderr == ""
    errors = run(ADDER, "-q", WEIR_CONFIG=config, WEIR_LOG="error").stderr
    assert errors.count("\n") == 1 and errors.startswith("weir: error: disk: "), errors
    assert "weir: warning: disk: open" in run(ADDER, "-q", WEIR_CONFIG=config).stderr
    assert "allowed: off, error, warning, info, debug" in run(ADDER, "-q", WEIR_LOG="loud").stderr


main()
