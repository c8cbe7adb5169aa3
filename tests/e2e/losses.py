"""What is logged of lost values and of a long end, at the default level."""

import json
import os
import re

from fifos import ScriptedApp
from harness import ADDER, assert_handler_ledger, assert_ledgers, case, main, run, wait_for

CLOSED = "http://127.0.0.1:9/"


def add(count, config, *arguments):
    """Adds values, checks that the ledgers balance. Returns (messages, the handler's ledger)."""
    done = run(ADDER, "-n", count, "-H", "push", *arguments, WEIR_CONFIG=config)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return done.stderr, report["handlers"]["push"]


def config_of(shutdown, **options):
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"push": {"type": "http", "url": CLOSED, **options}},
            "groups": {"*": "push"}}


@case
def the_first_lost_value_is_logged_at_once_and_the_last_line_is_the_total():
    config = config_of("0s", queue="64KiB", overflow="drop_newest")
    log, _ = add(200000, config)
    lines = log.splitlines()
    first = next(i for i, line in enumerate(lines) if "push: the queue is full; " in line)
    assert lines[first].startswith("weir: warning: ") and not any("shutting down" in line for line in lines[:first]), log
    total, full, late = map(int, re.fullmatch(r"weir: error: push: (\d+) values dropped in all \((\d+) full, (\d+) shutdown\)",
                                              lines[-1]).groups())
    assert total == full + late == 200000, log
    assert sum("the queue is full" in line for line in lines) <= 2, log


@case
def a_loss_that_one_line_has_reported_is_not_repeated():
    log, _ = add(5, config_of("0s"))
    assert log.splitlines()[-1].endswith("not delivered in time: 5 dropped") and "in all" not in log, log


@case
def a_failing_handler_with_a_spool_does_not_delay_the_end(folder):
    config = config_of("1h", spool=os.path.join(folder, "spool"), retry_min="1h", retry_max="1h")
    log, _ = add(1000, config)
    assert log.endswith("not delivered in time: 1000 spooled\n"), log


@case
def an_end_that_takes_longer_than_a_second_logs_what_it_waits_for(folder):
    app = ScriptedApp(config_of("2s"), folder)
    for value in range(7):
        assert app.do("add", "a", value)["code"] == 0
    wait_for(lambda: "retrying" in app.stderr_text(), "the first attempt to fail")
    ledger = app.do("ledger", "push")
    assert_handler_ledger(ledger)
    assert ledger["queued"] == 7, ledger
    app.end()
    log = app.stderr_text()
    assert re.search(r"warning: push: shutting down: waiting up to \d+ s more for this handler: 7 queued; failing: .*refused", log), log
    assert log.index("waiting up to") < log.index("not delivered in time: 7 dropped"), log


main()
