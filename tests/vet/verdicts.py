"""`weir vet`: plugins that break the handler contract fail with the right verdict, and correct ones pass. A faulty plugin does not
affect other handlers of a program, except by ending the process."""

import json
import os
import re
import shlex
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

from harness import ADDER, BUILD, PLUGINS, SOURCE, TEST_PLUGINS, WEIR, Skip, assert_ledgers, case, main, run
from receivers import Receiver
from scripted import Scripted, reply

HERE = os.path.join(BUILD, "tests", "vet", ".libs")
FAULTY = os.path.join(HERE, "faulty.so")
UNFLUSHED = os.path.join(HERE, "unflushed.so")
SANITIZED = os.environ.get("WEIR_TEST_SANITIZED")
# Checks that the sanitizers' allocator and threads prevent.
NOT_SANITIZED = ("memory", "fork", "abandon") if SANITIZED else ()
KILLED = r"killed by (Segmentation fault|Aborted|Bus error) in "

# The check that finds each fault, and the text of its verdict.
VERDICTS = {
    "create_crashes": ("create", KILLED + "create$"),
    "create_opens_file": ("create", r"create opens /tmp \(openat\); it may do no I/O"),
    "create_makes_socket": ("create", r"create creates a socket \(socket\); it may do no I/O"),
    "create_starts_thread": ("create", r"create starts a thread or a process \(clone3?\)"),
    "create_sleeps": ("create", r"create sleeps \(clock_nanosleep\)"),
    "create_refuses_without_reason": ("create", "create refuses: .* gave no reason"),
    "create_changes_umask": ("create", "create changes the umask from 0[0-7]+ to 00"),
    "odd_refusal": ("create", 'host->refuse names the option "no_such_option", which the type does not have'),
    "waits_in_create": ("create", "host->wait was called in create"),
    "open_crashes": ("life", KILLED + "open$"),
    "open_without_reason": ("life", "open returns the code 1 without a reason"),
    "emit_crashes": ("life", KILLED + "emit of 40 samples"),
    "emit_exits": ("life", "ended the program with status 3 in emit of 40 samples"),
    "done_beyond": ("life", "emit returns done 41 of a batch of 40 samples"),
    "rejected_beyond": ("life", "emit returns rejected 41 of done 40"),
    "unknown_code": ("life", r"emit returns the code 17; allowed: 0 \(OK\) to 4 \(FAILED\)"),
    "nothing_done": ("life", "emit returns OK with nothing done"),
    "positive_error": ("life", "emit returns the error 5, which is none of enum weir_error"),
    "garbage": ("life", "emit changes outcome->size"),
    "no_end_of_reason": ("life", "emit returns a reason without a NUL"),
    "writes_batch": ("life", KILLED + "emit of 40 samples: it writes into the batch, which is read-only"),
    "keeps_batch": ("life", KILLED + "emit of 80 samples: it accesses a batch after the call that received it"),
    "writes_behind_outcome": ("life", "emit writes beyond the end of the outcome, which is [0-9]+ bytes long"),
    "leaks_descriptor": ("descriptors", "5 descriptors stay open after 5 life cycles: .*memfd:lost"),
    "leaks_memory": ("memory", r"about \d+ bytes are leaked (with each batch|in each life cycle)"),
    "leaks_instance": ("memory", r"about \d+ bytes are leaked in each life cycle"),
    "leaves_thread": ("threads", "3 threads still run after 3 life cycles"),
    "leaves_process": ("threads", "a child process still exists"),
    "changes_locale": ("state", r'open changes the locale \(LC_CTYPE\) from "C" to "C.UTF-8"'),
    "changes_mask": ("state", "open changes the thread's signal mask: 1 .HUP. is now unblocked"),
    "changes_umask": ("state", "open changes the umask from 0[0-7]+ to 00"),
    "changes_folder": ("state", "open changes the working directory from .* to /usr"),
    "changes_environment": ("state", "open changes the environment"),
    "changes_signal": ("state", "open changes the action of signal 13 .PIPE."),
    "closes_twice": ("descriptors", r"destroy closes descriptor \d+, which it does not own"),
    "closes_stranger": ("descriptors", "close closes descriptor 7, which it does not own"),
    "writes_after_close": ("descriptors", "destroy writes to a descriptor that it does not own"),
    "now_sleeps": ("now", "emit_now sleeps"),
    "now_is_deep": ("now", "emit_now uses [0-9]+ bytes of stack; allowed: 8192"),
    "now_does_nothing": ("now", "emit_now returns OK with nothing done"),
    "flush_late": ("flush", "flush with a timeout of 0 ms returns after [0-9]+ ms"),
    "close_crashes": ("life", KILLED + "close$"),
    "destroy_crashes": ("life", KILLED + "destroy$"),
    "probe_leaks": ("probe", "probe leaves a descriptor open: .*memfd:lost"),
    "probe_late": ("probe", "probe with a timeout of 2000 ms returns after [0-9]+ ms"),
    "wake_crashes": ("wake", KILLED + "wake for a timer"),
    "abandon_writes": ("abandon", r"abandon calls write; it may call close\(2\), fstat\(2\) and nothing else"),
    "abandon_crashes": ("fork", "a forked child is killed by Segmentation fault"),
    "logs_secret": ("life", 'a log message contains the value of the option "token", which is secret'),
    # two threads call at once, and the other one may be between two calls
    "shares_state": ("instances", KILLED + "(emit of 20 samples|code between two calls)"),
    "crashes_at_exit": ("program", "killed by Segmentation fault when the program ends"),
    "prints_to_stdout": ("state", "emit writes to standard output, which is the program's; use host->log"),
    "prints_to_stderr": ("state", "emit writes to standard error, which is the program's; use host->log"),
    "prints_in_open": ("state", "open writes to standard output, which is the program's"),
    "replaces_stdout": ("state", "open changes standard output: descriptor 1 is another file now"),
    "closes_stdin": ("state", "open changes standard input: descriptor 0 is (closed|another file now)"),
    "sets_alarm": ("state", r"open changes the process's timers \(alarm, setitimer\)"),
    "inherits": ("descriptors", r"open opens descriptor \d+ \(.*faulty.*\) without O_CLOEXEC"),
    "leaks_every_50th": ("descriptors", r"\d+ descriptors stay open after 1 life cycles with many batches: .*memfd:lost"),
    "static_descriptor": ("instances", "emit of a handler fails once another handler of the type was closed and destroyed"),
    "thread_per_batch": ("threads", "emit leaves a thread behind with [5-8] of 8 batches"),
    "keeps_note": ("names", KILLED + "emit of 200 samples: it accesses a batch after the call that received it"),
    "keeps_label": ("life", KILLED + "emit of 80 samples: it accesses a batch after the call that received it"),
    "short_label": ("names", "killed by (Segmentation fault|Aborted|Bus error)"),
    "few_labels": ("names", "killed by (Segmentation fault|Aborted|Bus error)"),
    "short_note": ("names", "killed by (Segmentation fault|Aborted|Bus error)"),
    "small_array": ("series", "killed by (Segmentation fault|Aborted|Bus error)"),
    "crashes_in_stopped_open": ("exit", r"a program that exits \d+\.\d ms after its first value, while the handler is being opened, is killed by Seg"),
    "gives_up_open": ("exit", r"the value of a program that exits \d+\.\d ms after it was added is lost, although the destination is available"),
}
# What only reading the destination shows.
READ = {
    "drops_all": "1250 of 1250 values that were settled by emit do not arrive: .* prints no line with vet[0-9a-f]{8}n000000=1000000",
    "loses_some": r"\d+ of 1250 values that were settled by emit do not arrive: .* prints no line with vet[0-9a-f]{8}n000096=",
    "writes_wrong_value": r"\d+ of 1250 values .* do not arrive: .* prints another value than vet[0-9a-f]{8}n000096=",
    "writes_more_digits": r"\d+ of 1250 values .* do not arrive: .* prints another value than vet[0-9a-f]{8}n000096=",
    "swaps_values": r"\d+ of 1250 values that were settled by emit do not arrive: the command of --read \(status 0\) prints values in another "
                    r"order than their names, in the line with vet[0-9a-f]{8}n\d{6}=\d{7}",
    "repeats_some": r"\d+ of 1290 values arrive more than once, although none was offered twice: vet[0-9a-f]{8}n\d{6}=\d{7} arrives 2 times",
    "buffers": "values that were settled by emit arrive only after close: flush has returned, but has not sent what was buffered",
    "empties_on_open": r"1250 of 1290 values that were settled before and after a close and an open do not arrive",
}
# What no destination has a cause to refuse.
REJECTED = {
    "rejects_all": "1 of 1 values are rejected by emit, although their names and numbers are ordinary: outcome->reason is empty",
    "rejects_large": "7 of 10 values are rejected by emit, although",
    "drops_large": "7 of 10 values are rejected by emit, although .*: the batch is too large",
    "rejects_in_program": "500 of 500 values are rejected in a program, although",
}
HANGS = {
    "create_hangs": ("create", "create does not return within [0-9]+ ms, although a stop was requested"),
    "open_hangs": ("life", "open does not return within"),
    "emit_hangs": ("life", "emit of 40 samples does not return within .* it called host->wait or host->stopping 0 times"),
    "emit_ignores_stop": ("life", "emit of 40 samples does not return within .* it called host->wait or host->stopping [1-9][0-9]* times"),
    "flush_hangs": ("life", "flush with 100 ms does not return within"),
    "close_hangs": ("life", "close does not return within"),
}
WRONG = {
    "offset": ("load", 'option "port": its offset is not aligned for its type'),
    "place": ("load", 'option "port": its field lies outside the options struct'),
    "range": ("load", 'option "port": allowed: must be a range like 1..10'),
    "default": ("load", 'option "port": the default "eighty" is not an integer'),
    "overlap": ("load", 'option "path": its field lies across that of option "port"'),
    "required": ("options", 'option "port": it is required, so its default "80" is never used'),
    "help": ("options", 'option "port": its help is empty'),
    "common": ("options", 'a default for "no_such_option", which is not a common option'),
    "clash": ("load", 'option "spool.size": the name is reserved for all handlers'),
    "prepare": ("prepare", "prepare changes the umask from 0[0-7]+ to 00"),
    "thread": ("prepare", "prepare starts threads, which a forked child would not have"),
    "reason": ("prepare", 'prepare refuses: .*the handler type "tables" cannot be used; it gave no reason'),
    "timer": ("create", "host->wake_in was called, but the type has no wake"),
    "constructor": ("load", r'loading it changes the locale \(LC_CTYPE\) from "C" to'),
    "kinds": ("type", "its kinds 0x80 have unknown bits"),
    "flags": ("type", "its flags 0x80 have unknown bits"),
    "end": ("load", "weir_handler_type_at has no end"),
    "twice": ("load", "it offers 2 handler types, of which some have the same name"),
    "none": ("load", "it offers no handler type"),
}
BROKEN = {
    "no_symbol": "it has no symbol weir_handler_type_at",
    "other_abi": "made for ABI 8, but this weir has ABI 1",
    "short_struct": "its handler type is [0-9]+ bytes long",
    "bad_options": 'option "limit": its type is unknown',
    "bad_name": "is not a type's name",
    "undefined": "undefined symbol: undefined_function",
}


