"""The fifo handler and its path: pipes that are missing, created, replaced or removed, and files that are not pipes."""

import fcntl
import json
import os
import re
import socket
import subprocess
import time

from fifos import without_slow_reader_warnings, NOT_CREATED, SHUTDOWN, TIMEOUT, ScriptedApp, Reader, config_of, make_fifo, values_of
from harness import ADDER, BUILD, assert_ledgers, case, environment, main, run, start, wait_for, wait_until_still, without_waits


# ---- Missing pipes -----------------------------------------------------------------------------------------------


@case
def synchronous_calls_and_flushes_return_not_created_after_max_wait(folder):
    path = os.path.join(folder, "fifo")
    app = ScriptedApp(config_of(path, shutdown="200ms", delivery="sync", max_wait="300ms"), folder)
    began = time.monotonic()
    for words in (("add", "a", 1), ("add", "b", 2), ("event", 3), ("flush", -1)):
        result = app.do(*words)
        assert time.monotonic() - began >= 0.3, "the first call waits for max_wait"
        assert result["code"] == NOT_CREATED, result
        assert re.fullmatch(f'handler "pipe": the named pipe {path} does not exist, waited [0-9.]+ m?s', result["error"]), result
    assert app.ledger()["queued"] == 5
    app.end()
    log = app.stderr_text()
    assert f"weir: warning: pipe: the named pipe {path} does not exist, waited" in log, log
    assert re.search("pipe: shutting down while failing: the named pipe .* does not exist.*; not delivered in time: 5 dropped", log), log


@case
def a_synchronous_call_waits_for_max_wait_even_beyond_block_timeout(folder):
    path = os.path.join(folder, "fifo")
    config = config_of(path, shutdown="0s", delivery="sync", max_wait="1500ms", block_timeout="200ms")
    app = ScriptedApp(config, folder)
    assert app.do("add", "a", 1)["code"] == NOT_CREATED
    app.end()


@case
def a_pipe_that_is_created_while_a_synchronous_call_waits_is_found(folder):
    path = os.path.join(folder, "fifo")
    app = ScriptedApp(config_of(path, delivery="sync", max_wait="1h"), folder)
    app.send("add", "a", 1)
    wait_for(lambda: len(os.listdir(f"/proc/{app.program.pid}/task")) > 2, "the handler's thread")
    make_fifo(folder)
    reader = Reader(path)
    assert app.reply()["code"] == 0
    assert reader.read_lines(1) == [{"a": 1}]
    assert app.stderr_text() == "", "no error may be logged"
    app.end()


@case
def values_of_failed_calls_arrive_once_the_pipe_exists(folder):
    path = os.path.join(folder, "fifo")
    app = ScriptedApp(config_of(path, delivery="sync", max_wait="0s"), folder)
    for number in range(100):
        assert app.do("add", "n", number)["code"] == NOT_CREATED
    make_fifo(folder)
    reader = Reader(path)
    wait_for(lambda: app.do("flush", -1)["code"] == 0, "a flush that succeeds")
    assert values_of(reader.read_lines(100), "n") == list(range(100))
    assert app.do("add", "n", 100)["code"] == 0
    assert app.ledger()["delivered"] == 101
    app.end()
    assert re.search(r"pipe: back after \d+ s, 0 lost", app.stderr_text()), app.stderr_text()


@case
def an_asynchronous_program_runs_without_the_pipe_and_ends_within_shutdown_timeout(folder):
    """max_wait is an hour: a call that waited for it would exceed this test's time limit."""
    for create in (False, True):
        path = os.path.join(folder, f"fifo{create}")
        app = ScriptedApp(config_of(path, shutdown="100ms", max_wait="1h", wait_step="1h", create=create), folder)
        for _ in range(10):
            assert app.do("event", 1000)["code"] == 0
        wait_until_still(app.pid, lambda: app.ledger()["queued"] == 10000, "the handler to wait")
        assert app.do("flush", 100)["code"] == TIMEOUT
        assert app.ledger()["queued"] == 10000
        app.end()
        state, log = "has no reader" if create else "does not exist", app.stderr_text()
        assert re.search(f"pipe: shutting down while failing: the named pipe {path} {state}.*; not delivered in time: 10000 dropped", log), log


