"""The modes of benchmarkai, selected by BENCHMARK_AI alone: the output equals that of Python's json.dumps."""

import datetime
import json
import math
import os
import random
import re
import struct
import subprocess
import time

from fifos import assert_ends_silently, without_slow_reader_warnings
from harness import (ADDER, BUILD, PLUGINS, WEIR, Skip, assert_handler_ledger, assert_ledgers, case, environment, lines_of, main, run,
                     skip_fork_under_sanitizers, start, without_waits)
from scripted import Scripted

EVENTS = os.path.join(BUILD, "tests", "support", "events")
SCRIPTED_APP = os.path.join(BUILD, "tests", "support", "scripted_app")
NOT_CREATED = -14


# ---- Output ----------------------------------------------------------------------------------------------------


def write_events(path, events):
    with open(path, "w", encoding="ascii") as file:
        for event in events:
            parts = (f"{name.encode().hex()}={struct.unpack('<Q', struct.pack('<d', value))[0]:x}" for name, value in event.items())
            file.write(" ".join(parts) + "\n")


def dumps(events):
    return "".join(json.dumps(event) + "\n" for event in events).encode("ascii")


def is_control(character):
    return ord(character) < 0x20 or 0x7f <= ord(character) < 0xa0


def make_doubles(draw):
    """Numbers of all kinds, with more at the values where printing errors are likely."""
    yield from (0.0, -0.0, 1.0, 0.1, 0.1 + 0.2, 1 / 3, 100.0, 49.403, 12.375, math.nan, math.inf, -math.inf, math.pi, -math.e)
    yield from (5e-324, 2.2250738585072011e-308, 2.2250738585072014e-308, 1.7976931348623157e308, 4.9406564584124654e-324 * 3)
    yield from (2.0 ** 53, 2.0 ** 53 + 2, 9007199254740993.0, 2.0 ** 63, -2.0 ** 63, 2.0 ** 64, 1e22, 1e23, 9.5e-7, 123456789012345680.0)
    for exponent in range(-323, 309):
        for value in (float(f"1e{exponent}"), float(f"-9.999999999999999e{exponent}") if exponent < 308 else -1.0):
            yield value
    for base in (1e16, 1e15, 1e-4, 1e-5, 1e21, 1.0, 2.0 ** 52):
        for value in (base, math.nextafter(base, 0), math.nextafter(base, math.inf)):
            yield from (value, -value)
    for exponent in range(-1074, 1024, 7):
        yield math.ldexp(1.0, exponent)
    for _ in range(6000):
        yield struct.unpack("<d", draw.randbytes(8))[0]
    for _ in range(3000):
        yield round(draw.uniform(-1e6, 1e6), draw.randrange(7))
    for _ in range(1000):
        yield float(draw.randrange(-10 ** 18, 10 ** 18))


# Characters that json.dumps escapes, that resemble control characters, and of one to four bytes and one or two units of UTF-16.
CHARACTERS = ("\"\\/bnrtu{}:,'$%& ~" "\u00a0\u00ad\u00e9\u00ff\u0100\u061c\u07ff\u0800\u200b\u200e\u2028\u2029\u202e\u20ac\u2066"
              "\ud7ff\ue000\ufeff\ufffd\ufffe\uffff\U00010000\U0001f600\U0001f9d1\U000e0001\U0010fffe\U0010ffff")


def make_name(draw):
    if draw.random() < 0.3:
        return draw.choice(("latency", "alexnet.batchsize16.latency", "throughput", "a b", "x" * 255))
    while True:
        characters = []
        for _ in range(draw.randrange(1, 30)):
            kind = draw.random()
            point = draw.randrange(0x20, 0x250) if kind < 0.5 else draw.randrange(0x20, 0x110000)
            characters.append(draw.choice(CHARACTERS) if kind < 0.3 or 0xd800 <= point < 0xe000 else chr(point))
        name = "".join(c for c in characters if not is_control(c))
        if 0 < len(name.encode()) <= 255:
            return name


def make_events(seed):
    draw = random.Random(seed)
    doubles = list(make_doubles(draw))
    draw.shuffle(doubles)
    events = []
    while doubles:
        event = {}
        for _ in range(min(len(doubles), draw.choice((1, 1, 2, 3, 8)))):
            event[make_name(draw)] = doubles.pop()
        events.append(event)
    return events


def first_difference(given, expected):
    for number, (one, other) in enumerate(zip(given.splitlines(), expected.splitlines())):
        if one != other:
            return number, one, other
    return len(given), len(expected)


