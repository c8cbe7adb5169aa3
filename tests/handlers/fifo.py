"""The fifo handler with real named pipes: readers that start late, exit, are killed, read slowly, or do not read."""

import json
import os
import re
import select
import shutil
import time

from fifos import FULL, PIPE_BUF, REJECTED, TIMEOUT, TOO_LARGE, Reader, ScriptedApp, assert_ends_silently, config_of, is_full, make_fifo, notes_of, pipes_of, \
    start_checking_reader, values_of, without_slow_reader_warnings
from harness import ADDER, BUILD, SOURCE, WEIR, Skip, assert_ledgers, case, main, run, skip_fork_under_sanitizers, start, wait_for


# ---- Delivering ------------------------------------------------------------------------------------------------


@case
def a_reader_gets_every_event_as_a_json_object(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    program = start(ADDER, "-t", 4, "-n", 30000, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(path))
    events = reader.read_to_end_of(program)
    out, err = program.communicate()
    assert program.returncode == 0 and without_slow_reader_warnings(err) == "", err
    report = json.loads(out)
    assert_ledgers(report)
    assert report["flush"] == 0 and report["handlers"]["pipe"]["delivered"] == 120000
    assert all(len(event) == 1 for event in events)
    for thread in range(4):
        assert values_of(events, f"t{thread}") == list(range(30000))


@case
def values_queued_at_exit_reach_the_reader(folder):
    """Many more values than the pipe can hold."""
    path = make_fifo(folder)
    reader = Reader(path)
    program = start(ADDER, "-q", "-n", 50000, WEIR_CONFIG=config_of(path, shutdown="1m", queue="8MiB"))
    assert values_of(reader.read_to_end_of(program)) == list(range(50000))
    assert without_slow_reader_warnings(program.communicate()[1]) == ""


@case
def other_formats_can_be_used(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    program = start(ADDER, "-q", "-n", 100, WEIR_CONFIG=config_of(path, format="json"))
    events = reader.read_to_end_of(program)
    assert program.wait() == 0
    assert [event["value"] for event in events] == list(range(100)) and events[0]["group"] == "my_app"


@case
def lines_of_several_writers_never_mix(folder):
    """Long group names make long lines, and so many writes that nearly fill a page."""
    path = make_fifo(folder)
    reader = Reader(path)
    config = config_of(path, shutdown="1m", format="json", pipe_size="64KiB")
    programs = [start(ADDER, "-q", "-g", letter * 200, "-n", 30000, WEIR_CONFIG=config) for letter in "abc"]
    for program in programs:
        reader.read_to_end_of(program)
        log = program.communicate()[1]
        assert program.returncode == 0 and without_slow_reader_warnings(log) == "", log
    events = reader.events()
    for letter in "abc":
        found = [e["value"] for e in events if e["group"] == letter * 200]
        assert found == list(range(30000)), (len(found), [pair for pair in zip(found, found[1:]) if pair[1] != pair[0] + 1])


@case
def writes_are_whole_lines_of_at_most_pipe_buf_bytes_by_the_worker_thread(folder):
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    path, trace = make_fifo(folder), os.path.join(folder, "trace")
    reader = Reader(path)
    program = start("strace", "-f", "-qq", "-y", "-s", "5000", "-e", "trace=write,writev,open,openat,mknod,mknodat", "-o", trace,
                    ADDER, "-q", "-n", 20000, WEIR_CONFIG=config_of(path, shutdown="1m"), ASAN_OPTIONS="detect_leaks=0")
    events = reader.read_to_end_of(program)
    assert program.returncode == 0 and values_of(events) == list(range(20000)), program.communicate()
    with open(trace, encoding="utf-8") as file:
        calls = file.read().splitlines()
    writes = [call for call in calls if f"<{path}>" in call and " write(" in call]
    lengths = [int(re.search(r", (\d+)(\) += | <unfinished)", call).group(1)) for call in writes]
    assert lengths and max(lengths) <= PIPE_BUF, max(lengths)
    assert all(re.search(r'\\n", \d+', call) for call in writes)
    adding, threads = calls[0].split()[0], {call.split()[0] for call in calls if path in call}
    assert len(threads) == 1 and adding not in threads, "a thread that adds values opens or writes"


@case
def the_example_configuration_works(folder):
    path, config = make_fifo(folder), os.path.join(SOURCE, "examples", "config", "fifo.json")
    reader = Reader(path)
    program = start(os.path.join(BUILD, "examples", "first_metric"), WEIR_CONFIG=config, METRICS_FIFO=path)
    assert reader.read_to_end_of(program) == [{"calculate_latency": 12.375}]
    assert_ends_silently(program)
    done = run(WEIR, "check", config)
    assert done.returncode == 0 and "overflow=drop_oldest" in done.stdout, done


# ---- Readers that exit -------------------------------------------------------------------------------------------

@case
def readers_killed_ten_times_see_no_torn_line_and_only_their_unprocessed_data_is_lost(folder):
    path, count = make_fifo(folder), 1000000
    program = start(ADDER, "-n", count, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(path, shutdown="1m", block_timeout="1h"))
    notes = [os.path.join(folder, f"notes{turn}") for turn in range(11)]
    for turn in range(10):
        reader = start_checking_reader(path, notes[turn])
        wait_for(lambda: len(notes_of(notes[turn])) >= 3, f"reader {turn} to read")
        reader.kill()
        assert reader.communicate()[1] == b""
    reader = start_checking_reader(path, notes[10])
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0, err
    assert reader.communicate(timeout=240)[1] == b""
    report = json.loads(out)
    assert_ledgers(report)
    assert report["handlers"]["pipe"]["delivered"] == count and report["flush"] == 0, report
    reads = [note for path in notes for note in notes_of(path)]
    assert all(whole for whole, _, _ in reads)
    ends = [-1] + [last for _, _, last in reads]
    gaps = [first - 1 - end for end, (_, first, _) in zip(ends, reads)]
    assert min(gaps) == 0 and ends[-1] == count - 1, "a value was received twice, or the last ones are missing"
    # a killed reader loses what it has read but not recorded: at most one read
    assert sum(gap > 0 for gap in gaps) <= 10 and max(gaps) <= 65536 / len('{"t0": 0.0}\n'), gaps
    assert "has no reader" in err and re.search(r"pipe: back after \d+ s, 0 lost", err), err


@case
def data_in_the_pipe_waits_for_the_next_reader(folder):
    path = make_fifo(folder)
    first = Reader(path)
    app = ScriptedApp(config_of(path), folder)
    assert app.do("add", "a", 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
    first.close()
    app.do("add", "b", 2)
    wait_for(lambda: "has no reader" in app.stderr_text(), "the warning")
    second = Reader(path)
    assert app.do("flush", -1)["code"] == 0
    assert second.read_lines(2) == [{"a": 1}, {"b": 2}]
    assert app.ledger()["delivered"] == 2
    app.end()


@case
def a_synchronous_program_survives_its_reader_and_delivers_to_the_next(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path, delivery="sync", max_wait="100ms"), folder)
    assert app.do("add", "a", 1) == {"code": 0, "error": ""}
    assert reader.read_lines(1) == [{"a": 1}], "a synchronous value is in the pipe when the call returns"
    reader.close()
    result = app.do("add", "b", 2)
    assert result["code"] == TIMEOUT, result
    assert re.fullmatch(f'handler "pipe": the named pipe {path} has no reader, waited [0-9.]+ m?s', result["error"]), result
    reader = Reader(path)
    wait_for(lambda: app.do("add", "c", 3)["code"] == 0, "a call that delivers")
    events = reader.read_lines(2)
    assert events[0] == {"b": 2} and events[1:] == [{"c": 3}] * (len(events) - 1)
    assert app.ledger()["queued"] == 0
    app.end()


# ---- Slow readers ------------------------------------------------------------------------------------------------


@case
def a_reader_that_does_not_read_blocks_no_call_with_drop_policies(folder):
    """block_timeout and max_wait are an hour: a call that waited for them would exceed this test's time limit."""
    path = make_fifo(folder)
    reader = Reader(path)
    for policy in ("drop_newest", "drop_oldest"):
        config = config_of(path, shutdown="100ms", overflow=policy, queue="256KiB", block_timeout="1h", max_wait="1h")  # more than the pipe holds
        done = run(ADDER, "-t", 2, "-n", 100000, "-H", "pipe", timeout=240, WEIR_CONFIG=config)
        assert done.returncode == 0, done
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["process"]["added"] == 200000 and report["handlers"]["pipe"]["dropped"][FULL] > 0, report
        assert "not delivered in time" in done.stderr, done.stderr
    reader.read()
    reader.events()


@case
def a_full_pipe_is_logged_and_recovers(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    config = config_of(path, shutdown="1m", max_wait="300ms", overflow="drop_newest")
    program = start(ADDER, "-n", 20000, "-f", 0, "-H", "pipe", "-x", "sleep", WEIR_CONFIG=config)
    report = json.loads(program.stdout.readline())
    assert report["flush"] == TIMEOUT
    assert_ledgers(report)
    log = program.stderr.readline()
    assert re.search(f"pipe: the named pipe {path} is full: its reader reads nothing, waited [0-9.]+ m?s; retrying", log), log
    assert values_of(reader.read_lines(20000)) == list(range(20000))
    assert re.search("pipe: back after", program.stderr.readline())
    program.kill()
    program.communicate()


@case
def calls_wait_for_a_slow_reader_that_makes_progress(folder):
    """Reading a batch takes longer than block_timeout, but there is progress all the time; a run in which the machine let the reader
    wait for a part of that time shows nothing, and is repeated."""
    for attempt in range(50):
        place = os.path.join(folder, str(attempt))
        os.mkdir(place)
        path = make_fifo(place)
        reader = Reader(path)
        config = config_of(path, shutdown="10m", overflow="block", block_timeout="2s", queue="640KiB", batch=20000)
        program = start(ADDER, "-n", 40000, "-f", -1, "-H", "pipe", WEIR_CONFIG=config)
        last_read, longest_pause = time.monotonic(), 0
        while program.poll() is None:
            select.select([reader.fd], [], [], 0.04)
            try:
                reader.data += os.read(reader.fd, 4096)
            except BlockingIOError:
                continue
            time.sleep(0.05)  # slows the reader down; no assertion depends on it
            longest_pause, last_read = max(longest_pause, time.monotonic() - last_read), time.monotonic()
        reader.read()
        out, err = program.communicate()
        report = json.loads(out)
        assert_ledgers(report)
        if longest_pause < 1:
            break
    assert report["handlers"]["pipe"]["delivered"] == 40000 and without_slow_reader_warnings(err) == "", (report, err)
    assert values_of(reader.events()) == list(range(40000))


# ---- Large events ------------------------------------------------------------------------------------------------


@case
def a_line_longer_than_pipe_buf_is_refused_counted_and_logged(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path, format="json", delivery="sync"), folder)
    assert app.do("add", "a", 1)["code"] == 0
    result = app.do("note", 5000)
    assert result["code"] == TOO_LARGE, result
    assert re.fullmatch('handler "pipe": 5\\d{3} bytes of lines are more than the 4096 that a write to a named pipe may have: '
                        r'\{"timestamp":[0-9.]+,"group":"my_app","name":"noted","value":1.*\.\.\.', result["error"]), result
    assert app.do("add", "b", 2)["code"] == 0
    assert [event["name"] for event in reader.read_lines(2)] == ["a", "b"]
    ledger = app.ledger()
    assert ledger["delivered"] == 2 and ledger["dropped"][REJECTED] == 1, ledger
    app.end()
    assert re.search("pipe: 1 rejected: 5\\d{3} bytes of lines", app.stderr_text()), app.stderr_text()


@case
def an_event_longer_than_pipe_buf_is_several_lines_that_together_have_every_value_once(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path, delivery="sync"), folder)
    for size in (1, 1000, 1, 500):
        assert app.do("event", size)["code"] == 0
    events = reader.read_lines(4)
    assert max(len(line) for line in reader.data.splitlines(True)) <= PIPE_BUF and len(events) > 4
    values = [pair for event in events for pair in event.items()]
    assert values == [(f"n{i}", i) for size in (1, 1000, 1, 500) for i in range(size)]
    ledger = app.ledger()
    assert ledger["delivered"] == 1502 and ledger["dropped"][REJECTED] == 0, ledger
    app.end()


@case
def a_batch_may_mix_small_and_too_large_events(folder):
    """All are queued before the pipe exists, so that they are in one batch."""
    path = os.path.join(folder, "fifo")
    app = ScriptedApp(config_of(path, max_wait="1h", format="json"), folder)
    lengths = (1, 5000, 1, 1, 9000, 4300, 1, 100, 8000, 1)
    for length in lengths:
        app.do("note", length)
    app.do("event", 100)
    make_fifo(folder)
    reader = Reader(path)
    assert (flushed := app.do("flush", 60000))["code"] == -9, flushed
    events = reader.read_lines(106)
    assert [len(event["metadata"]) for event in events[:6]] == [length for length in lengths if length < 4000]
    assert [event["value"] for event in events[6:]] == list(range(100))
    ledger = app.ledger()
    assert ledger["delivered"] == 106 and ledger["dropped"][REJECTED] == 4, ledger
    app.end()


@case
def a_line_of_exactly_pipe_buf_bytes_fits_and_one_byte_more_does_not(folder):
    """json with metadata: the length of the metadata determines that of the line."""
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path, format="json", delivery="sync"), folder)
    assert app.do("note", 100)["code"] == 0
    rest = len(reader_line(reader)) - 100
    assert app.do("note", PIPE_BUF - rest)["code"] == 0
    assert len(reader_line(reader)) == PIPE_BUF
    assert app.do("note", PIPE_BUF - rest + 1)["code"] == TOO_LARGE
    app.end()
    reader.read()
    assert reader.data == b""