@case
def a_flush_of_an_asynchronous_program_returns_not_created_too(folder):
    path = os.path.join(folder, "fifo")
    done = run(ADDER, "-n", 10, "-f", -1, "-H", "pipe", WEIR_CONFIG=config_of(path, shutdown="0s", max_wait="100ms"))
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["flush"] == NOT_CREATED, report


@case
def a_pipe_and_a_reader_that_come_late_get_everything(folder):
    path = os.path.join(folder, "fifo")
    program = start(ADDER, "-n", 20000, "-f", 60000, "-H", "pipe",
                    WEIR_CONFIG=config_of(path, shutdown="1m", max_wait="1h", queue="1MiB"))
    wait_for(lambda: len(os.listdir(f"/proc/{program.pid}/task")) > 2, "the handler's thread")
    make_fifo(folder)
    reader = Reader(path)
    events = reader.read_to_end_of(program)
    out, err = program.communicate()
    assert without_slow_reader_warnings(err) == "" and values_of(events) == list(range(20000)), err
    report = json.loads(out)
    assert_ledgers(report)
    assert report["flush"] == 0, report


# ---- The end of a program without a pipe -------------------------------------------------------------------------


def assert_ends_without_waiting(done, path, state, count):
    """The shutdown_timeout is an hour, beyond this test's time limit."""
    assert done.returncode == 0, done
    assert re.search(f"weir: error: pipe: shutting down while failing: {path_words(path, state)}, waited [^;]*; "
                     f"not delivered in time: {count} dropped\n", done.stderr), done


def path_words(path, state):
    return f"the named pipe {re.escape(path)} does not exist" if state == "missing" else f"{re.escape(path)} is {state}, not a named pipe"


def wait_for_shutdown(log):
    def is_waiting():
        with open(log, encoding="utf-8") as file:
            return "shutting down: waiting" in file.read()
    wait_for(is_waiting, "the shutdown to wait")


def start_and_wait_for_shutdown(folder, config):
    """A program that ends while its handler waits."""
    log = os.path.join(folder, "log")
    with open(log, "w", encoding="utf-8") as file:
        program = subprocess.Popen([ADDER, "-q", "-n", "1000"], env=environment(WEIR_CONFIG=config), stderr=file)
    wait_for_shutdown(log)
    return program


@case
def a_pipe_that_was_missing_for_max_wait_is_not_waited_for_at_the_end(folder):
    path = os.path.join(folder, "fifo")
    for options in ({"delivery": "sync", "max_wait": "100ms"}, {"max_wait": "300ms"}, {"max_wait": "0s"}):
        done = run(ADDER, "-q", "-n", 5, timeout=240, WEIR_CONFIG=config_of(path, shutdown="1h", **options))
        if options["max_wait"] != "0s":
            assert_ends_without_waiting(done, path, "missing", 5)
        assert f"the named pipe {path} does not exist" in done.stderr and "not delivered in time: 5 dropped" in done.stderr, done


@case
def what_was_dropped_at_the_end_is_counted(folder):
    path = os.path.join(folder, "fifo")
    app = ScriptedApp(config_of(path, shutdown="1h", delivery="sync", max_wait="50ms"), folder)
    for number in range(3):
        assert app.do("add", "n", number)["code"] == NOT_CREATED
    app.do("shutdown", -1)
    ledger = app.ledger()
    assert ledger["offered"] == 3 and ledger["dropped"][SHUTDOWN] == 3 and ledger["queued"] == 0, ledger
    app.end()


