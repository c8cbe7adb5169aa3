"""The source type statsd: each type of line, each kind of socket, and addresses that are taken."""

import itertools
import json
import math
import os
import random
import re
import signal
import socket
import stat

from harness import Skip, assert_ledgers, await_day, lines_of, main, run, skip_fork_under_sanitizers, wait_for
from sourced import SOURCED, Sourced, case, write_config

UDP, TCP = "udp://127.0.0.1:0", "tcp://127.0.0.1:0"


def start(folder, *listen, **options):
    return Sourced(folder, {"type": "statsd", "listen": list(listen or [UDP]), **options})


def send_udp(program, *datagrams):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for datagram in datagrams:
            sender.sendto(datagram, ("127.0.0.1", program.port("udp://127.0.0.1")))


def send_unix(path, *datagrams):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        for datagram in datagrams:
            sender.sendto(datagram, path)


def connect(program, start_of_address="tcp://127.0.0.1", host="127.0.0.1"):
    return socket.create_connection((host, program.port(start_of_address)))


@case
def each_type_of_line_arrives_with_its_value(folder):
    await_day()
    program = start(folder, set_interval="1d")
    send_udp(program, b"hits:1|c\nlevel:2.5|g\ntime:320|ms\nsize:512|h\nspan:7|d\nusers:bob|s\nmany:1:2:3|h")
    program.await_stats(lines=7)
    counts = program.end()
    assert program.values() == [("hits", 1), ("level", 2.5), ("time", 320), ("size", 512), ("span", 7),
                                ("many", 1), ("many", 2), ("many", 3), ("users", 1)], "the count of a set comes at the end of its interval"
    assert (counts["lines"], counts["bad_lines"], counts["refused"], counts["added"]) == (7, 0, 0, 9), counts


@case
def lines_of_one_type_are_not_added_to_names_of_another(folder):
    program = start(folder)
    send_udp(program, b"x:1|c\nx:320|ms\nx:5|g|#k:v\nx:2|c|#k:v\nx:3|s\ny:1|g\ny:4|c\ny:+2|g\nz:1|ms\nz:2|h\nz:3|c")
    program.await_stats(lines=11)
    counts = program.end()
    assert program.values() == [("x", 1), ("x", 2), ("y", 1), ("y", 3), ("z", 1), ("z", 2)]
    assert (counts["added"], counts["refused"]) == (6, 5), counts
    assert 'name "x": it was declared as a counter before, which stays' in program.log(), program.log()


@case
def an_entry_of_metrics_takes_lines_of_all_types(folder):
    program = Sourced(folder, {"type": "statsd", "listen": [UDP]}, metrics={"in": {"x": "gauge", "y": "value"}})
    send_udp(program, b"x:1|c\nx:2|g\nx:3|ms\nx:4|ms\ny:1|g\ny:5|c\ny:6|ms\ny:7|g")
    program.await_stats(lines=8)
    counts = program.end()
    assert program.values() == [("x", 1), ("x", 2), ("x", 3), ("x", 4), ("y", 1), ("y", 5), ("y", 6), ("y", 7)]
    assert (counts["added"], counts["refused"]) == (8, 0), counts


@case
def counters_are_scaled_by_their_sample_rate_and_levels_are_not(folder):
    program = start(folder)
    send_udp(program, b"hits:1|c|@0.1\nhits:3|c|@0.5\nhits:2|c|@1\nlevel:320|g|@0.1")
    program.await_stats(lines=4)
    program.end()
    assert program.values() == [("hits", 10), ("hits", 6), ("hits", 2), ("level", 320)]


@case
def series_without_values_end_and_make_room_for_others(folder):
    """Label sets give their places in settings.max_series back, which shows when they have ended."""
    handler = {"type": "file", "path": os.path.join(folder, "out"), "format": "json", "aggregate": "20ms", "block_timeout": "1h"}
    program = Sourced(folder, {"type": "statsd", "listen": [UDP], "series_limit": 11, "expiry": "200ms"}, handler)

    def series():
        return program.ask("stats")["process"]["series"]
    send_udp(program, b"n:1|c")
    program.await_stats(added=1)
    before = series()
    for i in range(1, 4):
        send_udp(program, "\n".join(f"n:{i}|c|#id:{name}" for name in ["a"] + [f"{i}.{j}" for j in range(9)]).encode())
        program.await_stats(added=1 + 10 * i)
        wait_for(lambda: series() == before, "the end of the series")
    send_udp(program, b"n:7|c|#id:a")
    program.await_stats(added=32)
    counts = program.end()
    assert counts["refused"] == 0, (counts, program.log())
    totals = [line["value"] for line in program.written() if line.get("labels") == {"id": "a"}]
    assert set(totals) == {1, 2, 3, 7} and totals == sorted(totals), totals  # each time from 0 on


