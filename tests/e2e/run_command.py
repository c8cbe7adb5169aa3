"""`weir run` runs a command as it would run without it, measures it, and counts its metrics."""

import fcntl
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios

from harness import (ADDER, BUILD, WEIR, Skip, assert_ledgers, case, environment, lines_of, main, run, skip_fork_under_sanitizers, start,
                     wait_for, whole_lines)

STEPS = os.path.join(BUILD, "tests", "support", "steps")
PATIENCE_S = 240


class Run:
    """A finished `weir run`: its table, and what else it wrote to standard error."""

    def __init__(self, *arguments, folder=None, stdin=subprocess.DEVNULL, cwd=None, **env):
        done = subprocess.run([WEIR, "run", *map(str, arguments)], stdin=stdin, cwd=cwd, capture_output=True, timeout=PATIENCE_S,
                              env=environment(COLUMNS=200, **({"TMPDIR": folder} if folder else {}), **env))
        self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        self.text = done.stderr.decode(errors="replace")
        rows = re.findall(r"^  (\S+?)((?: +[\d.,e+-]+){5})(?:   .*)?$", self.text, re.M)
        self.counts = {name: int(numbers.split()[0].replace(",", "")) for name, numbers in rows}

    def expect(self, status=0):
        assert self.status == status, (self.status, self.text)
        return self

    def figure(self, label):
        match = re.search(rf"^  {label} +(.*)$", self.text, re.M)
        assert match, (label, self.text)
        return match[1]


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def private(folder):
    """A folder for temporary files, to see whether any are left."""
    path = os.path.join(folder, "tmp")
    os.makedirs(path, exist_ok=True)
    return path


def own_config(folder):
    """Of the command: its values go to the file "own"."""
    handler = {"type": "file", "path": os.path.join(folder, "own"), "format": "json", "block_timeout": "1h"}
    return {"settings": {"shutdown_timeout": "2m"}, "handlers": {"own": handler}, "groups": {"*": "own"}}


def python(text):
    return [sys.executable, "-c", text]


# ---- Status, streams, signals ---------------------------------------------------------------------------


@case
def the_exit_status_is_that_of_the_command(folder):
    assert Run("true").expect(0).stdout == b""
    Run("--", "sh", "-c", "exit 3").expect(3)
    assert "exit status 3" in Run("sh", "-c", "exit 3", "-q", "--nonsense").text, "options behind the command are the command's"
    missing = Run("--", "nonesuch").expect(127)
    assert missing.text == "weir: nonesuch: No such file or directory\n", missing.text
    Run(folder).expect(126)


@case
def what_a_shell_script_adds_is_in_the_table(folder):
    script = " && ".join(f"{WEIR} emit -g train loss={number} 'note=2'" for number in (1, 2, 4))
    done = Run("--", "sh", "-c", script, folder=private(folder)).expect(0)
    assert re.search(r"train\.loss +3 +2\.33", done.text), done.text


@case
def if_weir_fails_the_command_does_not_run(folder):
    mark = os.path.join(folder, "mark")
    bad = write(folder, "bad.json", {"groups": {"*": "nonesuch"}})
    for arguments, problem in ((["--nonsense"], "nonsense"), (["--every", "5"], '--every: "5" is not a duration from 10ms to 1d'),
                               (["--progress=often"], "allowed: always, auto"), (["-c", bad], "nonesuch"), (["-c", mark], mark)):
        done = Run(*arguments, "--", "touch", mark, folder=private(folder)).expect(125)
        assert problem in done.text, done.text
        assert not os.path.exists(mark) and os.listdir(private(folder)) == [], arguments
    assert "an option must be UTF-8" in Run("--x\x01", "true").expect(125).text
    assert Run("--", "true", "-\x01").expect(0)
    assert "a command is missing" in Run().expect(125).text
    assert "a command is missing" in Run("--").expect(125).text


@case
def a_command_that_a_signal_has_killed_ends_weir_run_by_the_same_signal():
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGUSR1, signal.SIGSEGV):
        done = Run(*python(f"import os; os.kill(os.getpid(), {int(number)})")).expect(-number)
        assert f"killed by signal {int(number)} (" in done.text, done.text


