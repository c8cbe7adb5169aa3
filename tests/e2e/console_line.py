"""The output of the handler type console, and a program without a configuration."""

import os
import re

from harness import ADDER, case, main, run

CONSOLE = {"groups": {"*": "console"}}


@case
def a_value_is_shown_as_one_line():
    done = run(ADDER, "-q", WEIR_CONFIG=CONSOLE)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\[\d{10}\.\d{6}\]\[my_app\]: t0=0\n", done.stdout), done.stdout
    assert done.stderr == ""


@case
def without_configuration_nothing_is_printed_and_there_is_one_thread():
    done = run(ADDER, "-q", "-n", 1000)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    done = run(ADDER, "-q", "-n", 1000, "-T")
    assert done.stdout == "Threads:\t1\n", done.stdout


@case
def without_configuration_nothing_is_written_and_no_descriptor_is_open(folder):
    done = run(ADDER, "-q", "-n", 1000, cwd=folder)
    assert done.returncode == 0 and os.listdir(folder) == []


@case
def a_pipe_gets_no_colours_unless_color_is_always():
    always = {"handlers": {"c": {"type": "console", "color": "always"}}, "groups": {"*": "c"}}
    assert "\x1b" not in run(ADDER, "-q", WEIR_CONFIG=CONSOLE).stdout
    assert "\x1b[" in run(ADDER, "-q", WEIR_CONFIG=always).stdout
    never = {"handlers": {"c": {"type": "console", "color": "never"}}, "groups": {"*": "c"}}
    assert "\x1b" not in run("script", "-qec", f"{ADDER} -q", "/dev/null", WEIR_CONFIG=never, TERM="xterm").stdout


@case
def a_terminal_gets_colours_unless_no_color_is_set():
    command = ("script", "-qec", f"{ADDER} -q", "/dev/null")
    assert "\x1b[" in run(*command, WEIR_CONFIG=CONSOLE, TERM="xterm").stdout
    assert "\x1b[" not in run(*command, WEIR_CONFIG=CONSOLE, TERM="xterm", NO_COLOR=1).stdout
    assert "\x1b[" not in run(*command, WEIR_CONFIG=CONSOLE, TERM="dumb").stdout


@case
def standard_error_can_be_selected():
    config = {"handlers": {"c": {"type": "console", "to": "stderr"}}, "groups": {"*": "c"}}
    done = run(ADDER, "-q", WEIR_CONFIG=config)
    assert done.stdout == "" and "t0=0" in done.stderr


@case
def characters_that_could_mislead_on_a_terminal_are_escaped():
    done = run(ADDER, "-q", "-g", "a\u202eb", WEIR_CONFIG=CONSOLE)
    assert "[a\\u202eb]: t0=0" in done.stdout, done.stdout


main()
