"""The fifo handler without a path: benchmarkai's daemon makes its pipe at one of two places. A preloaded library moves both into the
test's folder, because other programs of this machine may use them."""

import os
import re

from fifos import NOT_CREATED, Reader, ScriptedApp, assert_ends_silently, config_of, values_of
from harness import ADDER, BUILD, WEIR, case, main, run, start, wait_for, without_waits

MOVED_TMP = os.path.join(BUILD, "tests", "support", "preload", ".libs", "moved_tmp.so")
PATHS = ("/tmp/benchmark-ai/fifo", "/tmp/benchmark-ai-fifo")
NEITHER = f"the named pipe {PATHS[0]} does not exist; the named pipe {PATHS[1]} does not exist"


def config_without_path(**options):
    config = config_of("x", **options)
    del config["handlers"]["pipe"]["path"]
    return config


def moved(folder):
    """The environment."""
    return {"LD_PRELOAD": MOVED_TMP, "WEIR_MOVED_TMP": folder}


def place(folder, number):
    """Where the pipe of PATHS[number] really is; its folder exists."""
    path = folder + PATHS[number].removeprefix("/tmp")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def make_pipe(folder, number):
    os.mkfifo(place(folder, number))
    return place(folder, number)


def app_without_path(folder, **options):
    return ScriptedApp(config_without_path(**options), folder, **moved(folder))


def assert_delivers_to(app, reader, name):
    assert app.do("add", name, 1)["code"] == 0 and app.do("flush", -1)["code"] == 0
    reader.read_until(lambda: name.encode() in reader.data, name)
    ledger = app.ledger()
    assert ledger["delivered"] == ledger["offered"], ledger


# ---- Waiting -----------------------------------------------------------------------------------------------------


@case
def without_a_pipe_both_places_are_named(folder):
    app = app_without_path(folder, shutdown="0s", delivery="sync", max_wait="50ms")
    result = app.do("add", "a", 1)
    assert result["code"] == NOT_CREATED and re.fullmatch(f'handler "pipe": {NEITHER}, waited \\d+ ms', result["error"]), result
    assert app.ledger()["queued"] == 1
    app.end()


@case
def a_pipe_that_comes_at_either_place_is_found_while_a_call_waits(folder):
    for number in (0, 1):
        own = os.path.join(folder, str(number))
        os.mkdir(own)
        app = app_without_path(own, delivery="sync", max_wait="1h")
        app.send("add", "a", 1)
        wait_for(lambda: len(os.listdir(f"/proc/{app.program.pid}/task")) > 2, "the handler's thread")
        reader = Reader(make_pipe(own, number))
        assert app.reply()["code"] == 0
        assert reader.read_lines(1) == [{"a": 1}]
        assert app.ledger()["delivered"] == 1
        app.end()
        assert without_waits(app.stderr_text()) == "", app.stderr_text()


@case
def benchmarkais_mode_looks_at_both_places_unless_it_is_given_a_path(folder):
    reader = Reader(make_pipe(folder, 1))
    program = start(ADDER, "-q", "-n", 3, BENCHMARK_AI="fifo", **moved(folder))
    assert values_of(reader.read_to_end_of(program)) == [0, 1, 2]
    assert_ends_silently(program)
    for path in PATHS[0], os.path.join(folder, "other"):
        done = run(ADDER, "-n", 3, BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=path, BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0", **moved(folder))
        assert f"fifo: the named pipe {path} does not exist; " in done.stderr and PATHS[1] not in done.stderr, done


# ---- Choosing ----------------------------------------------------------------------------------------------------


@case
def of_two_pipes_with_readers_the_one_in_the_folder_is_used(folder):
    readers = [Reader(make_pipe(folder, number)) for number in (0, 1)]
    app = app_without_path(folder)
    assert_delivers_to(app, readers[0], "a")
    app.end()
    assert not readers[1].data and readers[1].read()


@case
def a_pipe_with_a_reader_is_preferred_to_one_without(folder):
    make_pipe(folder, 0)
    reader = Reader(make_pipe(folder, 1))
    app = app_without_path(folder)
    assert_delivers_to(app, reader, "a")
    app.end()


@case
def while_neither_has_a_reader_both_are_watched(folder):
    paths = [make_pipe(folder, number) for number in (0, 1)]
    app = app_without_path(folder, delivery="sync", max_wait="50ms")
    result = app.do("add", "a", 1)
    assert f"{PATHS[0]} has no reader; the named pipe {PATHS[1]} has no reader, waited" in result["error"], result
    reader = Reader(paths[1])
    wait_for(lambda: app.do("flush", -1)["code"] == 0, "a flush that succeeds")
    assert reader.read_lines(1) == [{"a": 1}] and app.ledger()["delivered"] == 1
    app.end()


@case
def a_file_at_one_place_does_not_keep_the_pipe_at_the_other_from_being_found(folder):
    with open(place(folder, 0), "wb"):
        pass
    app = app_without_path(folder, delivery="sync", max_wait="50ms")
    result = app.do("add", "a", 1)
    assert result["code"] == NOT_CREATED, result
    assert f"{PATHS[0]} is a regular file, not a named pipe; the named pipe {PATHS[1]} does not exist, waited" in result["error"], result
    reader = Reader(make_pipe(folder, 1))
    wait_for(lambda: app.do("flush", -1)["code"] == 0, "a flush that succeeds")
    assert reader.read_lines(1) == [{"a": 1}] and app.ledger()["delivered"] == 1
    app.end()
    assert os.path.getsize(place(folder, 0)) == 0


@case
def the_open_pipe_is_kept_until_its_path_is_gone(folder):
    old = Reader(make_pipe(folder, 1))
    app = app_without_path(folder)
    assert_delivers_to(app, old, "a")
    new = Reader(make_pipe(folder, 0))
    app.do("reload")
    assert_delivers_to(app, old, "b")
    os.unlink(place(folder, 1))
    app.do("reload")
    assert_delivers_to(app, new, "c")
    old.read_until(lambda: old.read(), "the end of the old pipe")
    assert old.events() == [{"a": 1}, {"b": 1}] and new.events() == [{"c": 1}]
    app.end()


# ---- Creating and checking ---------------------------------------------------------------------------------------


@case
def create_makes_the_pipe_that_needs_no_folder_if_there_is_none(folder):
    done = run(ADDER, "-n", 3, "-f", -1, WEIR_CONFIG=config_without_path(shutdown="0s", max_wait="0s", create=True), **moved(folder))
    assert f"{PATHS[1]} has no reader" in done.stderr, done
    assert os.listdir(folder) == ["benchmark-ai-fifo"]
    os.unlink(place(folder, 1))
    reader = Reader(make_pipe(folder, 0))
    program = start(ADDER, "-n", 3, "-f", -1, WEIR_CONFIG=config_without_path(create=True), **moved(folder))
    assert values_of(reader.read_to_end_of(program)) == [0, 1, 2]
    assert os.listdir(folder) == ["benchmark-ai"]


@case
def weir_check_names_the_place(folder):
    def check(**options):
        return run(WEIR, "check", "--open", WEIR_CONFIG=config_without_path(**options), **moved(folder)).stdout
    assert NEITHER in check(), check()
    assert f"ok, {PATHS[1]} does not exist yet" in check(create=True), check(create=True)
    make_pipe(folder, 1)
    assert f"ok, {PATHS[1]} exists; not opened" in check(create=True), check(create=True)
    make_pipe(folder, 0)
    assert f"ok, {PATHS[0]} exists; not opened" in check(), check()


main()
