"""`weir emit` from standard input: every valid line is delivered exactly, every invalid one is reported."""

import glob
import json
import os
import pty
import re
import signal
import subprocess
import threading

from harness import WEIR, case, environment, lines_of, main, run, wait_for, whole_lines, without_waits

MANY = 100_000 if os.environ.get("WEIR_TEST_SANITIZED") else 1_000_000


def config_to(path, **options):
    return {"handlers": {"disk": {"type": "file", "path": path, "format": "bai", **options}}, "groups": {"*": "disk"}}


def feed(folder, text, *arguments, config):
    """Runs emit with a file of this text as its standard input."""
    path = os.path.join(folder, "input")
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    with open(path, "rb") as file:
        return run(WEIR, "emit", *arguments, stdin=file, WEIR_CONFIG=config)


def start_emit(*arguments, config, stderr=subprocess.PIPE):
    """Starts weir emit. A watchdog kills it if it hangs, so that the case fails instead of hanging."""
    process = subprocess.Popen([WEIR, "emit", *arguments], env=environment(WEIR_CONFIG=config), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=stderr)
    watchdog = threading.Timer(100, process.kill)
    watchdog.daemon = True
    watchdog.start()
    return process


def finish(process, number=None):
    """Ends it by a signal or by the end of its input. Returns status, stdout, stderr."""
    if number:
        process.send_signal(number)
        errors = process.stderr.read() if process.stderr else b""
        shown = process.stdout.read()
    else:
        shown, errors = process.communicate(timeout=100)
    process.stdin.close()
    return process.wait(100), shown.decode(), (errors or b"").decode()


def assert_read(shown, lines, values, wrong=0):
    assert f"stdin: {lines} lines, {values} values, {wrong} invalid lines\n" in shown, shown


# ---- The reader of the output stops --------------------------------------------------------------------


@case
def emit_ends_when_the_reader_of_the_console_has_gone():
    command = 'yes a=1 | "$0" emit -g g - | head -n 2'
    done = subprocess.run(["bash", "-c", command, WEIR], env=environment(WEIR_CONFIG={"groups": {"*": "console"}}), capture_output=True,
                          text=True, timeout=240)
    assert len(done.stdout.splitlines()) == 2, done
    assert "console: write to standard output: Broken pipe; gives up" in done.stderr, done.stderr
    assert "no handler takes values any more; the rest of stdin is not read" in done.stderr, done.stderr


# ---- Every value --------------------------------------------------------------------------------------


@case
def a_million_lines_arrive_exactly(folder):
    out = os.path.join(folder, "out")
    done = feed(folder, "".join(f"x={i}\n" for i in range(MANY)), "-g", "g", "-v", config=config_to(out))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    assert_read(done.stdout, MANY, MANY)
    assert f"disk: {MANY} delivered\n" in done.stdout, done.stdout
    with open(out, encoding="utf-8") as file:
        assert file.read() == "".join(f'{{"x": {i}.0}}\n' for i in range(MANY))


@case
def a_full_queue_slows_the_input_down_for_every_overflow_policy(folder):
    for i, overflow in enumerate(({"overflow": "drop_newest"}, {"overflow": "drop_oldest"}, {"block_timeout": "0s"})):
        out = os.path.join(folder, f"out{i}")
        done = feed(folder, "".join(f"x={n} y=1\n" for n in range(20000)), "-v", "-g", "g", "-",
                    config=config_to(out, queue="4KiB", **overflow))
        assert done.returncode == 0 and "disk: 40000 delivered\n" in done.stdout, done
        assert lines_of(out) == [f'{{"x": {n}.0, "y": 1.0}}' for n in range(20000)], overflow


@case
def a_full_spool_slows_the_input_down_for_every_overflow_policy(folder):
    for overflow in ("block", "drop_newest", "drop_oldest"):
        away = os.path.join(folder, overflow)
        config = config_to(os.path.join(away, "out"), queue="4KiB", overflow=overflow, spool=os.path.join(folder, "spool"), spool_limit="64KiB",
                           retry_min="1ms", retry_max="10ms")
        process = start_emit("-v", "-g", "g", "-t", "5m", "-", config=config)
        feeder = threading.Thread(target=lambda: (process.stdin.write(b"".join(b"x=%d\n" % i for i in range(20000))), process.stdin.close()))
        feeder.start()
        wait_for(lambda: sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, "spool", "*", "*.seg"))) > 48 << 10, "a full spool")
        os.mkdir(away)
        shown, error = process.stdout.read().decode(), process.stderr.read().decode()
        feeder.join()
        assert process.wait() == 0 and "disk: 20000 delivered\n" in shown, (overflow, shown, error)
        assert lines_of(os.path.join(away, "out")) == [f'{{"x": {n}.0}}' for n in range(20000)], overflow


