"""WEIR_TEE adds handlers to whatever configuration a program has, and replaces nothing."""

import json
import os
import subprocess

from harness import BUILD, assert_ledgers, case, lines_of, main, run, skip_fork_under_sanitizers, start, wait_for, without_waits

STEPS = os.path.join(BUILD, "tests", "support", "steps")


def sink(folder, name, **more):
    return {"type": "file", "path": os.path.join(folder, name), "format": "json", "block_timeout": "1h", **more}


def tee_of(folder, groups=None, **more):
    return {"handlers": {"teed": sink(folder, "teed", **more)}, "groups": groups or {"*": "teed"}}


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def values_in(folder, name):
    """The group and value of each line."""
    path = os.path.join(folder, name)
    lines = [json.loads(line) for line in lines_of(path)] if os.path.exists(path) else []
    return [(line["group"], line["value"]) for line in lines]


def follow(*steps, **env):
    """Returns what the program wrote to standard error, after its ledgers were checked."""
    done = run(STEPS, *steps, **env)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    for stats in report["handlers"].values():
        assert stats["delivered"] == stats["offered"] and not sum(stats["dropped"]), report
    return done.stderr


@case
def without_any_configuration_values_reach_the_tee(folder):
    log = follow("enabled", "a", "add", "a", "x", 1, "add", "a.b", "x", 2, WEIR_TEE=tee_of(folder))
    assert log == "a is on\n", log
    assert values_in(folder, "teed") == [("a", 1), ("a.b", 2)]


@case
def the_programs_own_routes_stay(folder):
    config = {"handlers": {"own": sink(folder, "own"), "other": sink(folder, "other")},
              "groups": {"*": "own", "a": ["inherit", "other"], "b": [], "c": "null", "d": "other"}}
    steps = [word for number, group in enumerate("abcdef") for word in ("add", group + ".x", "v", number)]
    log = follow(*steps, WEIR_CONFIG=write(folder, "config", config), WEIR_TEE=write(folder, "tee", tee_of(folder)))
    assert without_waits(log) == "", log
    assert values_in(folder, "teed") == [(group + ".x", number) for number, group in enumerate("abcdef")]
    assert values_in(folder, "own") == [("a.x", 0), ("e.x", 4), ("f.x", 5)]
    assert values_in(folder, "other") == [("a.x", 0), ("d.x", 3)]


@case
def a_tee_with_routes_of_its_own_gets_these_groups_only(folder):
    config = {"handlers": {"own": sink(folder, "own")}, "groups": {"*": "own", "a": ["inherit"], "a.b": []}}
    tee = tee_of(folder, {"a": "teed", "a.c": [], "e.f": ["inherit", "teed"]})
    steps = [word for number, group in enumerate(("a", "a.b", "a.c", "d", "e", "e.f")) for word in ("add", group, "v", number)]
    assert follow(*steps, WEIR_CONFIG=config, WEIR_TEE=tee) == ""
    assert values_in(folder, "teed") == [("a", 0), ("a.b", 1), ("e.f", 5)]
    assert values_in(folder, "own") == [("a", 0), ("a.c", 2), ("d", 3), ("e", 4), ("e.f", 5)]


@case
def calls_of_the_program_keep_the_tee(folder):
    options = json.dumps({"path": os.path.join(folder, "own"), "format": "json"})
    file = write(folder, "config", {"handlers": {"own": sink(folder, "third")}, "groups": {"*": "own"}})
    log = follow("add", "a", "x", 1, "configure", "*", "file", options, "add", "a", "x", 2, "configure", "a", "null", "-", "add", "a", "x", 3,
                 "configure", "a", "-", "-", "add", "a", "x", 4, "file", file, "add", "a", "x", 5, "reload", "add", "a", "x", 6,
                 "configure", "b", "file", "{}", "add", "a", "x", 7, WEIR_TEE=tee_of(folder))
    assert "configure: " in log and '"path" is missing' in log and "WEIR_TEE" not in log, log
    assert values_in(folder, "teed") == [("a", number) for number in range(1, 8)]
    assert values_in(folder, "own") == [("a", 2), ("a", 4)]
    assert values_in(folder, "third") == [("a", 5), ("a", 6), ("a", 7)]


@case
def forked_children_have_the_tee(folder):
    skip_fork_under_sanitizers()
    options = json.dumps({"path": os.path.join(folder, "own"), "format": "json"})
    for steps in (("add", "a", "x", 1, "fork", "add", "a", "x", 2), ("fork", "add", "a", "x", 1, "fork", "configure", "*", "file", options,
                                                                      "add", "a", "x", 2)):
        assert follow(*steps, WEIR_TEE=tee_of(folder, path=os.path.join(folder, "teed.${PID}"))) == ""
        found = sorted(name for name in os.listdir(folder) if name.startswith("teed."))
        assert sorted(value for name in found for value in values_in(folder, name)) == [("a", 1), ("a", 2)], found
        assert len(found) == 2, found
        for name in found:
            os.remove(os.path.join(folder, name))
    assert values_in(folder, "own") == [("a", 2)]