def vet(path, options=None, *more):
    """Returns the exit status and {check: (verdict, text)}."""
    arguments = ["-o", json.dumps(options)] if options else []
    done = run(WEIR, "vet", path, *arguments, "--json", *more, LC_ALL="C")
    report = json.loads(done.stdout)
    assert report["passed"] == (done.returncode == 0), done
    counts = [sum(check["verdict"] == verdict for check in report["checks"]) for verdict in ("ok", "FAIL", "skipped")]
    assert counts == [report["ok"], report["failed"], report["skipped"]], report
    return done.returncode, {check["check"]: (check["verdict"], check["message"]) for check in report["checks"]}


def assert_verdict(path, options, check, words, *more):
    status, checks = vet(path, options, "--check", check, *more)
    verdict, text = checks[check]
    assert status == 1 and verdict == "FAIL" and re.search(words, text), (path, options, check, checks)
    return checks


def lines_in(path):
    with open(path, "rb") as file:
        return file.read().count(b"\n")


def assert_all_good(path, options, *more):
    status, checks = vet(path, options, *more)
    wrong = {name: check for name, check in checks.items() if check[0] != "ok" and name not in NOT_SANITIZED}
    assert not wrong and len(checks) >= 25, (path, wrong)
    assert status == 0 or SANITIZED, checks