@case
def lingering_values_do_not_block_the_input(folder):
    out = os.path.join(folder, "out")
    config = config_to(out, queue="4KiB", linger="1h", overflow="drop_newest")
    done = feed(folder, "x=1\n" * 2000, "-v", "-g", "g", "-", config=config)
    assert done.returncode == 0 and "disk: 2000 delivered\n" in done.stdout, done


@case
def a_full_queue_of_a_handler_of_other_groups_does_not_block(folder):
    out = os.path.join(folder, "out")
    config = config_to(out)
    config["handlers"]["health"] = {"type": "file", "path": "/no/such/folder/x", "queue": "1KiB", "overflow": "drop_newest"}
    config["groups"]["weir"] = config["groups"]["away"] = "health"
    config["settings"] = {"stats_interval": "1ms"}
    process = start_emit("-v", "-t", "1ms", "-", config=config)
    process.stdin.write(b'{"name":"x","value":1,"group":"g"}\n' * 5000)
    process.stdin.flush()
    wait_for(lambda: whole_lines(out) == 5000, "all values")
    status, shown, _ = finish(process)
    assert status == 1 and "disk: 5000 delivered\n" in shown and re.search("^health: 0 delivered.* failing$", shown, re.M), shown


@case
def an_event_larger_than_the_queue_is_delivered(folder):
    out = os.path.join(folder, "out")
    line = " ".join(f"n{i}={i}" for i in range(1000)) + "\n"
    done = feed(folder, line * 3, "-v", "-g", "g", "-", config=config_to(out, queue="1KiB"))
    assert done.returncode == 0 and "disk: 3000 delivered\n" in done.stdout, done
    assert [len(json.loads(text)) for text in lines_of(out)] == [1000] * 3


@case
def emit_waits_for_an_unavailable_destination(folder):
    away = os.path.join(folder, "away")
    config = config_to(os.path.join(away, "out"), queue="4KiB", overflow="drop_newest", retry_min="1ms", retry_max="10ms")
    process = start_emit("-v", "-g", "g", "-", config=config)
    feeder = threading.Thread(target=lambda: (process.stdin.write(b"x=1\n" * 50000), process.stdin.close()))
    feeder.start()
    error = process.stderr.readline().decode()  # the folder is missing
    assert "No such file or directory" in error, error
    os.mkdir(away)
    shown, _ = process.stdout.read().decode(), process.stderr.read()
    feeder.join()
    assert process.wait(100) == 0 and "disk: 50000 delivered\n" in shown, shown
    assert_read(shown, 50000, 50000)
    assert lines_of(os.path.join(away, "out")) == ['{"x": 1.0}'] * 50000


# ---- Signals ------------------------------------------------------------------------------------------


@case
def sigterm_and_sigint_deliver_what_was_read(folder):
    for number in (signal.SIGTERM, signal.SIGINT):
        out = os.path.join(folder, f"out{number}")
        process = start_emit("-v", "-g", "g", "-", config=config_to(out))
        process.stdin.write(b"x=1\nx=2\nx=3\nx=4")  # the last line may be incomplete
        process.stdin.flush()
        wait_for(lambda: whole_lines(out) == 3, "three values")
        status, shown, errors = finish(process, number)
        assert status == 0 and errors == "" and "disk: 3 delivered\n" in shown, (status, shown, errors)
        assert_read(shown, 3, 3)


@case
def a_signal_ends_the_wait_for_a_destination_and_the_rest_is_counted(folder):
    config = config_to(os.path.join(folder, "away", "out"), queue="4KiB", overflow="drop_newest")
    process = start_emit("-v", "-t", "1ms", "-g", "g", "-", config=config)
    process.stdin.write(b"x=1\n" * 1000)
    process.stdin.flush()
    process.stderr.readline()
    status, shown, _ = finish(process, signal.SIGTERM)
    left = re.search(r"^disk: 0 delivered(?:, (\d+) dropped \(full\))?, (\d+) not delivered yet, failing$", shown, re.M)
    read = re.search(r"^stdin: (\d+) lines, (\d+) values, 0 invalid lines$", shown, re.M)
    assert status == 1 and left and read, shown
    assert int(left.group(1) or 0) + int(left.group(2)) == int(read.group(2)) > 0, shown