# The next signal may come while the line about the last one is written: then `print` fails, since it cannot be called within itself.
CATCHER = """
import os, signal, sys
numbers = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2]
def catch(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
for number in numbers:
    signal.signal(number, catch)
os.write(1, b"ready\\n")
sys.stdin.readline()
sys.exit(7)
"""


@case
def signals_are_passed_on():
    program = start(WEIR, "run", *python(CATCHER), stdin=subprocess.PIPE)
    assert program.stdout.readline() == "ready\n"
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        program.send_signal(number)
        assert program.stdout.readline() == number.name + "\n"
    out, log = program.communicate("\n", timeout=PATIENCE_S)
    assert program.returncode == 7 and out == "" and "exit status 7" in log, (program.returncode, out, log)


@case
def a_signal_ends_the_wait_for_destinations(folder):
    server = socket.create_server(("127.0.0.1", 0))  # which answers nothing
    handler = {"type": "http", "url": f"http://127.0.0.1:{server.getsockname()[1]}/", "timeout": "10m"}
    config = {"settings": {"shutdown_timeout": "30m"}, "handlers": {"push": handler}, "groups": {"*": "push"}}
    mark = os.path.join(folder, "mark")
    program = start(WEIR, "run", "-c", write(folder, "c.json", config), "--", "sh", "-c", f"trap '' TERM; : > {mark}; exit 3")
    try:
        wait_for(lambda: os.path.exists(mark), "the command")
        wait_for(lambda: program.poll() is not None or program.send_signal(signal.SIGTERM), "the end of weir run")
    finally:
        program.kill()
        server.close()
    _, log = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 3 and "what is queued was not delivered" in log, (program.returncode, log)


TERMINAL = """
import os, signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda number, frame: got.append(number))
assert os.getpgrp() == os.getpgid(os.getppid()) and os.tcgetpgrp(0) == os.getpgrp() and os.isatty(0) and os.isatty(1) and os.isatty(2)
print("ready", flush=True)
while not got:
    time.sleep(0.01)
time.sleep(0.3)
print("got", len(got), flush=True)
"""


def read_terminal(terminal, end, text=""):
    while end not in text:
        try:
            text += os.read(terminal, 4096).decode()
        except OSError:  # it is closed
            break
    return text


@case
def at_a_terminal_the_command_is_in_the_foreground_and_gets_its_signals_once():
    child, terminal = pty.fork()
    if child == 0:
        os.execve(WEIR, [WEIR, "run", *python(TERMINAL)], environment(TERM="xterm", LANG="C.UTF-8"))
    text = read_terminal(terminal, "ready")
    os.write(terminal, b"\x03")
    text = read_terminal(terminal, "page faults", text)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text
    os.close(terminal)
    assert "got 1\r\n" in text and "\033[1m" in text, text


@case
def colours_and_width_follow_the_terminal():
    for variables, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, (50).to_bytes(2, sys.byteorder).rjust(4, b"\0") + b"\0" * 4)
        program = subprocess.Popen([WEIR, "run", "--", ADDER, "-q", "-n", "2000", "-g", "a_rather_long.name.of.a.group.that.is.cut"],
                                   stdin=subprocess.DEVNULL, stderr=follower, env=environment(**{"TERM": "xterm", "LANG": "C.UTF-8", **variables}))
        os.close(follower)
        text = read_terminal(leader, "no such text")
        assert program.wait(PATIENCE_S) == 0, text
        os.close(leader)
        assert ("\033[1m" in text) == is_coloured, text
        rows = re.sub("\033.*?m", "", text).split("\r\n")
        assert len(rows) > 8 and max(map(len, rows)) <= 50 and "a_rather" in text and "..." in text, text


