"""The file handler with real files: full disks, rotation, deletion, permissions, other writers."""

import fcntl
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time

from fifos import ScriptedApp
from harness import (ADDER, BUILD, WEIR, Skip, assert_ledgers, case, go_on, lines_of, main, run, skip_with_coverage, start,
                     start_in_steps, wait_for, whole_lines, without_waits)

SHIM = os.path.join(BUILD, "tests", "support", "preload", ".libs", "shim.so")


def config_of(path, **options):
    handler = {"type": "file", "path": str(path), "format": "bai", "retry_min": "10ms", "retry_max": "50ms",
               "block_timeout": "1m", **options}
    return {"settings": {"shutdown_timeout": "10s"}, "handlers": {"disk": handler}, "groups": {"*": "disk"}}


def values_of(path):
    return [json.loads(line)["t0"] for line in lines_of(path)]


@case
def a_new_file_has_the_configured_mode_regardless_of_the_umask(folder):
    for mode, expected in ((None, 0o644), ("0600", 0o600), ("664", 0o664)):
        path = os.path.join(folder, f"out{expected:o}")
        options = {"mode": mode} if mode else {}
        done = subprocess.run(["sh", "-c", f"umask 077; exec {ADDER} -q"], timeout=240, env=environment_of(config_of(path, **options)))
        assert done.returncode == 0
        assert os.stat(path).st_mode & 0o7777 == expected, oct(os.stat(path).st_mode)


def environment_of(config):
    from harness import environment
    return environment(WEIR_CONFIG=config)


@case
def append_is_the_default_and_append_false_starts_with_an_empty_file(folder):
    path = os.path.join(folder, "out")
    for _ in range(2):
        run(ADDER, "-q", "-n", 3, WEIR_CONFIG=config_of(path))
    assert values_of(path) == [0, 1, 2, 0, 1, 2]
    run(ADDER, "-q", "-n", 3, WEIR_CONFIG=config_of(path, append=False))
    assert values_of(path) == [0, 1, 2]


@case
def what_a_name_means_is_in_the_lines_from_its_description_on(folder):
    path = os.path.join(folder, "out")
    app = ScriptedApp(config_of(path, format="json", delivery="sync"), folder)
    for command in (("add", "a", 1), ("add", "b", 1), ("describe", "a", "ms"), ("add", "a", 2), ("add", "b", 2)):
        assert app.do(*command)["code"] == 0
    app.end()
    lines = [json.loads(line) for line in lines_of(path)]
    assert [(line["name"], line["value"], line.get("unit")) for line in lines] == \
        [("a", 1, None), ("b", 1, None), ("a", 2, "ms"), ("b", 2, None)], lines


@case
def created_folders_can_be_entered_by_their_owner_whatever_the_umask(folder):
    path = os.path.join(folder, "a", "b", "out")
    config = config_of(path, create_folders=True)
    done = subprocess.run(["sh", "-c", f"umask 0177; exec {ADDER} -q"], timeout=240, env=environment_of(config))
    assert done.returncode == 0, done
    assert [stat.S_IMODE(os.stat(os.path.dirname(p)).st_mode) for p in (path, os.path.dirname(path))] == [0o700, 0o700]
    assert lines_of(path)


@case
def missing_folders_are_created_only_with_create_folders(folder):
    path = os.path.join(folder, "a", "b", "out")
    program = start(ADDER, "-q", "-x", "sleep", WEIR_CONFIG=config_of(path))
    first = program.stderr.readline()
    program.kill()
    program.communicate()
    assert f"disk: open {path}: No such file or directory; retrying, 1 queued" in first, first
    run(ADDER, "-q", WEIR_CONFIG=config_of(path, create_folders=True))
    assert values_of(path) == [0]


@case
def a_relative_path_is_relative_to_the_working_directory_at_configuration_time(folder):
    run(ADDER, "-q", cwd=folder, WEIR_CONFIG=config_of("out"))
    assert values_of(os.path.join(folder, "out")) == [0]