# ---- Verdicts -----------------------------------------------------------------------------------------


@case
def a_handler_that_keeps_the_contract_passes():
    status, checks = vet(FAULTY, {"fault": "none", "token": "hunter2"})
    verdicts = {name: verdict for name, (verdict, _) in checks.items()}
    assert verdicts.pop("values") == "FAIL" and ' in create with "fault" of "create_crashes"' in checks["values"][1], checks
    for name in NOT_SANITIZED:
        del verdicts[name]
    assert set(verdicts.values()) == {"ok"} and len(verdicts) >= 17 and status == 1, checks


def is_reported_by_sanitizers(fault):
    return SANITIZED and (fault.endswith(("crashes", "at_exit")) or fault.startswith(("leaks_", "writes_batch", "keeps_batch")))


def for_each(names, check):
    """In parallel, since most of them wait."""
    with ThreadPoolExecutor(max_workers=6) as pool:
        list(pool.map(check, sorted(names)))


@case
def each_fault_is_found_and_named():
    def check_fault(fault):
        if not is_reported_by_sanitizers(fault):
            assert_verdict(FAULTY, {"fault": fault, "token": "hunter2"}, *VERDICTS[fault])
    for_each(VERDICTS, check_fault)


def read_options(folder, fault):
    path = os.path.join(folder, fault)
    return {"fault": fault, "path": path}, ("--read", f"cat {shlex.quote(path)}")