@case
def streams_are_untouched(folder):
    data = os.urandom(300000)
    path = os.path.join(folder, "data")
    with open(path, "wb") as file:
        file.write(data)
    with open(path, "rb") as file:
        done = Run("-q", "--", "sh", "-c", "cat; exec >&2; printf 'a\\0\\377\\n'; cat <&-", stdin=file)
    assert done.stdout == data and done.stderr.startswith(b"a\0\377\n"), (len(done.stdout), done.stderr)
    assert b"weir" not in done.stderr and b"duration" not in done.stderr, done.stderr


@case
def closed_streams_stay_closed(folder):
    script = "import os, sys; sys.exit(sum(1 << fd for fd in range(3) if os.path.exists(f'/proc/self/fd/{fd}')))"
    done = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", WEIR, "run", *python(script)], env=environment(TMPDIR=private(folder)),
                          timeout=PATIENCE_S, check=False)
    bare = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *python(script)], timeout=PATIENCE_S, check=False)
    assert done.returncode == bare.returncode, (done.returncode, bare.returncode)
    assert os.listdir(private(folder)) == []


# ---- Values ---------------------------------------------------------------------------------------------


@case
def nothing_is_needed_and_nothing_is_left_behind(folder):
    done = subprocess.run([WEIR, "run", "--", "/bin/true"], env={"WEIR_PLUGIN_PATH": environment()["WEIR_PLUGIN_PATH"],
                                                                "TMPDIR": private(folder)}, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0 and b"exit status 0" in done.stderr and b"metric" not in done.stderr, done
    assert os.listdir(private(folder)) == []


@case
def values_of_a_command_without_configuration_are_counted(folder):
    done = Run("--", ADDER, "-n", 5000, "-t", 3, folder=private(folder), WEIR_LOG="info").expect()
    assert_ledgers(json.loads(done.stdout))
    assert done.counts == {f"my_app.t{i}": 5000 for i in range(3)}, done.text
    own = re.search(r'ledger: handler "WEIR_TEE:weir run": (\d+) offered, (\d+) delivered, 0 dropped, 0 queued', done.text)
    assert own and own[1] == own[2] and int(own[1]) > 15000, done.text
    assert os.listdir(private(folder)) == []


@case
def the_commands_own_destinations_get_all_of_it_too(folder):
    done = Run("--", ADDER, "-n", 20000, folder=private(folder), WEIR_CONFIG=own_config(folder)).expect()
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert all(stats["delivered"] == stats["offered"] == 20000 for stats in report["handlers"].values()), report
    assert [json.loads(line)["value"] for line in lines_of(os.path.join(folder, "own"))] == list(range(20000))
    assert done.counts == {"my_app.t0": 20000}, done.text


@case
def a_program_of_the_examples_is_measured(folder):
    requests = write(folder, "log", "GET /index 200\nGET /x/y 404\nnonsense\n" * 1000)
    with open(requests, "rb") as file:
        done = Run("--", os.path.join(BUILD, "examples", "count"), stdin=file, folder=private(folder), WEIR_CONFIG=own_config(folder)).expect()
    expected = {}
    for line in map(json.loads, lines_of(os.path.join(folder, "own"))):
        labels = ",".join(f"{key}={value}" for key, value in sorted(line.get("labels", {}).items()))
        name = f"{line['group']}.{line['name']}" + (f"{{{labels}}}" if labels else "")
        expected[name] = expected.get(name, 0) + 1
    assert sum(expected.values()) >= 3000 and done.counts == expected, (done.text, expected)
    assert os.listdir(private(folder)) == []


@case
def forked_and_started_processes_are_counted(folder):
    skip_fork_under_sanitizers()
    done = Run("--", "sh", "-c", '"$0" add a x 1 fork add a x 2 fork add b x 3; "$0" add c x 4', STEPS, folder=private(folder)).expect()
    assert done.counts == {"a.x": 2, "b.x": 1, "c.x": 1}, done.text


@case
def a_command_that_closes_all_descriptors_is_counted(folder):
    done = Run("--", STEPS, "add", "a", "x", 1, "close", "add", "a", "x", 2, folder=private(folder)).expect()
    assert done.counts == {"a.x": 2}, done.text


@case
def labels_units_and_strange_values_are_shown(folder):
    steps = [word for value in ("nan", "inf", "-inf", "1e300", "-1e-300", "0") for word in ("add", "gr\u00f6\u00dfe", "x", value)]
    done = Run("--", STEPS, *steps, folder=private(folder)).expect()
    assert done.counts == {"gr\u00f6\u00dfe.x": 6}, done.text


@case
def without_room_for_the_pipe_the_command_runs_all_the_same(folder):
    for place in (os.path.join(folder, "missing"), "/proc"):
        done = Run("--", ADDER, "-n", 10, folder=place, WEIR_CONFIG=own_config(folder)).expect()
        assert f"weir: {place}: " in done.text and "; the command's values are not counted\n" in done.text, done.text
        assert done.counts == {} and len(lines_of(os.path.join(folder, "own"))) == 10, done.text
        os.remove(os.path.join(folder, "own"))


@case
def a_full_folder_for_temporary_files_stops_no_command(folder):
    place = private(folder)
    for inodes in (1, 2):  # there is no room for the folder; for the pipe in it
        script = f'mount -t tmpfs -o size=4k,nr_inodes={inodes} none "$0" 2>&1 || exit 99; "$@"; status=$?; ls "$0"; exit $status'
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, place, WEIR, "run", "--", ADDER, "-q", "-n", "10"], text=True,
                              capture_output=True, timeout=PATIENCE_S, check=False, env=environment(TMPDIR=place, WEIR_CONFIG=own_config(folder)))
        if done.returncode == 99 or "unshare" in done.stderr:
            raise Skip("nothing can be mounted here: " + done.stdout + done.stderr)
        assert done.returncode == 0 and done.stdout == "", done
        assert f"weir: {place}: No space left on device; the command's values are not counted\n" in done.stderr, done.stderr
        assert len(lines_of(os.path.join(folder, "own"))) == 10
        os.remove(os.path.join(folder, "own"))


