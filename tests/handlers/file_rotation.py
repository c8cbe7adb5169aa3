"""The file handler's rotation with real files and several processes: every line is counted."""

import collections
import datetime
import glob
import gzip
import json
import os
import re
import resource
import shutil
import subprocess
import time

from harness import (ADDER, BUILD, WEIR, Skip, assert_ledgers, become_nobody, case, environment, lines_of, main, need_access_for_others,
                     run, skip_fork_under_sanitizers, start, start_in_steps, wait_for, without_waits)

SHIM = os.path.join(BUILD, "tests", "support", "preload", ".libs", "shim.so")
LINES = int(os.environ.get("WEIR_TEST_LINES", "100000"))
STAMP = r"\d{8}T\d{6}\.\d{6}Z"


def config_of(path, **options):
    handler = {"type": "file", "path": str(path), "format": "bai", "retry_min": "10ms", "retry_max": "50ms", **options}
    return {"settings": {"shutdown_timeout": "60s"}, "handlers": {"disk": handler}, "groups": {"*": "disk"}}


def old_files(path):
    """The rotated files, oldest first, without other files beside the path."""
    names = sorted(glob.glob(glob.escape(path) + ".*"))
    for name in names:
        assert re.fullmatch(re.escape(path) + rf"\.{STAMP}(\.gz)?", name), names
    return names


def read(path):
    if path.endswith(".gz"):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read().splitlines()
    return lines_of(path)


def all_lines(path):
    return [line for name in [*old_files(path), path] for line in read(name)]


def values_of(path):
    return [json.loads(line)["t0"] for line in all_lines(path)]


def add(count, config, *more):
    """Adds the values 0, 1, ... under the name t0."""
    done = run(ADDER, "-n", count, "-f", -1, "-H", "disk", *more, WEIR_CONFIG=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done
    assert_ledgers(json.loads(done.stdout))


def days_ago(path, days):
    """Sets the modification time of the file to so many days ago."""
    past = time.time() - days * 86400
    os.utime(path, (past, past))


# ---- By size ------------------------------------------------------------------------------------------


@case
def a_file_is_rotated_before_it_exceeds_its_size_and_no_line_is_split(folder):
    path = os.path.join(folder, "out")
    add(20000, config_of(path, rotate_size="16KiB"))
    old = old_files(path)
    assert len(old) > 10
    for name in old:
        assert 16 * 1024 - 20 < os.path.getsize(name) <= 16 * 1024, (name, os.path.getsize(name))
    assert values_of(path) == list(range(20000))


@case
def an_event_is_never_split_and_one_that_is_too_large_has_its_own_file(folder):
    path = os.path.join(folder, "out")
    config = config_of(path, rotate_size="1KiB", format="json")
    done = run(ADDER, "-n", 600, "-e", 100, "-f", -1, "-H", "disk", WEIR_CONFIG=config)
    assert_ledgers(json.loads(done.stdout))
    files = [*old_files(path), path]
    assert [len(read(name)) for name in files] == [100] * 6
    assert [json.loads(line)["value"] for line in all_lines(path)] == list(range(600))


@case
def the_size_of_an_existing_file_counts(folder):
    path = os.path.join(folder, "out")
    config = config_of(path, rotate_size="1KiB")
    for _ in range(3):
        add(60, config)  # 770 bytes
    files = [*old_files(path), path]
    assert len(files) == 3 and max(map(os.path.getsize, files)) <= 1024, files
    assert values_of(path) == list(range(60)) * 3


@case
def names_sort_by_age_even_if_the_clock_is_set_back(folder):
    path = os.path.join(folder, "out")
    future = f"{path}.29990101T000000.000000Z"
    with open(future, "w", encoding="utf-8") as file:
        file.write('{"t0": -1.0}\n')
    add(100, config_of(path, rotate_size="1KiB", keep=1))
    assert len(old_files(path)) == 1 and old_files(path)[0] > future, old_files(path)


@case
def a_torn_line_of_a_dead_process_is_terminated_before_the_next_write(folder):
    for name, options in (("plain", {}), ("rotating", {"rotate_size": "1MiB"}), ("over", {"rotate_size": "20B"})):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"t0": 1.0}\n{"t0": 2')
        add(1, config_of(path, **options))
        with open(old_files(path)[0] if name == "over" else path, encoding="utf-8") as file:
            assert file.read().startswith('{"t0": 1.0}\n{"t0": 2\n'), name
        assert all_lines(path)[-1] == '{"t0": 0.0}', name


# ---- By time ------------------------------------------------------------------------------------------


@case
def a_file_of_an_earlier_period_is_rotated_by_the_next_value(folder):
    for every, days in (("1h", 1), ("1d", 1), ("7d", 7)):
        path = os.path.join(folder, every)
        config = config_of(path, rotate_every=every)
        add(5, config)
        days_ago(path, days)
        add(5, config)
        add(5, {**config, "handlers": {"disk": {**config["handlers"]["disk"], "rotate_every": "366d"}}})
        assert len(old_files(path)) == 1, every
        assert values_of(path) == list(range(5)) + list(range(5)) * 2, every


@case
def an_empty_file_is_not_rotated(folder):
    path = os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8"):
        pass
    days_ago(path, 3)
    add(5, config_of(path, rotate_every="1d"))
    assert old_files(path) == [] and values_of(path) == list(range(5))


@case
def nothing_is_lost_when_periods_end_while_values_are_added(folder):
    path = os.path.join(folder, "out")
    # for four seconds: a busy machine may write the first value two seconds late
    program = start(ADDER, "-n", 8000, "-p", 500000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path, rotate_every="1s"))
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and without_waits(err) == "", err
    assert_ledgers(json.loads(out))
    assert old_files(path)
    assert values_of(path) == list(range(8000))