@case
def what_does_not_arrive_or_arrives_twice_is_found_by_reading_the_destination(folder):
    def check_fault(fault):
        options, more = read_options(folder, fault)
        assert_verdict(FAULTY, options, "read", READ[fault], *more, "--deadline", "4s")
    for_each(READ, check_fault)


@case
def a_handler_that_rejects_ordinary_values_is_found(folder):
    def check_fault(fault):
        options, more = read_options(folder, fault)
        assert_verdict(FAULTY, options, "read", REJECTED[fault], *more, "--deadline", "5m")
    for_each(REJECTED, check_fault)


@case
def a_value_may_be_written_in_any_form_and_at_any_place_of_its_line(folder):
    def check_form(form):
        options, more = read_options(folder, form)
        status, checks = vet(FAULTY, options, "--check", "read", *more, "--deadline", "5m")
        words = "1290 values of a handler, 300 of two at the same time and 500 of a program arrive, once each"
        assert status == 0 and re.fullmatch(words, checks["read"][1]), (form, checks)
    for_each(("none", "writes_exponents", "writes_name_last", "writes_one_line"), check_form)


@case
def a_handler_that_buffers_without_a_flush_is_found_by_reading_the_destination(folder):
    options, more = read_options(folder, "buffers")
    assert_verdict(UNFLUSHED, options, "read", "arrive only after close: emit buffers them, but the type has no flush", *more, "--deadline", "2s")


@case
def options_that_two_handlers_share_are_found(folder):
    options, _ = read_options(folder, "static_options")
    assert_verdict(FAULTY, options, "instances", KILLED + "emit of 5 samples|emit of a handler fails once another")


@case
def a_command_that_prints_nothing_is_reported_with_its_status(folder):
    options, _ = read_options(folder, "none")
    assert_verdict(FAULTY, options, "read", r"the command of --read \(status 3\) prints no line with", "--read", "exit 3", "--deadline", "2s")