@case
def a_file_in_place_of_the_pipe_is_not_waited_for_either(folder):
    path = make_file_of_type(folder, "file", "a regular file")
    done = run(ADDER, "-q", "-n", 5, timeout=240, WEIR_CONFIG=config_of(path, shutdown="1h", max_wait="100ms"))
    assert_ends_without_waiting(done, path, "a regular file", 5)
    assert os.path.getsize(path) == 0


@case
def a_pipe_that_comes_within_max_wait_gets_everything_at_the_end(folder):
    path = os.path.join(folder, "fifo")
    program = start_and_wait_for_shutdown(folder, config_of(path, shutdown="1h", max_wait="1h"))
    make_fifo(folder)
    reader = Reader(path)
    assert values_of(reader.read_to_end_of(program)) == list(range(1000)) and program.wait(240) == 0


@case
def a_pipe_without_a_reader_is_waited_for_until_shutdown_timeout(folder):
    """The reader may be starting again, and there is a pipe to wait for."""
    path = make_fifo(folder)
    program = start_and_wait_for_shutdown(folder, config_of(path, shutdown="1h", max_wait="50ms"))
    reader = Reader(path)
    assert values_of(reader.read_to_end_of(program)) == list(range(1000)) and program.wait(240) == 0


@case
def with_a_spool_values_are_spooled_at_the_end_and_delivered_by_the_next_program(folder):
    path = os.path.join(folder, "fifo")
    config = config_of(path, shutdown="1h", max_wait="50ms", spool=os.path.join(folder, "spool"))
    done = run(ADDER, "-q", "-n", 5, timeout=240, WEIR_CONFIG=config)
    assert done.returncode == 0 and "5 spooled" in done.stderr and "dropped" not in done.stderr, done
    make_fifo(folder)
    reader = Reader(path)
    program = start(ADDER, "-n", 5, "-f", -1, "-H", "pipe", WEIR_CONFIG=config)
    assert values_of(reader.read_to_end_of(program)) == [0, 1, 2, 3, 4] * 2
    report = json.loads(program.communicate()[0])
    assert_ledgers(report)
    assert report["handlers"]["pipe"]["recovered"] == 5 and report["handlers"]["pipe"]["delivered"] == 10, report


# ---- Creating ----------------------------------------------------------------------------------------------------


@case
def create_makes_the_pipe_with_the_configured_mode_regardless_of_the_umask(folder):
    for umask in ("077", "000"):
        for mode, expected in ((None, 0o600), ("0622", 0o622), ("666", 0o666)):
            path = os.path.join(folder, f"{umask}-{expected:o}")
            options = {"mode": mode} if mode else {}
            env = environment(WEIR_CONFIG=config_of(path, shutdown="0s", max_wait="0s", create=True, **options))
            done = subprocess.run(["sh", "-c", f"umask {umask}; exec {ADDER} -q -f -1"], env=env, timeout=240, capture_output=True)
            assert done.returncode == 0
            assert oct(os.lstat(path).st_mode) == oct(0o010000 | expected), (umask, mode)


@case
def create_leaves_an_existing_pipe_unchanged_and_removes_none(folder):
    path = make_fifo(folder)
    os.chmod(path, 0o640)
    inode = os.lstat(path).st_ino
    reader = Reader(path)
    run(ADDER, "-q", "-n", 3, WEIR_CONFIG=config_of(path, create=True, mode="0666"))
    assert values_of(reader.read_lines(3)) == [0, 1, 2]
    assert os.lstat(path).st_ino == inode and os.lstat(path).st_mode & 0o7777 == 0o640


@case
def a_failed_creation_is_reported_with_the_reason(folder):
    path = os.path.join(folder, "no", "such", "fifo")
    app = ScriptedApp(config_of(path, shutdown="0s", create=True, max_wait="1h"), folder)
    app.do("add", "a", 1)
    result = app.do("flush", -1)
    assert result == {"code": NOT_CREATED, "error": f'handler "pipe": create {path}: No such file or directory'}, result
    assert app.ledger()["queued"] == 1
    app.end()