@case
def the_total_that_label_sets_beyond_the_limit_share_outlives_each_of_them(folder):
    handler = {"type": "file", "path": os.path.join(folder, "out"), "format": "json", "aggregate": "20ms", "block_timeout": "1h"}
    program = Sourced(folder, {"type": "statsd", "listen": [UDP], "expiry": "200ms"}, handler, max_series_per_name=1)

    def series():
        return program.ask("stats")["process"]["series"]
    send_udp(program, b"n:1|c")
    program.await_stats(added=1)
    before = series()
    send_udp(program, b"n:1|c|#id:a\nn:3|c|#id:b")
    program.await_stats(added=3)
    wait_for(lambda: series() == before, "the end of both: only the first has places of its own")
    send_udp(program, b"n:1|c|#id:c\nn:5|c|#id:d")
    program.await_stats(added=5)
    program.end()
    totals = [line["value"] for line in program.written() if line.get("labels") == {"weir_overflow": "true"}]
    assert totals == sorted(totals) and totals[-1] == 8, totals


@case
def after_a_kill_counters_and_gauges_go_on_as_such(folder):
    away = os.path.join(folder, "away")
    handler = {"type": "file", "path": os.path.join(away, "out"), "format": "json", "aggregate": "1h", "retry_min": "5ms", "retry_max": "20ms"}

    def restart():
        return Sourced(folder, {"type": "statsd", "listen": [UDP]}, handler, journal=os.path.join(folder, "journal"))
    program = restart()
    send_udp(program, b"hits:3|c\nhits:4|c\nlevel:5|g")
    program.await_stats(added=3)
    program.program.kill()
    program.program.wait()
    os.mkdir(away)
    program = restart()
    send_udp(program, b"hits:5|c")
    program.await_stats(added=1)
    out, _ = program.program.communicate(timeout=300)
    report = json.loads(out.splitlines()[-1])
    assert_ledgers(report)
    assert report["handlers"]["out"]["recovered"] == 3 and report["handlers"]["out"]["delivered"] == 4, report
    lines = [json.loads(line) for line in lines_of(os.path.join(away, "out"))]
    assert {(line["name"], line["instrument"]) for line in lines} == {("hits", "counter"), ("level", "gauge")}, lines
    last = {line["name"]: line["value"] for line in lines}
    assert last == {"hits": 12, "level": 5} and all(line["cumulative"] for line in lines if line["name"] == "hits"), lines


@case
def the_order_of_tags_makes_no_other_series(folder):
    program = start(folder, series_limit=1)
    for tags in itertools.permutations((b"a:1", b"b:2", b"c:3")):
        send_udp(program, b"hits:1|c|#" + b",".join(tags))
    program.await_stats(lines=6)
    counts = program.end()
    assert program.values() == [("hits", 1)] * 6 and counts["refused"] == 0, (program.values(), counts)


@case
def at_the_limit_of_series_the_label_with_the_most_values_is_named(folder):
    program = start(folder, series_limit=8)
    send_udp(program, "\n".join(f"hits:1|c|#host:h{i % 3},id:{i},zone:a" for i in range(10)).encode())
    program.await_stats(lines=10)
    counts = program.end()
    assert len(program.values()) == 8 and counts["refused"] == 2, (program.values(), counts)
    assert 'one more than series_limit allows (8); of their labels, "id" has the most values: 8; further' in program.log(), program.log()


@case
def a_timer_with_a_sample_rate_is_added_as_often_as_it_stands_for(folder):
    program = start(folder)
    send_udp(program, b"time:320|ms|@0.1\nsize:1:2|h|@0.5\nspan:7|d|@0.001\nspan:8|d|@1")
    program.await_stats(lines=4)
    counts = program.end()
    assert program.values() == [("time", 320)] * 10 + [("size", 1)] * 2 + [("size", 2)] * 2 + [("span", 7)] * 1000 + [("span", 8)]
    assert (counts["added"], counts["records"], counts["refused"]) == (1015, 1015, 0), counts