@case
def every_failure_refers_to_a_section_of_the_guide(folder):
    """The sections that the checks name exist; those of single failures are the ones of their faults."""
    sections = set()
    for guide in ("handler-guide.md", "source-guide.md"):
        with open(os.path.join(SOURCE, "doc", guide), encoding="utf-8") as file:
            sections |= {re.sub(r"[^a-z -]", "", line[3:].strip().lower()).replace(" ", "-") for line in file if line.startswith("## ")}
    named = set()
    for name in os.listdir(os.path.join(SOURCE, "tools", "vet")):
        with open(os.path.join(SOURCE, "tools", "vet", name), encoding="utf-8") as file:
            text = file.read()
            named |= set(re.findall(r'vet_see\("([^"]+)"\)|"([a-z-]+)", (?:VET_LOAD|WHOLE_LIFE|VET_LIFE)', text))
    named = {section for pair in named for section in pair if section}
    assert named <= sections and len(named) >= 12, named - sections
    for fault, section in (("prints_to_stdout", "responsibilities-and-threads"), ("keeps_label", "batches-and-done"),
                           ("inherits", "open-and-close"), ("abandon_writes", "fork"), ("gives_up_open", "waiting-and-stopping"),
                           ("crashes_in_stopped_open", "create"), ("leaks_memory", "life-cycle")):
        if is_reported_by_sanitizers(fault):
            continue
        done = run(WEIR, "vet", FAULTY, "-o", json.dumps({"fault": fault}), "--check", VERDICTS[fault][0], LC_ALL="C")
        assert f"\n           see handler-guide.md#{section}\n" in done.stdout, done


@case
def a_slow_handler_passes(folder):
    """It takes 200 ms for each batch: a tenth of the deadline here, as 1 s is of the default."""
    options, more = read_options(folder, "slow")
    checks = [name for name in vet(os.path.join(PLUGINS, "null.so"))[1] if name not in ("values", *NOT_SANITIZED)] + ["read"]

    def check(name):
        status, verdicts = vet(FAULTY, options, "--check", name, *more, "--deadline", "2s")
        assert status == 0 and verdicts[name][0] == "ok", verdicts
    for_each(checks, check)


@case
def a_call_that_does_not_return_is_reported_with_the_deadline():
    for_each(HANGS, lambda fault: assert_verdict(FAULTY, {"fault": fault}, *HANGS[fault], "--deadline", "2s"))


@case
def what_hangs_once_is_not_tried_again():
    status, checks = vet(FAULTY, {"fault": "create_hangs"}, "--deadline", "1s")
    assert status == 1 and checks["create"][0] == "FAIL", checks
    assert checks["fork"] == ("skipped", "create fails in an earlier check"), checks


@case
def what_a_plugin_says_wrongly_of_itself_is_told():
    for wrong, (check, words) in WRONG.items():
        assert_verdict(os.path.join(HERE, f"wrong_{wrong}.so"), None, check, words)
    for name, words in BROKEN.items():
        checks = assert_verdict(os.path.join(TEST_PLUGINS, "..", "broken", ".libs", name + ".so"), None, "load", words)
        assert list(checks) == ["load"], checks


@case
def an_invalid_or_missing_file_is_reported(folder):
    path = os.path.join(folder, "text.so")
    with open(path, "w", encoding="utf-8") as file:
        file.write("no object at all")
    assert_verdict(path, None, "load", "invalid ELF header|file too short")
    done = run(WEIR, "vet", os.path.join(folder, "nothing.so"))
    assert done.returncode == 1 and "No such file or directory" in done.stderr, done


@case
def a_crash_is_reported_with_the_checks_before_it():
    done = run(WEIR, "vet", FAULTY, "-o", '{"fault": "emit_crashes"}', "--check", "life", LC_ALL="C")
    assert done.returncode == 1 and re.search(r"^  FAIL +life +killed by .* in emit of 40 samples$|^  FAIL +life ", done.stdout, re.M), done
    assert done.stdout.endswith("failed: 1 ok, 1 FAIL, 0 skipped\n"), done.stdout