def reader_line(reader):
    reader.read_lines(1)
    line, reader.data = reader.data, b""
    return line


@case
def an_event_of_many_lines_is_written_in_whole_lines(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path, format="json", delivery="sync"), folder)
    app.send("event", 1000)
    events = reader.read_lines(1000)
    assert app.reply()["code"] == 0
    assert [event["name"] for event in events] == [f"n{i}" for i in range(1000)]
    assert app.ledger()["delivered"] == 1000
    app.end()


@case
def a_large_event_is_written_once_if_its_reader_stops_for_a_while(folder):
    """All are queued before the pipe exists, so that a part of their batch is settled when the pipe is full."""
    path = os.path.join(folder, "fifo")
    app = ScriptedApp(config_of(path, max_wait="1h", format="json"), folder)
    for count in (1, 1000, 1000):
        app.do("event", count)
    make_fifo(folder)
    reader = Reader(path)
    app.send("flush", -1)
    wait_for(lambda: is_full(reader.fd), "a full pipe")
    time.sleep(0.5)  # longer than what is settled waits to be reported
    reader.read_until(lambda: select.select([app.program.stdout], [], [], 0)[0], "the end of the flush")
    assert app.reply()["code"] == 0
    assert [event["value"] for event in reader.events()] == [0, *range(1000), *range(1000)]
    assert app.ledger()["delivered"] == 2001
    app.end()