@case
def a_rate_whose_inverse_is_no_whole_number_is_right_on_average(folder):
    program = start(folder, TCP)
    with connect(program) as client:
        client.sendall(b"time:1|ms|@0.4\n" * 10000)  # 2.5 times each: 25,000 with a standard deviation of 50
        program.await_stats(lines=10000)
    counts = program.end()
    assert 24000 < counts["added"] < 26000, counts


@case
def how_often_a_timer_is_added_has_a_limit(folder):
    for limit, expected in ((1, 1), (50, 50), (1000, 1000)):
        program = start(folder, repeat_limit=limit)
        send_udp(program, b"time:1|ms|@0.00000001")
        program.await_stats(lines=1)
        assert program.end()["added"] == expected


# ---- The figures of the server StatsD ---------------------------------------------------------------------------

PERCENTS = [1, 5, 7, 29, 50, 57, 75, 90, 95, 98, 99, 99.9, 99.99]


def figures_of_timer(received, counted):
    """Those of https://github.com/statsd/statsd, lib/process_metrics.js."""
    values = sorted(received)
    count, middle = len(values), len(values) // 2
    mean = sum(values) / count
    figures = {"count": counted, "lower": values[0], "upper": values[-1], "sum": sum(values), "mean": mean,
               "sum_squares": sum(value * value for value in values), "std": math.sqrt(sum((value - mean) ** 2 for value in values) / count),
               "median": values[middle] if count % 2 else (values[middle - 1] + values[middle]) / 2}
    for percent in PERCENTS:
        rank = math.floor(percent / 100 * count + 0.5) if count > 1 else count
        if rank:
            name = str(percent).replace(".", "_")
            below = values[:rank]
            figures.update({f"count_{name}": rank, f"upper_{name}": values[rank - 1], f"sum_{name}": sum(below), f"mean_{name}": sum(below) / rank,
                            f"sum_squares_{name}": sum(value * value for value in below)})
    return figures


def figures_of_load(folder, lines, **options):
    """What a file has after these lines, in one interval: by path. Rates are those of a time that is not known, and left out."""
    await_day()
    out = os.path.join(folder, "out")
    program = Sourced(folder, {"type": "statsd", "listen": [TCP], "group": "statsd", "set_interval": "1d", **options}, {
        "type": "file", "path": out, "format": {"type": "graphite", "names": "statsd"}, "aggregate": "1d", "percentiles": PERCENTS,
        "block_timeout": "1h"})
    with connect(program) as client:
        client.sendall("".join(line + "\n" for line in lines).encode())
        program.await_stats(lines=len(lines))
    program.end()
    figures = {}
    for path, value, _ in (line.split(" ") for line in lines_of(out)):
        figures.setdefault(path, float(value))  # an interval without values may follow
    rates = {path: value for path, value in figures.items() if path.endswith((".rate", ".count_ps"))}
    seconds = {figures[re.sub(r"\.(rate|count_ps)$", ".count", path)] / value for path, value in rates.items()}
    assert rates and max(seconds) / min(seconds) < 1 + 1e-9, seconds
    return {path: value for path, value in figures.items() if path not in rates}


def is_equal(written, path, value):
    """Exactly, but for what the server rounds with each value that it adds."""
    part = path.rsplit(".", 1)[1]
    is_rounded = ("any" in path or "time." in path) and part.startswith(("std", "sum", "mean"))
    return math.isclose(written[path], value, rel_tol=1e-13, abs_tol=1e-12) if is_rounded else written[path] == value


@case
def names_with_and_without_dots_are_those_that_were_sent(folder):
    names = ["hits", "app.hits", "a.b.c.hits"]
    kinds = (("", 3, "c"), ("_g", 7, "g"), ("_t", 5, "ms"), ("_s", "ann", "s"), ("_s", "bob", "s"), ("_s", "ann", "s"))
    lines = [f"{name}{ending}:{value}|{kind}" for name in names for ending, value, kind in kinds]
    own = "statsd.packets_received"
    expected = {"stats.counters.X.count": 3, "stats.gauges.X_g": 7, "stats.timers.X_t.count": 1, "stats.timers.X_t.upper_90": 5, "stats.sets.X_s.count": 2}
    for split, more in (("none", [own]), ("first", []), ("last", [])):
        figures = figures_of_load(folder, lines + [f"{name}:3|c" for name in more], split=split)
        for name in names:
            found = {path: figures[path.replace("X", name)] for path in expected}
            assert found == expected, (split, name, figures)
        beside = [path for path in figures if not any(f".{name}" in path for name in names)]
        assert beside == [f"stats.counters.{name}.count" for name in more], (split, beside)
        os.remove(os.path.join(folder, "out"))