@case
def an_invalid_mode_is_refused(folder):
    done = run(ADDER, "-q", WEIR_CONFIG=config_of("x", mode="rw"))
    assert 'handlers.pipe.mode: "rw" is not a mode; allowed: octal digits, like 0640' in done.stderr, done.stderr


@case
def the_pipe_has_the_configured_size(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path, pipe_size="1MiB"), folder)
    app.do("add", "a", 1)
    assert reader.read_lines(1) == [{"a": 1}]
    assert fcntl.fcntl(reader.fd, fcntl.F_GETPIPE_SZ) == 1 << 20
    app.end()


# ---- Other file types --------------------------------------------------------------------------------------------


def make_file_of_type(folder, name, file_type):
    path = os.path.join(folder, name)
    if file_type == "a regular file":
        open(path, "wb").close()
    elif file_type == "a symbolic link":
        os.symlink(make_fifo(folder, name + "-target"), path)
    elif file_type == "a folder":
        os.mkdir(path)
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
    return path


FILE_TYPES = ("a regular file", "a symbolic link", "a folder", "a socket")


@case
def anything_but_a_pipe_is_refused(folder):
    for number, file_type in enumerate(FILE_TYPES):
        path = make_file_of_type(folder, str(number), file_type)
        app = ScriptedApp(config_of(path, shutdown="0s", max_wait="1h"), folder)
        app.do("add", "a", 1)
        result = app.do("flush", -1)
        assert result == {"code": NOT_CREATED, "error": f'handler "pipe": {path} is {file_type}, not a named pipe'}, result
        assert app.ledger()["queued"] == 1
        app.end()
        assert not os.path.isfile(path) or os.path.getsize(path) == 0


@case
def a_device_is_refused_without_opening_it(folder):
    app = ScriptedApp(config_of("/dev/null", shutdown="0s", max_wait="1h"), folder)
    app.do("add", "a", 1)
    result = app.do("flush", -1)
    assert result["error"] == 'handler "pipe": /dev/null is a device, not a named pipe', result
    app.end()


@case
def whatever_takes_the_place_of_the_pipe_is_refused_until_it_is_a_pipe_again(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path, max_wait="1h"), folder)
    sent = 0
    for number, file_type in enumerate(FILE_TYPES):
        app.do("add", "n", sent)
        assert app.do("flush", -1)["code"] == 0
        sent += 1
        assert values_of(reader.read_lines(1), "n") == [sent - 1]
        wrong = make_file_of_type(folder, str(number), file_type)
        os.unlink(path)
        os.rename(wrong, path)
        app.do("reload")
        app.do("add", "n", sent)
        result = app.do("flush", -1)
        assert result == {"code": NOT_CREATED, "error": f'handler "pipe": {path} is {file_type}, not a named pipe'}, result
        if file_type == "a regular file":
            assert os.path.getsize(path) == 0
        os.rmdir(path) if file_type == "a folder" else os.unlink(path)
        reader.read_until(lambda: reader.read(), "the end of the old pipe")
        reader.close()
        make_fifo(folder)
        reader = Reader(path)
        wait_for(lambda: app.do("flush", -1)["code"] == 0, "a flush that succeeds")
        assert values_of(reader.read_lines(1), "n") == [sent]
        reader.data = b""
        sent += 1
    assert app.ledger()["delivered"] == sent
    app.end()


# ---- The descriptor ----------------------------------------------------------------------------------------------


