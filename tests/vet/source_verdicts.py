"""`weir vet` of source types: those that break the contract fail with the right verdict, and weir's own pass."""

import json
import os
import re
import shlex
from concurrent.futures import ThreadPoolExecutor

from harness import BUILD, PLUGINS, SOURCE, SOURCE_PLUGINS, WEIR, Skip, case, free_port, main, run
from mdoc import Page

CC = shlex.split(os.environ.get("WEIR_TEST_CC", "cc"))
HERE = os.path.join(BUILD, "tests", "vet", ".libs")
FAULTY = os.path.join(HERE, "faulty_source.so")
LINES = r"printf '1\n2\n3\n'"
KILLED = r"killed by (Segmentation fault|Aborted|Bus error) in "
CHECKS = ("load", "type", "options", "create", "values", "life", "idle", "full", "refused", "stop", "reload", "probe", "state", "descriptors",
          "threads", "memory", "abandon", "program")

# The check that finds each fault, and the text of its verdict.
VERDICTS = {
    "create_crashes": ("create", KILLED + "create$"),
    "create_opens_file": ("create", r"create opens /tmp \(openat\); it may do no I/O"),
    "create_starts_thread": ("create", r"create starts a thread or a process \(clone3?\)"),
    "create_refuses_without_reason": ("create", "create refuses: .* gave no reason"),
    "odd_refusal": ("create", 'host->refuse names the option "no_such_option", which the type does not have'),
    "waits_in_create": ("create", "host->wait was called in create"),
    "open_crashes": ("life", KILLED + "open$"),
    "open_hangs": ("life", "open does not return within"),
    "open_without_reason": ("life", "open returns the code 1 without a reason"),
    "unknown_code": ("life", r"run returns the code 17; allowed: 0 \(OK\), 1 \(RETRY\), 2 \(REOPEN\) and 4 \(FAILED\)"),
    "drops": ("life", "run returns the code 3; allowed: "),
    "probe_leaks": ("probe", "probe leaves a descriptor open: .*memfd:lost"),
    "probe_hangs": ("probe", "probe with 2000 ms does not return within"),
    "garbage": ("life", "run changes outcome->size"),
    "writes_behind_outcome": ("life", "run writes beyond the end of the outcome"),
    "never_waits": ("life", "run calls neither weir_intake.wait nor add within"),
    "ignores_stop": ("life", "run does not return within [0-9]+ ms after a stop was requested while it runs; .* reported it [1-9]"),
    "slow_to_stop": ("life", "run does not return within [0-9]+ ms after a stop was requested while it runs; .* reported it 1 times"),
    "crashes_at_stop": ("life", KILLED + "run$"),
    "wrong_thread": ("life", "weir_intake.add was called from another thread than the source's own"),
    "empty_record": ("life", "weir_intake.add was called with a record without values"),
    "odd_kind": ("life", 'a record\'s value "line" has the kind 77'),
    "odd_mark": ("life", "weir_intake.settled was called with [0-9]+, which weir_intake.mark has not returned"),
    "many_descriptors": ("life", "weir_intake.wait was called with 1025 descriptors; allowed: 1024"),
    "odd_descriptor": ("life", "weir_intake.wait was called with descriptor 999, which is not open"),
    "logs_secret": ("life", 'a log message contains the value of the option "token", which is secret'),
    "spins": ("idle", "run calls weir_intake.wait [0-9]+ times in 300 ms, although there is nothing to read"),
    "spins_full": ("full", "run calls weir_intake.wait [0-9]+ times in 300 ms while there is no room"),
    "adds_forever": ("full", "run adds 10000 times without weir_intake.wait, although there is no room"),
    "loses_full": ("full", "3 of 3 values are lost and not counted when there is no room at first"),
    "repeats_refused": ("refused", "run adds a record again and again that was refused"),
    "early_stop": ("stop", "run does not return within [0-9]+ ms after a stop was requested soon after it was started"),
    "static_state": ("reload", "a source adds nothing any more once another instance, which was never opened, was destroyed"),
    "changes_locale": ("state", r'open changes the locale \(LC_CTYPE\) from "C" to "C.UTF-8"'),
    "changes_mask": ("state", "open changes the thread's signal mask: 1 .HUP. is now unblocked"),
    "changes_umask": ("state", "open changes the umask from 0[0-7]+ to 00"),
    "changes_folder": ("state", "open changes the working directory from .* to /usr"),
    "changes_signal": ("state", "open changes the action of signal 13 .PIPE."),
    "create_changes_mask": ("state", "create: it changed its thread's signal mask, which is the program's"),
    "run_changes_mask": ("state", "run changes the thread's signal mask: 1 .HUP. is now unblocked"),
    "close_changes_mask": ("state", "close changes the thread's signal mask: 1 .HUP. is now unblocked"),
    "destroy_changes_locale": ("state", "destroy changes the thread's locale"),
    "prints_in_open": ("state", "open writes to standard output, which is the program's; use host->log"),
    "leaks_descriptor": ("descriptors", "5 descriptors stay open after 5 life cycles: .*memfd:lost"),
    "inherits": ("descriptors", r"open opens descriptor \d+ \(.*faulty.*\) without O_CLOEXEC"),
    "closes_twice": ("descriptors", r"destroy closes descriptor \d+, which it does not own"),
    "leaves_thread": ("threads", "3 threads still run after 3 life cycles"),
    "leaks_memory": ("memory", r"about \d+ bytes are leaked in each life cycle"),
    "abandon_leaves": ("abandon", "abandon leaves descriptors open: .*memfd:own"),
    "abandon_writes": ("abandon", r"abandon calls write; it may call close\(2\), fstat\(2\) and nothing else"),
    "abandon_crashes": ("program", "a forked child is killed by Segmentation fault"),
    "crashes_at_exit": ("program", "a forked child is killed by Segmentation fault"),
}
WRONG = {
    "flags": ("type", "its flags 0x80 have unknown bits; allowed: WEIR_SOURCE_"),
    "default": ("type", 'it has a default for "no_such_option", which is not an option of its sources'),
    "help": ("options", 'option "fault": its help is empty'),
    "abandon": ("abandon", "it has descriptors, but no abandon: a forked child keeps them: .*memfd:own"),
    "end": ("load", "(weir_source_type_at has no end|some of which have the same name)"),
}