# ---- Several processes --------------------------------------------------------------------------------


def add_together(count, values, config):
    """Several processes add values to one file at the same time, each to its own group."""
    programs = [start(ADDER, "-g", f"p{i}", "-n", values, "-f", -1, "-H", "disk", WEIR_CONFIG=config) for i in range(count)]
    for program in programs:
        out, err = program.communicate(timeout=240)
        assert program.returncode == 0 and without_waits(err) == "", err
        assert_ledgers(json.loads(out))


def assert_each_line_once(path, count, values):
    """The values of each process are there once, and in order within each file."""
    found = [[] for _ in range(count)]
    for name in [*old_files(path), path]:
        for line in read(name):
            place, value = line.rsplit("]: t0=", 1)
            found[int(place[place.rindex("[") + 2:])].append(int(value))
    for i in range(count):
        assert len(found[i]) == values, (i, len(found[i]))
        assert found[i] == list(range(values)), i


@case
def several_processes_rotate_one_file_and_each_line_is_there_once(folder):
    """./dev rotation runs this with a million lines."""
    path = os.path.join(folder, "out")
    add_together(4, LINES // 4, config_of(path, format="text", rotate_size="64KiB"))
    assert len(old_files(path)) > LINES * 30 / 65536
    assert max(os.path.getsize(name) for name in old_files(path)) <= 64 * 1024
    assert_each_line_once(path, 4, LINES // 4)


@case
def several_processes_rotate_small_files_while_they_are_compressed(folder):
    path = os.path.join(folder, "out")
    add_together(3, 4000, config_of(path, format="text", rotate_size="4KiB", compress="gzip"))
    assert_each_line_once(path, 3, 4000)


@case
def a_file_is_rotated_once_even_if_several_processes_detect_the_end_of_its_period(folder):
    path = os.path.join(folder, "out")
    config = config_of(path, format="text", rotate_every="1d")
    add_together(3, 100, config)
    days_ago(path, 1)
    add_together(3, 100, config)
    assert len(old_files(path)) == 1
    assert len(all_lines(path)) == 600


@case
def a_process_that_does_not_rotate_loses_nothing_to_one_that_does(folder):
    path = os.path.join(folder, "out")
    plain = start(ADDER, "-g", "p0", "-n", 4000, "-p", 50000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path, format="text"))
    rotating = start(ADDER, "-g", "p1", "-n", 4000, "-p", 50000, "-f", -1, "-H", "disk",
                    WEIR_CONFIG=config_of(path, format="text", rotate_size="8KiB", compress="gzip"))
    for program in (plain, rotating):
        out, err = program.communicate(timeout=240)
        assert program.returncode == 0 and without_waits(err) == "", err
        assert_ledgers(json.loads(out))
    found = sorted((line.split("]")[1], int(line.rsplit("=", 1)[1])) for line in all_lines(path))
    assert found == [(f"[p{i}", value) for i in (0, 1) for value in range(4000)]


@case
def forked_children_rotate_the_same_file_and_nothing_is_lost(folder):
    skip_fork_under_sanitizers()
    path = os.path.join(folder, "out")
    done = run(os.path.join(BUILD, "tests", "stress", "forker"), 30, 2, 100,
               WEIR_CONFIG=config_of(path, format="json", rotate_size="4KiB", compress="gzip"))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done
    rows = [line.split() for line in done.stdout.splitlines()]
    lines = [json.loads(line) for line in all_lines(path)]
    for _, name, count in (row for row in rows if row[0] == "added"):
        assert [line["value"] for line in lines if line["name"] == name] == list(range(int(count))), name
    children = collections.Counter(line["value"] for line in lines if line["name"] == "c")
    ledgers = [list(map(int, row[2:])) for row in rows if row[0] in ("parent", "child")]
    assert all(offered == delivered + dropped + queued and queued == 0 for offered, delivered, dropped, _, queued in ledgers)
    unsafe = sum(row[3] for row in ledgers)
    assert sum(children.values()) + unsafe == 100 * sum(i % 5 >= 2 for i in range(30)) and set(children.values()) <= {100}
    assert old_files(path)


# ---- Old files ----------------------------------------------------------------------------------------


@case
def the_oldest_files_beyond_keep_are_deleted(folder):
    path = os.path.join(folder, "out")
    add(20000, config_of(path, rotate_size="16KiB", keep=3))
    assert len(old_files(path)) == 3
    values = values_of(path)
    assert values == list(range(20000 - len(values), 20000))


@case
def files_with_similar_names_are_left_alone(folder):
    path = os.path.join(folder, "out")
    strangers = [path + ending for ending in ("2", ".1", ".bak", ".gz", ".20200101T000000.000000Z.old", ".20200101T000000Z")]
    for name in strangers:
        with open(name, "w", encoding="utf-8") as file:
            file.write("x")
    add(200, config_of(path, rotate_size="1KiB", keep=1, compress="gzip"))
    for name in strangers:
        assert lines_of(name) == ["x"], name
        os.unlink(name)
    assert len(old_files(path)) == 1


def start_and_wait(config, condition):
    """Starts a program that adds one value and sleeps, and stops it once a condition holds."""
    program = start(ADDER, "-q", "-x", "sleep", WEIR_CONFIG=config)
    try:
        wait_for(condition, "the handler")
    finally:
        program.terminate()
        out, err = program.communicate(timeout=240)
    assert without_waits(err) == "", err


def wait_for_message(folder, config, **env):
    """Starts a program that adds one value and sleeps, and stops it at its first message; returns that."""
    errors = os.path.join(folder, "errors")
    with open(errors, "w", encoding="utf-8") as file:
        program = subprocess.Popen([ADDER, "-q", "-x", "sleep"], stderr=file, env=environment(WEIR_CONFIG=config, **env))
    try:
        wait_for(lambda: lines_of(errors), "a message")
    finally:
        program.terminate()
        program.wait(240)
    return lines_of(errors)[0]


def are_all_compressed(path):
    names = glob.glob(glob.escape(path) + ".*")
    return names and all(name.endswith("Z.gz") for name in names)


@case
def old_files_are_compressed_by_the_same_or_by_the_next_program(folder):
    path = os.path.join(folder, "out")
    add(20000, config_of(path, rotate_size="32KiB"))
    plain = old_files(path)
    modes = {os.stat(name).st_mode for name in plain}
    times = [os.stat(name).st_mtime_ns for name in plain]
    start_and_wait(config_of(path, rotate_size="32KiB", compress="gzip"), lambda: are_all_compressed(path))
    assert old_files(path) == [name + ".gz" for name in plain]
    assert {os.stat(name).st_mode for name in old_files(path)} == modes
    assert [os.stat(name).st_mtime_ns for name in old_files(path)] == times
    assert values_of(path) == [*range(20000), 0]
    assert subprocess.run(["gzip", "--test", *old_files(path)]).returncode == 0


@case
def an_unfinished_compression_of_a_dead_program_is_repeated(folder):
    path = os.path.join(folder, "out")
    add(5000, config_of(path, rotate_size="32KiB"))
    first, second, *_ = old_files(path)
    whole = subprocess.run(["gzip", "-c", second], capture_output=True, check=True).stdout
    for name, content in ((first + ".gz.tmp", whole[:50]), (second + ".gz", whole),
                          (path + ".20200101T000000.000000Z.gz.tmp", b"alone")):
        with open(name, "wb") as file:
            file.write(content)
    start_and_wait(config_of(path, rotate_size="32KiB", compress="gzip"), lambda: are_all_compressed(path))
    assert values_of(path) == [*range(5000), 0]


@case
def old_files_that_cannot_be_compressed_are_logged_once_and_block_no_others(folder):
    path = os.path.join(folder, "out")
    add(5000, config_of(path, rotate_size="16KiB"))
    first, *others = old_files(path)
    os.mkdir(first + ".gz.tmp")
    program = start(ADDER, "-q", "-x", "sleep", WEIR_CONFIG=config_of(path, rotate_size="16KiB", compress="gzip"))
    wait_for(lambda: all(os.path.exists(name + ".gz") and not os.path.exists(name) for name in others), "the others")
    program.terminate()
    out, err = program.communicate(timeout=240)
    assert err.count("cannot be compressed (Is a directory); next attempt in a minute") == 1 and first in err, err
    assert os.path.exists(first)


@case
def links_at_the_path_of_the_temporary_file_are_not_overwritten(folder):
    path, strangers = os.path.join(folder, "out"), os.path.join(folder, "strangers")
    add(100, config_of(path, rotate_size="1KiB"))
    first, *_ = old_files(path)
    for create_link, error in ((os.link, "File exists"), (os.symlink, "Too many levels of symbolic links")):
        with open(strangers, "w", encoding="utf-8") as file:
            file.write("x")
        create_link(strangers, first + ".gz.tmp")
        log = wait_for_message(folder, config_of(path, rotate_size="1KiB", compress="gzip"))
        assert f"{first} cannot be compressed ({error})" in log, log
        assert lines_of(strangers) == ["x"] and os.path.exists(first)
        os.unlink(first + ".gz.tmp")


# ---- Dates in the path --------------------------------------------------------------------------------


def name_of(pattern, time_s, utc=True):
    return datetime.datetime.fromtimestamp(time_s, datetime.timezone.utc if utc else None).strftime(pattern)


@case
def a_date_in_the_path_names_the_file_and_its_folders(folder):
    pattern = os.path.join(folder, "%Y", "%m-%%", "m-%F.%j.%G-%V.%y")
    before = time.time()
    add(10, config_of(pattern, utc=True))
    names = {name_of(pattern, before), name_of(pattern, time.time())}
    found = [os.path.join(place, name) for place, _, files in os.walk(folder) for name in files]
    assert set(found) <= names, (found, names)
    assert [json.loads(line)["t0"] for name in sorted(found) for line in lines_of(name)] == list(range(10))


@case
def dates_are_local_unless_utc_is_set(folder):
    for zone, utc, hours in (("XYZ-14", False, 14), ("XYZ-14", True, 0), ("XYZ+12", False, -12)):
        pattern = os.path.join(folder, f"{zone}{utc}-%Y-%m-%dT%H")
        before = time.time()
        done = run(ADDER, "-q", TZ=zone, WEIR_CONFIG=config_of(pattern, utc=utc))
        assert done.returncode == 0, done.stderr
        allowed = {name_of(pattern, at + hours * 3600) for at in (before, time.time())}
        found = set(glob.glob(os.path.join(folder, f"{zone}{utc}-*")))
        assert len(found) == 1 and found <= allowed, (found, allowed)


@case
def values_continue_in_the_next_file_when_the_date_changes(folder):
    pattern = os.path.join(folder, "out-%H%M%S")
    program = start(ADDER, "-n", 3000, "-p", 500000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(pattern, utc=True))
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and without_waits(err) == "", err
    assert_ledgers(json.loads(out))
    files = sorted(glob.glob(os.path.join(folder, "out-*")), key=os.path.getmtime)
    assert len(files) > 1
    assert [json.loads(line)["t0"] for name in files for line in lines_of(name)] == list(range(3000))


@case
def files_of_earlier_dates_are_old_files(folder):
    pattern = os.path.join(folder, "%Y", "out-%m-%d.jsonl")
    present = name_of(pattern, time.time())
    past = [name_of(pattern, time.time() - days * 86400) for days in (400, 3, 2)]
    for days, name in zip((400, 3, 2), past):
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="utf-8") as file:
            file.write(f'{{"t0": {-days}.0}}\n')
        days_ago(name, days)
    config = config_of(pattern, utc=True, keep=2, compress="gzip")
    start_and_wait(config, lambda: all(os.path.exists(name + ".gz") and not os.path.exists(name) for name in past[1:]))
    assert not os.path.exists(past[0]) and not os.path.exists(past[0] + ".gz")
    assert [read(name + ".gz") for name in past[1:]] == [['{"t0": -3.0}'], ['{"t0": -2.0}']]
    assert os.path.exists(present) or name_of(pattern, time.time()) != present