@case
def of_few_values_the_figures_are_those_of_the_server_statsd(folder):
    """Of whole numbers and their quarters exactly; of others, sum and mean are more exact than the server's."""
    chance = random.Random(20)
    kinds = {"whole": lambda: chance.randrange(500), "quarter": lambda: chance.randrange(-300, 300) / 4,
             "time": lambda: round(chance.lognormvariate(3, 1), 3), "any": lambda: chance.uniform(1, 1000)}
    timers = {f"app.{kind}.{size}": [draw() for _ in range(size)]
              for kind, draw in kinds.items() for size in (1, 2, 3, 4, 5, 7, 10, 11, 20, 50, 55, 99, 100, 101, 250, 256)}
    timers["app.few.5000"] = [chance.randrange(250) for _ in range(5000)]
    lines = [f"{name}:{value!r}|ms" for name, values in timers.items() for value in values]
    chance.shuffle(lines)
    counters = {"app.hits": (1, 1, 0.5), "app.bytes": (0.25, 1000, 7)}
    lines += [f"{name}:{value}|c" for name, values in counters.items() for value in values]
    lines += ["app.sampled:3|c|@0.1", "app.sampled:1|c|@0.25", "app.level:7|g", "app.level:-3|g", "app.level:+0.5|g"]
    written = figures_of_load(folder, lines)
    expected = {"stats.gauges.app.level": 4.5, "stats.counters.app.sampled.count": 34}
    expected.update({f"stats.counters.{name}.count": sum(values) for name, values in counters.items()})
    for name, values in timers.items():
        expected.update({f"stats.timers.{name}.{part}": value for part, value in figures_of_timer(values, len(values)).items()})
    assert set(written) == set(expected), set(written) ^ set(expected)
    for path, value in expected.items():
        assert is_equal(written, path, value), (path, written[path], value)


@case
def a_sample_rate_changes_no_figure_but_sum_and_ranks(folder):
    """Sums and ranks are those of all values, and those of the server of the received ones."""
    chance = random.Random(21)
    timers = {f"app.s{weight}.{size}": (weight, [chance.randrange(100) for _ in range(size)])
              for weight in (2, 4, 10, 100) for size in (1, 2, 3, 10, 20, 55)}
    written = figures_of_load(folder, [f"{name}:{value}|ms|@{1 / weight}" for name, (weight, values) in timers.items() for value in values])
    for name, (weight, values) in timers.items():
        expected = figures_of_timer(values, len(values) * weight)
        for part in ("count", "lower", "upper", "mean", "median"):
            assert written[f"stats.timers.{name}.{part}"] == expected[part], (name, part)
        whole = figures_of_timer(values * weight, len(values) * weight)
        for part, value in whole.items():
            assert is_equal(written, f"stats.timers.{name}.{part}", value), (name, part)


def send_members(program, *members):
    send_udp(program, *(b"users:" + member + b"|s" for member in members))


@case
def distinct_members_of_a_set_are_counted(folder):
    await_day()
    program = start(folder, set_interval="1d")
    send_members(program, b"bob", b"ann", b"bob", b"a:b", b"", b"bob")
    send_udp(program, b"users:bob|s|#zone:a\nusers:bob|s|#zone:a\nother:bob|s|@0.1")
    program.await_stats(lines=9)
    counts = program.end()
    assert program.values() == [("users", 4), ("users", 1), ("other", 1)]
    assert [line.get("labels") for line in program.written()] == [None, {"zone": "a"}, None]
    assert (counts["added"], counts["refused"], counts["bad_lines"]) == (3, 0, 0), counts


@case
def a_set_that_is_empty_after_an_interval_is_0_once(folder):
    program = start(folder, set_interval="20ms")
    send_members(program, b"bob")
    program.await_stats(added=2)
    send_members(program, b"bob")
    program.await_stats(added=4)
    counts = program.end()
    assert program.values() == [("users", 1), ("users", 0)] * 2 and counts["added"] == 4, (program.values(), counts)


