"""The source type file: lines that are appended, through rotation, truncation, restarts and kills."""

import errno
import json
import os
import resource
import subprocess

from harness import Skip, lines_of, main, run, start as start_program, wait_for
from small_disk import Disk
from sourced import SOURCED, Sourced, case, write_config


def path_of(folder, name):
    return os.path.join(folder, name)


def state_of(folder):
    return os.path.join(folder, "state", "in.positions")


def options_of(folder, **options):
    return {"type": "file", "path": path_of(folder, "log.txt"), "state": state_of(folder), "parse": "text", "rotate_wait": "50ms",
            **options}


def start(folder, settings=None, **options):
    program = Sourced(folder, options_of(folder, **options), **settings or {})
    wait_for(lambda: os.path.exists(state_of(folder)) or program.program.poll() is not None, "positions")
    return program


def append(folder, text, name="log.txt"):
    with open(path_of(folder, name), "a", encoding="utf-8") as file:
        file.write(text)


def numbers(first, end):
    return "".join(f"n={i}\n" for i in range(first, end))


def whole_values(folder):
    """A kill may cut off the line that is being written; its value comes again."""
    values = []
    for line in lines_of(path_of(folder, "out")):
        try:
            values.append(json.loads(line)["value"])
        except ValueError:
            assert line.startswith('{"') and not line.endswith("}"), line
    return values


def values_of(program):
    return [value for _, value in program.values()]


def await_values(program, count):
    wait_for(lambda: program.stats()["added"] >= count, f"{count} values")


def await_positions(folder, *offsets):
    """Waits until the positions that are kept are these."""
    def kept():
        return sorted(int(line.split()[2]) for line in lines_of(state_of(folder))[1:])
    wait_for(lambda: kept() == sorted(offsets), f"positions {offsets}")


def offsets_of(pid, name):
    """How far the files are read whose names begin so."""
    offsets = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.path.basename(os.readlink(f"/proc/{pid}/fd/{fd}")).startswith(name):
                offsets.append(int(lines_of(f"/proc/{pid}/fdinfo/{fd}")[0].split()[1]))
        except FileNotFoundError:
            pass  # it was closed since
    return offsets


def threads_of(pid):
    names = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            names += lines_of(f"/proc/{pid}/task/{thread}/comm")
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended since
    return names


@case
def lines_are_read_from_the_end_on_and_a_line_without_its_newline_is_awaited(folder):
    append(folder, numbers(0, 3) + "n=1")
    program = start(folder)
    append(folder, "7\nn=2")
    await_values(program, 1)
    append(folder, "8\n")
    await_values(program, 2)
    counts = program.end()
    assert values_of(program) == [17, 28] and counts["lines"] == 2 and counts["bad_lines"] == 0, counts


@case
def from_the_beginning_if_told_so(folder):
    append(folder, numbers(0, 5000))
    program = start(folder, start="beginning")
    await_values(program, 5000)
    program.end()
    assert values_of(program) == list(range(5000))


@case
def a_first_run_without_files_is_one(folder):
    start(folder).end()
    append(folder, numbers(0, 5))
    program = start(folder)
    await_values(program, 5)
    program.end()
    assert values_of(program) == list(range(5))


@case
def files_that_appear_are_read_from_the_beginning_and_names_may_be_excluded(folder):
    os.mkdir(path_of(folder, "logs"))
    append(folder, numbers(0, 10), "logs/a.log")
    append(folder, "no metric\n" * 10, "logs/old.log.gz")
    program = start(folder, path=path_of(folder, "logs/*"))
    append(folder, numbers(10, 20), "logs/b.log")
    os.mkdir(path_of(folder, "logs/c"))
    await_values(program, 10)
    append(folder, numbers(20, 30), "logs/a.log")
    await_values(program, 20)
    counts = program.end()
    assert sorted(values_of(program)) == list(range(10, 30)) and counts["bad_lines"] == 0, counts


@case
def a_folder_that_cannot_be_listed_for_a_moment_ends_no_file(folder):
    append(folder, "n=1\nn=2")
    program = start(folder, path=path_of(folder, "log.*"), start="beginning")
    await_values(program, 1)
    pid = program.program.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (4, limits[1]))
    program.await_log(r"log\.\*: Too many open files")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    append(folder, ".5\n")
    append(folder, "n=3\n", "log.2")  # when it was found, the folder was listed
    await_values(program, 3)
    counts = program.end()
    assert sorted(values_of(program)) == [1, 2.5, 3] and counts["added"] == 3, (values_of(program), counts)


