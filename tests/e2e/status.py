"""`weir status` inspects running programs without affecting them."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

from fifos import ScriptedApp
from harness import ADDER, BUILD, WEIR, case, environment, main, run, skip_fork_under_sanitizers, start, wait_for, without_waits


def config_of(folder, **more):
    return {"settings": {"status": os.path.join(folder, "status"), **more}, "groups": {"my_app": "null"}}


def status(folder, *arguments, **env):
    return run(WEIR, "status", "--folder", os.path.join(folder, "status"), *arguments, **env)


def listing(folder):
    place = os.path.join(folder, "status")
    return sorted(name for name in os.listdir(place) if name[0] != ".") if os.path.exists(place) else []


def status_of(folder, pid):
    """The status of a process, or None."""
    done = status(folder, pid, "--json")
    found = json.loads(done.stdout)
    assert len(found) <= 1 and done.returncode == (0 if found else 1), done
    return found[0] if found else None


def wait_for_status(folder, pid, condition):
    """The first status that meets the condition. The ledgers must balance in every one that is read."""
    seen = []

    def look():
        one = status_of(folder, pid)
        if one:
            seen.append(one)
            assert one["added"] == one["taken"] + one["in_rings"], one
            for handler in one["handlers"]:
                accounted = handler["delivered"] + sum(handler["dropped"].values()) + handler["queued"] + handler["spooled"]
                assert handler["offered"] + handler["recovered"] == accounted, handler
        return one and condition(one)

    wait_for(look, "the status of the program")
    return seen[-1]


# ---- Contents -----------------------------------------------------------------------------------------


@case
def a_program_without_the_setting_has_no_status_file_and_cannot_be_inspected(folder):
    for settings in ({}, {"status": "off"}):
        with ScriptedApp({"settings": settings, "groups": {"my_app": "null"}}, folder, XDG_RUNTIME_DIR=folder) as app:
            assert app.do("add x 1")["code"] == 0 and app.do("flush 10000")["code"] == 0
            done = run(WEIR, "status", app.pid, XDG_RUNTIME_DIR=folder)
            assert done.returncode == 1 and f"process {app.pid} cannot be inspected" in done.stderr, done
            assert not os.path.exists(os.path.join(folder, "weir"))


@case
def before_the_first_routed_value_there_is_no_file_and_no_thread(folder):
    with ScriptedApp({**config_of(folder), "groups": {"other": "null"}}, folder) as app:
        assert app.do("add x 1")["code"] == 0
        assert os.listdir(f"/proc/{app.pid}/task") == [str(app.pid)]
        assert listing(folder) == []


@case
def values_handlers_and_totals_are_shown(folder):
    config = config_of(folder, shutdown_timeout="100ms")
    config["handlers"] = {"bad": {"type": "file", "path": os.path.join(folder, "no", "file")}}
    config["groups"] = {"my_app": ["null", "bad"]}
    with ScriptedApp(config, folder) as app:
        for i in range(10):
            app.do(f"add x {i}")
        def is_settled(one):
            handlers = {handler["name"]: handler for handler in one["handlers"]}
            return one["added"] == 10 and handlers["null"]["delivered"] == 10 and handlers["bad"]["retries"] >= 1
        one = wait_for_status(folder, app.pid, is_settled)
        assert (one["pid"], one["program"], one["config"], one["foreign_pid"]) == (app.pid, "scripted_app", "WEIR_CONFIG", False), one
        assert one["refused"] == {} and one["unrouted"] == 0 and one["user"] == os.geteuid(), one
        handlers = {handler["name"]: handler for handler in one["handlers"]}
        good, bad = handlers["null"], handlers["bad"]
        assert (good["type"], good["open"], good["failing"], good["delivered"]) == ("null", True, False, 10), good
        assert (bad["type"], bad["open"], bad["failing"], bad["queued"]) == ("file", False, True, 10), bad
        assert bad["last_error"] == f"open {folder}/no/file: No such file or directory" and bad["failing_s"] >= 0, bad
        assert bad["queue_bytes"] == 320 and bad["queue_bound"] == 2**20 and bad["retries"] >= 1, bad
        text = status(folder, app.pid).stdout
        for pattern in (rf"^process {app.pid}, scripted_app, up .*; as of .* ago; weir \d", r"^  config +WEIR_CONFIG, since 20",
                        r"^  added +10\b", r"^  null \(null\): open$", r"^  bad \(file\): retrying for ",
                        r"^    queue +10 values, 320B of 1MiB, oldest queued for ", r"^    last error  .* ago: open .*/no/file: No such"):
            assert re.search(pattern, text, re.M), (pattern, text)
        line = status(folder).stdout.splitlines()
        assert len(line) == 2 and re.fullmatch(rf" *{app.pid} +\S+ +.* m?s +10 +1 of 2 +scripted_app", line[1]), line


@case
def unrouted_groups_are_shown_in_order_of_their_number_of_values(folder):
    app = subprocess.Popen([os.path.join(BUILD, "tests", "support", "unrouted_app"), "-g", "30", "-w", "routed"], text=True,
                           env=environment(WEIR_CONFIG={**config_of(folder), "groups": {"routed": "null"}}),
                           stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    one = wait_for_status(folder, app.pid, lambda one: one["unrouted"] == 30 * 31 // 2)
    assert [(g["name"], g["values"]) for g in one["unrouted_groups"]] == [(f"g{i - 1}", i) for i in range(30, 20, -1)], one
    assert one["unrouted_group_count"] == 30
    assert re.search(r"^  unrouted +465: 30 of g29, 29 of g28, .*, and 20 more groups$", status(folder, app.pid).stdout, re.M)
    app.stdin.close()
    assert app.wait(timeout=240) == 0


@case
def entries_of_metrics_that_matched_no_name_are_shown(folder):
    config = config_of(folder)
    config["metrics"] = {"my_app": {"x": "counter", "request_cout": "counter"}, "*": {f"*.{i}": "gauge" for i in range(6)}}
    with ScriptedApp(config, folder) as app:
        assert app.do("add x 1")["code"] == 0
        one = wait_for_status(folder, app.pid, lambda one: one["added"] == 1 and one["metrics_unmatched_count"] == 7)
        assert one["metrics_count"] == 8
        assert one["metrics_unmatched"] == [{"group": "my_app", "name": "request_cout"}] + [{"group": "*", "name": f"*.{i}"} for i in range(4)]
        text = status(folder, app.pid).stdout
        assert re.search(r"^  metrics       7 of 8 entries matched no name: request_cout of my_app, \*\.0 of \*, .*, and 2 more$", text, re.M), text
        assert app.do("add request_cout 1")["code"] == 0
        one = wait_for_status(folder, app.pid, lambda one: one["metrics_unmatched_count"] == 6)
        assert one["metrics_unmatched"] == [{"group": "*", "name": f"*.{i}"} for i in range(5)]


@case
def without_such_entries_the_line_is_left_out(folder):
    with ScriptedApp({**config_of(folder), "metrics": {"my_app": {"x": "counter"}}}, folder) as app:
        assert app.do("add x 1")["code"] == 0
        one = wait_for_status(folder, app.pid, lambda one: one["added"] == 1 and one["metrics_unmatched_count"] == 0)
        assert one["metrics_count"] == 1 and one["metrics_unmatched"] == []
        assert "matched no name" not in status(folder, app.pid).stdout


@case
def rates_refer_to_the_time_between_two_snapshots(folder):
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("add x 1")
        one = wait_for_status(folder, app.pid, lambda one: one["added_per_s"] == 0 and one["handlers"][0]["delivered_per_s"] == 0)
        assert one["snapshots"] > 1, "the first snapshot has no rates"
    adder = start(ADDER, "-q", "-n", 10**9, "-p", 1000000, WEIR_CONFIG=config_of(folder))
    one = wait_for_status(folder, adder.pid, lambda one: one["added_per_s"] and one["handlers"][0]["delivered_per_s"])
    adder.kill()
    adder.communicate(timeout=240)
    assert one["added_per_s"] < 10**6 and one["handlers"][0]["dropped_per_s"] == 0, one


# ---- Lifetime -----------------------------------------------------------------------------------------


@case
def the_file_is_removed_when_the_program_ends(folder):
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("add x 1")
        # it has a name with a leading dot until it is complete
        wait_for(lambda: any(not name.startswith(".") for name in listing(folder)), "the file")
        (name,) = listing(folder)
        assert re.fullmatch(rf"{app.pid}\.[0-9a-f]{{8}}\.status", name), name
        assert os.stat(os.path.join(folder, "status", name)).st_mode & 0o777 == 0o600
    assert without_waits(app.stderr_text()) == "" and app.program.returncode == 0
    assert listing(folder) == []
    done = status(folder)
    assert done.returncode == 1 and "no process found" in done.stderr and done.stdout == "", done


@case
def shutdown_removes_the_file(folder):
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("add x 1")
        wait_for(lambda: listing(folder), "the file")
        assert app.do("shutdown 10000")["code"] == 0
        assert listing(folder) == [] and status_of(folder, app.pid) is None


@case
def the_file_of_a_killed_program_is_not_shown_and_the_next_program_removes_it(folder):
    with ScriptedApp(config_of(folder), folder) as killed:
        killed.do("add x 1")
        wait_for_status(folder, killed.pid, lambda one: True)
        os.kill(killed.pid, signal.SIGKILL)
        killed.program.wait(timeout=240)
    (left,) = listing(folder)
    assert status(folder).returncode == 1 and status_of(folder, killed.pid) is None
    assert listing(folder) == [left], "weir status must not remove files"
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("add x 1")
        wait_for_status(folder, app.pid, lambda one: True)
        assert left not in listing(folder) and len(listing(folder)) == 1, listing(folder)


@case
def several_programs_share_a_folder(folder):
    with ScriptedApp(config_of(folder), folder) as a, ScriptedApp(config_of(folder), folder) as b:
        for i, app in enumerate((a, b)):
            app.do(f"event {i + 5}")
            wait_for_status(folder, app.pid, lambda one, i=i: one["added"] == i + 5)
        found = json.loads(status(folder, "--json").stdout)
        assert sorted(one["pid"] for one in found) == sorted((a.pid, b.pid)), found


def holds(pid, name):
    place = f"/proc/{pid}/fd"

    def target(fd):
        try:
            return os.readlink(os.path.join(place, fd))
        except FileNotFoundError:  # closed in the meantime
            return ""

    return any(name in target(fd) for fd in os.listdir(place))


@case
def a_forked_child_has_its_own_file_and_its_parents_is_unaffected(folder):
    skip_fork_under_sanitizers()
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("event 3")
        wait_for_status(folder, app.pid, lambda one: one["added"] == 3)
        idle = app.do("fork")["code"]  # adds no values, and outlives its parent
        (name,) = listing(folder)
        wait_for(lambda: not holds(idle, name), "the child to close the file")
        app.do("event 4")
        wait_for_status(folder, app.pid, lambda one: one["added"] == 7)
        assert status_of(folder, idle) is None
        os.kill(app.pid, signal.SIGKILL)
        app.program.wait(timeout=240)
        assert status_of(folder, app.pid) is None
    forking = start(os.path.join(BUILD, "examples", "prefork"), 3, WEIR_CONFIG={**config_of(folder), "groups": {"*": "null"}})
    assert forking.communicate(timeout=240)[1] == "" and forking.returncode == 0
    wait_for(lambda: not [n for n in listing(folder) if n != name], "the files of the workers to be removed")


@case
def the_setting_follows_the_configuration(folder):
    path = os.path.join(folder, "weir.json")

    def configure(place):
        config = {"settings": {"status": place} if place else {}, "groups": {"my_app": "null"}}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)

    a, b = (os.path.join(folder, name) for name in ("status", "other"))
    configure(a)
    with ScriptedApp(path, folder) as app:
        app.do("add x 1")
        wait_for(lambda: listing(folder), "the file")
        configure(b)
        assert app.do("reload")["code"] == 0
        wait_for(lambda: not os.listdir(a) and os.path.exists(b) and os.listdir(b), "the file to move")
        wait_for(lambda: run(WEIR, "status", "--folder", b, app.pid).returncode == 0, "the new page")
        assert json.loads(run(WEIR, "status", "--folder", b, app.pid, "--json").stdout)[0]["config"] == path
        configure(None)
        assert app.do("reload")["code"] == 0
        wait_for(lambda: not os.listdir(b), "the file to be removed")
        configure(a)
        assert app.do("reload")["code"] == 0
        wait_for(lambda: listing(folder), "the file to be back")
        os.unlink(os.path.join(a, listing(folder)[0]))
        wait_for(lambda: listing(folder), "a removed file to be created again")


@case
def auto_uses_the_runtime_folder_of_the_login(folder):
    with ScriptedApp({"settings": {"status": "auto"}, "groups": {"my_app": "null"}}, folder, XDG_RUNTIME_DIR=folder) as app:
        app.do("add x 1")
        wait_for(lambda: os.path.exists(os.path.join(folder, "weir")) and os.listdir(os.path.join(folder, "weir")), "the file")
        wait_for(lambda: run(WEIR, "status", app.pid, XDG_RUNTIME_DIR=folder).returncode == 0, "the page")
        assert os.stat(os.path.join(folder, "weir")).st_mode & 0o777 == 0o700
        listed = run(WEIR, "status", XDG_RUNTIME_DIR=folder)
        assert listed.returncode == 0 and f"{app.pid} " in listed.stdout, listed


@case
def a_folder_that_cannot_be_made_is_logged_with_the_reason(folder):
    place = "/sys/weir-test"
    try:
        os.mkdir(place)
    except OSError as error:
        reason = error.strerror
    with ScriptedApp({**config_of(folder, shutdown_timeout="1s"), "settings": {"status": place}}, folder) as app:
        app.do("event 5")
        wait_for(lambda: "the status file is not written" in app.stderr_text(), "the message")
    assert f"settings.status: {place}: {reason}; " in app.stderr_text(), app.stderr_text()


@case
def an_unusable_folder_is_logged_once_and_the_program_continues(folder):
    place = os.path.join(folder, "status")
    os.mkdir(place)
    os.chmod(place, 0o777)
    with ScriptedApp(config_of(folder, shutdown_timeout="1s"), folder) as app:
        app.do("event 5")
        wait_for(lambda: "weir:status" in threads_of(app.pid), "the thread")
        assert app.do("flush 10000")["code"] == 0
    assert app.stderr_text() == (f"weir: warning: settings.status: {place}: refused: others may write this folder (mode 0777); "
                                 "chmod go-w or +t helps; the status file is not written\n"), app.stderr_text()
    assert os.listdir(place) == []


def threads_of(pid):
    names = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
            names.append(file.read().strip())
    return names


@case
def an_invalid_setting_is_refused_with_its_place(folder):
    for value, words in (("run/weir", 'must be off, auto, or the absolute path of a folder, got "run/weir"'),
                         ("", 'must be off, auto, or the absolute path of a folder, got ""'), (True, "true is not a string")):
        done = run(WEIR, "check", WEIR_CONFIG={"settings": {"status": value}})
        assert done.returncode == 1 and f"settings.status: {words}" in done.stderr, done


@case
def a_handler_that_hangs_is_shown_while_the_program_ends(folder):
    config = config_of(folder, shutdown_timeout="1h")
    config["handlers"] = {"stuck": {"type": "blocker", "in": "emit"}}
    config["groups"] = {"my_app": "stuck"}
    with ScriptedApp(config, folder) as app:
        app.do("add x 1")
        wait_for_status(folder, app.pid, lambda one: True)
        app.program.stdin.close()  # it ends now unless the handler blocks
        one = wait_for_status(folder, app.pid, lambda one: (one["handlers"][0]["busy_s"] or 0) > 1)
        assert one["handlers"][0]["queued"] == 1, one
        assert re.search(r"^  stuck \(blocker\): .*busy for ", status(folder, app.pid).stdout, re.M)
        app.program.kill()
        app.program.wait(timeout=240)


# ---- Hostile files ------------------------------------------------------------------------------------


def crc(data):
    """CRC-32C, bit by bit."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def forge(page, change):
    """Changes a page and corrects its checksum."""
    page = bytearray(page)
    change(page)
    (length,) = struct.unpack_from("<I", page, 16)
    struct.pack_into("<I", page, 12, crc(page[16:length]))
    return bytes(page)