@case
def many_members_are_counted_exactly_and_beyond_a_limit_they_are_refused(folder):
    for limit, refused in ((10000000, 0), (150000, 50000)):
        await_day()
        program = start(folder, TCP, set_interval="1d", set_members=limit)
        with connect(program) as client:
            for _ in range(2):  # what is known is not refused
                client.sendall(b"".join(b"users:%d|s\n" % i for i in range(100000)))
            client.sendall(b"".join(b"others:%d|s\n" % i for i in range(100000)))
            program.await_stats(lines=300000)
        counts = program.end()
        assert program.values()[-2:] == [("users", 100000), ("others", 100000 - refused)] and counts["refused"] == refused, (program.values(), counts)
        assert ("set_members allows" in program.log()) == (refused > 0), program.log()


@case
def without_an_interval_each_member_is_a_value(folder):
    program = start(folder, set_interval="0s")
    send_members(program, b"bob", b"ann", b"bob")
    program.await_stats(lines=3)
    program.end()
    assert [(line["name"], line["value"], line["metadata"]) for line in program.written()] == [
        ("users", 1, "bob"), ("users", 1, "ann"), ("users", 1, "bob")]


@case
def a_gauge_with_a_sign_is_a_change_of_its_level(folder):
    program = start(folder, TCP, UDP)
    send_udp(program, b"level:10|g\nlevel:+2.5|g\nlevel:-4|g\nnew:-3|g\nlevel:1|g\nlevel:-2|g\nlevel:+1|g|#a:b")
    program.await_stats(lines=7)
    program.end()
    assert program.values() == [("level", 10), ("level", 12.5), ("level", 8.5), ("new", -3), ("level", 1), ("level", -1),
                                ("level", 1)], "the last one has another label, so it is another gauge"


@case
def labels_are_taken_and_those_of_the_source_take_precedence(folder):
    program = start(folder, labels={"host": "own"})
    send_udp(program, b"hits:1|c|#route:/x,up,host:sent\nhits:1|c|@0.5|#route:/y")
    program.await_stats(lines=2)
    program.end()
    assert [line["labels"] for line in program.written()] == [{"host": "own", "route": "/x", "up": ""},
                                                              {"host": "own", "route": "/y"}]


@case
def split_and_group_choose_the_group(folder):
    for split, expected in (("none", ("own", "a.b.c")), ("first", ("a", "b.c")), ("last", ("a.b", "c"))):
        program = start(folder, split=split, group="own", group_prefix="pre")
        send_udp(program, b"a.b.c:1|c")
        program.await_stats(lines=1)
        program.end()
        line = program.written()[-1]
        assert (line["group"], line["name"]) == ("pre." + expected[0], expected[1]), line


@case
def lines_that_make_no_sense_are_counted_and_the_first_is_quoted(folder):
    program = start(folder)
    send_udp(program, b"hits:1|c\nhits:x|c\nhits\nhits:1|q\nhits:1|c|@7\n_e{1,1}:a|b\n\nhits:2|c\nhits:-1|c\nhits:+1|g")
    program.await_stats(lines=10)
    counts = program.end()
    assert program.values() == [("hits", 1), ("hits", 2)]
    assert (counts["lines"], counts["bad_lines"], counts["refused"]) == (10, 5, 2), counts
    assert 'line 2, column 6: "x" is not a finite number; further ones are only counted' in program.log(), program.log()


@case
def several_listeners_of_each_kind_are_read(folder):
    path = os.path.join(folder, "socket")
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            raise Skip("the machine has no IPv6") from None
    program = start(folder, UDP, TCP, "udp://[::1]:0", "tcp://[::1]:0", "unix-dgram:" + path, "udp://localhost:0")
    send_udp(program, b"udp:1|c")
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"udp6:1|c\n", ("::1", program.port("udp://[::1]")))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"named:1|c\n", ("127.0.0.1", program.port("udp://localhost")))
    send_unix(path, b"unix:1|c")
    with connect(program) as one, connect(program, "tcp://[::1]", "::1") as other:
        one.sendall(b"tcp:1|c\n")
        other.sendall(b"tcp6:1|c\n")
        program.await_stats(lines=6)
    program.end()
    assert sorted(program.values()) == [(name, 1) for name in ("named", "tcp", "tcp6", "udp", "udp6", "unix")]