@case
def the_descriptor_stays_open_while_idle_and_across_reloads_and_new_configurations(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    config = os.path.join(folder, "config.json")

    def write(**more):
        with open(config, "w", encoding="utf-8") as file:
            json.dump({**config_of(path), **more}, file)

    write()
    app = ScriptedApp("", folder)
    assert app.do("configure", config)["code"] == 0
    app.do("add", "a", 1)
    assert app.do("flush", -1)["code"] == 0
    pipes = app.pipes()
    assert list(pipes.values()) == [os.stat(path).st_ino], pipes
    assert not reader.read(), "end of file although the writer is only idle"
    for number in range(3):
        assert app.do("reload")["code"] == 0
        app.do("add", "b", number)
        assert app.do("flush", -1)["code"] == 0
        assert app.pipes() == pipes and not reader.read()
    write(groups={"*": "pipe", "my_app.noise": []})
    assert app.do("configure", config)["code"] == 0
    app.do("add", "c", 1)
    assert app.do("flush", -1)["code"] == 0
    assert app.pipes() == pipes and not reader.read()
    assert len(reader.events()) == 5
    assert app.ledger()["delivered"] == 5
    app.end()
    assert reader.read(), "the reader must see end of file when the program ends"
    assert without_waits(app.stderr_text()) == "", app.stderr_text()


@case
def the_descriptor_is_closed_on_exec_and_does_not_block(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path), folder)
    app.do("add", "a", 1)
    app.do("flush", -1)
    (number,) = app.pipes()
    with open(f"/proc/{app.program.pid}/fdinfo/{number}", encoding="ascii") as file:
        flags = int(re.search(r"flags:\s*(\d+)", file.read()).group(1), 8)
    assert flags & os.O_NONBLOCK and flags & os.O_CLOEXEC and flags & os.O_ACCMODE == os.O_WRONLY, oct(flags)
    app.end()
    reader.close()


@case
def a_replaced_pipe_is_closed_and_the_new_one_opened(folder):
    path = make_fifo(folder)
    old = Reader(path)
    app = ScriptedApp(config_of(path), folder)
    for reload in (True, False):
        app.do("add", "before", 1)
        assert app.do("flush", -1)["code"] == 0
        os.rename(make_fifo(folder, "other"), path)
        new = Reader(path)
        if reload:
            app.do("reload")
            app.do("add", "after", 2)
            assert app.do("flush", -1)["code"] == 0
        else:  # detected without a reload within half a second
            def adds_until_it_arrives():
                assert app.do("add", "after", 2)["code"] == 0 and app.do("flush", -1)["code"] == 0
                new.read()
                return new.data
            wait_for(adds_until_it_arrives, "values in the new pipe")
        assert new.read_lines(1)[-1] == {"after": 2}
        old.read_until(lambda: old.read(), "the end of the old pipe")
        assert old.events()[0] == {"before": 1}
        old.close()
        old, old.data = new, b""
    ledger = app.ledger()
    assert ledger["delivered"] == ledger["offered"]
    app.end()


@case
def a_removed_pipe_is_closed_and_a_new_one_waited_for(folder):
    path = make_fifo(folder)
    reader = Reader(path)
    app = ScriptedApp(config_of(path, max_wait="100ms"), folder)
    app.do("add", "a", 1)
    assert app.do("flush", -1)["code"] == 0
    os.unlink(path)
    app.do("reload")
    app.do("add", "b", 2)
    assert app.do("flush", -1)["code"] == NOT_CREATED
    reader.read_until(lambda: reader.read(), "the end of the old pipe")
    make_fifo(folder)
    other = Reader(path)
    wait_for(lambda: app.do("flush", -1)["code"] == 0, "a flush that succeeds")
    assert reader.events() == [{"a": 1}] and other.read_lines(1) == [{"b": 2}]
    assert app.ledger()["delivered"] == 2
    app.end()


@case
def a_descriptor_reused_by_the_program_is_neither_written_nor_closed(folder):
    path, strangers = make_fifo(folder), os.path.join(folder, "strangers")
    reader = Reader(path)
    program = start(os.path.join(BUILD, "tests", "support", "closer"), strangers, WEIR_CONFIG=config_of(path))
    assert reader.read_to_end_of(program) == [{"before": 1}, {"after": 2}]
    assert program.returncode == 0, program.communicate()
    assert os.path.getsize(strangers) == 0


main()