@case
def strange_names_of_commands_and_folders_work(folder):
    place = os.path.join(folder, 'a "$b" ${x} \u00e4*')
    os.makedirs(place)
    program = os.path.join(place, "r\u00fcn $1 ${HOME} \x01")
    os.symlink(ADDER, program)
    done = Run("--", program, "-n", 10, folder=place).expect()
    assert done.counts == {"my_app.t0": 10} and "\x01" not in done.text, done.text
    assert os.listdir(place) == [os.path.basename(program)]


@case
def a_command_that_is_killed_in_the_middle_is_counted_so_far(folder):
    program = subprocess.Popen([WEIR, "run", "--", ADDER, "-q", "-n", "100000000", "-p", "100000"], stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=environment(TMPDIR=private(folder), COLUMNS=100), text=True)
    children = f"/proc/{program.pid}/task/{program.pid}/children"
    wait_for(lambda: os.listdir(private(folder)) and open(children, encoding="ascii").read().split(), "the command")
    child = int(open(children, encoding="ascii").read().split()[0])
    wait_for(lambda: cpu_ticks(child) > 50, "some values")  # starting takes some of them
    os.kill(child, signal.SIGKILL)
    log = program.communicate(timeout=PATIENCE_S)[1]
    assert program.returncode == -signal.SIGKILL and re.search(r"my_app\.t0 +[\d,]+", log), log
    assert os.listdir(private(folder)) == []


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@case
def what_outlives_the_command_neither_delays_it_nor_hangs(folder):
    mark = os.path.join(folder, "mark")
    late = f'(while ! [ -e "{mark}" ]; do sleep 0.05; done; exec "$0" add late x 1 >"{mark}.out" 2>&1) >/dev/null 2>&1 & "$0" add early x 1'
    done = Run("--", "sh", "-c", late, STEPS, folder=private(folder), WEIR_CONFIG=own_config(folder)).expect()
    assert done.counts == {"early.x": 1}, done.text
    assert os.listdir(private(folder)) == []
    write(folder, "mark", "")
    wait_for(lambda: whole_lines(os.path.join(folder, "own")) == 2, "the late value")
    assert os.listdir(private(folder)) == []