@case
def a_datagram_ends_its_last_line_and_a_connection_does_not(folder):
    program = start(folder, UDP, TCP)
    send_udp(program, b"a:1|", b"c\n", b"b:1|c")
    program.await_stats(lines=3)
    with connect(program) as client:
        client.sendall(b"c:1")
        client.sendall(b"|c\nd:1|c")
    program.await_stats(lines=4, bad_lines=3)
    counts = program.end()
    assert program.values() == [("b", 1), ("c", 1)] and counts["bad_lines"] == 3, (program.values(), counts)


@case
def lines_of_connections_do_not_mix(folder):
    program = start(folder, TCP)
    clients = [connect(program) for _ in range(20)]
    for byte in range(6):
        for number, client in enumerate(clients):
            client.sendall(f"n:{number:02}|c\n".encode()[byte:byte + 1] if byte < 5 else b"c\n")
    program.await_stats(lines=20)
    for client in clients:
        client.close()
    program.end()
    assert sorted(program.values()) == [("n", number) for number in range(20)]


@case
def the_longest_datagrams_are_read_whole_and_longer_ones_are_cut_and_counted(folder):
    path = os.path.join(folder, "socket")
    program = start(folder, UDP, "unix-dgram:" + path)
    send_udp(program, b"a:1|c\n" * 10917)
    program.await_stats(lines=10917)
    send_unix(path, b"b:1|c\n" * 16000)
    program.await_stats(lines=10917 + 10922, bad_lines=1)
    counts = program.end()
    assert (counts["added"], counts["bad_lines"]) == (10917 + 10922, 1), counts  # 65536 = 6 * 10922 + 4
    assert "a datagram is longer than datagram_bytes (65536); its rest is lost" in program.log(), program.log()


@case
def a_port_that_is_taken_is_tried_again(folder):
    for kind, scheme in ((socket.SOCK_DGRAM, "udp"), (socket.SOCK_STREAM, "tcp")):
        with socket.socket(socket.AF_INET, kind) as taken:
            taken.bind(("127.0.0.1", 0))
            if scheme == "tcp":
                taken.listen()
            port = taken.getsockname()[1]
            address = f"{scheme}://127.0.0.1:{port}"
            program = start(folder, UDP, address)
            program.await_log(f"{address}: bind: Address already in use; trying again")
        wait_for(lambda: f"listens at {address}\n" in program.log(), "the address")  # pylint: disable=cell-var-from-loop
        if scheme == "tcp":
            with connect(program) as client:
                client.sendall(b"a:1|c\n")
        else:
            with socket.socket(socket.AF_INET, kind) as sender:
                sender.sendto(b"a:1|c", ("127.0.0.1", port))
        program.await_stats(lines=1)
        assert program.end()["added"] == 1


@case
def a_unix_socket_gets_its_mode_and_is_removed_at_the_end(folder):
    path = os.path.join(folder, "socket")
    for mode in ("0600", "0622"):
        program = start(folder, "unix-dgram:" + path, mode=mode)
        program.await_log("listens at")
        assert stat.S_IMODE(os.stat(path).st_mode) == int(mode, 8)
        send_unix(path, b"a:1|c")
        program.await_stats(lines=1)
        program.end()
        assert not os.path.exists(path)