@case
def a_file_of_a_repeated_date_replaces_no_compressed_one(folder):
    pattern = os.path.join(folder, "out-%Y.jsonl")
    name = os.path.join(folder, "out-1999.jsonl")
    for turn in (1, 2):
        with open(name, "w", encoding="utf-8") as file:
            file.write(f'{{"t0": {turn}.0}}\n')
        start_and_wait(config_of(pattern, utc=True, compress="gzip"), lambda: not os.path.exists(name))
    found = sorted(glob.glob(name + "*.gz"))
    assert found[0] == name + ".gz" or len(found) == 2
    assert sorted(line for file in found for line in read(file)) == ['{"t0": 1.0}', '{"t0": 2.0}']
    # as if the last process had been killed before it could delete the compressed original
    with open(name, "w", encoding="utf-8") as file:
        file.write('{"t0": 1.0}\n')
    os.utime(name, ns=(0, os.stat(name + ".gz").st_mtime_ns))
    start_and_wait(config_of(pattern, utc=True, compress="gzip"), lambda: not os.path.exists(name))
    assert sorted(glob.glob(name + "*.gz")) == found


# ---- Errors -------------------------------------------------------------------------------------------


@case
def a_link_is_not_rotated_and_that_is_logged(folder):
    path, real = os.path.join(folder, "link"), os.path.join(folder, "real")
    os.symlink(real, path)
    done = run(ADDER, "-n", 2000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path, rotate_size="1KiB"))
    assert done.stderr.count("is a symbolic link and is not rotated; set \"path\" to the file itself") == 1, done.stderr
    assert_ledgers(json.loads(done.stdout))
    assert os.path.islink(path) and values_of(real) == list(range(2000))