@case
def through_rotation_nothing_is_lost_and_nothing_is_read_twice(folder):
    append(folder, "")
    program = start(folder)
    writer = open(path_of(folder, "log.txt"), "a", encoding="utf-8")
    for turn in range(6):
        writer.write(numbers(turn * 100, turn * 100 + 50))
        writer.flush()
        await_values(program, turn * 100 + 50)
        os.rename(path_of(folder, "log.txt"), path_of(folder, f"log.txt.{turn}"))
        writer.write(numbers(turn * 100 + 50, turn * 100 + 100))  # a writer that has not noticed it yet
        writer.close()
        writer = open(path_of(folder, "log.txt"), "a", encoding="utf-8")
        await_values(program, turn * 100 + 100)
        if turn == 3:
            os.unlink(path_of(folder, "log.txt.3"))
    writer.close()
    await_positions(folder, 0)  # of the last one alone
    program.end()
    assert sorted(values_of(program)) == list(range(600))


@case
def a_renamed_file_that_the_pattern_still_matches_goes_on(folder):
    append(folder, numbers(0, 10))
    program = start(folder, path=path_of(folder, "log*"), start="beginning")
    await_values(program, 10)
    os.rename(path_of(folder, "log.txt"), path_of(folder, "log.1"))
    append(folder, numbers(10, 20), "log.1")
    append(folder, numbers(20, 30))
    await_values(program, 30)
    program.end()
    assert sorted(values_of(program)) == list(range(30))


@case
def the_last_line_of_a_rotated_file_needs_no_newline(folder):
    append(folder, "n=1\nn=2")
    program = start(folder, start="beginning")
    await_values(program, 1)
    os.rename(path_of(folder, "log.txt"), path_of(folder, "gone"))
    await_values(program, 2)
    program.end()
    assert values_of(program) == [1, 2]


@case
def a_truncated_file_is_read_from_its_beginning(folder):
    append(folder, numbers(0, 50))
    program = start(folder, start="beginning")
    await_values(program, 50)
    os.truncate(path_of(folder, "log.txt"), 0)
    wait_for(lambda: "shorter than before" in program.log(), "the truncation")
    append(folder, numbers(50, 60))
    await_values(program, 60)
    program.end()
    assert values_of(program) == list(range(60))


@case
def a_restart_goes_on_where_the_values_were_settled(folder):
    append(folder, numbers(0, 10))
    values = []
    for turn in range(4):
        program = start(folder, start="beginning")
        append(folder, numbers(10 + turn * 10, 20 + turn * 10))
        await_values(program, 20 if turn == 0 else 10)
        await_positions(folder, len(numbers(0, 20 + turn * 10)))
        program.end()
        values += values_of(program)
        os.unlink(path_of(folder, "out"))
    append(folder, numbers(50, 60))  # while nobody reads
    program = start(folder, start="end")
    await_values(program, 10)
    program.end()
    assert values + values_of(program) == list(range(60))


@case
def a_kill_loses_nothing_and_repeats_only_what_was_not_settled(folder):
    append(folder, "")
    journal = {"journal": path_of(folder, "journal")}
    sent = 0
    for _ in range(8):
        program = start(folder, journal)
        append(folder, numbers(sent, sent + 500))
        sent += 500
        await_values(program, 1)
        program.program.kill()
        program.program.wait()
    program = start(folder, journal)
    await_positions(folder, len(numbers(0, sent)))
    out, _ = program.program.communicate(timeout=300)
    assert program.program.returncode == 0, program.log()
    handler = json.loads(out.splitlines()[-1])["handlers"]["out"]
    assert handler["delivered"] == handler["offered"] + handler["recovered"], handler
    assert set(whole_values(folder)) == set(range(sent))


@case
def another_file_with_the_same_inode_is_recognised(folder):
    append(folder, numbers(0, 10))
    program = start(folder, start="beginning")
    await_values(program, 10)
    await_positions(folder, len(numbers(0, 10)))
    program.end()
    with open(path_of(folder, "log.txt"), "r+", encoding="utf-8") as file:
        file.write(numbers(500, 600))
    os.unlink(path_of(folder, "out"))
    program = start(folder)
    await_values(program, 100)
    program.end()
    assert values_of(program) == list(range(500, 600))


