"""The format csv in files and requests, read back by Python's csv module."""

import csv
import glob
import io
import json
import os

from harness import ADDER, BUILD, WEIR, Skip, assert_ledgers, case, main, run, start, without_waits
from scripted import Scripted

NAMES = ["timestamp", "group", "name", "value", "labels"]
HOSTILE = ['a,b', 'say "x"', '"', '""', ',', "it's", " blank ", "tab-less;semi|bar", "h\u00f6he", "\U0001f600,", "=1+1", "\\", "#", "\u2028"]


def config_of(path, **options):
    handler = {"type": "file", "path": str(path), "format": "csv", **options}
    return {"settings": {"shutdown_timeout": "30s"}, "handlers": {"disk": handler}, "groups": {"*": "disk"}}


def rows_of(path, end="\r\n"):
    """All records of a file; each must be valid and on one line."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    assert text.endswith(end) and text.count("\n") == text.count(end), path
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert len(rows) == text.count("\n") and all(len(row) == len(NAMES) for row in rows), path
    return rows


@case
def hostile_names_and_labels_are_read_back_unchanged(folder):
    path = os.path.join(folder, "out.csv")
    for text in HOSTILE:
        labels = {"plain": "x", text.replace("=", "") or "k": text + "\r\n\t\"'"}
        options = [word for key, value in labels.items() for word in ("-l", f"{key}={value}")]
        done = run(WEIR, "emit", "-g", text, *options, f"{text}=1.5", WEIR_CONFIG=config_of(path))
        assert done.returncode == 0 and without_waits(done.stderr) == "", (text, done.stderr)
        _, group, name, value, found = rows_of(path)[-1]
        assert (group, name, float(value)) == (text, text, 1.5)
        assert json.loads(found) == labels
    rows = rows_of(path)
    assert rows[0] == NAMES and len(rows) == 1 + len(HOSTILE), rows


@case
def numbers_are_read_back_with_all_digits(folder):
    path = os.path.join(folder, "out.csv")
    values = ["0.1", "-0.0", "5e-324", "1.7976931348623157e308", "49.403", "1e16"]
    done = run(WEIR, "emit", "-g", "g", *(f"v={value}" for value in values), WEIR_CONFIG=config_of(path))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done
    assert [repr(float(row[3])) for row in rows_of(path)[1:]] == [repr(float(value)) for value in values]


@case
def the_header_can_be_disabled_and_lines_can_end_with_lf(folder):
    path = os.path.join(folder, "out.csv")
    config = config_of(path, format={"type": "csv", "header": False, "newline": "lf"})
    for _ in range(2):
        assert run(WEIR, "emit", "-g", "g", "v=1", WEIR_CONFIG=config).returncode == 0
    assert [row[1:4] for row in rows_of(path, "\n")] == [["g", "v", "1"]] * 2


@case
def each_file_starts_with_one_header_with_several_writers(folder):
    path = os.path.join(folder, "out.csv")
    config = config_of(path, rotate_size="16KiB")
    programs = [start(ADDER, "-g", f"p{i}", "-n", 5000, "-f", -1, "-H", "disk", WEIR_CONFIG=config) for i in range(3)]
    for program in programs:
        out, err = program.communicate(timeout=240)
        assert program.returncode == 0 and without_waits(err) == "", err
        assert_ledgers(json.loads(out))
    files = sorted(glob.glob(path + ".*")) + [path]
    assert len(files) > 10 and all(os.path.getsize(name) <= 16 * 1024 for name in files)
    rows = []
    for name in files:
        first, *others = rows_of(name)
        assert first == NAMES and NAMES not in others and others, name
        rows += others
    for i in range(3):
        assert [float(row[3]) for row in rows if row[1] == f"p{i}"] == list(range(5000))


@case
def a_file_truncated_by_another_process_gets_its_header_again(folder):
    path = os.path.join(folder, "out.csv")
    for _ in range(2):
        assert run(WEIR, "emit", "-g", "g", "v=1", WEIR_CONFIG=config_of(path)).returncode == 0
        assert [row[2] for row in rows_of(path)] == ["name", "v"]
        os.truncate(path, 0)


@case
def the_console_shows_no_header():
    done = run(WEIR, "emit", "-g", "g", "v=1", WEIR_CONFIG={"handlers": {"c": {"type": "console", "format": "csv"}}, "groups": {"*": "c"}})
    assert done.returncode == 0 and "timestamp" not in done.stdout and done.stdout.count(",g,v,1,") == 1, done


@case
def each_request_has_a_header():
    if not os.path.exists(os.path.join(BUILD, "plugins", ".libs", "http.so")):
        raise Skip("the handler type http is not built")
    for compress in ("none", "gzip"):
        with Scripted() as server:
            handler = {"type": "http", "url": server.url, "format": "csv", "compress": compress, "batch": 100, "overflow": "block"}
            done = run(ADDER, "-n", 1000, "-f", -1, "-H", "push", WEIR_CONFIG={"handlers": {"push": handler}, "groups": {"*": "push"}})
            assert done.returncode == 0 and without_waits(done.stderr) == "", done
            assert_ledgers(json.loads(done.stdout))
            rows = []
            for request in server.requests:
                assert request.headers["content-type"] == "text/csv; charset=utf-8"
                first, *others = csv.reader(io.StringIO(request.body.decode(), newline=""), strict=True)
                assert first == NAMES and others
                rows += others
            assert len(server.requests) > 1 and [float(row[3]) for row in rows] == list(range(1000))


main()