@case
def an_unavailable_destination_fails_only_with_strict():
    options = {"path": "/no/such/folder/file"}
    status, checks = vet(os.path.join(PLUGINS, "file.so"), options, "--check", "life")
    assert status == 0 and checks["life"][0] == "skipped" and "No such file or directory" in checks["life"][1], checks
    done = run(WEIR, "vet", os.path.join(PLUGINS, "file.so"), "-o", json.dumps(options), "--check", "life", "--strict")
    assert done.returncode == 1 and done.stdout.endswith("failed: 1 ok, 0 FAIL, 1 skipped\n"), done


@case
def a_handler_that_waits_until_a_stop_is_requested_passes():
    options = {"path": "/no/such/pipe", "max_wait": "1h"}
    status, checks = vet(os.path.join(PLUGINS, "fifo.so"), options, "--check", "life", "--deadline", "2s")
    assert status == 0 and checks["life"][0] == "skipped", checks
    assert "it does not open, so nothing was checked: the named pipe /no/such/pipe does not exist" in checks["life"][1], checks


@case
def every_type_of_a_file_is_checked_or_only_the_named_one():
    for arguments, types in (((), {"", "pair", "other_of_pair"}), (("--type", "other_of_pair"), {"", "other_of_pair"})):
        done = run(WEIR, "vet", os.path.join(TEST_PLUGINS, "pair.so"), "--check", "life", "--json", *arguments)
        report = json.loads(done.stdout)
        assert done.returncode == 0 and {check["type"] for check in report["checks"]} == types, report
        assert report["ok"] == len(types), report


@case
def invalid_options_are_reported_once():
    status, checks = vet(os.path.join(PLUGINS, "file.so"), {"pfad": "/tmp/x"})
    assert status == 1 and 'unknown option' in checks["options"][1], checks
    assert [name for name, (verdict, _) in checks.items() if verdict == "FAIL"] == ["options"], checks
    assert checks["life"] == ("skipped", "create fails in an earlier check"), checks