@case
def the_header_of_columns_is_read_again(folder):
    header = "value,name\n"
    append(folder, header + "1,a\n")
    program = start(folder, start="beginning", parse="csv", header=True)
    await_values(program, 1)
    await_positions(folder, len(header + "1,a\n"))
    program.end()
    append(folder, "2,a\n")
    program = start(folder, parse="csv", header=True)
    await_values(program, 1)
    counts = program.end()
    assert values_of(program) == [1, 2] and counts["bad_lines"] == 0, counts


def read_in_two_runs(folder, first, part, rest, **options):
    """What two programs read of a file: at the end of the first one the file ends with `part`, which is no whole record. Returns the values
    and how many lines were refused."""
    append(folder, first + part)
    program = start(folder, start="beginning", **options)
    wait_for(lambda: offsets_of(program.program.pid, "log.txt") == [len(first + part)], "all to be read")
    await_positions(folder, len(first))
    bad_lines = program.end()["bad_lines"]
    append(folder, rest)
    program = start(folder, **options)
    await_positions(folder, len(first + part + rest))
    return values_of(program), bad_lines + program.end()["bad_lines"]


@case
def a_restart_within_quotes_or_within_a_line_that_is_too_long_reads_it_from_its_beginning(folder):
    cases = [({"parse": "influx"}, "cpu a=1\n", 'log text="first\ncpu load=5\n', 'cpu x=6\n",b=2\ncpu c=3\n', [1, 2, 3], 0),
             ({"parse": "csv", "header": True}, "value,name,note\n1,a,\n", '2,b,"first\n5,load,\n', '6,x,"\n3,c,\n', [1, 2, 3], 0),
             ({"line_bytes": "64B"}, "a=1\n", "b=2 " * 50, "x=5 x=6\nc=3\n", [1, 3], 1)]
    for i, (options, first, part, rest, expected, refused) in enumerate(cases):
        place = path_of(folder, str(i))
        os.mkdir(place)
        got = read_in_two_runs(place, first, part, rest, **options)
        assert got == (expected, refused), (options, got)


@case
def positions_that_are_not_understood_are_logged_and_the_others_hold(folder):
    append(folder, numbers(0, 10))
    program = start(folder, start="beginning")
    await_positions(folder, len(numbers(0, 10)))
    program.end()
    os.unlink(path_of(folder, "out"))
    with open(state_of(folder), "a", encoding="utf-8") as file:
        file.write("1 2 three\n\n")
    append(folder, numbers(10, 20))
    program = start(folder)
    await_values(program, 10)
    program.end()
    assert values_of(program) == list(range(10, 20))
    assert "in.positions: line 3: not a position" in program.log(), program.log()


@case
def two_sources_do_not_share_positions(folder):
    append(folder, "")
    first = start(folder)
    os.mkdir(path_of(folder, "second"))
    second = Sourced(path_of(folder, "second"), options_of(folder))
    second.await_log("in.positions: another source uses it")
    first.end()
    append(folder, numbers(0, 5))
    await_values(second, 5)
    second.end()


@case
def a_full_disk_is_logged_and_positions_are_kept_later(folder):
    disk = Disk(folder, "64k")
    try:
        append(folder, "")
        state = os.path.join(disk.path, "in.positions")
        program = Sourced(folder, options_of(folder, state=state))
        wait_for(lambda: os.path.exists(state), "positions")
        disk.fill()
        append(folder, numbers(0, 5))
        program.await_log("in.positions: No space left on device; after a restart, lines may be read again")
        os.unlink(disk.filler)
        program.await_log("in.positions: positions are kept again")
        program.end()
        assert lines_of(state)[1].split()[2] == str(len(numbers(0, 5)))
    finally:
        disk.remove()


@case
def more_files_than_allowed_are_logged_once(folder):
    for i in range(5):
        append(folder, numbers(i, i + 1), f"log.{i}")
    program = start(folder, path=path_of(folder, "log.*"), start="beginning", max_files=3)
    await_values(program, 3)
    os.unlink(path_of(folder, "log.0"))
    os.unlink(path_of(folder, "log.1"))
    await_values(program, 5)
    program.end()
    assert sorted(values_of(program)) == [0, 1, 2, 3, 4]
    assert "is one more file than max_files allows (3)" in program.log()