def is_stopped(pid):
    """Whether all threads have stopped: SIGSTOP does not stop a thread that is inside a system call at once."""
    def state(thread):
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    return all(state(thread) == "T" for thread in os.listdir(f"/proc/{pid}/task"))


def forged(folder, change):
    """Runs `weir status` on a forged copy of a stopped program's page, while the program holds its lock."""
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("add x 1")
        wait_for_status(folder, app.pid, lambda one: True)
        (name,) = listing(folder)
        path = os.path.join(folder, "status", name)
        os.kill(app.pid, signal.SIGSTOP)
        try:
            wait_for(lambda: is_stopped(app.pid), "the program to stop")
            with open(path, "rb") as file:
                good = file.read()
            with open(path, "r+b") as file:
                file.write(forge(good, change) if change else b"x" * len(good))
            return app.pid, [status(folder, app.pid, *more) for more in ((), ("--json",))], status(folder)
        finally:
            os.kill(app.pid, signal.SIGCONT)


@case
def characters_that_could_mislead_on_a_terminal_are_escaped(folder):
    evil = "\033[2J\u202eevil\n".encode() + b"\xff"

    def change(page):
        for at in (i.start() for i in re.finditer(b"null\0|scripted_app\0", bytes(page))):
            page[at:at + len(evil)] = evil

    pid, shown, listed = forged(folder, change)
    text, js = shown
    for done in (text, listed):
        assert done.returncode == 0 and "evil" in done.stdout, done
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", done.stdout) and "\\x1b[2J" in done.stdout, done.stdout
    (one,) = json.loads(js.stdout)
    assert one["program"].startswith("\\x1b[2J\\u202eevil\\n\\xff"), one
    assert all(ord(c) >= 0x20 or c == "\n" for c in js.stdout), js.stdout


@case
def files_that_are_not_pages_and_pages_of_other_versions_are_reported(folder):
    pid, (text, js), listed = forged(folder, None)
    for done in (text, js, listed):
        assert done.returncode == 1 and "it is not a status file" in done.stderr, done
    assert json.loads(js.stdout) == []
    pid, (text, js), listed = forged(folder, lambda page: struct.pack_into("<I", page, 8, 99))
    assert text.returncode == 1 and "it has version 99 of the layout; this `weir` knows version 4" in text.stderr, text


@case
def a_page_about_another_process_is_not_shown(folder):
    pid, (text, _), listed = forged(folder, lambda page: struct.pack_into("<q", page, 56, 1))
    assert text.returncode == 1 and listed.returncode == 1, (text, listed)
    pid, (text, _), _ = forged(folder, lambda page: struct.pack_into("<Q", page, 72, 1))  # the same pid with another start time
    assert text.returncode == 1 and "cannot be inspected" in text.stderr, text


@case
def a_process_of_another_pid_namespace_is_shown_as_such(folder):
    pid, (text, js), _ = forged(folder, lambda page: struct.pack_into("<Q", page, 64, 1))
    assert text.stdout.startswith(f"process {pid} (in another pid namespace), scripted_app"), text
    assert json.loads(js.stdout)[0]["foreign_pid"] is True


@case
def truncating_or_locking_the_file_affects_no_process(folder):
    import fcntl
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("add x 1")
        wait_for_status(folder, app.pid, lambda one: True)
        path = os.path.join(folder, "status", listing(folder)[0])
        with open(path, "rb") as reader:
            for _ in range(50):
                os.truncate(path, 0)
                try:
                    fcntl.flock(reader, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    raise AssertionError("the program has lost its lock")
                except BlockingIOError:
                    pass
                assert app.do("add x 1")["code"] == 0
        wait_for_status(folder, app.pid, lambda one: one["added"] == 51 and one["handlers"][0]["delivered"] == 51)
    assert app.program.returncode == 0 and without_waits(app.stderr_text()) == "", app.stderr_text()


# ---- The command --------------------------------------------------------------------------------------


@case
def every_prints_blocks_when_piped_and_ends_with_the_program(folder):
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("add x 1")
        wait_for_status(folder, app.pid, lambda one: True)
        shown = subprocess.Popen([WEIR, "status", "--folder", os.path.join(folder, "status"), "--every", "100ms", str(app.pid)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        blocks = 0
        while blocks < 3:
            line = shown.stdout.readline()
            assert line, "it ended"
            blocks += line.startswith("process ")
        app.end()
        rest, errors = shown.communicate(timeout=240)
        assert "\033" not in rest and shown.returncode == 0, rest
        assert errors == f"weir: process {app.pid} has ended, or can no longer be inspected\n", errors


@case
def every_starts_at_the_top_of_a_terminal(folder):
    with ScriptedApp(config_of(folder), folder) as app:
        app.do("add x 1")
        wait_for_status(folder, app.pid, lambda one: True)
        ours, theirs = pty.openpty()
        shown = subprocess.Popen([WEIR, "status", "--folder", os.path.join(folder, "status"), "--every=100ms", str(app.pid)],
                                 stdout=theirs, stderr=subprocess.DEVNULL, env=environment())
        os.close(theirs)
        seen = b""
        while seen.count(b"\033[H\033[Jprocess ") < 2:
            seen += os.read(ours, 4096)
        shown.terminate()
        shown.wait(timeout=240)
        os.close(ours)


@case
def usage_errors_exit_with_2_and_are_explained(folder):
    for arguments, words in ((("x",), '"x" is not a process id'), (("0",), '"0" is not a process id'), (("-1",), "invalid option"),
                             (("1", "2"), "at most one PID or URL is allowed"), (("--every=0s",), '--every: "0s" is not a duration from 100ms to 1d'),
                             (("--every", "1"), '"1" is not a duration'), (("--every", "2d"), "from 100ms to 1d"),
                             (("--every",), "requires an argument"), (("--look",), "unrecognized option"), (("-w",), "invalid option"),
                             (("99999999999999999999",), "is not a process id")):
        done = run(WEIR, "status", *arguments)
        assert done.returncode == 2 and words in done.stderr and "usage: weir status" in done.stderr, (arguments, done)
    done = run(WEIR, "status", "--folder", os.path.join(folder, "none"))
    assert done.returncode == 1 and "No such file or directory" in done.stderr, done


# ---- The table of all handlers --------------------------------------------------------------------------


def trouble_of(folder):
    config = config_of(folder, shutdown_timeout="100ms")
    config["handlers"] = {"bad": {"type": "file", "path": os.path.join(folder, "no", "file")},
                          **{f"good.{i}": {"type": "null"} for i in range(20)}}
    config["groups"] = {"my_app": list(config["handlers"])}
    return config


def await_trouble(folder, app):
    assert app.do("add x 1")["code"] == 0
    wait_for_status(folder, app.pid, lambda one: len(one["handlers"]) == 21 and all(
        handler["delivered"] == 1 or handler["retries"] for handler in one["handlers"]))


@case
def handlers_that_fail_come_first_in_the_table(folder):
    with ScriptedApp(trouble_of(folder), folder) as app:
        await_trouble(folder, app)
        shown = subprocess.Popen([WEIR, "status", "--watch", "--every", "100ms", "--folder", os.path.join(folder, "status")], stdout=subprocess.PIPE, text=True,
                                 env=environment(COLUMNS=160))
        lines = [shown.stdout.readline() for _ in range(24)]
        shown.kill()
        shown.communicate()
    assert re.fullmatch(r"\d\d:\d\d:\d\d  1 program, 21 handlers, 1 failing or dropping\n", lines[0]), lines[0]
    assert lines[1].split() == ["state", "handler", "program", "per", "s", "queued", "dropped", "last", "error"], lines[1]
    assert re.fullmatch(rf"failing +bad +scripted_app {app.pid} .* 1, 0 % +0  [\d.]+ m?s.*: open /.*\n", lines[2]), lines[2]
    assert [line.split()[:2] for line in lines[3:23]] == [["open", name] for name in sorted(f"good.{i}" for i in range(20))], lines
    assert max(map(len, lines)) <= 161 and lines[23] == "\n", "an empty line is between two tables"


@case
def the_table_of_handlers_fits_the_screen(folder):
    with ScriptedApp(trouble_of(folder), folder) as app:
        await_trouble(folder, app)
        for variables, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            leader, follower = pty.openpty()
            fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 70, 0, 0))
            shown = subprocess.Popen([WEIR, "status", "--watch", "--every", "100ms", "--folder", os.path.join(folder, "status")], stdout=follower,
                                     env=environment(**{"TERM": "xterm", **variables}))
            os.close(follower)
            text = ""
            while text.count("\033[J") < 2:
                text += os.read(leader, 4096).decode()
            shown.kill()
            shown.wait()
            os.close(leader)
            screen = text.split("\033[J")[1 if text.startswith("\033[H\033[J") else 0]
            assert ("\033[31mfailing" in screen) == is_coloured, screen
            lines = re.sub("\033\\[[0-9]*[a-zA-Z]", "", screen).split("\r\n")
            assert len(lines) == 10 and lines[8] == "and 15 more" and lines[9] == "" and max(map(len, lines)) <= 70, lines
            assert lines[2].startswith("failing") and "no/file" not in lines[3], lines


@case
def a_table_is_no_json():
    done = run(WEIR, "status", "--watch", "--json")
    assert done.returncode == 2 and "only one of --watch and --json is allowed" in done.stderr, done


main()