@case
def a_run_within_a_run_counts_in_both(folder):
    outer = write(folder, "tee", {"handlers": {"mine": {**own_config(folder)["handlers"]["own"]}}, "groups": {"*": "mine", "b": []}})
    done = Run("--", WEIR, "run", "--", STEPS, "add", "a", "x", 1, "add", "b", "x", 2, folder=private(folder), WEIR_TEE=outer).expect()
    tables = re.findall(r"^  (\w)\.x +(\d+)", done.text, re.M)
    assert tables == [("a", "1"), ("b", "1")] * 2, done.text
    assert [json.loads(line)["group"] for line in lines_of(os.path.join(folder, "own"))] == ["a"]


@case
def a_given_configuration_gets_what_is_measured_and_the_values(folder):
    config = {"sources": {"in": {"type": "fifo", "path": os.path.join(folder, "never")}}, "settings": {"shutdown_timeout": "2m", "reload": "1s"},
              "handlers": {"all": {"type": "file", "path": os.path.join(folder, "all"), "format": "json", "block_timeout": "1h"}},
              "groups": {"*": "all", "silent": []}}
    done = Run("-c", write(folder, "config", config), "--every", "50ms", "--", STEPS, "add", "a", "x", 1, "add", "silent", "x", 2,
               folder=private(folder)).expect()
    lines = [json.loads(line) for line in lines_of(os.path.join(folder, "all"))]
    assert {line["group"] for line in lines} == {"a", "process", "system"}, {line["group"] for line in lines}
    assert all(line["labels"]["command"] == "steps" for line in lines if line["group"] != "a")
    assert done.counts == {"a.x": 1, "silent.x": 1}, done.text
    assert not os.path.exists(os.path.join(folder, "never"))


BURNER = """
import os, subprocess, sys
def burn(seconds):
    start = os.times().user
    while os.times().user - start < seconds:
        sum(range(1000))
burn(0.4)
subprocess.run([sys.executable, "-c", "import os\\nwhile os.times().user < 0.4: pass"], check=True)
pid = os.fork()
if pid == 0:
    burn(0.3)
    os._exit(0)
os.waitpid(pid, 0)
times = os.times()
print(times.user + times.system + times.children_user + times.children_system, flush=True)
os._exit(0)  # the interpreter's own end takes longest on slow machines
"""


@case
def processor_time_is_that_of_the_whole_tree(folder):
    config = {"handlers": {"all": {"type": "file", "path": os.path.join(folder, "all"), "format": "json", "block_timeout": "1h"}},
              "groups": {"process": "all"}}
    done = Run("-c", write(folder, "config", config), "--every", "100ms", *python(BURNER)).expect()
    used = float(done.stdout)
    user, system = map(float, re.match(r"([\d.]+) s user, ([\d.]+) s system", done.figure("processor")).groups())
    assert abs(user + system - used) <= 0.02 * used + 0.1, (done.text, used)
    measured = sum(json.loads(line)["value"] for line in lines_of(os.path.join(folder, "all")) if '"cpu.time"' in line)
    assert abs(measured - used) <= 0.02 * used + 0.15, (measured, used)


@case
def progress_is_shown_on_request(folder):
    done = Run("--progress=always", "--", STEPS, "add", "a", "x", 1, folder=private(folder)).expect()
    assert done.counts == {"a.x": 1}
    waiting = write(folder, "wait.sh", 'while ! [ -e "$1" ]; do sleep 0.05; done')
    program = start(WEIR, "run", "--progress=always", "--", "sh", waiting, os.path.join(folder, "mark"))
    line = program.stderr.readline()
    assert re.match(r"[\d.]+ s; processor [\d.]+ s; memory [\d.]+ [KM]?i?B; 0 values of 0 metrics\n", line), line
    write(folder, "mark", "")
    program.communicate(timeout=PATIENCE_S)
    quiet = Run("-q", "--progress", "--", "true")
    assert quiet.stderr == b"", quiet.text