# ---- Fork --------------------------------------------------------------------------------------------------------


@case
def a_forked_child_opens_its_own_descriptor_and_one_that_adds_nothing_has_none(folder):
    skip_fork_under_sanitizers()
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path), folder)
    app.do("add", "parent", 1)
    assert app.do("flush", -1)["code"] == 0
    pipes = app.pipes()
    idle = app.do("fork")["code"]
    assert pipes
    wait_for(lambda: pipes_of(idle) == {}, "the child to close the inherited descriptor")
    app.do("fork", "child")
    assert app.do("reap")["code"] == 0
    app.do("add", "parent", 2)
    assert app.do("flush", -1)["code"] == 0
    assert app.pipes() == pipes
    assert reader.read_lines(3) == [{"parent": 1}, {"child": 1}, {"parent": 2}]
    assert app.ledger()["delivered"] == 2
    app.end()


@case
def a_fork_succeeds_while_the_handler_waits_for_the_pipe_or_for_space_in_it(folder):
    skip_fork_under_sanitizers()
    for waiting in ("pipe", "room"):
        os.makedirs(os.path.join(folder, waiting))
        path = os.path.join(folder, waiting, "fifo")
        app = ScriptedApp(config_of(path, shutdown="1m", max_wait="1h", queue="8MiB"), folder)
        if waiting == "room":
            os.mkfifo(path)
            reader = Reader(path)
            for _ in range(400):  # about 200 KiB
                app.do("event", 40)
            wait_for(lambda: app.ledger()["delivered"] > 0 and is_full(reader.fd), "a full pipe")
        else:
            app.do("event", 40)
        app.do("fork", "child")
        if waiting == "pipe":
            os.mkfifo(path)
            reader = Reader(path)
        expected = 402 if waiting == "room" else 3
        app.send("reap")
        reader.read_until(lambda: b'"child": 1.0' in reader.data, "the child's value")
        assert app.reply()["code"] == 0
        app.do("add", "parent", 1)
        app.send("flush", -1)
        reader.read_lines(expected)
        assert app.reply()["code"] == 0 and app.ledger()["queued"] == 0
        app.end()
        assert "fork" not in app.stderr_text(), app.stderr_text()
        reader.close()


main()
