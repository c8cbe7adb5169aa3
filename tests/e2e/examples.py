"""The programs in examples/ do what their comments and the README describe."""

import glob
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading

from installed import environment_of, install
from harness import BUILD, SOURCE, WEIR, Skip, await_day, case, lines_of, main, run, skip_fork_under_sanitizers, start, wait_for, without_waits

SCAN_CONFIG = os.path.join(SOURCE, "examples", "config", "scan.json")
CONSOLE_LINE = r"\[\d{10}\.\d{6}\]\[([^]]+)\]: ([^=]+)=(\S+)( \{.*\})?"


def program(name):
    return os.path.join(BUILD, "examples", name)


def write(path, config):
    """Replaces the file by rename, as editors do."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(config, file)
    os.rename(path + ".new", path)


def disk_config(path, **options):
    return {"handlers": {"disk": {"type": "file", "path": path, "format": "json", **options}}, "groups": {"*": "disk"}}


def records_of(path):
    return [json.loads(line) for line in lines_of(path)] if os.path.exists(path) else []


def has_lines(path, count):
    """Counts complete lines only: a writer may be in the middle of one."""
    if not os.path.exists(path):
        return False
    with open(path, "rb") as file:
        return file.read().count(b"\n") >= count


def values_of(path, name):
    return [record["value"] for record in records_of(path) if record["name"] == name]


def turns_printed(ended):
    """The number of values that a program prints at its end."""
    out, err = ended.communicate(timeout=240)
    assert ended.returncode == 0 and without_waits(err) == "", (ended.returncode, err)
    return int(re.fullmatch(r"(\d+) turns\n", out).group(1))


@case
def every_example_has_a_case_here():
    names = {os.path.relpath(path, os.path.join(SOURCE, "examples")) for pattern in ("*.c", "*.cc", "*.sh", "library/*")
             for path in glob.glob(os.path.join(SOURCE, "examples", pattern))}
    assert names == {"first_metric.c", "scan.c", "prefork.c", "forking.c", "reload.c", "signals.c", "server.c", "batch.c", "count.c", "time.c", "level.c", "collect.c", "requests.c", "sessions.c", "process.c",
                     "scope.cc", "backup.sh",
                     "library/lru.c", "library/lru.h", "library/host.c"}, names


# ---- first_metric ---------------------------------------------------------------------------------


@case
def the_readmes_command_line_compiles_and_shows_the_first_metric(folder):
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    command = re.search(r"^ {4}(cc first_metric\.c .*)$", readme, re.M).group(1)
    sample = re.search(r"^ {4}(\[\d+\.\d+\]\[my_app\]: .*)$", readme, re.M).group(1)
    assert "WEIR_CONFIG=" in command and re.fullmatch(CONSOLE_LINE, sample), (command, sample)
    install(folder)
    shutil.copy(os.path.join(SOURCE, "examples", "first_metric.c"), folder)
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment_of(folder), timeout=240, capture_output=True, text=True)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    assert re.fullmatch(CONSOLE_LINE + "\n", done.stdout), done.stdout
    assert done.stdout.rstrip().split("]", 1)[1] == sample.split("]", 1)[1], done.stdout


@case
def the_first_metric_shows_nothing_without_a_configuration(folder):
    done = run(program("first_metric"), cwd=folder)
    assert (done.returncode, done.stdout, done.stderr, os.listdir(folder)) == (0, "", "", []), done


# ---- scan -----------------------------------------------------------------------------------------


def hash_of(data):
    """FNV-1a"""
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def make_files(folder):
    """Makes files of many sizes in several folders, and a link that is not followed. Returns their contents."""
    contents = [bytes((i * 37 + k) % 256 for k in range(i * i * 13)) for i in range(24)]
    for i, data in enumerate(contents):
        parent = os.path.join(folder, *["sub"] * (i % 4))
        os.makedirs(parent, exist_ok=True)
        with open(os.path.join(parent, f"file{i}"), "wb") as file:
            file.write(data)
    os.symlink("/etc", os.path.join(folder, "link"))
    return contents


def result_line(contents, errors=0):
    total = 0
    for data in contents:
        total ^= hash_of(data)
    return f"{len(contents)} files, {sum(map(len, contents))} bytes, {errors} errors, hash {total:016x}"


@case
def scan_sends_everything_to_the_file_and_scan_io_to_the_console_too(folder):
    tree, out = os.path.join(folder, "tree"), os.path.join(folder, "scan.jsonl")
    contents = make_files(tree)
    done = run(program("scan"), "-j", 3, "-c", SCAN_CONFIG, tree, SCAN_OUTPUT=out)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    *shown, result = done.stdout.splitlines()
    assert result == result_line(contents)
    sizes = sorted(map(len, contents))
    fields = [re.fullmatch(CONSOLE_LINE, line).groups() for line in shown]
    assert {group for group, _, _, _ in fields} == {"scan.io"}
    assert sorted(int(value) for _, name, value, _ in fields if name == "bytes") == sizes
    assert len(shown) == 2 * len(sizes), shown

    records = records_of(out)
    assert len(records) == 4 * len(sizes) + 2, len(records)
    assert sorted(values_of(out, "bytes")) == sizes
    for group, name in (("scan.io", "read.ms"), ("scan.cpu", "hash.ms"), ("scan.cpu", "mb_per_s")):
        found = [record for record in records if (record["group"], record["name"]) == (group, name)]
        assert len(found) == len(sizes) and {r["labels"]["thread"] for r in found} <= {"0", "1", "2"}, (name, found)
    assert values_of(out, "walk.success") == [1] and len(values_of(out, "walk.duration.ms")) == 1


@case
def scan_without_a_configuration_prints_its_result_and_writes_nothing(folder):
    tree, empty = os.path.join(folder, "tree"), os.path.join(folder, "empty")
    contents = make_files(tree)
    os.mkdir(empty)
    done = run(program("scan"), tree, cwd=empty)
    assert (done.returncode, done.stdout, done.stderr) == (0, result_line(contents) + "\n", ""), done
    assert os.listdir(empty) == []


@case
def scan_reports_its_errors(folder):
    nowhere = os.path.join(folder, "nowhere")
    done = run(program("scan"), nowhere)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"scan: {nowhere}: No such file or directory\n"), done
    done = run(program("scan"), "-c", nowhere, folder)
    assert done.returncode == 1 and done.stderr == f"scan: {nowhere}: No such file or directory\n", done
    for arguments in ((), ("-j", "0", folder), ("-j", "65", folder), (folder, folder)):
        done = run(program("scan"), *arguments)
        assert done.returncode == 2 and done.stderr.startswith("usage: scan "), (arguments, done)


# ---- prefork --------------------------------------------------------------------------------------


@case
def prefork_loses_and_duplicates_nothing(folder):
    skip_fork_under_sanitizers()
    workers, requests = 12, 100
    for linger in ("0s", "1h"):  # with 1h the first value is still in the parent's queue at each fork
        out = os.path.join(folder, "out." + linger)
        done = run(program("prefork"), workers, WEIR_CONFIG=disk_config(out, linger=linger))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        parent = [(r["name"], r["value"]) for r in records_of(out) if r["group"] == "server"]
        assert parent == [("workers", workers), ("workers.failed", 0)], parent
        got = {}
        for record in records_of(out):
            if record["group"] == "server.worker":
                got.setdefault((record["labels"]["worker"], record["name"]), []).append(record["value"])
        names = ("request.number", "request.duration.ms", "request.success")
        assert set(got) == {(str(w), name) for w in range(workers) for name in names}, sorted(got)
        for (worker, name), values in got.items():
            expected = list(range(requests)) if name == "request.number" else [1] * requests
            assert len(values) == requests and (name == "request.duration.ms" or values == expected), (worker, name, values)


# ---- forking --------------------------------------------------------------------------------------


@case
def forking_adds_each_request_once_whichever_process_serves_it(folder):
    skip_fork_under_sanitizers()
    for way in ("each", "workers"):
        out = os.path.join(folder, way)
        done = run(program("forking"), way, 50, 3, WEIR_CONFIG=disk_config(out))
        assert (done.returncode, done.stderr) == (0, ""), done
        assert re.fullmatch(r"50 requests, \S+ us each, \S+ us of processor time\n", done.stdout), done
        assert sorted(values_of(out, "request.bytes")) == list(range(50)) and values_of(out, "requests") == [1] * 50
    for arguments in ((), ("all",), ("each", "0"), ("workers", "5", "0")):
        done = run(program("forking"), *arguments)
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("usage: forking "), (arguments, done)


# ---- signals --------------------------------------------------------------------------------------


@case
def signals_delivers_everything_on_sigterm_and_sigint(folder):
    for number in (signal.SIGTERM, signal.SIGINT):
        at_once, late = (os.path.join(folder, f"{name}.{number}") for name in ("at_once", "late"))
        config = disk_config(at_once)
        config["handlers"]["late"] = {"type": "file", "path": late, "linger": "1h"}
        config["groups"]["*"] = ["disk", "late"]
        running = start(program("signals"), WEIR_CONFIG=config)
        wait_for(lambda: has_lines(at_once, 50), "values")
        assert not os.path.exists(late)
        running.send_signal(number)
        turns = turns_printed(running)
        for path in (at_once, late):
            assert values_of(path, "turn") == list(range(turns)), (path, turns)
            assert values_of(path, "signals") == [0, 1], path


# ---- reload ---------------------------------------------------------------------------------------


@case
def reload_changes_the_destination_on_sighup_and_no_value_is_lost(folder):
    config, a, b = (os.path.join(folder, name) for name in ("config.json", "a", "b"))
    write(config, disk_config(a))
    running = start(program("reload"), config)
    wait_for(lambda: has_lines(a, 1), "values in a")
    write(config, disk_config(b))
    running.send_signal(signal.SIGHUP)
    wait_for(lambda: has_lines(b, 1), "values in b")
    running.terminate()
    turns = turns_printed(running)
    assert values_of(a, "turn") + values_of(b, "turn") == list(range(turns)), turns


@case
def reload_reports_an_invalid_configuration(folder):
    config = os.path.join(folder, "config.json")
    write(config, {"groups": {"*": "consol"}})
    done = run(program("reload"), config)
    assert done.returncode == 1 and 'did you mean "console"?' in done.stderr and done.stderr.startswith("reload: " + config), done


# ---- server ---------------------------------------------------------------------------------------


def get(port, path):
    """Sends a request. Returns the status and the size of the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=240) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        response = b""
        while part := client.recv(4096):
            response += part
    return int(response.split()[1]), len(response)