@case
def a_report_has_the_metrics_of_the_command_and_the_machine(folder):
    page, details = os.path.join(folder, "r.html"), os.path.join(folder, "r.json")
    done = Run("-q", "--every", "20ms", "--report", page, "--report", details, "--", ADDER, "-n", 5000, "-t", 2, "-p", 100000,
               folder=private(folder)).expect()
    unexpected = [line for line in done.text.splitlines() if "shutting down: waiting" not in line]  # that is a slow machine
    assert not unexpected and json.loads(done.stdout)["process"]["added"] == 10000, done.text
    (node,) = json.loads("".join(lines_of(details))).values()
    counts = {(row["group"], row["name"]): row["count"] for row in node["metrics"] if row["group"] == "my_app"}
    assert counts == {("my_app", "t0"): 5000, ("my_app", "t1"): 5000}, counts
    assert {"system", "process"} <= {row["group"] for row in node["metrics"]}
    assert node["reports"] and node["figures"]["cpu_avg_utilization_pct"] is not None
    text = "".join(lines_of(page))
    assert "adder -n 5000 -t 2 -p 100000</h1>" in text.replace("</bdi>", "") and "my_app.t1" in text and "Processors" in text
    assert os.listdir(private(folder)) == []


@case
def a_report_tells_how_the_command_has_ended(folder):
    for script, figure in (("exit 3", ("exit.code", 3)), ("true", ("exit.code", 0)), ("kill -KILL $$", ("exit.signal", signal.SIGKILL))):
        details = os.path.join(folder, "r.json")
        done = Run("-q", "--report", details, "--", "sh", "-c", script)
        (node,) = json.loads("".join(lines_of(details))).values()
        ends = [(row["name"], row["last"]) for row in node["metrics"] if row["group"] == "process" and row["name"].startswith("exit.")]
        assert ends == [figure], (ends, done.text)


IMPOSTOR = [STEPS, "add", "system", "cpu.utilization", 77]


@case
def values_of_the_command_are_not_mistaken_for_those_of_the_machine(folder):
    details = os.path.join(folder, "r.json")
    Run("--every", "20ms", "--report", details, "--", "sh", "-c", '"$@"; sleep 0.3; "$@"', "sh", *IMPOSTOR).expect()
    (node,) = json.loads("".join(lines_of(details))).values()
    assert {row["max"] for row in node["metrics"] if row["name"] == "cpu.utilization" and not row["labels"]} == {77}
    assert node["reports"] and all(report["cpu_pct_per_cpu_avg"] <= 100 for report in node["reports"])


@case
def a_report_changes_no_exit_status_and_no_output(folder):
    details = os.path.join(folder, "r.json")
    done = Run("-q", "--report", "r.json", *python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(9)"), cwd=folder)
    assert (done.expect(9).stdout, done.stderr) == (b"out\n", b"err\n")
    assert os.path.exists(details)
    later = os.path.join(folder, "later")
    os.makedirs(later)
    done = Run("-q", "--report", os.path.join(later, "r.json"), "rmdir", later).expect()
    assert "No such file or directory" in done.text, done.text
    # A handler that opened before the folder went loses its report at the end, a later one its values.
    assert "the report is lost" in done.text or "not delivered in time" in done.text, done.text


@case
def a_report_that_cannot_be_written_is_refused_before_the_command_runs(folder):
    mark, there = os.path.join(folder, "mark"), os.path.join(folder, "r.json")
    for reports, problem in ((["r.txt"], '"r.txt" must end in .json or .html'), ([".json"], "must end in"),
                             ([os.path.join(folder, "no", "r.html")], "No such file or directory"),
                             ([there, there], "is a second file of its kind"), (["/dev/null/r.json"], "Not a directory")):
        done = Run(*[word for path in reports for word in ("--report", path)], "--", "touch", mark).expect(125)
        assert problem in done.text and not os.path.exists(mark), (reports, done.text)
    os.makedirs(there)
    assert "it is not a regular file" in Run("--report", there, "--", "touch", mark).expect(125).text


main()