@case
def a_file_that_appears_later_is_found_and_nothing_is_lost(folder):
    place = os.path.join(folder, "later")
    path = os.path.join(place, "out")
    program = start(ADDER, "-n", 2000, "-p", 500000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path))
    first = program.stderr.readline()
    assert "warning: disk: open" in first, first
    os.mkdir(place)
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0, err
    assert_ledgers(json.loads(out))
    assert values_of(path) == list(range(2000))
    assert re.search(r"disk: back after \d+ s, 0 lost", err), err


@case
def a_rotated_file_is_followed_and_nothing_is_lost(folder):
    path = os.path.join(folder, "out")
    program = start_in_steps("-n", 4000, "-p", 500000, "-i", 1000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path))
    for number in (1, 2):
        wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the file")
        os.rename(path, f"{path}.{number}")
        go_on(program)
    wait_for(lambda: os.path.exists(path), "the new file")
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0, err
    assert_ledgers(json.loads(out))
    assert values_of(f"{path}.1") + values_of(f"{path}.2") + values_of(path) == list(range(4000))


@case
def a_deleted_file_is_created_again(folder):
    path = os.path.join(folder, "out")
    program = start_in_steps("-q", "-n", 4000, "-p", 500000, "-i", 1000, WEIR_CONFIG=config_of(path))
    wait_for(lambda: os.path.exists(path), "the file")
    os.unlink(path)
    go_on(program)
    wait_for(lambda: os.path.exists(path), "the new file")
    program.communicate(timeout=240)
    assert program.returncode == 0
    values = values_of(path)
    assert values == list(range(4000 - len(values), 4000)) and values


@case
def a_folder_that_is_gone_leaves_the_old_file_in_use_and_is_logged_once(folder):
    place = os.path.join(folder, "place")
    os.mkdir(place)
    path = os.path.join(place, "out")
    program = start_in_steps("-n", 4000, "-p", 500000, "-i", 1000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path))
    wait_for(lambda: os.path.exists(path), "the file")
    moved = os.path.join(folder, "moved")
    os.rename(place, moved)
    out, err = program.communicate(timeout=240)
    assert_ledgers(json.loads(out))
    assert err.count("was moved or deleted and cannot be reopened") == 1, err
    assert values_of(os.path.join(moved, "out")) == list(range(4000))


@case
def a_reload_opens_files_again(folder):
    path = os.path.join(folder, "out")
    config = os.path.join(folder, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(config_of(path), file)
    program = start(os.path.join(BUILD, "examples", "reload"), config)
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the file")
    os.rename(path, path + ".1")
    program.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the new file")
    program.terminate()
    assert program.wait(240) == 0
    values = [json.loads(line)["turn"] for name in (path + ".1", path) for line in lines_of(name)]
    assert values == list(range(len(values)))


FULL_DISK = r"""
set -e
mkdir -p "$1/disk"
mount -t tmpfs -o size=64k tmpfs "$1/disk"
"$2" -n 20000 -p 1000 -f 300 -H disk -x sleep >"$1/report" 2>"$1/errors" &
program=$!
while [ ! -s "$1/report" ]; do sleep 0.05; done
# The file is taken away while the program is stopped: it would write between the copy and the truncation.
take() {
    kill -STOP $program
    while ! grep -q '^State:.T' /proc/$program/status; do sleep 0.01; done
    cat "$1/disk/out" >>"$1/first"
    : >"$1/disk/out"
    kill -CONT $program
}
while ! grep -q 'No space left on device' "$1/errors"; do sleep 0.05; done
take "$1"
while ! grep -q 'back after' "$1/errors"; do sleep 0.05; done
while kill -0 $program 2>/dev/null; do
    cp "$1/disk/out" "$1/next"
    [ -s "$1/next" ] && tail -n 1 "$1/next" | grep -q ': 19999' && break
    if ! [ "$(df --output=avail "$1/disk" | tail -n 1)" -gt 8 ]; then
        take "$1"
    fi
    sleep 0.05
done
cat "$1/disk/out" >>"$1/first"
kill $program
wait $program || true
umount "$1/disk"
"""


@case
def a_full_disk_tears_no_line_and_queued_values_are_written_once_there_is_space(folder):
    """64 KiB hold about 3,000 lines; 20,000 values of 32 bytes fit into the queue of 1 MiB."""
    probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True)
    if probe.returncode:
        raise Skip("not allowed to mount a tmpfs")
    from harness import environment
    config = config_of(os.path.join(folder, "disk", "out"))
    done = subprocess.run(["unshare", "-rm", "sh", "-c", FULL_DISK, "sh", folder, ADDER], env=environment(WEIR_CONFIG=config),
                          timeout=240, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, "errors"), encoding="utf-8") as file:
        errors = file.read()
    assert "No space left on device; retrying" in errors, errors
    with open(os.path.join(folder, "report"), encoding="utf-8") as file:
        report = json.load(file)
    assert_ledgers(report)
    assert report["flush"] == -8 and report["process"]["added"] == 20000
    assert report["handlers"]["disk"]["queued"] > 0 and sum(report["handlers"]["disk"]["dropped"]) == 0, report
    assert values_of(os.path.join(folder, "first")) == list(range(20000))