@case
def stdout_equals_the_output_of_json_dumps_byte_for_byte(folder):
    path = os.path.join(folder, "events")
    for seed in range(2):
        events = make_events(seed)
        assert sum(len(event) for event in events) > 10000
        write_events(path, events)
        done = subprocess.run([EVENTS, path], env=environment(BENCHMARK_AI="stdout"), capture_output=True, timeout=240)
        assert done.returncode == 0 and done.stderr == b"", done.stderr
        assert done.stdout == dumps(events), first_difference(done.stdout, dumps(events))


@case
def the_fifo_receives_the_same_bytes(folder):
    """A line longer than PIPE_BUF would be dropped, so only shorter events are used."""
    path, fifo = os.path.join(folder, "events"), os.path.join(folder, "fifo")
    events = [event for event in make_events(7) if len(json.dumps(event)) < 4000]
    write_events(path, events)
    os.mkfifo(fifo)
    program = subprocess.Popen([EVENTS, path], env=environment(BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=fifo), stderr=subprocess.PIPE)
    with open(fifo, "rb") as reader:
        given = reader.read()
    err = program.communicate()[1]
    assert without_slow_reader_warnings(err.decode()) == "" and program.returncode == 0, err
    assert given == dumps(events), first_difference(given, dumps(events))


# ---- The records of metrics-pusher -----------------------------------------------------------------------------

JOB = {"action-id": "ACT", "client-id": "CLI", "dashboard-name": "d \u00e9", "task_name": "t \"1\""}
TIME_ZONES = ("UTC", "Asia/Kolkata", "America/St_Johns", "XYZ-13:37")


def write_records(folder, path, events, zone):
    """Writes the events in each style, and their times: in all handlers an event has the same one. Returns the lines by style.
    One of the values is called labels, which the style stdout cannot represent."""
    lines = {}
    formats = {"times": "json", **{style: {"type": "bai", "style": style} for style in ("stdout", "elasticsearch", "kafka")}}
    handlers = {name: {"type": "file", "path": os.path.join(folder, name), "append": False, "format": form} for name, form in formats.items()}
    config = {"settings": {"labels": JOB}, "handlers": handlers, "groups": {"*": list(handlers)}}
    done = subprocess.run([EVENTS, path], env=environment(WEIR_CONFIG=config, TZ=zone), capture_output=True, timeout=240)
    assert done.returncode == 0 and done.stdout == b"", done
    assert done.stderr == b"weir: warning: stdout: the handler or its format cannot represent some values, or a total would be infinite; 1 values dropped so far\n", done
    for name in handlers:
        with open(os.path.join(folder, name), encoding="utf-8", newline="\n") as file:
            lines[name] = list(file)  # splitlines() would split names at U+2028, too
    assert len(lines["times"]) == sum(len(event) for event in events)
    return lines


def times_of(lines, events):
    """The time of each event in nanoseconds, out of a line for each value."""
    at = 0
    for event in events:
        yield int(json.loads(lines[at], parse_float=lambda text: text)["timestamp"].replace(".", ""))
        at += len(event)


def to_stdout(event):
    return [json.dumps({**event, "labels": JOB})]


def to_document(event, time_ns):
    """As the original, with the time of the event for its own: utcnow().isoformat()."""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=time_ns // 1000)
    return [json.dumps({**JOB, "timestamp": moment.isoformat(), "metrics": event, "tracing": {"service": "metrics-pusher"}})]