@case
def server_measures_each_request_by_route_and_status(folder):
    out = os.path.join(folder, "out")
    running = start(program("server"), "-t", 3, WEIR_CONFIG=disk_config(out))
    port = int(re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", running.stdout.readline()).group(1))
    paths, responses, lock = ["/", "/slow", "/made/up", "/"] * 8, [], threading.Lock()

    def visit(mine):
        for path in mine:
            response = get(port, path)
            with lock:
                responses.append((path, *response))

    clients = [threading.Thread(target=visit, args=(paths[i::4],)) for i in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    with socket.create_connection(("127.0.0.1", port), timeout=240):
        pass  # a connection without a request is not counted
    running.terminate()
    rest, err = running.communicate(timeout=240)
    assert (running.returncode, rest, err) == (0, "32 requests served\n", ""), (running.returncode, rest, err)
    assert {(path, status) for path, status, _ in responses} == {("/", 200), ("/slow", 200), ("/made/up", 404)}, responses
    counted = {}
    for record in records_of(out):
        assert record["group"] == "server.http"
        key = (record["labels"]["route"], record["labels"]["status"], record["name"])
        counted.setdefault(key, []).append(record["value"])
    routes = {("/", "200"): "/", ("/slow", "200"): "/slow", ("other", "404"): "/made/up"}
    assert set(counted) == {(*route, name) for route in routes for name in ("latency", "bytes")}, sorted(counted)
    for route, path in routes.items():
        assert sorted(counted[(*route, "bytes")]) == sorted(size for p, _, size in responses if p == path)
        assert len(counted[(*route, "latency")]) == paths.count(path)


# ---- batch ----------------------------------------------------------------------------------------


@case
def the_exit_status_of_batch_shows_failed_work_and_undelivered_values(folder):
    good, out = os.path.join(folder, "numbers"), os.path.join(folder, "out")
    with open(good, "w", encoding="utf-8") as file:
        file.write("1\n2.5\n")
    done = run(program("batch"), "-j", "nightly", good, good, WEIR_CONFIG=disk_config(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", ""), done
    records = records_of(out)
    assert {record["labels"]["job"] for record in records} == {"nightly"}
    assert [record["metadata"] for record in records if record["name"] == "file.lines"] == [good, good], records
    assert values_of(out, "file.lines") == [2, 2] and values_of(out, "file.success") == [1, 1]
    assert (values_of(out, "files"), values_of(out, "files.failed"), values_of(out, "sum")) == ([2], [0], [7])

    done = run(program("batch"), good, os.path.join(folder, "none"), WEIR_CONFIG=disk_config(out))
    assert done.returncode == 1 and done.stderr == f"batch: {folder}/none: No such file or directory\n", done
    assert values_of(out, "file.failure") == [1] and values_of(out, "files.failed") == [0, 1]

    nowhere = os.path.join(folder, "no", "out")
    config = disk_config(nowhere)
    config["settings"] = {"shutdown_timeout": "0s"}
    done = run(program("batch"), good, WEIR_CONFIG=config)
    assert done.returncode == 3 and done.stdout == "3.5\n" and "\nbatch: " in done.stderr, done
    config["handlers"]["disk"]["spool"] = os.path.join(folder, "spool")
    assert run(program("batch"), good, WEIR_CONFIG=config).returncode == 0
    assert run(program("batch"), good).returncode == 0 and run(program("batch"), "-x").returncode == 2


def run_and_balance(path, *command, **more):
    """Runs a program with the handler of disk_config(path), to which it delivers all its values. Returns (exit status, stdout, stderr without
    the ledger)."""
    done = run(*command, WEIR_CONFIG=disk_config(path), WEIR_LOG="info", **more)
    lines, info = done.stderr.splitlines(True), "weir: info: "
    counts = [int(count) for count in re.findall(r"\d+", re.search("ledger: process .*?: (.*)", done.stderr)[1])]
    disk = {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", re.search('ledger: handler "disk": (.*)', done.stderr)[1])}
    total = len(records_of(path))
    assert counts == [total, 0, 0], done.stderr
    assert disk == {"offered": total, "delivered": total, "dropped": 0, "queued": 0, "spooled": 0, "retries": 0}, done.stderr
    return done.returncode, done.stdout, "".join(line for line in lines if not line.startswith(info))


# ---- count, time, level ---------------------------------------------------------------------------


def entries_of(path, name):
    """(labels, sum of the values) of each label set."""
    sums = {}
    for record in records_of(path):
        if record["name"] == name:
            key = tuple(sorted(record.get("labels", {}).items()))
            sums[key] = sums.get(key, 0) + record["value"]
    return sums


@case
def count_counts_requests_by_route_and_class_of_status(folder):
    log, out = os.path.join(folder, "log"), os.path.join(folder, "out")
    with open(log, "w", encoding="utf-8") as file:
        file.write("GET /a/1 200\nGET /a/2?x 204\nPOST /b 503\nnonsense\nGET / 404\nGET /a 999\n")
    with open(log, encoding="utf-8") as file:
        assert run_and_balance(out, program("count"), stdin=file) == (0, "", "")
    assert entries_of(out, "requests") == {(): 4} and entries_of(out, "malformed") == {(): 2}
    assert entries_of(out, "requests.by_route") == {
        (("route", "/a"), ("status", "2xx")): 2, (("route", "/b"), ("status", "5xx")): 1, (("route", "/"), ("status", "4xx")): 1}
    with open(log, encoding="utf-8") as file:
        assert run(program("count"), stdin=file).stdout == ""


@case
def time_adds_the_duration_and_the_result_of_each_file(folder):
    good, none, out = (os.path.join(folder, name) for name in ("good", "none", "out"))
    with open(good, "wb") as file:
        file.write(b"x" * 100000)
    assert run_and_balance(out, program("time"), good, none, good) == (1, "", f"{none}: No such file or directory\n")
    assert values_of(out, "file.bytes") == [100000, 100000]
    assert sum(values_of(out, "read.success")) == 2 and sum(values_of(out, "read.failure")) == 1
    assert len(values_of(out, "read.duration.ms")) == 3 and min(values_of(out, "read.duration.ms")) >= 0
    assert run(program("time"), good).returncode == 0


@case
def level_shows_waiting_jobs_and_busy_workers(folder):
    out = os.path.join(folder, "out")
    assert run_and_balance(out, program("level"), 3, 40) == (0, "", "")
    assert sorted(values_of(out, "jobs.waiting")) == list(range(41))
    busy = values_of(out, "workers.busy")
    assert len(busy) == 80 and min(busy) == 0 and 1 <= max(busy) <= 3, busy
    assert run(program("level"), 0).returncode == 2 and run(program("level")).returncode == 0


@case
def sessions_give_back_their_places_when_they_end(folder):
    out = os.path.join(folder, "out")
    await_day()
    config = {"settings": {"max_series_per_name": 2}, "groups": {"*": "out"},
              "handlers": {"out": {"type": "file", "path": out, "format": "json", "aggregate": "1d", "block_timeout": "1m"}}}
    done = run(program("sessions"), 30, 4, WEIR_CONFIG=config, WEIR_LOG="info")
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", re.search('ledger: handler "out": (.*)', done.stderr)[1])}
    assert done.returncode == 0 and "overflow" not in done.stderr, done.stderr
    assert counts["offered"] == counts["delivered"] == 30 * 8 + 60, done.stderr
    records = records_of(out)
    messages = {record["labels"]["session"]: record["value"] for record in records if record["name"] == "messages"}
    waiting = {record["labels"]["session"]: record["value"] for record in records if record["name"] == "waiting"}
    assert messages == {f"s{number}": 4 for number in range(30)} and waiting == dict.fromkeys(messages, 1), records
    assert [record["value"] for record in records if record["name"] == "sessions"][-1] == 0, records
    assert run(program("sessions"), -1).returncode == 2


@case
def requests_are_timed_and_every_twentieth_fails(folder):
    out = os.path.join(folder, "out")
    assert run_and_balance(out, program("requests"), 21) == (0, "", "")
    assert sum(values_of(out, "request.success")) == 20 and values_of(out, "request.failure") == [1]
    assert len(values_of(out, "request.duration.ms")) == 21 and min(values_of(out, "request.duration.ms")) >= 20
    assert values_of(out, "sessions") == [50 + number for number in range(1, 22)]


@case
def collect_shows_a_queue_that_gets_shorter_and_memory(folder):
    out = os.path.join(folder, "out")
    assert run_and_balance(out, program("collect"), 300) == (0, "", "")
    lengths = values_of(out, "queue.length")
    assert lengths and lengths == sorted(lengths, reverse=True) and 0 <= lengths[-1] <= lengths[0] <= 300, lengths
    assert min(values_of(out, "heap.used")) > 0


@case
def process_shows_what_it_uses_itself(folder):
    out = os.path.join(folder, "out")
    config = disk_config(out)
    config["sources"] = {"process": {"type": "process", "names": "prometheus", "interval": "10ms"}}
    assert run(program("process"), 2, WEIR_CONFIG=config, stderr=None).returncode == 0
    assert sum(values_of(out, "rounds")) == 2
    # it is measured in the second after the last round, or when the source is stopped at the end
    assert max(values_of(out, "resident_memory")) >= 2 * 8 * 2**20
    assert len(set(values_of(out, "start_time"))) == 1 and sum(values_of(out, "cpu")) > 0
    assert run(program("process"), 0).returncode == 0 and run(program("process"), 101).returncode == 2


@case
def backup_counts_success_and_failure_and_ends_as_tar_does(folder):
    out, archive = os.path.join(folder, "out"), os.path.join(folder, "archive")
    tree = os.path.join(folder, "tree")
    os.mkdir(tree)

    def backup(*arguments, **more):
        path = os.path.dirname(WEIR) + os.pathsep + os.environ["PATH"]
        return run("sh", os.path.join(SOURCE, "examples", "backup.sh"), *arguments, PATH=path, **more)

    done = backup(tree, archive, WEIR_CONFIG=disk_config(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    assert values_of(out, "success") == [1] and values_of(out, "bytes") == [os.path.getsize(archive)]
    assert len(values_of(out, "seconds")) == 1 and {(r["group"], r["labels"]["folder"]) for r in records_of(out)} == {("backup", tree)}
    nowhere = os.path.join(folder, "nowhere")
    done = backup(nowhere, archive, WEIR_CONFIG=disk_config(out))
    assert done.returncode != 0 and nowhere in done.stderr and values_of(out, "failure") == [1], done
    done = backup(tree, archive)
    assert done.returncode == 0 and "WEIR_CONFIG" in done.stderr, done
    assert backup(tree).returncode == 2


# ---- scope ----------------------------------------------------------------------------------------


@case
def scope_records_success_or_failure_for_every_exit_from_the_scope(folder):
    built, libraries = os.path.join(folder, "scope"), os.path.join(BUILD, "lib", ".libs")
    command = [*shlex.split(os.environ.get("WEIR_TEST_CXX", "c++")), *shlex.split(os.environ.get("WEIR_TEST_SANITIZED", "")),
               "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", os.path.join(SOURCE, "examples", "scope.cc"),
               "-o", built, "-I", os.path.join(SOURCE, "include"), "-I", os.path.join(BUILD, "include"), "-L", libraries, "-lweir"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out = os.path.join(folder, "out")
    done = run(built, WEIR_CONFIG=disk_config(out), LD_LIBRARY_PATH=libraries)
    assert (done.returncode, done.stdout, done.stderr) == (0, "12\nnot a number at: x\n2000\n", ""), done
    names = [record["name"] for record in records_of(out)]
    assert names == ["parse.success", "parse.duration.ms", "parse.failure", "parse.duration.ms", "parse.failure", "parse.duration.ms",
                     "texts", "numbers"], names


# ---- library --------------------------------------------------------------------------------------


@case
def a_library_that_uses_weir_requires_nothing_of_its_host(folder):
    host = os.path.join(BUILD, "examples", "library", "host")
    done = run(host, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr, os.listdir(folder)) == (0, "60\n", "", []), done
    for name in ("host.c", "lru.h"):
        with open(os.path.join(SOURCE, "examples", "library", name), encoding="utf-8") as file:
            assert "weir/weir.h" not in file.read(), name
    out = os.path.join(folder, "out")
    done = run(host, WEIR_CONFIG=disk_config(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "60\n", ""), done
    records = records_of(out)
    assert {(r["group"], r["labels"]["cache"]) for r in records} == {("lru", "squares")}, records
    assert len(values_of(out, "hit")) == 4 and len(values_of(out, "miss")) == 4 and values_of(out, "fill") == [3], records
    assert run(host, WEIR_CONFIG={"groups": {"*": "console", "lru": []}}).stdout == "60\n"


# ---- config ---------------------------------------------------------------------------------------


def check_stage(folder, name, **env):
    """Runs `weir check` on the configuration of a stage, with its secrets in the folder."""
    with open(os.path.join(SOURCE, "examples", "config", name + ".json"), encoding="utf-8") as file:
        text = file.read()
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("/run/secrets/", folder + "/"))
    return run(WEIR, "check", path, cwd=folder, **env)


@case
def configurations_of_three_stages_are_valid_if_their_secrets_exist(folder):
    if not os.path.exists(os.path.join(BUILD, "plugins", ".libs", "http.so")):
        raise Skip("the handler type http was not built")
    done = check_stage(folder, "dev")
    assert done.returncode == 0 and f'path="{folder}/metrics.jsonl"' in done.stdout, done
    for name in ("staging", "production"):
        done = check_stage(folder, name, METRICS_URL="http://127.0.0.1:1")
        assert done.returncode == 1 and f"{folder}/metrics_" in done.stderr and "No such file" in done.stderr, done
    for name in ("metrics_password", "metrics_token"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("s3cr3t\n")
    done = check_stage(folder, "staging")
    assert done.returncode == 0 and "127.0.0.1:8086/write?db=staging" in done.stdout and "s3cr3t" not in done.stdout, done
    assert "my_app.debug" in done.stdout
    done = check_stage(folder, "production")
    assert done.returncode == 1 and "METRICS_URL" in done.stderr, done
    done = check_stage(folder, "production", METRICS_URL="https://metrics.example.com")
    assert done.returncode == 0 and "https://metrics.example.com/api/v2/write" in done.stdout and "s3cr3t" not in done.stdout, done
    assert re.search(r"^  my_app\.debug +-> \(unrouted\)$", done.stdout, re.M), done.stdout


@case
def every_configuration_passes_weir_check(folder):
    """Except those that need secrets, which are checked above."""
    for path in sorted(glob.glob(os.path.join(SOURCE, "examples", "config", "*.json"))):
        if os.path.basename(path) not in ("staging.json", "production.json"):
            done = run(WEIR, "check", path, cwd=folder)
            missing = any(name in done.stderr and not os.path.exists(os.path.join(BUILD, "plugins", ".libs", name + ".so"))
                          for name in ("http", "prometheus"))
            assert done.returncode == 0 or missing, (path, done.stderr)


main()