@case
def a_file_that_cannot_be_opened_drops_by_policy_and_the_program_continues(folder):
    path = os.path.join(folder, "missing", "out")
    done = run(ADDER, "-n", 100000, "-f", 2000, "-H", "disk",
               WEIR_CONFIG={**config_of(path, queue="64KiB", block_timeout="10ms"), "settings": {"shutdown_timeout": "50ms"}})
    assert done.returncode == 0 and f"open {path}: No such file or directory" in done.stderr, done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["process"]["added"] == 100000 and report["handlers"]["disk"]["dropped"][0] > 0
    assert re.search(r"disk: shutting down while failing: open .*; not delivered in time: \d+ dropped", done.stderr)


# ---- Only regular files ------------------------------------------------------------------------------------------


@case
def what_is_not_a_regular_file_is_refused_and_never_waited_for(folder):
    pipe, read_pipe, address = (os.path.join(folder, name) for name in ("pipe", "read_pipe", "socket"))
    os.mkfifo(pipe)
    os.mkfifo(read_pipe)
    reader = os.open(read_pipe, os.O_RDONLY | os.O_NONBLOCK)
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    link = os.path.join(folder, "link")
    os.symlink(pipe, link)
    for path, expected in ((pipe, "fifo"), (link, "fifo"), (read_pipe, "fifo"), ("/dev/null", "console"), ("/dev/full", "console"),
                           (address, "a socket")):
        config = config_of(path, rotate_size="1MiB", spool=os.path.join(folder, "spool"))
        done = run(ADDER, "-n", 5000, "-f", -1, "-H", "disk", WEIR_CONFIG=config)
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert done.returncode == 0 and report["handlers"]["disk"]["spooled"] >= 5000, (path, report, done.stderr)
        assert re.search(f"disk: open {path}: .*not a regular file.*{expected}" if expected != "a socket" else
                         f"disk: open {path}: a socket, not a regular file", done.stderr), done.stderr
        checked = run(WEIR, "check", "--open", WEIR_CONFIG=config)
        assert checked.returncode == 1 and "not a regular file" in checked.stdout + checked.stderr, checked
    assert os.read(reader, 10) == b""
    os.close(reader)
    server.close()


@case
def a_pipe_that_replaces_the_file_is_not_waited_for(folder):
    """The handler follows the path while it writes."""
    path = os.path.join(folder, "out")
    program = start_in_steps("-n", 300, "-p", 10000000, "-i", 100, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path))
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the first value")
    os.rename(path, path + ".moved")
    os.mkfifo(path)
    go_on(program)
    go_on(program)
    wait_for(lambda: whole_lines(path + ".moved") == 300, "all values in the old file")
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0 and f"{path} was moved or deleted and cannot be reopened (a named pipe" in err, err
    assert_ledgers(json.loads(out))


# ---- Locks -------------------------------------------------------------------------------------------------------