@case
def usage_errors_exit_with_2():
    for arguments, words in (((), "expected one FILE"),
                             ((FAULTY, FAULTY), "expected one FILE"),
                             ((FAULTY, "-o", "{"), "--options:1:"),
                             ((FAULTY, "-o", "[]"), "must be an object, got an array"),
                             ((FAULTY, "--check", "lief"), 'unknown check "lief"'),
                             ((FAULTY, "--check", "read"), "--check read: needs --read"),
                             ((FAULTY, "-d", "5"), '"5" is not a duration'),
                             ((FAULTY, "-f", "x"), '"x" is not a seed')):
        done = run(WEIR, "vet", *arguments)
        assert done.returncode == 2 and words in done.stderr, (arguments, done.stderr)
    done = run(WEIR, "vet", FAULTY, "--type", "other")
    assert done.returncode == 1 and 'the file has no handler type "other"' in done.stderr, done
    done = run(WEIR, "vet", FAULTY, "--type", "other", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["passed"] is False, done


# ---- Fuzz ---------------------------------------------------------------------------------------------


def fuzz(seed, fault="none"):
    return vet(FAULTY, {"fault": fault}, "--check", "fuzz", "--fuzz", str(seed))[1]["fuzz"]


@case
def the_seed_determines_the_calls():
    verdict, words = fuzz(42)
    schedule = re.search(r"seed 42: 12 life cycles of [1-9]\d* calls in all, schedule [0-9a-f]{16}", words)
    assert verdict == "ok" and schedule, words
    assert fuzz(42) == (verdict, words)
    assert fuzz(43)[1].split("schedule")[1] != words.split("schedule")[1]
    assert fuzz(42, "done_beyond") == fuzz(42, "done_beyond") and fuzz(42, "done_beyond")[0] == "FAIL"


# ---- Handlers of weir ---------------------------------------------------------------------------------


@case
def null_and_console_pass():
    for name in ("null", "console"):
        assert_all_good(os.path.join(PLUGINS, name + ".so"), None, "--fuzz", "1")


@case
def file_passes(folder):
    path = os.path.join(folder, "out")
    assert_all_good(os.path.join(PLUGINS, "file.so"), {"path": path}, "--fuzz", "1", "--read", f"cat {shlex.quote(path)}")
    assert os.path.getsize(path) > 100000


def copy_bytes(pipe, copy, counted):
    with open(copy, "wb", buffering=0) as file:
        while data := os.read(pipe, 65536):
            file.write(data)
            counted.append(len(data))


@case
def fifo_passes(folder):
    path, copy, counted = os.path.join(folder, "pipe"), os.path.join(folder, "copy"), []
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    keeper = os.open(path, os.O_WRONLY)  # the reader reaches the end of the file when this is closed
    os.set_blocking(pipe, True)
    reader = threading.Thread(target=copy_bytes, args=(pipe, copy, counted))
    reader.start()
    try:
        assert_all_good(os.path.join(PLUGINS, "fifo.so"), {"path": path}, "--fuzz", "1", "--read", f"cat {shlex.quote(copy)}")
    finally:
        os.close(keeper)
        reader.join()
        os.close(pipe)
    assert sum(counted) > 100000, sum(counted)


def take(request):
    """Stores the documents of the format elastic, and everything else."""
    actions = request.body.count(b'{"create":') if request.body.startswith(b'{"create":') else 0
    if not actions:
        return reply(204)
    return reply(200, json.dumps({"errors": False, "items": [{"create": {"status": 201}}] * actions}).encode(), Content_Type="application/json")


@case
def http_passes():
    path = os.path.join(PLUGINS, "http.so")
    if not os.path.exists(path):
        raise Skip("the handler type http was not built")
    with Scripted(take) as server:
        # the path that the format elastic requires; others take any
        assert_all_good(path, {"url": server.url + "/_bulk"}, "--fuzz", "1")
        assert len(server.requests) > 100, len(server.requests)


@case
def prometheus_passes():
    path = os.path.join(PLUGINS, "prometheus.so")
    if not os.path.exists(path):
        raise Skip("the handler type prometheus was not built")
    assert_all_good(path, {"listen": "127.0.0.1:0"}, "--fuzz", "1")


@case
def report_passes(folder):
    files = {name: os.path.join(folder, name) for name in ("path", "figures", "details", "html")}
    assert_all_good(os.path.join(PLUGINS, "report.so"), {**files, "series": 50, "reports": 10}, "--fuzz", "1")
    assert all(os.path.getsize(path) > 2 for path in files.values())


def socket_passes(kind, folder):
    copy = os.path.join(folder, "copy")
    with Receiver(kind, folder if kind.startswith("unix") else None, copy=copy) as receiver:
        assert_all_good(os.path.join(PLUGINS, "socket.so"), {"to": receiver.to}, "--fuzz", "1", "--read", f"cat {shlex.quote(copy)}")
        assert len(receiver.data()) > 100000, len(receiver.data())


@case
def socket_passes_over_udp(folder):
    socket_passes("udp", folder)


@case
def socket_passes_over_tcp(folder):
    socket_passes("tcp", folder)


@case
def socket_passes_over_a_unix_socket(folder):
    socket_passes("unix", folder)


@case
def socket_passes_over_a_unix_datagram_socket(folder):
    socket_passes("unix-dgram", folder)


@case
def socket_passes_without_its_destination(folder):
    """Every call returns when a stop is requested."""
    def check(to):
        status, checks = vet(os.path.join(PLUGINS, "socket.so"), {"to": to}, "--deadline", "6s")
        wrong = {name: check for name, check in checks.items() if check[0] == "FAIL"}
        assert status == 0 and not wrong and checks["life"][0] == "skipped", (to, wrong, checks["life"])
    for_each(("tcp://127.0.0.1:1", f"unix:{folder}/missing", f"unix-dgram:{folder}/missing"), check)


# ---- Speed --------------------------------------------------------------------------------------------


@case
def bench_handler_reports_values_per_second_and_the_time_per_batch(folder):
    path, plugin = os.path.join(folder, "out"), os.path.join(PLUGINS, "file.so")
    done = run(WEIR, "bench-handler", plugin, "-o", json.dumps({"path": path}), "-d", "20ms", "--json")
    assert done.returncode == 0 and done.stderr == "", done
    rows = json.loads(done.stdout)
    assert [row["batch"] for row in rows] == [1, 10, 100, 5000], rows
    for row in rows:
        assert row["batches"] >= 1 and row["values_per_second"] > 0 and 0 < row["median_us"] <= row["p99_us"], rows
    # one warm-up batch of each size is not measured
    assert lines_in(path) == sum(row["batch"] * (row["batches"] + 1) for row in rows), rows
    table = run(WEIR, "bench-handler", plugin, "-o", json.dumps({"path": path}), "-d", "1ms")
    assert table.returncode == 0 and re.search(r"^ +5000 +\d+ +\d+ +\d+\.\d\d +\d+\.\d\d$", table.stdout, re.M), table


@case
def bench_handler_reports_why_it_could_not_measure():
    for options, words in (({"path": "/no/such/folder/x"}, "No such file or directory"), ({}, 'the option "path" is missing')):
        done = run(WEIR, "bench-handler", os.path.join(PLUGINS, "file.so"), "-o", json.dumps(options), "-d", "1ms")
        assert done.returncode == 1 and words in done.stderr, done
    if not SANITIZED:
        done = run(WEIR, "bench-handler", FAULTY, "-o", '{"fault": "emit_crashes"}', LC_ALL="C")
        assert done.returncode == 1 and "killed by Segmentation fault in emit of 1 samples" in done.stderr, done
    assert run(WEIR, "bench-handler").returncode == 2


# ---- Effects on other handlers ------------------------------------------------------------------------

# Faults that end the process, and with it the other handlers: a plugin is part of the program.
FATAL = {name for name in VERDICTS if "crashes" in name or name.startswith("short_") or name in ("emit_exits", "writes_batch", "keeps_batch", "shares_state")}
REFUSED = {"create_refuses_without_reason", "odd_refusal"}
# Faults that damage process state on purpose, such as closing descriptors that the handler does not own.
HARMFUL = {"closes_twice", "closes_stranger", "writes_after_close", "create_changes_umask", "changes_umask", "changes_folder",
           "prints_to_stdout", "prints_in_open", "replaces_stdout", "small_array"}


def run_beside(folder, fault):
    out = os.path.join(folder, fault)
    config = {"settings": {"shutdown_timeout": "300ms"},
              "handlers": {"good": {"type": "file", "path": out},
                           "bad": {"type": "faulty", "plugin": FAULTY, "fault": fault, "token": "x", "block_timeout": "20ms",
                                   "retry_min": "1ms", "retry_max": "5ms"}},
              "groups": {"*": ["good", "bad"]}}
    return out, run(ADDER, "-n", "50", "-s", "-f", "1000", "-H", "good", "-H", "bad", WEIR_CONFIG=config, WEIR_LOG="off")


@case
def no_fault_prevents_another_handler_from_delivering(folder):
    def check_fault(fault):
        out, done = run_beside(folder, fault)
        assert done.returncode == 0, (fault, done)
        assert lines_in(out) == 50, (fault, lines_in(out))
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["handlers"]["good"]["delivered"] == 50, (fault, report)
    harmless = (set(VERDICTS) | set(HANGS)) - FATAL - REFUSED - HARMFUL - {"create_hangs", "leaves_process"}
    for_each((fault for fault in harmless if not is_reported_by_sanitizers(fault)), check_fault)


@case
def a_crash_ends_the_process_by_its_signal(folder):
    if SANITIZED:
        raise Skip("sanitizers turn the signal into a report")
    for fault in ("emit_crashes", "open_crashes", "close_crashes"):
        _, done = run_beside(folder, fault)
        assert done.returncode == -signal.SIGSEGV, (fault, done)


@case
def a_handler_that_refuses_without_a_reason_is_reported_by_name(folder):
    for fault in sorted(REFUSED):
        out, done = run_beside(folder, fault)
        assert done.returncode == 0 and json.loads(done.stdout)["process"]["unrouted"] == 50, done
        assert not os.path.exists(out), "a refused configuration must not be applied"


if "thread" in (SANITIZED or ""):
    print("1..0 # SKIP ThreadSanitizer does not follow a program that forks as vet does")
else:
    main()