def vet(path, options, *more, **env):
    """Returns the exit status and {check: (verdict, text)}."""
    done = run(WEIR, "vet", path, "-o", json.dumps(options), "--json", *more, LC_ALL="C", **env)
    assert done.returncode in (0, 1) and done.stdout, done
    report = json.loads(done.stdout)
    assert report["passed"] == (done.returncode == 0), done
    return done.returncode, {check["check"]: (check["verdict"], check["message"]) for check in report["checks"]}


def for_each(names, check):
    """In parallel, since most of them wait."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(check, sorted(names)))


def assert_verdict(path, options, check, words):
    status, checks = vet(path, options, "--check", check, "-w", LINES)
    verdict, text = checks[check]
    assert status == 1 and verdict == "FAIL" and re.search(words, text), (path, options, check, checks)


def assert_all_good(path, options, *more, **env):
    """With a long deadline, so that a busy machine makes no difference."""
    status, checks = vet(path, options, "--strict", "--deadline", "30s", *more, **env)
    assert status == 0 and tuple(checks) == CHECKS, (path, checks)


# ---- Verdicts -----------------------------------------------------------------------------------------


@case
def a_source_that_keeps_the_contract_passes():
    assert_all_good(FAULTY, {"fault": "none", "token": "hunter2"}, "-w", LINES)


@case
def each_fault_is_found_and_named():
    for_each(VERDICTS, lambda fault: assert_verdict(FAULTY, {"fault": fault, "token": "hunter2"}, *VERDICTS[fault]))


@case
def each_mistake_of_a_description_is_found():
    for name, (check, words) in WRONG.items():
        assert_verdict(os.path.join(HERE, f"wrong_source_{name}.so"), {}, check, words)


@case
def every_check_has_a_fault_that_it_finds():
    found = {check for check, _ in list(VERDICTS.values()) + list(WRONG.values())}
    assert found | {"values"} == set(CHECKS), set(CHECKS) ^ found


@case
def a_source_to_which_nothing_is_sent_is_not_checked_in_full():
    status, checks = vet(FAULTY, {})
    skipped = {name for name, (verdict, _) in checks.items() if verdict == "skipped"}
    assert status == 0 and skipped == {"life", "full", "refused"}, checks
    assert "it adds nothing by itself, so this was not checked: give a command that sends values to it by --write" in checks["life"][1], checks
    status, checks = vet(FAULTY, {}, "--strict", "--check", "life", "-w", "exit 3", "-d", "2s")
    assert status == 1 and "it adds nothing that the command of --write sends (status 3;" in checks["life"][1], checks


@case
def arguments_that_do_not_fit_a_source_are_refused():
    for arguments, words in ((("--read", "cat x"), "--read and --fuzz are for handler types"), (("--fuzz", "1"), "--read and --fuzz are for"),
                             (("--check", "batches"), '--check: unknown check "batches"')):
        done = run(WEIR, "vet", FAULTY, *arguments)
        assert done.returncode == 2 and words in done.stderr, done
    done = run(WEIR, "vet", os.path.join(PLUGINS, "null.so"), "--write", "true")
    assert done.returncode == 2 and "--write is for source types" in done.stderr, done
    done = run(WEIR, "vet", FAULTY, "--type", "nothing")
    assert done.returncode == 1 and 'the file has no source type "nothing"' in done.stderr, done


@case
def the_report_names_the_section_of_the_source_guide():
    done = run(WEIR, "vet", FAULTY, "-o", '{"fault": "spins"}', "--check", "idle")
    assert done.returncode == 1 and "see source-guide.md#waiting\n" in done.stdout and "source type faulty_source\n" in done.stdout, done


@case
def the_example_of_weir_source_7_passes(folder):
    [example] = Page(os.path.join(SOURCE, "doc", "weir-source.7")).literals("EXAMPLES")
    path, plugin = os.path.join(folder, "noise.c"), os.path.join(folder, "noise.source.so")
    with open(path, "w", encoding="utf-8") as file:
        file.write(example)
    done = run(*CC, f"-I{SOURCE}/include", f"-I{BUILD}/include", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", plugin, path)
    assert done.returncode == 0, done.stderr
    assert_all_good(plugin, {})


# ---- weir's own sources -------------------------------------------------------------------------------


def own(name):
    path = os.path.join(SOURCE_PLUGINS, f"{name}.source.so")
    if not os.path.exists(path):
        raise Skip(f"the source type {name} was not built")
    return path


@case
def stdin_passes():
    assert_all_good(own("stdin"), {}, "-w", r"printf 'x=1\ny=2 z=3\n'")


@case
def fifo_passes(folder):
    pipe = os.path.join(folder, "pipe")
    assert_all_good(own("fifo"), {"path": pipe, "parse": "text"}, "-w", rf"printf 'x=1\ny=2\n' >{shlex.quote(pipe)}")


@case
def file_passes(folder):
    path = os.path.join(folder, "in")
    with open(path, "w", encoding="utf-8"):
        pass
    assert_all_good(own("file"), {"path": path, "state": os.path.join(folder, "state")}, "-w", rf"printf 'x=1\ny=2\n' >>{shlex.quote(path)}")


def emitting(folder, handler):
    """A command that sends two values by a handler."""
    path = os.path.join(folder, "emit.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"handlers": {"out": handler}, "groups": {"*": "out"}}, file)
    return f"{shlex.quote(WEIR)} emit -c {shlex.quote(path)} -g vet x=1 y=2"


@case
def statsd_passes(folder):
    for to in (f"unix-dgram:{folder}/socket", f"tcp://127.0.0.1:{free_port()}"):
        send = emitting(folder, {"type": "socket", "to": to, "format": "statsd"})
        assert_all_good(own("statsd"), {"listen": [to]}, "-w", send)


@case
def http_passes(folder):
    port = free_port()
    send = emitting(folder, {"type": "http", "url": f"http://127.0.0.1:{port}/write", "format": "influx"})
    assert_all_good(own("http"), {"listen": f"127.0.0.1:{port}"}, "-w", send)


@case
def forward_passes(folder):
    link = f"unix:{folder}/forward.sock"
    assert_all_good(own("forward"), {"listen": [link]}, "-w", emitting(folder, {"type": "forward", "to": link}))


@case
def collector_keeps_its_life(folder):
    """It adds nothing itself, so what concerns values is not checked."""
    options = {"path": os.path.join(folder, "m.db"), "listen": "127.0.0.1:0", "access": os.path.join(folder, "access")}
    status, checks = vet(own("collector"), options, "--deadline", "30s")
    assert status == 0 and {name for name, (verdict, _) in checks.items() if verdict == "skipped"} == {"life", "full", "refused"}, checks


@case
def system_passes():
    assert_all_good(own("system"), {"interval": "20ms"})


@case
def process_passes():
    assert_all_good(own("process"), {"interval": "20ms"})


main()