@case
def a_failed_rotation_is_logged_once_and_loses_nothing(folder):
    """In a folder without write permission, a file can be written but not renamed."""
    need_access_for_others()
    path = os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8"):
        pass
    os.chmod(path, 0o666)
    os.chmod(folder, 0o555)
    done = subprocess.run([ADDER, "-n", "5000", "-f", "-1", "-H", "disk"], capture_output=True, text=True, timeout=240,
                          preexec_fn=become_nobody, env=environment(WEIR_CONFIG=config_of(path, rotate_size="1KiB")))
    os.chmod(folder, 0o755)
    assert done.stderr.count(f"{path} cannot be rotated (Permission denied); it continues to grow") == 1, done.stderr
    assert_ledgers(json.loads(done.stdout))
    assert values_of(path) == list(range(5000))


@case
def the_old_file_stays_in_use_if_the_new_one_cannot_be_opened(folder):
    """The process has no descriptors left."""
    path = os.path.join(folder, "out")
    program = start_in_steps("-n", 1500, "-i", 10, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path, rotate_size="8KiB"))
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the file")
    last = max(map(int, os.listdir(f"/proc/{program.pid}/fd")))
    resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (last + 1, last + 1))
    out, err = program.communicate(timeout=240)
    assert err.count(f"{path} cannot be rotated (Too many open files); it continues to grow") == 1, err
    assert_ledgers(json.loads(out))
    assert os.path.getsize(path) > 8 * 1024 and values_of(path) == list(range(1500))