@case
def an_ignored_signal_stays_ignored(folder):
    out = os.path.join(folder, "out")
    process = subprocess.Popen([WEIR, "emit", "-g", "g", "-"], env=environment(WEIR_CONFIG=config_to(out)), stdin=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    process.stdin.write(b"x=1\n")
    process.stdin.flush()
    wait_for(lambda: whole_lines(out) == 1, "the first value")
    process.send_signal(signal.SIGINT)
    process.stdin.write(b"x=2\n")
    process.stdin.close()
    assert process.wait(100) == 0 and lines_of(out) == ['{"x": 1.0}', '{"x": 2.0}']


# ---- Lines --------------------------------------------------------------------------------------------

# (line, column or None, a part of the message)
WRONG = [
    (b"x", 1, '"x" is not a value (like name=12.5)'),
    (b"=5", 1, '"=5" is not a value'),
    (b"a=1  b=2 c", 10, '"c" is not a value'),
    ("ä=1 b=x".encode(), 5, '"b": "x" is not a number'),
    (b"x=infinit", 1, '"infinit" is not a number'),
    (b"x=-nan", 1, '"-nan" is not a number'),
    (b"x=0x10", 1, '"0x10" is not a number'),
    (b"x=1,5", 1, '"1,5" is not a number'),
    (b"x=1e999", 1, '"1e999" is not a number'),
    (b"x=+1", 1, '"+1" is not a number'),
    (b"x=", 1, '"" is not a number'),
    (b"a=1 b\0=2", 6, "a NUL byte"),
    (b"a=1 \xff=2", 5, "invalid UTF-8"),
    (b"a=1 b\x01=2", 5, "control character"),
    (b"n" * 256 + b"=1", 1, "too long"),
    (b" ".join(b"n=1" for _ in range(1025)), 4097, "at most 1024 values are allowed"),
    (b'{"a": 1', 1, "unclosed {"),
    (b'{"a": 1,}', 8, "trailing comma"),
    (b'{"a": 1, "a": 2}', 10, "duplicate key"),
    (b'{"a": Nan}', 7, "expected a value"),
    (b'{"a": 1} x', 10, "text after the end"),
    (b"[1]", 1, "must be an object, got an array"),
    (b"{}", 1, "the object has no values"),
    (b'{"name": "n"}', 1, 'the member "value" is missing'),
    (b'{"name": "n", "value": "x"}', 24, '"value": must be a number, true, false, or a number in a text, got "x"'),
    (b'{"name": "n", "value": 5, "ttl": "s"}', 27, '"ttl": unknown member'),
    (b'{"name": "n", "value": 5, "timestamp": "now"}', 40, '"timestamp": must be a time (seconds since 1970, like 1795219607.576198123), got "now"'),
    (b'{"name": "n", "value": 5, "timestamp": 99999999999}', 40, "must be a time (seconds since 1970, like 1795219607.576198123), got 99999999999"),
    (b'{"name": "n", "value": 5, "labels": ["a"]}', 37, '"labels": must be an object of texts, got an array'),
    (b'{"name": "n", "value": 5, "labels": {"a": 1}}', 43, '"a": must be a text, got 1'),
    (b'{"name": "n", "value": 5, "labels": {"": "1"}}', 38, "empty"),
    (b'{"name": "n", "value": 5, "group": "a..b"}', 36, "empty part"),
    (b'{"name": "n", "value": 5, "group": 7}', 36, '"group": must be a text, got 7'),
    (b'{"name": "n", "value": 5, "cumulative": 1}', 41, '"cumulative": must be true or false, got 1'),
    (b'{"name": "n", "value": 5, "metadata": 1}', 39, '"metadata": must be a text, got 1'),
    (b'{"name": "n", "value": 5, "metadata": "' + b"m" * 40000 + b'"}', None, "metadata is longer"),
    (b"x" * (2 << 20), None, "longer than 1MiB"),
]


@case
def each_invalid_line_is_reported_with_line_and_column_and_the_rest_is_delivered(folder):
    out = os.path.join(folder, "out")
    for first in range(0, len(WRONG), 20):  # the limit of reported lines
        part = WRONG[first:first + 20]
        text = b"".join(b"good=%d\n" % i + line + b"\n" for i, (line, _, _) in enumerate(part))
        done = feed(folder, text, "-v", "-g", "g", "-", config=config_to(out))
        errors = done.stderr.splitlines()
        assert done.returncode == 1 and len(errors) == len(part) + 1, "\n".join(errors)
        for i, (line, column, words) in enumerate(part):
            place = f"weir: stdin:{2 * i + 2}:" + (f"{column}: " if column else " ")
            assert errors[i].startswith(place) and words in errors[i], (line[:100], place, words, errors[i])
        assert errors[-1] == f"weir: stdin: {len(part)} of {2 * len(part)} lines are invalid and were skipped", errors[-1]
        assert_read(done.stdout, 2 * len(part), len(part), len(part))
        assert f"disk: {len(part)} delivered\n" in done.stdout, done.stdout
        assert lines_of(out) == [f'{{"good": {i}.0}}' for i in range(len(part))]
        os.remove(out)


@case
def of_many_invalid_lines_the_first_are_reported_and_all_are_counted(folder):
    done = feed(folder, "x\n" * 5000 + "x=1\n", "-v", "-g", "g", config=config_to(os.path.join(folder, "out")))
    errors = done.stderr.splitlines()
    assert done.returncode == 1 and len(errors) == 22, errors
    assert errors[20] == "weir: stdin: further invalid lines are only counted"
    assert errors[21] == "weir: stdin: 5000 of 5001 lines are invalid and were skipped"
    assert_read(done.stdout, 5001, 1, 5000)


@case
def line_ends_blanks_comments_and_a_byte_order_mark_are_ignored(folder):
    out = os.path.join(folder, "out")
    text = b'\xef\xbb\xbfa=1\r\n\r\n\n  \t\n# comment=5\n\t b=2 \t c=3 \n{"d": 4} // why\r\n  {"e":5}\nf=6'
    done = feed(folder, text, "-v", "-g", "g", "-", config=config_to(out))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    assert_read(done.stdout, 9, 6)
    assert lines_of(out) == ['{"a": 1.0}', '{"b": 2.0, "c": 3.0}', '{"d": 4.0}', '{"e": 5.0}', '{"f": 6.0}']


@case
def lines_with_lengths_around_the_buffer_sizes_arrive(folder):
    out = os.path.join(folder, "out")
    lengths = [length + more for length in (65536, 131072, 1 << 20) for more in (-1, 0, 1)]
    text = "".join("x=1".ljust(length) + "\n" for length in lengths)
    done = feed(folder, text, "-v", "-g", "g", "-", config=config_to(out))
    assert done.returncode == 1 and done.stderr.startswith(f"weir: stdin:{len(lengths)}: longer than 1MiB\n"), done.stderr
    assert len(lines_of(out)) == len(lengths) - 1


@case
def integers_keep_all_their_digits(folder):
    out = os.path.join(folder, "out")
    numbers = ["9007199254740993", "-9223372036854775808", "9223372036854775807", "5", "0.1", "1e-05", "-0.5"]
    config = config_to(out, format="json")
    for text in ("".join(f"x={n}\n" for n in numbers), "".join(f'{{"x": {n}}}\n' for n in numbers)):
        assert feed(folder, text, "-g", "g", "-", config=config).returncode == 0
    assert run(WEIR, "emit", "-g", "g", *(f"x={n}" for n in numbers), WEIR_CONFIG=config).returncode == 0
    values = re.findall(r'"value":([^,}]+)', "".join(lines_of(out)))
    assert values == numbers * 3, values


@case
def what_is_no_number_or_has_a_wrong_name_is_left_out_and_the_rest_of_its_event_is_added(folder):
    out = os.path.join(folder, "out")
    text = '{"a": 1, "b": "fast", "c": null, "d": [1], "e": {"f": 1}, "g": 1e999, "h": 2, "": 3, "i\\n": 4}\n{"a": null}\n'
    done = feed(folder, text, "-v", "-g", "g", "-", config=config_to(out))
    assert done.returncode == 1 and lines_of(out) == ['{"a": 1.0, "h": 2.0}'], done
    assert_read(done.stdout, 2, 2)
    errors = done.stderr.splitlines()
    assert errors[0].startswith('weir: stdin:1:15: "b": "fast" is not a value (a number'), errors
    assert [error.split(" ")[1] for error in errors[:8]] == ["stdin:1:15:", "stdin:1:28:", "stdin:1:39:", "stdin:1:49:", "stdin:1:64:", "stdin:1:79:",
                                                             "stdin:1:86:", "stdin:2:7:"], errors
    assert errors[8:] == ["weir: stdin: 8 values were left out of lines whose other values were added"], errors


@case
def what_python_prints_and_programs_extract_from_logs_are_values(folder):
    out = os.path.join(folder, "out")
    text = '{"a": NaN, "b": -Infinity, "c": "20.34", "d": true, "e": false, "f": "Infinity"}\nx=nan y=inf z=NaN\n'
    done = feed(folder, text, "-g", "g", "-", config=config_to(out))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    assert lines_of(out) == ['{"a": NaN, "b": -Infinity, "c": 20.34, "d": 1.0, "e": 0.0, "f": Infinity}', '{"x": NaN, "y": Infinity, "z": NaN}']


@case
def a_name_whose_values_have_fractions_has_doubles_only(folder):
    out = os.path.join(folder, "out")
    text = "x=49.0\nx=9007199254740993\ny=9007199254740993\n" + '{"x": 9007199254740993, "z": 9007199254740993, "v": 49}\n'
    assert feed(folder, text, "-g", "g", "-", config=config_to(out)).returncode == 0
    assert lines_of(out) == ['{"x": 49.0}', '{"x": 9007199254740992.0}', '{"y": 9007199254740993}',
                             '{"x": 9007199254740992.0, "z": 9007199254740993, "v": 49.0}']


@case
def benchmark_ai_is_a_configuration(folder):
    for mode in ("stdout", "STDOUT"):
        done = run(WEIR, "emit", "-g", "g", "x=1", "y=0.5", BENCHMARK_AI=mode)
        assert done.returncode == 0 and done.stdout == '{"x": 1.0, "y": 0.5}\n', done
    done = run(WEIR, "emit", "-g", "g", "x=1", BENCHMARK_AI="file")
    assert done.returncode == 1 and "BENCHMARK_AI is invalid: no value was added" in done.stderr, done
    out = os.path.join(folder, "out")
    config = os.path.join(folder, "weir.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(config_to(out), file)
    done = run(WEIR, "emit", "-c", config, "-g", "g", "x=1", BENCHMARK_AI="stdout")
    assert done.returncode == 0 and done.stdout == "" and lines_of(out) == ['{"x": 1.0}'], done


# ---- Other formats ------------------------------------------------------------------------------------

# parser, arguments, input, the values that come out as (group, name, value, labels)
FORMATS = [
    ("text", [], "[1795219607.576198][my_app]: latency=49.403 {route=\"/x\"}\n", [("my_app", "latency", 49.403, {"route": "/x"})]),
    ("json", [], '{"group":"my_app","name":"n","value":5}\n', [("my_app", "n", 5, {})]),
    ("bai", ["-g", "job"], '{"name": "20.5", "loss": 0.5}\n', [("job", "name", 20.5, {}), ("job", "loss", 0.5, {})]),
    ("csv", ["-g", "g"], 'name,value\nlatency,49.403\n"a,b",5\n', [("g", "latency", 49.403, {}), ("g", "a,b", 5, {})]),
    ("influx", [], "my_app,route=/x latency=49.403,n=5i 1795219607576198123\n",
     [("my_app", "latency", 49.403, {"route": "/x"}), ("my_app", "n", 5, {"route": "/x"})]),
    ("graphite", [], "my_app.db.latency;k=v 49.403 1795219607\n", [("my_app.db", "latency", 49.403, {"k": "v"})]),
    ("graphite", ["-g", "site"], "my_app.latency 1 1795219607\n", [("site", "my_app.latency", 1, {})]),
    ("statsd", [], "my_app.calls:1|c|@0.1|#k:v\nmy_app.level:5|g\nmy_app.level:-2|g\nmy_app.time:320:7|ms\n",
     [("my_app", "calls", 10, {"k": "v"}), ("my_app", "level", 5, {}), ("my_app", "level", 3, {}), ("my_app", "time", 320, {}),
      ("my_app", "time", 7, {})]),
    ("prometheus", ["-g", "node"], "# TYPE a_total counter\na_total{x=\"1\"} 5\n", [("node", "a_total", 5, {"x": "1"})]),
]


@case
def each_parser_reads_its_format(folder):
    for i, (parser, arguments, text, expected) in enumerate(FORMATS):
        out = os.path.join(folder, f"out{i}")
        done = feed(folder, text, *arguments, "--parse", parser, "-v", "-", config=config_to(out, format="json"))
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        records = [json.loads(line) for line in lines_of(out)]
        assert [(r["group"], r["name"], r["value"], r.get("labels", {})) for r in records] == expected, records
        assert_read(done.stdout, text.count("\n"), len(expected))


@case
def a_sampled_timer_of_statsd_is_added_as_often_as_it_stands_for(folder):
    out = os.path.join(folder, "out")
    text = "a.time:320|ms|@0.1\na.span:7:8|ms|@0.001\na.long:1|ms|@0.00001\na.size:3|h|@0.5\n"
    done = feed(folder, text, "--parse", "statsd", "-v", "-", config=config_to(out, format="json"))
    assert done.returncode == 0 and without_waits(done.stderr) == "" and "disk: 3012 delivered" in done.stdout, done
    assert_read(done.stdout, 4, 3012)
    values = [(r["name"], r["value"]) for r in map(json.loads, lines_of(out))]
    assert values == [("time", 320)] * 10 + [("span", 7)] * 1000 + [("span", 8)] * 1000 + [("long", 1)] * 1000 + [("size", 3)] * 2


@case
def lines_of_one_type_are_not_added_to_names_of_another(folder):
    out = os.path.join(folder, "out")
    text = "a.x:1|c\na.x:320|ms\na.x:5|g\na.x:2|c|#k:v\na.x:3|g|#k:v\na.y:1|g\na.y:+3|g\na.y:4|c\na.z:1|ms\na.z:2|h\n"
    done = feed(folder, text, "--parse", "statsd", "-v", "-", config=config_to(out, format="json"))
    assert done.returncode == 1, done
    refusals = [line for line in done.stderr.splitlines() if "declared" in line]
    assert refusals == [f'weir: stdin:{line}: name "{name}": it was declared as a {what} before, which stays'
                        for line, name, what in ((2, "x", "counter"), (3, "x", "counter"), (5, "x", "counter"), (8, "y", "gauge"))], done.stderr
    values = [(r["name"], r["value"]) for r in map(json.loads, lines_of(out))]
    assert values == [("x", 1), ("x", 2), ("y", 1), ("y", 4), ("z", 1), ("z", 2)], values
    config = {**config_to(out, format="json"), "metrics": {"a": {"w": "gauge"}}}
    done = feed(folder, "a.w:7|c\na.w:8|g\na.w:9|ms\na.w:10|ms\n", "--parse", "statsd", "-v", "-", config=config)
    assert done.returncode == 0 and [json.loads(line)["value"] for line in lines_of(out)[6:]] == [7, 8, 9, 10], done


@case
def a_set_is_refused_and_an_unknown_parser_is_a_usage_error(folder):
    config = config_to(os.path.join(folder, "out"))
    done = feed(folder, "a:x|s\n", "-g", "g", "--parse", "statsd", "-", config=config)
    assert done.returncode == 1 and "stdin:1: a set: its members are not counted here" in done.stderr, done.stderr
    done = feed(folder, "", "-g", "g", "--parse", "yaml", "-", config=config)
    assert done.returncode == 2 and '--parse: "yaml" is not one of auto, text, json, bai' in done.stderr, done.stderr
    done = run(WEIR, "emit", "-g", "g", "--parse", "text", "x=1", WEIR_CONFIG=config)
    assert done.returncode == 2 and "--parse needs standard input (-)" in done.stderr, done.stderr


@case
def output_of_the_format_json_is_reproduced_exactly(folder):
    out = os.path.join(folder, "out")
    text = "\n".join(('{"timestamp":1795219607.576198123,"group":"my_app","name":"latency","value":49.403,"labels":{"route":"/x"}}',
                      '{"timestamp":1795219607.576198124,"group":"my_app","name":"total","value":9007199254740993,"cumulative":true}',
                      '{"timestamp":0.000000000,"group":"a b","name":"\\"ä\\\\","value":"NaN","metadata":"line\\nbreak"}',
                      '{"timestamp":-12.500000001,"group":"weird","name":"name","value":"-Infinity"}',
                      '{"timestamp":9223372035.999999999,"group":"g","name":"late","value":1e+300}')) + "\n"
    done = feed(folder, text, "-v", "-", config=config_to(out, format="json"))
    assert done.returncode == 0 and without_waits(done.stderr) == "" and "disk: 5 delivered" in done.stdout, done
    with open(out, encoding="utf-8") as file:
        assert file.read() == text


@case
def an_event_of_several_values_has_one_time(folder):
    out = os.path.join(folder, "out")
    text = 'a=1 b=3\n{"c": 1, "d": 2}\n'
    assert feed(folder, text, "-g", "g", config=config_to(out, format="influx")).returncode == 0
    assert [re.sub(r" \d+$", "", line) for line in lines_of(out)] == ["g a=1,b=3", "g c=1,d=2"], lines_of(out)
    assert feed(folder, text, "-g", "g", config=config_to(out + "2", format="json")).returncode == 0
    times = [json.loads(line)["timestamp"] for line in lines_of(out + "2")]
    assert times[0] == times[1] and times[2] == times[3], times


@case
def group_and_labels_of_a_line_take_precedence_over_the_options(folder):
    out = os.path.join(folder, "out")
    text = 'a=1\n{"name":"b","value":2,"labels":{"host":"own","x":"y"}}\n{"name":"c","value":3,"group":"other"}\n'
    done = feed(folder, text, "-g", "g", "-l", "host=all", "-l", "z=1", config=config_to(out, format="json"))
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in lines_of(out)]
    assert [(r["group"], r["name"], r["labels"]) for r in records] == [
        ("g", "a", {"host": "all", "z": "1"}), ("g", "b", {"host": "own", "x": "y", "z": "1"}),
        ("other", "c", {"host": "all", "z": "1"})]
    done = feed(folder, text, "-", config=config_to(out))
    assert done.returncode == 1 and done.stderr.startswith("weir: stdin:1: the line names no group, and -g GROUP is not given\n"), done


# ---- Reading standard input ---------------------------------------------------------------------------


@case
def without_values_it_reads_standard_input_unless_that_is_a_terminal_or_empty(folder):
    config = config_to(os.path.join(folder, "out"))
    assert feed(folder, "x=1\n", "-g", "g", config=config).returncode == 0
    done = feed(folder, "", "-g", "g", config=config)
    assert done.returncode == 2 and "no value is given" in done.stderr, done
    done = feed(folder, "", "-g", "g", "-v", "-", config=config)
    assert done.returncode == 0 and "stdin: 0 lines, 0 values, 0 invalid lines\n" in done.stdout, done
    leader, follower = pty.openpty()
    done = run(WEIR, "emit", "-g", "g", stdin=follower, WEIR_CONFIG=config)
    assert done.returncode == 2 and "no value is given" in done.stderr, done
    os.close(leader)
    os.close(follower)
    done = feed(folder, "x=1\n", config=config)
    assert done.returncode == 2 and "-g GROUP is missing" in done.stderr, done
    unreadable = os.open(folder, os.O_RDONLY)
    done = run(WEIR, "emit", "-g", "g", "-", stdin=unreadable, WEIR_CONFIG=config)
    os.close(unreadable)
    assert done.returncode == 1 and "stdin cannot be read: Is a directory" in done.stderr, done


@case
def progress_is_shown_on_a_terminal(folder):
    config = config_to(os.path.join(folder, "away", "out"), queue="4KiB")
    leader, follower = pty.openpty()
    process = start_emit("-t", "1ms", "-g", "g", "-", config=config, stderr=follower)
    os.close(follower)
    process.stdin.write(b"x=1\n" * 1000)
    process.stdin.flush()
    seen = b""
    while not re.search(rb"\x1b\[K\d+ lines, \d+ values, \d+ queued\r", seen):
        seen += os.read(leader, 10000)
    process.send_signal(signal.SIGTERM)
    threading.Thread(target=drain, args=(leader,), daemon=True).start()
    process.stdin.close()
    assert process.wait(100) == 1
    process.stdout.close()


def drain(descriptor):
    """Reads until the terminal is closed, so that the writer does not block."""
    try:
        while os.read(descriptor, 10000):
            pass
    except OSError:
        pass  # the other end is closed
    os.close(descriptor)


@case
def an_invalid_weir_config_is_a_failure():
    done = run(WEIR, "emit", "-g", "g", "x=1", WEIR_CONFIG='{"group":{}}')
    assert done.returncode == 1 and "unknown section" in done.stderr and "WEIR_CONFIG is invalid: no value was added" in done.stderr, done


main()