@case
def what_is_not_a_regular_file_is_left_out(folder):
    os.mkfifo(path_of(folder, "log.fifo"))
    os.mkdir(path_of(folder, "log.folder"))
    os.symlink(path_of(folder, "elsewhere"), path_of(folder, "log.link"))
    append(folder, numbers(0, 3), "elsewhere")
    program = start(folder, path=path_of(folder, "log.*"), start="beginning")
    await_values(program, 3)
    program.end()
    assert values_of(program) == [0, 1, 2]


@case
def a_file_that_cannot_be_read_is_logged_once(folder):
    speed = "/sys/class/net/lo/speed"
    try:
        lines_of(speed)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise Skip(f"{speed}: {error}") from error
    else:
        raise Skip(f"{speed} can be read")
    os.symlink(speed, path_of(folder, "log.speed"))
    program = start(folder, path=path_of(folder, "log.*"), start="beginning")
    program.await_log("log.speed: Invalid argument")
    for i in range(3):  # each is found by one more look
        append(folder, numbers(i, i + 1), f"log.{i}")
        await_values(program, i + 1)
    program.end()
    assert values_of(program) == [0, 1, 2]
    assert program.log().count("log.speed: Invalid argument") == 1, program.log()


@case
def a_slow_destination_holds_reading_back_and_loses_nothing(folder):
    append(folder, numbers(0, 20000))
    handler = {"type": "file", "path": path_of(folder, "out"), "format": "json", "queue": "64KiB", "batch": 50, "block_timeout": "1h"}
    program = Sourced(folder, options_of(folder, start="beginning"), handler)
    await_values(program, 20000)
    program.end()
    assert values_of(program) == list(range(20000))


@case
def a_stop_waits_once_for_all_files_that_find_no_room(folder):
    os.mkfifo(path_of(folder, "pipe"))
    for i in range(40):
        append(folder, numbers(i * 5000, i * 5000 + 5000), f"log.{i}")
    handler = {"type": "fifo", "path": path_of(folder, "pipe"), "format": "json", "queue": "64KiB", "block_timeout": "1h", "linger": "5ms"}
    program = Sourced(folder, options_of(folder, path=path_of(folder, "log.*"), start="beginning"), handler)
    pid = program.program.pid
    wait_for(lambda: len(offsets_of(pid, "log.")) == 40 and all(offsets_of(pid, "log.")), "a part of each file")
    program.stop()
    wait_for(lambda: "source:in" not in threads_of(pid), "the end of the source")  # which a minute is allowed for
    with open(path_of(folder, "pipe"), encoding="ascii") as pipe:
        values = [json.loads(line)["value"] for line in pipe]
    counts = program.end()
    assert 0 < counts["added"] == len(set(values)) == len(values), (counts, len(values))


@case
def wrong_options_are_refused(folder):
    for options, wanted in [({}, 'sources.in: the option "path" is missing'), ({"path": "/x", "start": "middle"}, "start"),
                            ({"path": "/x", "max_files": 0}, "max_files"), ({"path": "/x", "rotate_wait": "2h"}, "rotate_wait")]:
        done = run(SOURCED, write_config(folder, {"type": "file", **options}))
        assert done.returncode == 1 and wanted in done.stderr, (options, done.stderr)
    done = run(SOURCED, write_config(folder, {"type": "file", "path": "/x"}), STATE_DIRECTORY="", XDG_STATE_HOME="", HOME="")
    assert done.returncode == 1 and "state" in done.stderr and "$STATE_DIRECTORY" in done.stderr, done.stderr


@case
def the_default_state_is_where_the_service_manager_or_the_user_keeps_it(folder):
    append(folder, numbers(0, 1))
    config = write_config(folder, {"type": "file", "path": path_of(folder, "log.txt"), "parse": "text"})
    for variables, place in [({"STATE_DIRECTORY": path_of(folder, "a") + ":/nowhere"}, "a/in.positions"),
                             ({"STATE_DIRECTORY": "", "XDG_STATE_HOME": path_of(folder, "b")}, "b/weir/in.positions"),
                             ({"STATE_DIRECTORY": "", "XDG_STATE_HOME": "", "HOME": path_of(folder, "c")},
                              "c/.local/state/weir/in.positions")]:
        program = start_program(SOURCED, config, stdin=subprocess.PIPE, **variables)
        wait_for(lambda: os.path.exists(path_of(folder, place)) or program.poll() is not None, place)
        _, errors = program.communicate(timeout=300)
        assert program.returncode == 0 and os.path.exists(path_of(folder, place)), (place, errors)


main()