@case
def a_broken_tee_breaks_nothing(folder):
    config = {"handlers": {"own": sink(folder, "own")}, "groups": {"*": "own"}}
    tees = {"{": "unclosed", os.path.join(folder, "missing"): "No such file or directory", '{"groups":{"*":"nonesuch"}}': "nonesuch",
            '{"groups":{}}': '"groups" is missing or empty', '{"handlers":{"t":{"type":"file"}},"groups":{"*":"t"}}': '"path" is missing',
            '{"settings":{"status":"auto"},"groups":{"*":"null"}}': "settings: not allowed in a tee",
            '{"sources":{},"groups":{"*":"null"}}': "sources: not allowed in a tee"}
    for number, (tee, problem) in enumerate(tees.items()):
        log = follow("add", "a", "x", number, WEIR_CONFIG=config, WEIR_TEE=tee)
        assert problem in log and log.endswith("WEIR_TEE is not used\n") and log.count("\n") == 1, (tee, log)
    assert values_in(folder, "own") == [("a", number) for number in range(len(tees))]


@case
def a_broken_configuration_does_not_break_the_tee(folder):
    log = follow("add", "a", "x", 1, WEIR_CONFIG='{"groups":{"*":"nonesuch"}}', WEIR_TEE=tee_of(folder))
    assert "nonesuch" in log and "WEIR_CONFIG is not used" in log and "WEIR_TEE" not in log, log
    assert values_in(folder, "teed") == [("a", 1)]


@case
def handlers_of_both_may_have_one_name(folder):
    own = {"handlers": {"teed": sink(folder, "own")}, "groups": {"*": "teed"}}
    assert follow("add", "a", "x", 1, WEIR_CONFIG=own, WEIR_TEE=tee_of(folder)) == ""
    assert values_in(folder, "own") == [("a", 1)] and values_in(folder, "teed") == [("a", 1)]


@case
def names_that_do_not_go_together_leave_the_tee_out(folder):
    own = {"handlers": {"WEIR_TEE:teed": sink(folder, "own")}, "groups": {"*": "WEIR_TEE:teed"}}
    log = follow("add", "a", "x", 1, WEIR_CONFIG=own, WEIR_TEE=tee_of(folder))
    assert "is named \"WEIR_TEE:teed\" too; WEIR_TEE is not used with this configuration" in log, log
    named = {"handlers": {"null": sink(folder, "own")}, "groups": {"*": "null"}}
    log = follow("add", "a", "x", 2, WEIR_CONFIG=named, WEIR_TEE='{"groups":{"*":"null"}}')
    assert '"null" in a route of the tee is the name of a handler of the program; WEIR_TEE is not used' in log, log
    assert values_in(folder, "own") == [("a", 1), ("a", 2)]
    log = follow("add", "a", "x", 3, "file", write(folder, "config", named), "add", "a", "x", 4, "configure", "*", "-", "-", "reload",
                 WEIR_TEE='{"groups":{"*":"null"}}')
    assert log.count("WEIR_TEE") == 1, log
    long_name = {"handlers": {"x" * 250: sink(folder, "teed")}, "groups": {"*": "x" * 250}}
    log = follow("add", "a", "x", 5, WEIR_TEE=long_name)
    assert "the names of a tee's handlers have at most 246 bytes; WEIR_TEE is not used" in log, log


@case
def a_journal_does_not_keep_what_was_left_for_the_tee_of_a_dead_process(folder):
    journal = os.path.join(folder, "journal")
    config = {"settings": {"journal": journal}, "handlers": {"own": sink(folder, "own")}, "groups": {"*": "own"}}
    stuck = {"handlers": {"stuck": {"type": "fifo", "path": os.path.join(folder, "pipe"), "create": True}}, "groups": {"*": "stuck"}}
    program = start(STEPS, "add", "a", "x", 1, "pause", stdin=subprocess.PIPE, WEIR_CONFIG=config, WEIR_TEE=stuck, WEIR_LOG="off")
    wait_for(lambda: values_in(folder, "own") == [("a", 1)], "the value")
    program.kill()
    program.communicate()
    assert os.listdir(journal), "the process had a journal"
    log = follow("add", "a", "x", 2, WEIR_CONFIG=config, WEIR_LOG="info")
    assert "1 values for the WEIR_TEE of an earlier process are dropped" in log and "are kept" not in log, log
    assert os.listdir(journal) == [] and ("a", 2) in values_in(folder, "own"), os.listdir(journal)


@case
def defaults_of_the_programs_handlers_do_not_apply_to_the_tee(folder):
    config = {"handlers": {"*": {"format": "csv", "optional": False}, "own": {"type": "file", "path": os.path.join(folder, "own")}},
              "groups": {"*": "own"}}
    tee = {"handlers": {"*": {"format": "json"}, "teed": {"type": "file", "path": os.path.join(folder, "teed")}}, "groups": {"*": "teed"}}
    assert follow("add", "a", "x", 1, WEIR_CONFIG=config, WEIR_TEE=tee) == ""
    assert values_in(folder, "teed") == [("a", 1)]
    assert lines_of(os.path.join(folder, "own"))[0].startswith("timestamp,"), lines_of(os.path.join(folder, "own"))


main()