@case
def a_lock_that_another_process_keeps_is_logged_and_values_are_spooled(folder):
    path = os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        done = run(ADDER, "-n", 300000, "-f", -1, "-H", "disk", WEIR_CONFIG=config_of(path, spool=os.path.join(folder, "spool")))
        account = json.loads(done.stdout)["handlers"]["disk"]
        assert account["spooled"] == 300000 and sum(account["dropped"]) == 0, account
        assert_ledgers(json.loads(done.stdout))
        assert f"disk: write {path}: another process has kept its lock (flock) for 2 s; retrying" in done.stderr, done.stderr
        assert os.path.getsize(path) == 0
    done = run(ADDER, "-q", "-n", 1, "-f", -1, WEIR_CONFIG=config_of(path, spool=os.path.join(folder, "spool")))
    assert without_waits(done.stderr) == "" and values_of(path) == [*range(300000), 0], done.stderr


@case
def a_program_ends_while_another_process_keeps_the_lock(folder):
    path = os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        config = {**config_of(path), "settings": {"shutdown_timeout": "100ms"}}
        done = run(ADDER, "-n", 3, "-H", "disk", WEIR_CONFIG=config)
    assert done.returncode == 0 and done.stderr.endswith("3 dropped\n"), done.stderr
    assert_ledgers(json.loads(done.stdout))


@case
def a_file_size_limit_is_survived(folder):
    skip_with_coverage()
    path = os.path.join(folder, "out")
    done = subprocess.run(["sh", "-c", f"ulimit -f 8; exec {ADDER} -n 5000 -f 3000 -H disk"], timeout=240, capture_output=True,
                          text=True, env=environment_of({**config_of(path), "settings": {"shutdown_timeout": "50ms"}}))
    assert done.returncode == 0 and "File too large" in done.stderr, done
    assert_ledgers(json.loads(done.stdout))
    values = values_of(path)
    assert values == list(range(len(values))) and values


@case
def interrupted_and_short_writes_lose_nothing_and_keep_the_order(folder):
    for mode in ("eintr", "short"):
        path = os.path.join(folder, mode)
        done = run(ADDER, "-n", 20000, "-f", -1, "-H", "disk", LD_PRELOAD=SHIM, WEIR_SHIM=mode, WEIR_CONFIG=config_of(path))
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        assert_ledgers(json.loads(done.stdout))
        assert values_of(path) == list(range(20000)), mode


@case
def occasional_short_writes_leave_no_torn_line(folder):
    path = os.path.join(folder, "out")
    done = run(ADDER, "-n", 20000, "-p", 1000, "-f", -1, "-H", "disk", LD_PRELOAD=SHIM, WEIR_SHIM="full",
               WEIR_CONFIG=config_of(path))
    assert done.returncode == 0 and "No space left on device" in done.stderr, done.stderr
    assert_ledgers(json.loads(done.stdout))
    assert values_of(path) == list(range(20000))


@case
def a_descriptor_reused_by_the_program_is_neither_written_nor_closed(folder):
    path, strangers = os.path.join(folder, "out"), os.path.join(folder, "strangers")
    program = os.path.join(BUILD, "tests", "support", "closer")
    done = run(program, strangers, WEIR_CONFIG=config_of(path))
    assert done.returncode == 0, done.stderr
    assert os.path.getsize(strangers) == 0
    assert [json.loads(line) for line in lines_of(path)] == [{"before": 1}, {"after": 2}]


@case
def a_descriptor_reused_by_the_program_stays_open_when_nothing_more_is_added(folder):
    path, strangers = os.path.join(folder, "out"), os.path.join(folder, "strangers")
    program = os.path.join(BUILD, "tests", "support", "closer")
    for what in ("stop", path):
        done = run(program, strangers, what, WEIR_CONFIG=config_of(path))
        assert done.returncode == 0 and done.stderr == "", (what, done)
        assert os.path.getsize(strangers) == 0
    assert os.path.getsize(path) == 0 and len(lines_of(path + ".moved")) == 2


main()