@case
def a_unix_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not(folder):
    path = os.path.join(folder, "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(path)
        program = start(folder, "unix-dgram:" + path)
        program.await_log("bind: Address already in use; trying again")
        send_unix(path, b"still the other's")
        assert other.recv(100) == b"still the other's"
    program.await_log("listens at")
    send_unix(path, b"a:1|c")
    program.await_stats(lines=1)
    assert program.end()["added"] == 1


@case
def a_path_that_is_no_socket_is_left_alone(folder):
    path = os.path.join(folder, "socket")
    with open(path, "w", encoding="ascii") as file:
        file.write("precious")
    program = start(folder, "unix-dgram:" + path)
    program.await_log("bind: File exists; trying again")
    program.end()
    with open(path, encoding="ascii") as file:
        assert file.read() == "precious"


@case
def a_unix_socket_whose_path_is_lost_is_opened_again(folder):
    path = os.path.join(folder, "socket")
    program = start(folder, "unix-dgram:" + path)
    program.await_log("listens at")
    os.remove(path)
    wait_for(lambda: os.path.exists(path), "the socket")
    program.await_log("listens at[^$]*listens at")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(path + ".other")
        os.rename(path + ".other", path)
        program.await_log("(the path was removed or replaced; trying again[^$]*){2}")
        program.end()
        assert os.path.exists(path), "it is another program's now"


@case
def addresses_beyond_loopback_need_a_word(folder):
    for listen in ("udp://0.0.0.0:0", "tcp://[::]:0", "udp://192.0.2.1:0", "udp://[::ffff:192.0.2.1]:0"):
        done = run(SOURCED, write_config(folder, {"type": "statsd", "listen": [UDP, listen]}))
        assert done.returncode == 1 and '"insecure": true allows it' in done.stderr and listen in done.stderr, done
    program = start(folder, "udp://0.0.0.0:0", insecure=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"a:1|c", ("127.0.0.1", program.port("udp://0.0.0.0")))
    program.await_stats(lines=1)
    program.end()


# ---- Admin commands ---------------------------------------------------------------------------------------------

ADMIN = "tcp://127.0.0.1:0"


def connect_admin(program):
    port = int(program.await_log(r"takes admin commands at tcp://127\.0\.0\.1:(\d+)\n")[1])
    return socket.create_connection(("127.0.0.1", port))


def receive(client, end="END\n\n"):
    text = ""
    while not text.endswith(end):
        part = client.recv(4096).decode()
        assert part, text
        text += part
    return text


def ask_admin(client, command, end="END\n\n"):
    client.sendall(command.encode())
    return receive(client, end)


def admin_stats(client):
    lines = ask_admin(client, "stats\n").splitlines()
    assert lines[3:] == ["END", ""], lines
    stats = {name: int(value) for name, value in (line.split(": ") for line in lines[:3])}
    assert list(stats) == ["uptime", "messages.last_msg_seen", "messages.bad_lines_seen"], lines
    return stats


@case
def admin_commands_report_stats_and_health(folder):
    program = start(folder, UDP, TCP, admin=ADMIN)
    with connect_admin(program) as client:
        stats = admin_stats(client)
        assert 0 <= stats["messages.last_msg_seen"] <= stats["uptime"] and stats["messages.bad_lines_seen"] == 0, stats
        assert ask_admin(client, "help\n", "\n\n") == "Commands: stats, health, help, quit\n\n"
        for command, expected in ("health", "up"), ("health\r\n", "up"), ("health DOWN\n", "down"), ("health\n", "down"), ("health x\n", "down"), ("health up\n", "up"):
            assert ask_admin(client, command, "\n") == f"health: {expected}\n", command
        assert ask_admin(client, "\n \nnonsense\nhealth\n", "up\n") == "ERROR\nhealth: up\n"
        client.sendall(b"help\nquit\nhelp\n")
        assert receive(client, "\n\n") == "Commands: stats, health, help, quit\n\n" and client.recv(1) == b""
    program.end()


@case
def what_the_source_does_not_know_is_no_empty_answer(folder):
    program = start(folder, admin=ADMIN)
    with connect_admin(program) as client:
        for command in "counters", "gauges", "timers", "delcounters a.*", "delgauges a", "deltimers a", "config":
            answer = ask_admin(client, command + "\n")
            assert answer == "ERROR: not supported: see `weir status`, or a handler prometheus\nEND\n\n", (command, answer)
    program.end()


@case
def bad_lines_are_those_of_datagrams_and_of_connections_that_are_open_or_have_ended(folder):
    program = start(folder, UDP, TCP, admin=ADMIN)
    with connect_admin(program) as client, connect(program) as opened:
        send_udp(program, b"hits\nhits:1|c")
        opened.sendall(b"hits:1|c\nhits\nhits:x|c\n")
        with connect(program) as ended:
            ended.sendall(b"hits\nhits:1|c")  # the last one is torn
        program.await_stats(lines=6, bad_lines=5)
        wait_for(lambda: admin_stats(client)["messages.bad_lines_seen"] == 5, "the lines")
    assert program.end()["bad_lines"] == 5


@case
def clients_of_admin_commands_that_stay_make_room_for_others(folder):
    program = start(folder, admin=ADMIN)
    clients = []
    for _ in range(40):
        client = connect_admin(program)
        assert ask_admin(client, "health\n", "\n") == "health: up\n"
        clients.append(client)
    closed = [client for client in clients[:24] if client.recv(1) == b""]
    assert len(closed) == 24
    for client in clients[24:]:
        assert ask_admin(client, "health\n", "\n") == "health: up\n"
    program.end()
    for client in clients[24:]:
        assert client.recv(1) == b""
    for client in clients:
        client.close()


@case
def admin_commands_have_an_address_of_loopback_or_consent(folder):
    for admin, problem in (("tcp://0.0.0.0:0", 'anybody who reaches it can read the source\'s counts and set its health; "insecure": true allows it'),
                           ("udp://127.0.0.1:8126", "has no scheme that is known; allowed: tcp://ADDRESS:PORT"), ("127.0.0.1:8126", "has no scheme that is known"),
                           ("tcp://127.0.0.1", "has no port")):
        done = run(SOURCED, write_config(folder, {"type": "statsd", "listen": [UDP], "admin": admin}))
        assert done.returncode == 1 and f'sources.in.admin: "{admin}"' in done.stderr and problem in done.stderr, done
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        program = start(folder, UDP, admin=address)
        program.await_log(f"{address}: bind: Address already in use; trying again")
    with connect_admin(program) as client:
        assert ask_admin(client, "health\n", "\n") == "health: up\n"
    send_udp(program, b"hits:1|c")
    program.await_stats(lines=1)
    program.end()


@case
def a_forked_child_has_none_of_the_sockets_of_admin_commands(folder):
    skip_fork_under_sanitizers()
    program = start(folder, admin=ADMIN)
    with connect_admin(program) as client:
        assert ask_admin(client, "health\n", "\n") == "health: up\n"
        assert program.ask("fork") == 0
        assert ask_admin(client, "health\n", "\n") == "health: up\n"
    program.end()


@case
def wrong_addresses_are_refused_with_what_is_allowed(folder):
    wrong = {
        "127.0.0.1:8125": "has no scheme that is known",
        "unix:/run/x": "has no scheme that is known",
        "udp://127.0.0.1": "has no port",
        "udp://127.0.0.1:70000": "has something other than a port, 0..65535",
        "udp://metrics.example:8125": "has a host that is not an IP address",
        "tcp://::1:8125": "has an IPv6 address without brackets",
        "unix-dgram:socket": "has no absolute path",
        "unix-dgram:/" + "x" * 120: "has a path of more than 107 bytes",
    }
    for listen, problem in wrong.items():
        done = run(SOURCED, write_config(folder, {"type": "statsd", "listen": [listen]}))
        assert done.returncode == 1 and problem in done.stderr and "unix-dgram:/PATH" in done.stderr, (listen, done)
    for options, problem in (({"listen": []}, "at least one address"), ({"mode": "9"}, "is not a mode")):
        done = run(SOURCED, write_config(folder, {"type": "statsd", **options}))
        assert done.returncode == 1 and problem in done.stderr, (options, done)


@case
def connections_end_while_a_child_has_copies_of_their_sockets(folder):
    skip_fork_under_sanitizers()
    program = start(folder, TCP)
    clients = [connect(program) for _ in range(3)]
    for client in clients:
        client.sendall(b"hits:1|c\n")
    program.await_stats(lines=3)
    child = program.ask("hold")
    assert child > 0
    for client in clients:
        client.shutdown(socket.SHUT_WR)  # the end reaches the source, and the child's copy stays readable
    for count in range(4, 24):
        with connect(program) as client:
            client.sendall(b"hits:1|c\n")
            program.await_stats(lines=count)
    os.kill(child, signal.SIGKILL)
    for client in clients:
        client.close()
    counts = program.end()
    assert program.values() == [("hits", 1)] * 23 and counts["lines"] == 23, counts


@case
def a_forked_child_has_none_of_its_sockets(folder):
    skip_fork_under_sanitizers()
    program = start(folder, UDP, TCP, "unix-dgram:" + os.path.join(folder, "socket"))
    with connect(program) as client:
        client.sendall(b"a:1|c\n")
        program.await_stats(lines=1)
        assert program.ask("fork") == 0
        client.sendall(b"a:2|c\n")
        program.await_stats(lines=2)
    program.end()
    assert program.values() == [("a", 1), ("a", 2)]


if __name__ == "__main__":
    main()