FULL_DISK = r"""
set -e
mount -t tmpfs -o size=256k tmpfs "$1"
"$2" -n 30000 -f -1 -H disk 2>"$3/errors" >"$3/report" &
program=$!
while kill -0 $program 2>/dev/null; do
    for old in "$1"/out.*Z; do
        if [ -e "$old" ] && grep -q 'No space left' "$3/errors"; then mv "$old" "$3/"; fi
    done
    sleep 0.02
done
wait $program
mv "$1"/out* "$3/"
umount "$1"
"""


@case
def on_a_full_disk_values_wait_until_old_files_are_removed(folder):
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        raise Skip("not allowed to mount a tmpfs")
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    config = config_of(os.path.join(disk, "out"), rotate_size="32KiB", block_timeout="1m")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", FULL_DISK, "sh", disk, ADDER, folder], timeout=240, capture_output=True,
                          text=True, env=environment(WEIR_CONFIG=config))
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, "report"), encoding="utf-8") as file:
        report = json.load(file)
    assert_ledgers(report)
    assert report["flush"] == 0 and sum(report["handlers"]["disk"]["dropped"]) == 0, report
    assert values_of(os.path.join(folder, "out")) == list(range(30000))


@case
def an_external_rotation_is_still_followed(folder):
    path = os.path.join(folder, "out")
    program = start_in_steps("-n", 2000, "-p", 500000, "-i", 1000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path, rotate_size="1MiB"))
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the file")
    os.rename(path, path + "-aside")
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and without_waits(err) == "", err
    assert_ledgers(json.loads(out))
    assert values_of(path + "-aside") + values_of(path) == list(range(2000))


