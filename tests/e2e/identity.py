"""What stays with a value that another process delivers: its identity; and what does not: the labels of the configuration."""

import json
import os
import re

from fifos import ScriptedApp
from harness import ADDER, PLUGINS, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, lines_of, main, run
from scripted import Scripted

COUNT = 100
FIRST = re.compile(r"from ([0-9a-f]{32}) (\d+) on")


def config_of(folder, **settings):
    """A handler that fails until the folder `there` exists."""
    handler = {"type": "file", "path": os.path.join(folder, "there", "out"), "format": {"type": "json", "origin": True},
               "retry_min": "10ms", "retry_max": "50ms"}
    return {"settings": {"shutdown_timeout": "5s", **settings}, "handlers": {"disk": handler}, "groups": {"*": "disk"}}


def deliver(folder, config):
    """Runs a program that adds one value of its own. Returns the records of those of the other one."""
    os.mkdir(os.path.join(folder, "there"))
    done = run(ADDER, "-n", 1, "-g", "later", "-f", -3, "-H", "disk", WEIR_CONFIG=config)
    assert done.returncode == 0, done
    assert_ledgers(json.loads(done.stdout))
    records = [json.loads(line) for line in lines_of(os.path.join(folder, "there", "out"))]
    return [record for record in records if record["group"] == "my_app"]


def assert_same(records, shown):
    """The records are those of one origin, in order, and the text shows the first of them."""
    origin, sequence = FIRST.search(shown).groups()
    assert [(record["origin"], record["sequence"]) for record in records] == [(origin, int(sequence) + i) for i in range(COUNT)], shown
    assert [record["value"] for record in records] == list(range(COUNT))


@case
def spool_verify_shows_the_identity_that_the_first_value_is_delivered_with(folder):
    spool = os.path.join(folder, "spool")
    config = config_of(folder, shutdown_timeout="100ms")
    config["handlers"]["disk"]["spool"] = spool
    done = run(ADDER, "-n", COUNT, "-H", "disk", WEIR_CONFIG=config)
    assert_ledgers(json.loads(done.stdout))
    shown = run(WEIR, "spool", "verify", spool)
    assert shown.returncode == 0 and f": {COUNT} values, from " in shown.stdout, shown
    assert_same(deliver(folder, config), shown.stdout)


@case
def journal_list_shows_the_identity_that_the_first_value_is_delivered_with(folder):
    journal = os.path.join(folder, "journal")
    config = config_of(folder, journal=journal)
    run(ADDER, "-q", "-n", COUNT, "-f", 100, "-x", "_exit", WEIR_CONFIG=config)
    shown = run(WEIR, "journal", "list", journal)
    assert shown.returncode == 0 and FIRST.search(shown.stdout), shown
    assert_same(deliver(folder, config), shown.stdout)


@case
def recovered_values_have_the_labels_of_the_configuration_of_the_program_that_delivers_them(folder):
    journal = os.path.join(folder, "journal")
    run(ADDER, "-q", "-n", COUNT, "-f", 100, "-x", "_exit", WEIR_CONFIG=config_of(folder, journal=journal, labels={"run": "1"}))
    records = deliver(folder, config_of(folder, journal=journal, labels={"run": "2"}))
    assert len(records) == COUNT and all(record["labels"] == {"run": "2"} for record in records), records[:2]


@case
def a_description_in_the_program_that_delivers_takes_precedence(folder):
    """A unit is shown by the HELP text of the format prometheus, which only http can send."""
    if not os.path.exists(os.path.join(PLUGINS, "http.so")):
        raise Skip("built without http")
    with Scripted() as server:
        config = config_of(folder, journal=os.path.join(folder, "journal"))
        config["handlers"]["disk"] = {"type": "http", "url": "http://127.0.0.1:1/", "format": {"type": "prometheus", "units": "as_is"}, "linger": "0s"}
        app = ScriptedApp(config, folder)
        for name in ("described", "other"):
            assert app.do("describe", name, "ms")["code"] == 0 and app.do("add", name, 1)["code"] == 0
        app.do("flush", 100)
        app.program.kill()
        app.program.wait()
        config["handlers"]["disk"]["url"] = server.url
        app = ScriptedApp(config, folder)
        assert app.do("describe", "described", "s")["code"] == 0 and app.do("add", "described", 2)["code"] == 0
        assert app.do("flush", -1)["code"] == 0
        ledger = app.do("ledger", "disk")
        assert_handler_ledger(ledger)
        assert (ledger["offered"], ledger["recovered"], ledger["delivered"]) == (1, 2, 3), ledger
        app.end()
        text = b"".join(request.body for request in server.requests).decode()
        assert "described of my_app (s)" in text and "described of my_app (ms)" not in text and "other of my_app (ms)" in text, text
        assert re.findall(r"^my_app_(\w+) (\d+)$", text, re.M) == [("described", "1"), ("other", "1"), ("described", "2")], text


main()