def to_records(event, time_ns):
    return [json.dumps({"name": name, "value": value, "timestamp": time_ns // 1000000, "labels": JOB}) for name, value in event.items()]


@case
def the_styles_write_what_the_backends_of_metrics_pusher_do_in_any_time_zone(folder):
    path = os.path.join(folder, "events")
    events = make_events(3)[:2000] + [{"labels": 1.0, "loss": 0.5}, {"timestamp": 1.0, "metrics": 2.0}]
    write_events(path, events)
    for zone in TIME_ZONES:
        lines = write_records(folder, path, events, zone)
        times = list(times_of(lines["times"], events))
        assert abs(times[-1] / 1e9 - time.time()) < 3600
        for style, expected in (("stdout", [to_stdout(event) for event in events]),
                                ("elasticsearch", [to_document(event, at) for event, at in zip(events, times)]),
                                ("kafka", [to_records(event, at) for event, at in zip(events, times)])):
            for given, wanted in zip(lines[style], (line + "\n" for event in expected for line in event)):
                assert given == wanted, (zone, style, given, wanted)
            assert len(lines[style]) == sum(len(event) for event in expected), (zone, style)


@case
def labels_of_the_stream_take_precedence_and_every_value_is_counted():
    config = {"settings": {"labels": {"client-id": "CLI", "action-id": "ACT"}},
              "handlers": {"c": {"type": "console", "format": {"type": "bai", "style": "stdout"}}}, "groups": {"*": "c"}}
    done = run(WEIR, "emit", "-v", "-g", "job", "-l", "action-id=OWN", "-l", "a=b", "loss=0.5", "labels=1", WEIR_CONFIG=config)
    assert done.returncode == 1, done
    assert done.stdout == ('{"loss": 0.5, "labels": {"action-id": "OWN", "client-id": "CLI", "a": "b"}}\n'
                           "c: 1 delivered, 1 dropped (unrepresentable)\n"), done


@case
def elasticsearch_gets_one_document_in_a_request():
    if not os.path.exists(os.path.join(PLUGINS, "http.so")):
        raise Skip("the handler type http was not built")
    events = [{"a": 1.0, "b": 2.0}, {"a": 3.0}]
    with Scripted() as server:
        config = {"handlers": {"es": {"type": "http", "url": server.url, "batch": 1, "headers": {"Content-Type": "application/json"},
                                      "format": {"type": "bai", "style": "elasticsearch"}}}, "groups": {"*": "es"}}
        lines = "".join(json.dumps(event) + "\n" for event in events)
        done = subprocess.run([WEIR, "emit", "-g", "job", "--parse", "bai"], input=lines, env=environment(WEIR_CONFIG=config), timeout=240,
                              capture_output=True, text=True)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        assert [json.loads(request.body)["metrics"] for request in server.requests] == events, server.requests
        assert all(request.headers["content-type"] == "application/json" for request in server.requests)


@case
def the_parsers_read_events_without_labels_and_refuse_the_other_records():
    lines = {"stdout": '{"loss": 0.5, "labels": {"task_name": "t"}}\n',
             "kafka": '{"name": "loss", "value": 0.5, "timestamp": 1795219607576, "labels": {"task_name": "t"}}\n',
             "elasticsearch": '{"timestamp": "2026-11-21T00:06:47", "metrics": {"loss": 0.5}, "tracing": {"service": "metrics-pusher"}}\n'}
    config = {"handlers": {"c": {"type": "console", "format": "bai"}}, "groups": {"*": "c"}}
    left_out = '"labels": an object is not a value'
    for style, parse, output, message in (("stdout", "bai", '{"loss": 0.5}\n', left_out), ("stdout", "json", '{"loss": 0.5}\n', left_out),
                                          ("kafka", "json", "", "must be a time"), ("elasticsearch", "json", "", "is not a value")):
        done = subprocess.run([WEIR, "emit", "-g", "job", "--parse", parse], input=lines[style], env=environment(WEIR_CONFIG=config),
                              timeout=240, capture_output=True, text=True)
        assert done.stdout == output and done.returncode == 1 and message in done.stderr, (style, parse, done)


# ---- Selecting the mode ----------------------------------------------------------------------------------------


@case
def the_value_is_case_insensitive():
    for value in ("stdout", "STDOUT", "StdOut"):
        done = run(ADDER, "-q", "-n", 2, BENCHMARK_AI=value)
        assert done.stdout == '{"t0": 0.0}\n{"t0": 1.0}\n' and without_waits(done.stderr) == "", (value, done)


@case
def case_is_ignored_in_ascii_letters_only_in_every_locale(folder):
    fifo = os.path.join(folder, "no-fifo")
    done = run(ADDER, "-q", BENCHMARK_AI="FIFO", LC_ALL="tr_TR.UTF-8", BENCHMARK_AI_FIFO_FILEPATH=fifo, BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0")
    assert f"fifo: the named pipe {fifo} does not exist" in done.stderr, done


@case
def an_unknown_value_is_logged_once_and_nothing_is_written():
    done = run(ADDER, "-t", 4, "-n", 100, "-f", -1, BENCHMARK_AI="pipe\x1b")
    assert done.returncode == 0
    assert done.stderr == 'weir: error: BENCHMARK_AI: must be stdout or fifo, got "pipe\\x1b"; BENCHMARK_AI is not used\n', done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["process"]["unrouted"] == report["process"]["added"] == 400


@case
def an_empty_value_means_unset():
    done = run(ADDER, "-q", BENCHMARK_AI="")
    assert done.stdout == done.stderr == ""


@case
def weir_config_takes_precedence_even_when_it_is_invalid(folder):
    path = os.path.join(folder, "out")
    config = {"handlers": {"disk": {"type": "file", "path": path, "format": "bai"}}, "groups": {"*": "disk"}}
    done = run(ADDER, "-q", BENCHMARK_AI="stdout", WEIR_CONFIG=config)
    assert done.stdout == done.stderr == "" and lines_of(path) == ['{"t0": 0.0}'], done
    done = run(ADDER, "-q", BENCHMARK_AI="stdout", WEIR_CONFIG="{")
    assert done.stdout == "" and "WEIR_CONFIG is not used" in done.stderr, done


@case
def it_takes_precedence_over_the_programs_configuration_which_is_still_checked(folder):
    path, config = os.path.join(folder, "out"), os.path.join(folder, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"handlers": {"disk": {"type": "file", "path": path}}, "groups": {"*": "disk"}}, file)
    done = run(ADDER, "-q", "-c", config, BENCHMARK_AI="stdout")
    assert done.stdout == '{"t0": 0.0}\n' and not os.path.exists(path), done
    with open(config, "w", encoding="utf-8") as file:
        file.write('{"groups": {"*": "dsk"}}')
    done = run(ADDER, "-q", "-c", config, BENCHMARK_AI="stdout")
    assert done.returncode == 3 and '"dsk"' in done.stderr, done


@case
def an_invalid_value_leaves_the_programs_configuration_in_force(folder):
    path, config = os.path.join(folder, "out"), os.path.join(folder, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"handlers": {"disk": {"type": "file", "path": path, "format": "bai"}}, "groups": {"*": "disk"}}, file)
    done = run(ADDER, "-q", "-c", config, BENCHMARK_AI="wrong")
    assert done.returncode == 0 and done.stderr.count("BENCHMARK_AI is not used") == 1, done
    assert lines_of(path) == ['{"t0": 0.0}']


# ---- The fifo mode ---------------------------------------------------------------------------------------------


def run_scripted_app(commands, **env):
    """Runs scripted_app with these commands. Returns its replies and its stderr."""
    done = subprocess.run([SCRIPTED_APP], env=environment(BENCHMARK_AI="fifo", **env), input="".join(c + "\n" for c in commands), timeout=240,
                          capture_output=True, text=True)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@case
def a_missing_fifo_fails_calls_by_name_after_the_configured_time(folder):
    path = os.path.join(folder, "fifo")
    replies, _ = run_scripted_app(["add a 1", "event 3", "ledger fifo", "shutdown 0"], BENCHMARK_AI_FIFO_FILEPATH=path,
                                  BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0.25", BENCHMARK_AI_FIFO_WAIT_TIME_STEP="0.05")
    for reply in replies[:2]:
        assert reply["code"] == NOT_CREATED, reply
        match = re.fullmatch(f'handler "fifo": the named pipe {path} does not exist, waited (\\d+) ms', reply["error"])
        assert match and int(match.group(1)) >= 250, reply
    assert_handler_ledger(replies[2])
    assert replies[2]["queued"] == 4


@case
def a_program_whose_fifo_never_came_ends_without_waiting_for_it_again(folder):
    """The shutdown has no time limit, so this would exceed the test's."""
    path = os.path.join(folder, "fifo")
    replies, log = run_scripted_app(["add a 1", "event 3", "shutdown -1", "ledger fifo"], BENCHMARK_AI_FIFO_FILEPATH=path,
                                    BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0.05", BENCHMARK_AI_FIFO_WAIT_TIME_STEP="0.01")
    assert [reply["code"] for reply in replies[:2]] == [NOT_CREATED] * 2, replies
    assert_handler_ledger(replies[3])
    assert replies[3]["queued"] == 0 and sum(replies[3]["dropped"]) == 4, replies
    assert re.search(f"fifo: shutting down while failing: the named pipe {path} does not exist, waited .*; not delivered in time: 4 dropped", log), log


@case
def a_call_has_delivered_when_it_returns(folder):
    path = os.path.join(folder, "fifo")
    os.mkfifo(path)
    program = subprocess.Popen([SCRIPTED_APP], env=environment(BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=path), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    for number in range(20):
        program.stdin.write(f"add n {number}\n")
        program.stdin.flush()
        assert json.loads(program.stdout.readline())["code"] == 0
        assert os.read(reader, 4096) == b'{"n": %d.0}\n' % number
    program.stdin.close()
    assert program.wait(240) == 0
    os.close(reader)


@case
def the_path_is_taken_literally(folder):
    """No variable is expanded in it, and no character in it ends the string in the generated configuration."""
    path = os.path.join(folder, 'a "${HOME}" $$ \\ \u00e9 \t%s')
    os.mkfifo(path)
    program = start(ADDER, "-q", "-n", 3, BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_FILEPATH=path)
    with open(path, encoding="ascii") as reader:
        assert reader.read() == '{"t0": 0.0}\n{"t0": 1.0}\n{"t0": 2.0}\n'
    assert_ends_silently(program)


@case
def unset_or_empty_variables_have_the_defaults_of_benchmarkai(folder):
    moved = {"LD_PRELOAD": os.path.join(BUILD, "tests", "support", "preload", ".libs", "moved_tmp.so"), "WEIR_MOVED_TMP": folder}
    for path in ({}, {"BENCHMARK_AI_FIFO_FILEPATH": ""}):
        replies, _ = run_scripted_app(["add a 1", "ledger fifo", "shutdown 0"], BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0",
                                      BENCHMARK_AI_FIFO_WAIT_TIME_STEP="", **path, **moved)
        assert replies[0]["error"] == ('handler "fifo": the named pipe /tmp/benchmark-ai/fifo does not exist; '
                                       "the named pipe /tmp/benchmark-ai-fifo does not exist"), replies
        assert_handler_ledger(replies[1])


@case
def invalid_numbers_are_reported_with_variable_and_value():
    for variable in ("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "BENCHMARK_AI_FIFO_WAIT_TIME_STEP"):
        for value in ("ten", "1,5", "10s", "1.2.3", ".", "nan", "9" * 400, "0x10", "1__0", "_1", "1_", "1_.5", "+-1", "--1", "- 1", " "):
            done = run(ADDER, "-q", **{"BENCHMARK_AI": "fifo", variable: value})
            assert done.returncode == 0 and done.stdout == ""
            assert re.fullmatch(f'weir: error: {variable}: must be a number of seconds, like 10 or 0.5, got "[^"]*"(\\.\\.\\.)?; '
                                "BENCHMARK_AI is not used\n", done.stderr), (value, done.stderr)


@case
def numbers_have_the_forms_of_pythons_float(folder):
    path = os.path.join(folder, "fifo")
    os.mkfifo(path)
    for value in ("1e1", " 2 ", "\t+5\n", "1_0", "1_0.2_5e0_1", "inf", "-1", "-inf", "Infinity", ".5", "5.", "1E-3", "86401", "1e300", "-0.0"):
        assert float(value) is not None
        for variable in ("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "BENCHMARK_AI_FIFO_WAIT_TIME_STEP"):
            program = start(ADDER, "-q", "-n", 1, **{"BENCHMARK_AI": "fifo", "BENCHMARK_AI_FIFO_FILEPATH": path,
                                                     "BENCHMARK_AI_FIFO_WAIT_TIME_STEP": "0.01", variable: value})
            with open(path, encoding="ascii") as reader:
                assert reader.read() == '{"t0": 0.0}\n', (variable, value)
            assert_ends_silently(program)


@case
def a_wait_that_is_negative_is_none_and_one_with_an_exponent_is_kept(folder):
    path = os.path.join(folder, "fifo")
    for value, words in (("-1", "does not exist"), ("2.5e-1", "does not exist, waited ")):
        replies, _ = run_scripted_app(["add a 1", "shutdown 0"], BENCHMARK_AI_FIFO_FILEPATH=path, BENCHMARK_AI_FIFO_MAX_WAIT_TIME=value,
                                      BENCHMARK_AI_FIFO_WAIT_TIME_STEP="1e-2")
        assert words in replies[0]["error"], (value, replies[0])
        assert ("waited" in replies[0]["error"]) == (value != "-1"), replies[0]


@case
def a_path_that_is_not_valid_utf_8_is_refused():
    done = subprocess.run([ADDER, "-q"], env={**{k.encode(): v.encode() for k, v in environment(BENCHMARK_AI="fifo").items()},
                                              b"BENCHMARK_AI_FIFO_FILEPATH": b"/tmp/\xff"}, capture_output=True, timeout=240)
    assert done.stderr == b'weir: error: BENCHMARK_AI_FIFO_FILEPATH: must be valid UTF-8, got "/tmp/\\xff"; BENCHMARK_AI is not used\n', done


@case
def a_forked_child_uses_the_same_mode():
    skip_fork_under_sanitizers()
    done = subprocess.run([SCRIPTED_APP], env=environment(BENCHMARK_AI="stdout"), input="add a 1\nfork child\nreap\nadd b 2\n", timeout=240,
                          capture_output=True, text=True)
    events = [json.loads(line) for line in done.stdout.splitlines() if "code" not in line]
    assert events == [{"a": 1}, {"child": 1}, {"b": 2}], done


main()