# ---- fsync --------------------------------------------------------------------------------------------


def trace_syncs(folder, *adder, **options):
    """Returns (the adder's report, number of fdatasync(2) calls, number of fsync(2) calls)."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    path, trace = os.path.join(folder, "out"), os.path.join(folder, "trace")
    done = run("strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", trace, ADDER, "-f", -1, "-H", "disk", *adder,
               ASAN_OPTIONS="detect_leaks=0", WEIR_CONFIG=config_of(path, **options))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    calls = " ".join(lines_of(trace))
    return report, calls.count(" fdatasync("), calls.count(" fsync(")


@case
def nothing_is_synced_by_default(folder):
    assert trace_syncs(folder, "-n", 1000)[1:] == (0, 0)


@case
def each_batch_is_synced_before_it_counts_as_delivered(folder):
    report, data, folders = trace_syncs(folder, "-n", 5, fsync="batch", delivery="sync")
    assert data == 5 and folders == 1 and report["handlers"]["disk"]["delivered"] == 5, (data, folders)


@case
def a_flush_syncs_before_the_interval_ends(folder):
    assert trace_syncs(folder, "-n", 1000, fsync="interval", fsync_interval="1h")[1:] == (1, 1)


@case
def written_data_is_synced_when_the_interval_ends(folder):
    """Detected by the message of a failing fsync."""
    config = config_of(os.path.join(folder, "out"), fsync="interval", fsync_interval="10ms")
    assert "fsync" in wait_for_message(folder, config, LD_PRELOAD=SHIM, WEIR_SHIM="fsync")


@case
def a_file_is_synced_before_it_is_rotated(folder):
    _, data, _ = trace_syncs(folder, "-n", 1000, fsync="batch", rotate_size="2KiB")
    assert data >= len(old_files(os.path.join(folder, "out"))) > 3


@case
def fault_19_a_failed_fsync_is_logged_and_counted_and_nothing_is_written_again(folder):
    for fsync in ("batch", "interval"):
        path = os.path.join(folder, fsync)
        done = run(ADDER, "-n", 100, "-e", 100, "-f", -1, "-H", "disk", LD_PRELOAD=SHIM, WEIR_SHIM="fsync",
                   WEIR_CONFIG=config_of(path, format="text", fsync=fsync, fsync_interval="1h"))
        assert f"fsync {path}: Input/output error; values written since the last fsync may be lost if the machine crashes" in done.stderr, done.stderr
        report = json.loads(done.stdout)
        assert_ledgers(report)
        refused = sum(report["handlers"]["disk"]["dropped"])
        assert refused == (100 if fsync == "batch" else 0) and (report["flush"] == 0) == (not refused), report
        assert len(lines_of(path)) == 100


# ---- Configuration ------------------------------------------------------------------------------------


@case
def invalid_options_are_refused_with_the_allowed_values(folder):
    path = os.path.join(folder, "weir.json")
    for options, option, message in (
            ({"path": "/tmp/m-%b.log"}, "path",
             '"%b" is not a date field; allowed: %Y %m %d %H %M %S %y %j %G %V %F, and %% for a percent sign'),
            ({"path": "/tmp/100%"}, "path", '"/tmp/100%": "%" is not a date field'),
            ({"rotate_every": "7h"}, "rotate_every", "25200000 ms does not divide a day; allowed: fractions of a day in whole seconds"),
            ({"rotate_every": "1500ms"}, "rotate_every", "1500 ms does not divide a day"),
            ({"keep": 3}, "keep", 'it requires "rotate_size", "rotate_every" or date fields in "path"'),
            ({"compress": "gzip"}, "compress", "it requires \"rotate_size\""),
            ({"compress": "zstd", "rotate_size": "1MiB"}, "compress", "allowed: none, gzip"),
            ({"fsync": "always"}, "fsync", "allowed: never, interval, batch"),
            ({"rotate_size": 5}, "rotate_size", "it must be a size")):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"handlers": {"disk": {"type": "file", "path": "/tmp/m", **options}}, "groups": {"*": "disk"}}, file)
        done = run(WEIR, "check", path)
        assert done.returncode == 1 and f"handlers.disk.{option}: " in done.stderr and message in done.stderr, (options, done.stderr)


@case
def a_build_without_zlib_refuses_to_compress(folder):
    """The handler in statically linked programs has no zlib."""
    path = os.path.join(folder, "weir.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config_of("/tmp/out", rotate_size="1MiB", compress="gzip"), file)
    done = run(WEIR, "check", path, WEIR_PLUGIN_PATH=folder)
    assert done.returncode == 1 and '"gzip" requires zlib' in done.stderr and "allowed: none" in done.stderr, done.stderr


main()
