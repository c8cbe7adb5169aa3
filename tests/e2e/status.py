"""`weir status` looks into running programs, and they do not notice."""

import json
import os
import pty
import re
import signal
import struct
import subprocess

from harness import ADDER, BUILD, WEIR, case, environment, main, run, skip_fork_under_sanitizers, start, wait_for

PUPPET = os.path.join(BUILD, "tests", "support", "scripted_app")


class Puppet:
    """A program that adds to group my_app what it is told."""

    def __init__(self, config, **env):
        self.process = subprocess.Popen([PUPPET], env=environment(WEIR_CONFIG=config, **env), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self.process.pid

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        if self.process.stdout.closed:
            return
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(timeout=60)
        self.stderr = self.process.stderr.read()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


def config_of(folder, **more):
    return {"settings": {"status": os.path.join(folder, "status"), **more}, "groups": {"my_app": "null"}}


def status(folder, *arguments, **env):
    return run(WEIR, "status", "--folder", os.path.join(folder, "status"), *arguments, **env)


def listing(folder):
    place = os.path.join(folder, "status")
    return sorted(os.listdir(place)) if os.path.exists(place) else []


def told(folder, pid):
    """What a process tells of itself, or None."""
    done = status(folder, pid, "--json")
    found = json.loads(done.stdout)
    assert len(found) <= 1 and done.returncode == (0 if found else 1), done
    return found[0] if found else None


def wait_until_told(folder, pid, condition):
    """Whatever it tells first that fulfils the condition; the ledgers hold in all of it."""
    seen = []

    def look():
        one = told(folder, pid)
        if one:
            seen.append(one)
            assert one["added"] == one["taken"] + one["in_rings"], one
            for handler in one["handlers"]:
                went = handler["delivered"] + sum(handler["dropped"].values()) + handler["queued"] + handler["spooled"]
                assert handler["offered"] + handler["recovered"] == went, handler
        return one and condition(one)

    wait_for(look, "the status of the program")
    return seen[-1]


# ---- What it shows ------------------------------------------------------------------------------------


@case
def a_program_without_the_setting_leaves_nothing_and_cannot_be_looked_into(folder):
    for settings in ({}, {"status": "off"}):
        with Puppet({"settings": settings, "groups": {"my_app": "null"}}, XDG_RUNTIME_DIR=folder) as puppet:
            assert puppet.tell("add x 1")["code"] == 0 and puppet.tell("flush 10000")["code"] == 0
            done = run(WEIR, "status", puppet.pid, XDG_RUNTIME_DIR=folder)
            assert done.returncode == 1 and f"process {puppet.pid} cannot be inspected" in done.stderr, done
            assert not os.path.exists(os.path.join(folder, "weir"))


@case
def before_the_first_value_that_goes_to_a_handler_there_is_no_file_and_no_thread(folder):
    with Puppet({**config_of(folder), "groups": {"other": "null"}}) as puppet:
        assert puppet.tell("add x 1")["code"] == 0
        assert os.listdir(f"/proc/{puppet.pid}/task") == [str(puppet.pid)]
        assert listing(folder) == []


@case
def values_handlers_and_totals_are_shown(folder):
    config = config_of(folder, shutdown_timeout="100ms")
    config["handlers"] = {"bad": {"type": "file", "path": os.path.join(folder, "no", "file")}}
    config["groups"] = {"my_app": ["null", "bad"]}
    with Puppet(config) as puppet:
        for i in range(10):
            puppet.tell(f"add x {i}")
        def is_settled(one):
            handlers = {handler["name"]: handler for handler in one["handlers"]}
            return one["added"] == 10 and handlers["null"]["delivered"] == 10 and handlers["bad"]["retries"] >= 1
        one = wait_until_told(folder, puppet.pid, is_settled)
        assert (one["pid"], one["program"], one["config"], one["foreign_pid"]) == (puppet.pid, "scripted_app", "WEIR_CONFIG", False), one
        assert one["refused"] == {} and one["to_nobody"] == 0 and one["user"] == os.geteuid(), one
        handlers = {handler["name"]: handler for handler in one["handlers"]}
        good, bad = handlers["null"], handlers["bad"]
        assert (good["type"], good["open"], good["failing"], good["delivered"]) == ("null", True, False, 10), good
        assert (bad["type"], bad["open"], bad["failing"], bad["queued"]) == ("file", False, True, 10), bad
        assert bad["last_error"] == f"open {folder}/no/file: No such file or directory" and bad["failing_s"] >= 0, bad
        assert bad["queue_bytes"] == 320 and bad["queue_bound"] == 2**20 and bad["retries"] >= 1, bad
        text = status(folder, puppet.pid).stdout
        for pattern in (rf"^process {puppet.pid}, scripted_app, up .*; as of .* ago; weir \d", r"^  config +WEIR_CONFIG, since 20",
                        r"^  added +10\b", r"^  null \(null\): open$", r"^  bad \(file\): retrying for ",
                        r"^    queue +10 values, 320B of 1MiB, oldest queued for ", r"^    last error  .* ago: open .*/no/file: No such"):
            assert re.search(pattern, text, re.M), (pattern, text)
        line = status(folder).stdout.splitlines()
        assert len(line) == 2 and re.fullmatch(rf" *{puppet.pid} +\S+ +.* s +10 +1 of 2 +scripted_app", line[1]), line


@case
def groups_that_nobody_listens_to_are_shown_by_their_number_of_values(folder):
    stray = subprocess.Popen([os.path.join(BUILD, "tests", "support", "unrouted_app"), "-g", "30", "-w", "heard"], text=True,
                             env=environment(WEIR_CONFIG={**config_of(folder), "groups": {"heard": "null"}}),
                             stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    one = wait_until_told(folder, stray.pid, lambda one: one["to_nobody"] == 30 * 31 // 2)
    assert [(g["name"], g["values"]) for g in one["groups_to_nobody"]] == [(f"g{i - 1}", i) for i in range(30, 20, -1)], one
    assert one["groups_to_nobody_count"] == 30
    assert re.search(r"^  unrouted +465: 30 of g29, 29 of g28, .*, and 20 more groups$", status(folder, stray.pid).stdout, re.M)
    stray.stdin.close()
    assert stray.wait(timeout=60) == 0


@case
def rates_are_of_the_time_between_two_snapshots(folder):
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("add x 1")
        one = wait_until_told(folder, puppet.pid, lambda one: one["added_per_s"] == 0 and one["handlers"][0]["delivered_per_s"] == 0)
        assert one["snapshots"] > 1, "at first there is nothing to compare with"
    adder = start(ADDER, "-q", "-n", 10**9, "-p", 1000000, WEIR_CONFIG=config_of(folder))
    one = wait_until_told(folder, adder.pid, lambda one: one["added_per_s"] and one["handlers"][0]["delivered_per_s"])
    adder.kill()
    adder.communicate(timeout=60)
    assert one["added_per_s"] < 10**6 and one["handlers"][0]["dropped_per_s"] == 0, one


# ---- Its life -----------------------------------------------------------------------------------------


@case
def the_file_goes_with_the_program(folder):
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("add x 1")
        # it has a name with a leading dot until it is complete
        wait_for(lambda: any(not name.startswith(".") for name in listing(folder)), "the file")
        (name,) = listing(folder)
        assert re.fullmatch(rf"{puppet.pid}\.[0-9a-f]{{8}}\.status", name), name
        assert os.stat(os.path.join(folder, "status", name)).st_mode & 0o777 == 0o600
    assert puppet.stderr == "" and puppet.process.returncode == 0
    assert listing(folder) == []
    done = status(folder)
    assert done.returncode == 1 and "no process found" in done.stderr and done.stdout == "", done


@case
def shutdown_removes_it_while_the_program_goes_on(folder):
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("add x 1")
        wait_for(lambda: listing(folder), "the file")
        assert puppet.tell("shutdown 10000")["code"] == 0
        assert listing(folder) == [] and told(folder, puppet.pid) is None


@case
def what_a_killed_program_leaves_is_not_shown_and_goes_with_the_next_one(folder):
    with Puppet(config_of(folder)) as killed:
        killed.tell("add x 1")
        wait_until_told(folder, killed.pid, lambda one: True)
        os.kill(killed.pid, signal.SIGKILL)
        killed.process.wait(timeout=60)
    (left,) = listing(folder)
    assert status(folder).returncode == 1 and told(folder, killed.pid) is None
    assert listing(folder) == [left], "who looks changes nothing"
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("add x 1")
        wait_until_told(folder, puppet.pid, lambda one: True)
        assert left not in listing(folder) and len(listing(folder)) == 1, listing(folder)


@case
def several_programs_share_a_folder(folder):
    with Puppet(config_of(folder)) as a, Puppet(config_of(folder)) as b:
        for i, puppet in enumerate((a, b)):
            puppet.tell(f"event {i + 5}")
            wait_until_told(folder, puppet.pid, lambda one, i=i: one["added"] == i + 5)
        found = json.loads(status(folder, "--json").stdout)
        assert sorted(one["pid"] for one in found) == sorted((a.pid, b.pid)), found


def holds(pid, name):
    place = f"/proc/{pid}/fd"

    def target(fd):
        try:
            return os.readlink(os.path.join(place, fd))
        except FileNotFoundError:  # closed since
            return ""

    return any(name in target(fd) for fd in os.listdir(place))


@case
def a_forked_child_has_its_own_and_its_parents_is_unaffected(folder):
    skip_fork_under_sanitizers()
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("event 3")
        wait_until_told(folder, puppet.pid, lambda one: one["added"] == 3)
        idle = puppet.tell("fork")["code"]  # adds nothing, and outlives its parent
        (name,) = listing(folder)
        wait_for(lambda: not holds(idle, name), "the child to have let go")
        puppet.tell("event 4")
        wait_until_told(folder, puppet.pid, lambda one: one["added"] == 7)
        assert told(folder, idle) is None
        os.kill(puppet.pid, signal.SIGKILL)
        puppet.process.wait(timeout=60)
        assert told(folder, puppet.pid) is None
    forking = start(os.path.join(BUILD, "examples", "prefork"), 3, WEIR_CONFIG={**config_of(folder), "groups": {"*": "null"}})
    assert forking.communicate(timeout=60)[1] == "" and forking.returncode == 0
    wait_for(lambda: not [n for n in listing(folder) if n != name], "the files of the workers to go")


@case
def the_setting_follows_the_configuration(folder):
    path = os.path.join(folder, "weir.json")

    def configure(place):
        config = {"settings": {"status": place} if place else {}, "groups": {"my_app": "null"}}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)

    a, b = (os.path.join(folder, name) for name in ("status", "other"))
    configure(a)
    with Puppet(path) as puppet:
        puppet.tell("add x 1")
        wait_for(lambda: listing(folder), "the file")
        configure(b)
        assert puppet.tell("reload")["code"] == 0
        wait_for(lambda: not os.listdir(a) and os.path.exists(b) and os.listdir(b), "the file to move")
        wait_for(lambda: run(WEIR, "status", "--folder", b, puppet.pid).returncode == 0, "the new page")
        assert json.loads(run(WEIR, "status", "--folder", b, puppet.pid, "--json").stdout)[0]["config"] == path
        configure(None)
        assert puppet.tell("reload")["code"] == 0
        wait_for(lambda: not os.listdir(b), "the file to go")
        configure(a)
        assert puppet.tell("reload")["code"] == 0
        wait_for(lambda: listing(folder), "the file to be back")
        os.unlink(os.path.join(a, listing(folder)[0]))
        wait_for(lambda: listing(folder), "a removed file to be made anew")


@case
def auto_is_the_logins_folder(folder):
    with Puppet({"settings": {"status": "auto"}, "groups": {"my_app": "null"}}, XDG_RUNTIME_DIR=folder) as puppet:
        puppet.tell("add x 1")
        wait_for(lambda: os.path.exists(os.path.join(folder, "weir")) and os.listdir(os.path.join(folder, "weir")), "the file")
        wait_for(lambda: run(WEIR, "status", puppet.pid, XDG_RUNTIME_DIR=folder).returncode == 0, "the page")
        assert os.stat(os.path.join(folder, "weir")).st_mode & 0o777 == 0o700
        listed = run(WEIR, "status", XDG_RUNTIME_DIR=folder)
        assert listed.returncode == 0 and f"{puppet.pid} " in listed.stdout, listed


@case
def a_folder_that_cannot_be_used_is_said_once_and_the_program_goes_on(folder):
    place = os.path.join(folder, "status")
    os.mkdir(place)
    os.chmod(place, 0o777)
    with Puppet(config_of(folder, shutdown_timeout="1s")) as puppet:
        puppet.tell("event 5")
        wait_for(lambda: "weir:status" in threads_of(puppet.pid), "the thread")
        assert puppet.tell("flush 10000")["code"] == 0
    assert puppet.stderr == (f"weir: warning: settings.status: {place}: refused: others may write this folder (mode 0777); "
                             "chmod go-w or +t helps; the status file is not written\n"), puppet.stderr
    assert os.listdir(place) == []


def threads_of(pid):
    names = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
            names.append(file.read().strip())
    return names


@case
def a_wrong_setting_is_refused_with_its_place(folder):
    for value, words in (("run/weir", 'must be off, auto, or the absolute path of a folder, got "run/weir"'),
                         ("", 'must be off, auto, or the absolute path of a folder, got ""'), (True, "true is not a string")):
        done = run(WEIR, "check", WEIR_CONFIG={"settings": {"status": value}})
        assert done.returncode == 1 and f"settings.status: {words}" in done.stderr, done


@case
def a_handler_that_hangs_is_shown_while_the_program_ends(folder):
    config = config_of(folder, shutdown_timeout="20s")
    config["handlers"] = {"stuck": {"type": "blocker", "in": "emit"}}
    config["groups"] = {"my_app": "stuck"}
    with Puppet(config) as puppet:
        puppet.tell("add x 1")
        wait_until_told(folder, puppet.pid, lambda one: True)
        puppet.process.stdin.close()  # it ends now, if it can
        one = wait_until_told(folder, puppet.pid, lambda one: (one["handlers"][0]["busy_s"] or 0) > 1)
        assert one["handlers"][0]["queued"] == 1, one
        assert re.search(r"^  stuck \(blocker\): .*busy for ", status(folder, puppet.pid).stdout, re.M)
        puppet.process.kill()
        puppet.process.wait(timeout=60)
        puppet.process.stdin = open(os.devnull, "w", encoding="utf-8")


# ---- What others put there ----------------------------------------------------------------------------


def crc(data):
    """CRC-32C, bit by bit."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def forge(page, change):
    """A page with other bytes, and a checksum that is right."""
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
    """Runs a program, and has `weir status` look at a forged copy of its page, which the program's own lock makes look alive."""
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("add x 1")
        wait_until_told(folder, puppet.pid, lambda one: True)
        (name,) = listing(folder)
        path = os.path.join(folder, "status", name)
        os.kill(puppet.pid, signal.SIGSTOP)
        try:
            wait_for(lambda: is_stopped(puppet.pid), "the program to stop")
            with open(path, "rb") as file:
                good = file.read()
            with open(path, "r+b") as file:
                file.write(forge(good, change) if change else b"x" * len(good))
            return puppet.pid, [status(folder, puppet.pid, *more) for more in ((), ("--json",))], status(folder)
        finally:
            os.kill(puppet.pid, signal.SIGCONT)


@case
def what_would_disguise_others_on_a_terminal_is_shown_escaped(folder):
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
def a_page_that_is_none_or_of_another_version_is_said(folder):
    pid, (text, js), listed = forged(folder, None)
    for done in (text, js, listed):
        assert done.returncode == 1 and "it is not a status file" in done.stderr, done
    assert json.loads(js.stdout) == []
    pid, (text, js), listed = forged(folder, lambda page: struct.pack_into("<I", page, 8, 99))
    assert text.returncode == 1 and "it has version 99 of the layout; this `weir` knows version 1" in text.stderr, text


@case
def a_page_that_tells_of_another_process_is_not_believed(folder):
    pid, (text, _), listed = forged(folder, lambda page: struct.pack_into("<q", page, 40, 1))
    assert text.returncode == 1 and listed.returncode == 1, (text, listed)
    pid, (text, _), _ = forged(folder, lambda page: struct.pack_into("<Q", page, 56, 1))  # the same number, but started at another time
    assert text.returncode == 1 and "cannot be inspected" in text.stderr, text


@case
def a_process_of_another_pid_namespace_is_shown_as_such(folder):
    pid, (text, js), _ = forged(folder, lambda page: struct.pack_into("<Q", page, 48, 1))
    assert text.stdout.startswith(f"process {pid} (in another pid namespace), scripted_app"), text
    assert json.loads(js.stdout)[0]["foreign_pid"] is True


@case
def whoever_cuts_or_locks_the_file_disturbs_nobody(folder):
    import fcntl
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("add x 1")
        wait_until_told(folder, puppet.pid, lambda one: True)
        path = os.path.join(folder, "status", listing(folder)[0])
        with open(path, "rb") as reader:
            for _ in range(50):
                os.truncate(path, 0)
                try:
                    fcntl.flock(reader, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    raise AssertionError("the program has lost its lock")
                except BlockingIOError:
                    pass
                assert puppet.tell("add x 1")["code"] == 0
        wait_until_told(folder, puppet.pid, lambda one: one["added"] == 51 and one["handlers"][0]["delivered"] == 51)
    assert puppet.process.returncode == 0 and puppet.stderr == "", puppet.stderr


# ---- The command --------------------------------------------------------------------------------------


@case
def watch_shows_blocks_when_piped_and_ends_with_the_program(folder):
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("add x 1")
        wait_until_told(folder, puppet.pid, lambda one: True)
        watch = subprocess.Popen([WEIR, "status", "--folder", os.path.join(folder, "status"), "--watch=0.1", str(puppet.pid)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        blocks = 0
        while blocks < 3:
            line = watch.stdout.readline()
            assert line, "it ended"
            blocks += line.startswith("process ")
        puppet.end()
        rest, said = watch.communicate(timeout=60)
        assert "\033" not in rest and watch.returncode == 0, rest
        assert said == f"weir: process {puppet.pid} has ended, or can no longer be inspected\n", said


@case
def watch_begins_at_the_top_of_a_terminal(folder):
    with Puppet(config_of(folder)) as puppet:
        puppet.tell("add x 1")
        wait_until_told(folder, puppet.pid, lambda one: True)
        ours, theirs = pty.openpty()
        watch = subprocess.Popen([WEIR, "status", "--folder", os.path.join(folder, "status"), "-w0.1", str(puppet.pid)],
                                 stdout=theirs, stderr=subprocess.DEVNULL, env=environment())
        os.close(theirs)
        seen = b""
        while seen.count(b"\033[H\033[Jprocess ") < 2:
            seen += os.read(ours, 4096)
        watch.terminate()
        watch.wait(timeout=60)
        os.close(ours)


@case
def wrong_use_exits_with_2_and_says_how(folder):
    for arguments, words in ((("x",), '"x" is not a process id'), (("0",), '"0" is not a process id'), (("-1",), "invalid option"),
                             (("1", "2"), "at most one PID is allowed"), (("--watch=0",), "is not a number of seconds"),
                             (("--watch=x",), "is not a number of seconds"), (("99999999999999999999",), "is not a process id")):
        done = run(WEIR, "status", *arguments)
        assert done.returncode == 2 and words in done.stderr and "usage: weir status" in done.stderr, (arguments, done)
    done = run(WEIR, "status", "--folder", os.path.join(folder, "none"))
    assert done.returncode == 1 and "No such file or directory" in done.stderr, done


main()
