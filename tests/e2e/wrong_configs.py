"""Each invalid configuration is refused with place, value and allowed values, and the one in force stays."""

import json
import os
import re

from harness import BUILD, WEIR, Skip, case, lines_of, main, run

CONFIGURER = os.path.join(BUILD, "tests", "support", "configurer")

FILE = '{"handlers":{"disk":{"type":"file","path":"/tmp/x",%s}},"groups":{"*":"disk"}}'
GROUPS = '{"groups":%s}'
SETTINGS = '{"settings":{%s},"groups":{"*":"console"}}'

# (text, line:column, parts of the message)
WRONG = [
    # the text itself
    ("", "1:1", ["the text ends where a value is expected"]),
    ("{", "1:1", ["unclosed {"]),
    ('{"groups": {"*": "console"}', "1:1", ["unclosed {"]),
    ("[]", "1:1", ["must be an object, got an array"]),
    ("nonsense", "1:1", ["expected a value"]),
    ('{"groups": {}} trailing', "1:16", ["text after the end"]),
    ('{"groups": {"*": "console",}}', "1:27", ["trailing comma"]),
    ('{"groups": {"*": ["console",]}}', "1:28", ["trailing comma"]),
    ('{\n  "groups": {},\n  "groups": {}\n}', "3:3", ["duplicate key", '"groups"']),
    ('{"groups": {"a": "console", "\\u0061": "console"}}', "1:29", ["duplicate key", '"a"']),
    ("{'groups': {}}", "1:2", ["expected a key in double quotes"]),
    ('{"groups" {}}', "1:11", ["expected ':'"]),
    ('{"groups": {"*": "con\nsole"}}', "1:22", ["control character in a string"]),
    ('{"groups": {"*": "con\\qsole"}}', "1:22", ["unknown escape"]),
    ('{"groups": {"*": "con\\u0000"}}', "1:22", ["\\u0000 is not allowed"]),
    ('{"groups": {"*": "\\ud800"}}', "1:19", ["surrogate"]),
    ('{"settings": {"max_series": 01}}', "1:29", ["invalid number"]),
    ('{"groups": {} /* no end', "1:15", ["unterminated comment"]),
    ("\ufeff{}", "1:1", ["byte order mark"]),
    ("[" * 40, "1:33", ["nested too deeply", "32"]),
    # sections
    ('{"group": {}}', "1:2", ["unknown section", 'did you mean "groups"?', "settings, handlers, groups"]),
    ('{"handlers": []}', "1:14", ["handlers: must be an object, got an array"]),
    ('{"groups": "console"}', "1:12", ['groups: must be an object, got "console"']),
    ('{"settings": null}', "1:14", ["settings: must be an object, got null"]),
    # included files; more in include.py
    ('{"include": 5}', "1:13", ["include: must be an array, got 5"]),
    ('{"include": ["/dev/null", {}]}', "1:14", ["include[0]: /dev/null: not a regular file"]),
    ('{"include": [["a"]]}', "1:14", ["include[0]: must be a string, got an array"]),
    ('{"include": ""}', "1:13", ["include: must be the path of a file, or a pattern", 'got ""']),
    ('{"include": "no_such.json"}', "1:13", ["include: ", "no_such.json: No such file or directory"]),
    ('{"include": "no_such.d/*.json"}', "1:13", ["include: ", "no_such.d: No such file or directory"]),
    ('{"include": "*/a.json"}', "1:13", ["only the last part of a path may have *, ? or [...]"]),
    ('{"include": "${NO_SUCH_VARIABLE}"}', "1:13", ["include: ${NO_SUCH_VARIABLE}: the variable is not set"]),
    ('{"includes": []}', "1:2", ["unknown section", 'did you mean "include"?']),
    (SETTINGS % '"include": []', "1:14", ["settings.include: unknown option; it belongs at the top of the configuration"]),
    # settings
    (SETTINGS % '"shutdown_timeout": 5', "1:34", ["settings.shutdown_timeout: 5 has no unit", "5s"]),
    (SETTINGS % '"shutdown_timeout": "5"', "1:34", ['settings.shutdown_timeout: "5" has no unit']),
    (SETTINGS % '"shutdown_timeout": "5x"', "1:34", ['"5x" is not a duration', "like 5s, 200ms"]),
    (SETTINGS % '"shutdown_timeout": "-5s"', "1:34", ['"-5s" is not a duration']),
    (SETTINGS % '"max_series": 0', "1:28", ["settings.max_series: 0 is out of range", "1..30000000"]),
    (SETTINGS % '"max_series": "many"', "1:28", ['"many" is not an integer']),
    (SETTINGS % '"max_series": 99999999999999999999', "1:28", ["is not an integer"]),
    (SETTINGS % '"max_serie": 5', "1:14", ["settings.max_serie: unknown option", 'did you mean "max_series"?']),
    (SETTINGS % '"labels": ["a"]', "1:24", ["settings.labels: an array is not an object"]),
    (SETTINGS % '"labels": {"a": 1}', "1:30", ["settings.labels.a: 1 is not a string"]),
    (SETTINGS % '"labels": {"a\\nb": "c"}', None, ["settings.labels", "control character"]),
    (SETTINGS % '"labels": {"host": "${NO_SUCH_VARIABLE}"}', "1:33", ["${NO_SUCH_VARIABLE}", "is not set", ":-default"]),
    (SETTINGS % '"labels": {"host": "$HOST"}', "1:33", ["unescaped $", "$$"]),
    (SETTINGS % '"labels": {"host": "${file:/no/such/file}"}', "1:33", ["${file:/no/such/file}", "No such file"]),
    (SETTINGS % '"unknown_keys": "ignore"', "1:30", ['settings.unknown_keys: "ignore" is not allowed; allowed: error, warn']),
    (SETTINGS % '"unknown_keys": true', "1:30", ["settings.unknown_keys: true is not allowed", "error, warn"]),
    # metrics
    ('{"metrics": []}', "1:13", ["metrics: must be an object, got an array"]),
    ('{"metrics": {"a": "counter"}}', "1:19", ['metrics.a: must be an object, got "counter"']),
    ('{"metrics": {"a..b": {}}}', "1:14", ['group "a..b": empty part']),
    ('{"metrics": {"a": {"": "gauge"}}}', "1:20", ['name "": empty']),
    ('{"metrics": {"a": {"x": "countr"}}}', "1:25", ['metrics.a.x: "countr" is not allowed', 'did you mean "counter"?']),
    ('{"metrics": {"a": {"x": 3}}}', "1:25", ["must be an instrument (value, counter, gauge, histogram)", "got 3"]),
    ('{"metrics": {"a": {"x": {"uint": "ms"}}}}', "1:26", ["metrics.a.x.uint: unknown option", 'did you mean "unit"?']),
    ('{"metrics": {"a": {"x": {"unit": 3}}}}', "1:34", ["metrics.a.x.unit: 3 is not a string"]),
    ('{"metrics": {"a": {"x": {"max_series": -1}}}}', "1:40", ["-1 is out of range", "0..30000000"]),
    ('{"metrics": {"a": {"x": {"buckets": 3}}}}', "1:37", ["buckets: must be an array or a text, got 3"]),
    ('{"metrics": {"a": {"x": {"buckets": "linear(1, 2)"}}}}', "1:37", ['metrics.a.x.buckets: "linear(1, 2)": allowed are an array', "exponential(START"]),
    ('{"metrics": {"a": {"x": {"buckets": "linear(1, 2, 201)"}}}}', "1:37", ["COUNT must be an integer from 1 to 200"]),
    ('{"metrics": {"a": {"x": {"buckets": []}}}}', "1:37", ["0 bounds; 1 to 200 are allowed"]),
    ('{"metrics": {"a": {"x": {"buckets": [3, 1]}}}}', "1:41", ["buckets[1]: 1 does not follow", "rising"]),
    ('{"metrics": {"a": {"x": {"buckets": [1, "2"]}}}}', "1:41", ['buckets[1]: "2" is not a number']),
    ('{"metrics": {"a": {"x": {"instrument": "gauge", "buckets": [3]}}}}', "1:49", ["only a histogram has buckets"]),
    ('{"metrics": {"a": {"x": {"merge": "min"}}}}', "1:35", ['metrics.a.x.merge: "min" is not allowed', "last, sum, max"]),
    ('{"metrics": {"a": {"x": {"instrument": "counter", "merge": "sum"}}}}', "1:51", ['metrics.a.x.merge: only a gauge has a level to merge, and "instrument" is "counter"']),
    ('{"metric": {}}', "1:2", ['did you mean "metrics"?']),
    (SETTINGS % '"max_series_per_name": -1', "1:37", ["-1 is out of range", "0..30000000"]),
    # handlers
    ('{"handlers": {"disk": {"path": "/tmp/x"}}}', "1:23", ['handlers.disk: the option "type" is missing']),
    ('{"handlers": {"disk": "file"}}', "1:23", ['handlers.disk: must be an object, got "file"']),
    ('{"handlers": {"disk": {"type": "file", "path": "/tmp/x", "retry_min": "1m"}}}', "1:71",
     ["handlers.disk.retry_min: a retry_min of 1m is longer than the retry_max of 30s"]),
    ('{"handlers": {"disk": {"type": "fifo", "path": "/tmp/x", "retry_min": "5s", "retry_max": "2s"}}}', None,
     ["handlers.disk.retry_min: a retry_min of 5s is longer than the retry_max of 2s"]),
    ('{"handlers": {"*": {"retry_max": "10ms"}, "disk": {"type": "file", "path": "/tmp/x"}}}', "1:34",
     ["handlers.*.retry_max: a retry_min of 500ms is longer than the retry_max of 10ms"]),
    ('{"handlers": {"disk": {"type": "fil", "path": "/tmp/x"}}}', "1:32",
     ['handlers.disk.type: "fil" is not an installed handler type', 'did you mean "file"?']),
    ('{"handlers": {"disk": {"type": "../evil"}}}', "1:32", ['"../evil" is not a type\'s name', "a-z"]),
    ('{"handlers": {"disk": {"type": "x", "plugin": "x.so"}}}', "1:47", ['handlers.disk.plugin: must be absolute, got "x.so"']),
    ('{"handlers": {"disk": {"type": "x", "plugin": "/no/such.so"}}}', "1:47", ["/no/such.so", "No such file"]),
    ('{"handlers": {"disk": {"type": "file"}}}', "1:23", ['handlers.disk: the option "path" is missing', "the file"]),
    ('{"handlers": {"inherit": {"type": "null"}}}', "1:15", ['handlers.inherit: the name is reserved']),
    ('{"handlers": {"*": {"type": "file"}}}', "1:21", ["handlers.*.type: unknown option"]),
    ('{"handlers": {"*": {"queue": "5"}}}', "1:30", ["handlers.*.queue", "has no unit"]),
    (FILE % '"pat": "/y"', "1:52", ["handlers.disk.pat: unknown option", 'did you mean "path"?', "allowed:"]),
    (FILE % '"append": "yes"', "1:62", ['handlers.disk.append: "yes" is not true or false']),
    (FILE % '"append": 1', "1:62", ["handlers.disk.append: 1 is not true or false"]),
    (FILE % '"mode": "rw-r--r--"', "1:60", ['handlers.disk.mode: "rw-r--r--" is not a mode', "0640"]),
    (FILE % '"queue": "64"', "1:61", ['handlers.disk.queue: "64" has no unit', "64KiB"]),
    (FILE % '"queue": "1B"', "1:61", ['handlers.disk.queue: "1B" is out of range', "1KiB..1TiB"]),
    # summaries
    (FILE % '"aggregate": "1ms"', None, ["aggregate must be 0s or at least 10 ms"]),
    (FILE % '"aggregate": 10', None, ["10 has no unit"]),
    (FILE % '"aggregate": "2d"', None, ["out of range", "0s..1d"]),
    (FILE % '"aggregate": {"every": "1s"}', None, ["an object is not a duration"]),
    (FILE % '"aggregate": true', None, ["true is not a duration"]),
    (FILE % '"aggregate": "1s", "delivery": "sync"', None, ['delivery cannot be used together with "aggregate"']),
    (FILE % '"aggregate": "1s", "overflow": "block"', None, ['overflow cannot be used together with "aggregate"']),
    (FILE % '"aggregate_series": 0', None, ["0 is out of range", "1..10000000"]),
    (FILE % '"aggregate_series": "many"', None, ['"many" is not an integer']),
    (FILE % '"percentiles": 50', None, ["50 is not an array of strings"]),
    (FILE % '"percentiles": [0]', None, ["above 0 and below 100", 'got "0"']),
    (FILE % '"percentiles": [50, 100]', None, ["above 0 and below 100", 'got "100"']),
    (FILE % '"percentiles": ["median"]', None, ["above 0 and below 100", 'got "median"']),
    (FILE % '"format": {"type": "graphite", "names": "statsd"}', None, ['names "statsd" needs "aggregate"']),
    (FILE % '"parts": "min"', None, ['"min" is not an array of strings']),
    (FILE % '"parts": ["min", "count"]', None, ["parts: must be of min, max and last", 'got "count"']),
    (FILE % '"percentiles": [true]', None, ["true is not a string"]),
    (FILE % '"percentiles": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]', None, ["at most 16 numbers", 'got "17"']),
    (FILE % '"agregate": "1s"', None, ["unknown option", 'did you mean "aggregate"?']),
    (FILE % '"overflow": "drop"', "1:64", ['"drop" is not allowed', "block, drop_newest, drop_oldest"]),
    (FILE % '"delivery": true', "1:64", ["true is not allowed", "async, sync"]),
    (FILE % '"batch": 1.5', "1:61", ["batch: 1.5 is not an integer"]),
    (FILE % '"batch": 0', "1:61", ["is out of range", "1..1000000"]),
    (FILE % '"format": "jsn"', "1:62", ['"jsn" is not a format', 'did you mean "json"?', "allowed: text, json, bai"]),
    (FILE % '"format": {"kind": "json"}', "1:62", ['"type" is missing']),
    (FILE % '"format": {"type": "json", "indent": "2"}', "1:79", ["handlers.disk.format.indent: unknown option"]),
    (FILE % '"format": {"type": "influx", "temporality": "deltas"}', "1:96", ["format.temporality", 'did you mean "delta"?', "total, delta"]),
    (FILE % '"format": {"type": "influx", "name_separator": "a b"}', "1:62", ["name_separator must be 1 to 8 of the characters"]),
    (FILE % '"format": {"type": "influx", "name_separator": ""}', "1:62", ["name_separator must be"]),
    (FILE % '"format": {"type": "graphite", "temporality": "rate"}', "1:98", ["format.temporality", "allowed: total, delta"]),
    (FILE % '"format": {"type": "statsd", "histograms": "c"}', "1:95", ["format.histograms", "allowed: ms, h"]),
    (FILE % '"format": {"type": "statsd", "temporality": "total"}', "1:81", ["format.temporality: unknown option"]),
    (FILE % '"format": {"type": "openmetrics"}', "1:71", ['the format "openmetrics" makes documents']),
    (FILE % '"temporality": "delta"', "1:52", ["handlers.disk.temporality: not an option of the handler; it belongs in the format"]),
    (SETTINGS % '"instance": 5', "1:26", ["settings.instance: 5 is not a string"]),
    (SETTINGS % '"instance": "${NO_SUCH_VARIABLE}"', "1:26", ["${NO_SUCH_VARIABLE}", "is not set"]),
    (SETTINGS % '"instance": "%s"' % ("x" * 1024), "1:26", ["settings.instance: label value", "at most 1023 bytes"]),
    (FILE % '"format": 7', "1:62", ["7 is not a format"]),
    ('{"handlers": {"n": {"type": "null", "format": "json"}}, "groups": {"*": "n"}}', "1:37", ["writes no format"]),
    # optional handlers
    ('{"handlers": {"k": {"type": "no_such_type", "optional": "yes"}}}', "1:29", ['"no_such_type" is not an installed handler type']),
    ('{"handlers": {"k": {"type": "null", "optional": "yes"}}}', "1:49", ['handlers.k.optional: "yes" is not true or false']),
    ('{"handlers": {"k": {"type": "no_such_type", "optional": false}}}', "1:29", ['"no_such_type" is not an installed handler type']),
    ('{"handlers": {"k": {"type": "k", "plugin": "/dev/null", "optional": true}}}', "1:44", ["/dev/null: not a regular file"]),
    # variables in routes
    (GROUPS % '{"*": "${NO_SUCH_VARIABLE}"}', "1:17", ["groups.*: ${NO_SUCH_VARIABLE}: the variable is not set"]),
    (GROUPS % '{"*": ["console", "${X:-consol}"]}', "1:29", ["groups.*[1]: ", '"consol"', 'did you mean "console"?']),
    (GROUPS % '{"*": "${X:-inherit}"}', "1:17", ['"*" has no parent']),
    (GROUPS % '{"*": "$SINK"}', "1:17", ["unescaped $"]),
    # a nearby word, in any case; units; a key at another level; an address without a scheme
    (FILE % '"overflow": "BLOCK"', "1:64", ['"BLOCK" is not allowed; did you mean "block"? allowed: block, drop_newest, drop_oldest']),
    (FILE % '"overflow": "drop_olddest"', "1:64", ['did you mean "drop_oldest"?']),
    (FILE % '"Append": true', "1:52", ['did you mean "append"?']),
    ('{"handlers": {"disk": {"type": "File", "path": "/tmp/x"}}}', "1:32", ['"File" is not a type\'s name', 'did you mean "file"?']),
    (FILE % '"format": "JSON"', "1:62", ['"JSON" is not a format; did you mean "json"?']),
    (GROUPS % '{"*": "Console"}', "1:17", ["groups.*: must be a handler", 'got "Console"; did you mean "console"?']),
    (FILE % '"queue": "10M"', "1:61", ['"10M" is not a size', "did you mean 10MiB or 10MB?"]),
    (FILE % '"queue": "10mib"', "1:61", ['"10mib" is not a size', "did you mean 10MiB?"]),
    (FILE % '"linger": "10 seconds"', "1:62", ['"10 seconds" is not a duration', "did you mean 10s?"]),
    ('{"shutdown_timeout": "5s"}', "1:2", ['shutdown_timeout: unknown section; it belongs in "settings"']),
    ('{"queue": "5MiB"}', "1:2", ['queue: unknown section; it belongs in a handler, or in "*" of "handlers"']),
    (SETTINGS % '"linger": "1s"', "1:14", ['settings.linger: unknown option; it belongs in a handler, or in "*" of "handlers"']),
    (SETTINGS % '"handlers": {}', "1:14", ["settings.handlers: unknown option; it belongs at the top of the configuration"]),
    (FILE % '"labels": {"a": "b"}', "1:52", ['handlers.disk.labels: unknown option; it belongs in "settings"']),
    (FILE % '"header": false', "1:52", ["handlers.disk.header: not an option of the handler; it belongs in the format", '{"type": "csv", "header": ...}']),
    ('{"handlers": {"h": {"type": "http", "url": "localhost:8086"}}}', "1:44", ["handlers.h.url: the value is not a URL: it has no scheme", "http://"]),
    (SETTINGS % '"labels": {"a": "%s"}' % ("x" * 1024), "1:24", ["settings.labels: label value", "at most 1023 bytes"]),
    # a handler type without a handler
    (GROUPS % '{"*": "http"}', "1:17", ['groups.*: the handler type "http" with default options: http: the option "url" is missing']),
    (GROUPS % '{"a": ["console", "file"]}', "1:29", ['groups.a[1]: the handler type "file" with default options: the option "path" is missing']),
    # routes
    (GROUPS % '{"*": "dsk"}', "1:17", ["groups.*", '"dsk"', "not an installed handler type"]),
    ('{"handlers":{"disk":{"type":"null"}},"groups":{"*":["dsk"]}}', "1:53",
     ['groups.*[0]: must be a handler of this configuration or an installed handler type, got "dsk"', 'did you mean "disk"?']),
    (GROUPS % '{"*": 5}', "1:17", ["groups.*: must be the name of a handler", "got 5"]),
    (GROUPS % '{"*": {"handlers": []}}', "1:18", ["groups.*.handlers: unknown option", "allowed: "]),
    (GROUPS % '{"*": ["console", ["console"]]}', "1:29", ["groups.*[1]: must be the name of a handler", "got an array"]),
    (GROUPS % '{"*": "inherit"}', "1:17", ['"*" has no parent']),
    (GROUPS % '{"a..b": "console"}', "1:12", ["empty part"]),
    (GROUPS % '{"a.*": "console"}', "1:12", ["a group must not contain '*'"]),
]


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def good_config(folder):
    config = {"handlers": {"disk": {"type": "file", "path": os.path.join(folder, "out"), "format": "bai"}},
              "groups": {"*": "disk"}}
    return write(folder, "good.json", json.dumps(config))


def assert_message(text, path, place, parts, message):
    where = f"{path}:{place}: " if place else ""
    assert message.startswith(where), f"{text!r}: expected {where!r} before {message!r}"
    for part in parts:
        assert part in message, f"{text!r}: expected {part!r} in {message!r}"


@case
def each_is_refused_with_its_place_and_the_configuration_in_force_stays(folder):
    assert len(WRONG) >= 40
    paths = [write(folder, f"wrong{i}.json", text) for i, (text, _, _) in enumerate(WRONG)]
    done = run(CONFIGURER, good_config(folder), *paths)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(WRONG)
    wrong = []
    for path, result, (text, place, words) in zip(paths, results, WRONG):
        assert result["code"] in (-3, -4), (text, result)
        try:
            assert_message(text, path, place, words, result["error"])
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)
    assert [json.loads(line) for line in lines_of(os.path.join(folder, "out"))] == [{"n": i} for i in range(len(WRONG))]


@case
def weir_check_reports_it_too_and_exits_with_1(folder):
    for i, (text, place, words) in enumerate(WRONG):
        path = write(folder, f"wrong{i}.json", text)
        done = run(WEIR, "check", path)
        assert done.returncode == 1 and done.stdout == "", (text, done)
        start = f"weir: {path}:{place}: " if place else "weir: "
        lines = [line for line in done.stderr.splitlines() if line.startswith(start)]
        assert lines, (text, done.stderr)
        assert_message(text, "weir: " + path, place, words, lines[0])


def errors_of_check(text, folder, **files):
    """What weir check prints of a configuration, without the folder."""
    for name, included in files.items():
        write(folder, name + ".json", included)
    done = run(WEIR, "check", write(folder, "c.json", text))
    assert done.returncode == 1 and done.stdout == "", done
    lines = done.stderr.splitlines()
    assert all(line.startswith("weir: ") for line in lines), lines
    return [line.removeprefix("weir: ").removeprefix(folder + "/") for line in lines]


def assert_starts(lines, starts):
    assert len(lines) == len(starts) and all(line.startswith(start) for line, start in zip(lines, starts)), "\n".join(lines)


@case
def groups_of_sources_that_no_value_can_have_are_refused(folder):
    text = '{"sources": {"in": {%s}}, "groups": {"*": "null"}}'
    problems = {"": "empty; a name must have 1 to 255 bytes", "*": "a group must not contain '*'", "a..b": "empty part; a group is one or more names",
                ".a": "empty part", "a.": "empty part", "a\nb": "control character"}
    for group, problem in problems.items():
        group = json.dumps(group)
        for option, column in (("group", 47), ("group_prefix", 54)):
            errors = errors_of_check(text % f'"type": "stdin", "{option}": {group}', folder)
            assert_starts(errors, [f"c.json:1:{column}: sources.in.{option}: group {group}: {problem}"])
    errors = errors_of_check(text % '"type": "forward", "group_prefix": "a..b"', folder)
    assert_starts(errors, ['c.json:1:56: sources.in.group_prefix: group "a..b": empty part'])
    errors = errors_of_check(text % f'"type": "system", "group": "{"x" * 128}", "group_prefix": "{"y" * 127}"', folder)
    assert_starts(errors, ["c.json:1:48: sources.in.group: group "])
    assert ": too long; a name must have 1 to 255 bytes" in errors[0], errors
    named = text.replace('"in"', '"a..b"')
    errors = errors_of_check(named % '"type": "statsd"', folder)
    assert_starts(errors, ['c.json:1:22: sources.a..b: without the option group the source\'s name is its group: group "a..b": empty part'])
    for valid in '"type": "statsd", "group": "a.b"', '"type": "stdin", "parse": "auto"', '"type": "forward"':
        assert_warnings(folder, json.loads(named % valid))


@case
def weir_check_reports_all_errors_in_the_order_of_the_document(folder):
    text = """{
  "groups": { "*": ["disk", "dsk", 5], "a..b": "disk", "b": [{"to": "web", "sample": 2}, "untyped", "odd", "nul", "k"] },
  "settings": { "shutdown_timeout": 5, "reload": "5x", "status": "here", "labels": {"a": 1} },
  "handlers": {
    "*": { "queue": "5" },
    "disk": { "type": "fil", "path": "/tmp/x" },
    "untyped": { "path": "/tmp/x" },
    "odd": 7,
    "nul": { "type": "null", "coun": 1, "batch": 0 },
    "k": { "type": "null", "format": "json" }
  },
  "sources": {
    "in": { "type": "stdin", "parse": "yaml", "line_bytes": "1" },
    "tcp": { "type": "statsd", "listen": 5, "retry_min": "1h", "retry_max": "1x" },
    "none": { "type": "nothing" }
  },
  "metrics": { "g": { "a": "countr", "b": { "buckets": [2, 1] } } },
  "group": {}
}"""
    assert_starts(errors_of_check(text, folder), [
        'c.json:2:29: groups.*[1]: must be a handler of this configuration or an installed handler type, got "dsk"',
        "c.json:2:36: groups.*[2]: must be the name of a handler",
        'c.json:2:40: groups.a..b: group "a..b": empty part',
        'c.json:2:69: groups.b[0].to: not a handler of this configuration, and "web" is not an installed handler type',
        "c.json:2:86: groups.b[0].sample: 2 is out of range",
        "c.json:3:37: settings.shutdown_timeout: 5 has no unit",
        'c.json:3:50: settings.reload: "5x" is not a duration',
        "c.json:3:66: settings.status: must be off, auto",
        "c.json:3:90: settings.labels.a: 1 is not a string",
        'c.json:5:21: handlers.*.queue: "5" has no unit',
        'c.json:6:23: handlers.disk.type: "fil" is not an installed handler type',
        'c.json:7:16: handlers.untyped: the option "type" is missing',
        "c.json:8:12: handlers.odd: must be an object, got 7",
        "c.json:9:30: handlers.nul.coun: unknown option",
        "c.json:9:50: handlers.nul.batch: 0 is out of range",
        'c.json:10:28: handlers.k.format: the handler type "null" writes no format',
        'c.json:13:39: sources.in.parse: "yaml" is not allowed',
        'c.json:13:61: sources.in.line_bytes: "1" has no unit',
        "c.json:14:42: sources.tcp.listen: 5 is not an array of strings",
        'c.json:14:77: sources.tcp.retry_max: "1x" is not a duration',
        "and 4 more"])
    end = text[text.index("    \"none\""):]
    assert_starts(errors_of_check('{ "sources": {\n' + end, folder), [
        'c.json:2:23: sources.none.type: "nothing" is not an installed source type',
        'c.json:4:28: metrics.g.a: "countr" is not allowed',
        "c.json:4:60: metrics.g.b.buckets[1]: 1 does not follow",
        "c.json:5:3: group: unknown section"])


@case
def what_follows_from_an_error_is_not_reported(folder):
    defaults = '{"handlers": {"*": {"retry_min": "1m", "queue": 1, "format": "jsn"}, "a": %s, "b": %s}, "groups": {"*": ["a", "b"]}}' % (
        ('{"type": "console", "retry_max": "2m"}',) * 2)
    assert_starts(errors_of_check(defaults, folder), ["c.json:1:49: handlers.*.queue: 1 has no unit", 'c.json:1:62: handlers.*.format: "jsn" is not a format'])
    unknown = '{"handlers": {"*": {"quux": 1}, "a": {"type": "console"}, "b": {"type": "null"}}, "groups": {"*": ["a", "b"]}}'
    assert_starts(errors_of_check(unknown, folder), ["c.json:1:21: handlers.*.quux: unknown option"])
    labels = '{"settings": {"instance": "${NO_SUCH_VARIABLE}", "labels": {"": "x"}}}'
    assert_starts(errors_of_check(labels, folder), ["c.json:1:27: settings.instance: ${NO_SUCH_VARIABLE}", "c.json:1:60: settings.labels: "])
    alone = '{"handlers": {"f": {"type": "file", "pat": "x", "append": 1}}, "groups": {"*": "http"}}'
    assert_starts(errors_of_check(alone, folder), [
        'c.json:1:20: handlers.f: the option "path" is missing', "c.json:1:37: handlers.f.pat: unknown option",
        "c.json:1:59: handlers.f.append: 1 is not", 'c.json:1:80: groups.*: the handler type "http" with default options: '])


@case
def errors_of_included_files_are_reported_in_the_order_in_which_the_files_apply(folder):
    files = '{"include": ["none.json", "bad.json", "a.json"], "groups": {"*": 5}}'
    assert_starts(errors_of_check(files, folder, bad="{", a='{"groups": 5}'), [
        f"c.json:1:14: include[0]: {folder}/none.json: No such file", "bad.json:1:1: unclosed {"])
    twice = '{"include": ["a.json", "b.json"], "handlers": {"x": {"type": "null", "batch": 0}}}'
    assert_starts(errors_of_check(twice, folder, a='{"groups": {"*": 5}, "handlers": {"x": {"type": "null"}}}', b='{"groups": {"*": "none"}}'), [
        "a.json:1:18: groups.*: must be the name", f"b.json:1:13: groups.*: defined twice; also at {folder}/a.json:1:13",
        'b.json:1:18: groups.*: not a handler of this configuration, and "none" is not', f"c.json:1:48: handlers.x: defined twice; also at {folder}/a.json:1:35"])


@case
def more_errors_than_are_kept_end_the_check(folder):
    lines = errors_of_check('{"groups": {%s}}' % ", ".join(f'"g{i}": {i}' for i in range(1000)), folder)
    assert len(lines) == 21 and lines[19].endswith("got 19") and lines[20] == "and at least 80 more", lines


def warnings_of_check(config, folder):
    """The warnings, without the folder."""
    done = run(WEIR, "check", write(folder, "c.json", json.dumps(config)), cwd=folder)
    assert done.returncode == 0 and done.stderr == "", done
    section = re.search(r"^warnings\n((?:  .*\n)+)", done.stdout, re.M)
    return [line.strip().removeprefix(folder + "/c.json:") for line in section[1].splitlines()] if section else []


def assert_warnings(folder, config, *ends):
    lines = warnings_of_check(config, folder)
    assert len(lines) == len(ends) and all(line.endswith(end) for line, end in zip(lines, ends)), "\n".join(lines)


@case
def weir_check_warns_of_handlers_that_write_to_one_place(folder):
    os.symlink(folder, os.path.join(folder, "link"))
    disk, disk2 = {"type": "file", "path": "out"}, {"type": "file", "path": "./link/out"}
    files = {"a": disk, "b": {"type": "sqlite", "path": "out"}, "c": disk2, "d": {"type": "file", "path": "out2"}}
    assert_warnings(folder, {"handlers": files, "groups": {"*": "a"}}, ': handlers.b.path: the handler "a" writes there, too',
                    ': handlers.c.path: the handler "a" writes there, too')
    listen = {"a": {"type": "prometheus"}, "b": {"type": "prometheus", "listen": "localhost:9464"}, "c": {"type": "prometheus", "listen": "127.0.0.1:0"},
              "d": {"type": "prometheus", "listen": "127.0.0.1:0"}, "e": {"type": "http", "url": "http://127.0.0.1:9464/"}}
    assert_warnings(folder, {"handlers": listen, "groups": {"*": ["a", "prometheus"]}}, ': handlers.b.listen: the handler "a" listens there, too',
                    'handler "prometheus": the handler "a" listens there, too')
    web = {"a": {"type": "http", "url": "http://u:secret@h:8086/write?db=a"}, "b": {"type": "http", "url": "http://h:8086/write?db=b"},
           "c": {"type": "http", "url": "http://h:8086/write?db=b"}, "d": {"type": "console"}, "e": {"type": "console"}}
    assert_warnings(folder, {"handlers": web, "groups": {"*": "a"}}, ': handlers.c.url: the handler "b" writes there, too')
    lines = warnings_of_check({"handlers": {f"h{i}": disk for i in range(200)}, "groups": {"*": "h0"}}, folder)
    assert len(lines) == 101 and lines[99].endswith('handlers.h100.path: the handler "h0" writes there, too') and lines[100] == "more", lines


@case
def a_host_whose_name_begins_as_unix_is_no_path_of_a_socket(folder):
    sent = {name: {"type": "socket", "to": to, "format": "json"} for name, to in (
        ("a", "unix:///p"), ("b", "unix:/p"), ("c", "unix-dgram:/q"), ("d", "unix-dgram:///q"), ("e", "unix-dgram:/r"))}
    assert_warnings(folder, {"handlers": sent, "groups": {"*": "a"}}, ': handlers.b.to: the handler "a" writes there, too',
                    ': handlers.d.to: the handler "c" writes there, too')
    if "kafka" not in run(WEIR, "handlers").stdout:
        raise Skip("built without Kafka")
    brokers = {name: {"type": "kafka", "topic": "t", "brokers": [broker]} for name, broker in (("a", "unix1:9092"), ("b", "unix2:9092"))}
    assert_warnings(folder, {"handlers": brokers, "groups": {"*": "a"}})


@case
def weir_check_warns_of_sources_that_read_from_one_place(folder):
    sources = {"a": {"type": "fifo", "path": "p"}, "b": {"type": "file", "path": folder + "/p"}, "c": {"type": "http", "listen": "127.0.0.1:9000"},
               "d": {"type": "http", "listen": "127.0.0.1:9000"}, "e": {"type": "statsd", "listen": ["udp://127.0.0.1:9000", "tcp://127.0.0.1:9000"]},
               "f": {"type": "statsd", "listen": ["udp://127.0.0.2:9000"]}}
    handlers = {"p": {"type": "prometheus", "listen": "localhost:9000"}}
    assert_warnings(folder, {"sources": sources, "handlers": handlers, "groups": {"*": "p"}},
                    ': sources.b.path: the source "a" reads there, too',
                    ': sources.c.listen: the handler "p" listens there, too',
                    ': sources.d.listen: the handler "p" listens there, too',
                    ': sources.d.listen: the source "c" listens there, too',
                    ': sources.e.listen: the handler "p" listens there, too',
                    ': sources.e.listen: the source "c" listens there, too')


@case
def weir_check_warns_of_values_that_come_back_to_their_source(folder):
    pairs = [("to", {"type": "statsd", "split": "first"}, {"type": "socket", "to": "udp://localhost:8125", "format": "statsd"}),
             ("path", {"type": "fifo", "path": "p", "parse": "auto"}, {"type": "fifo", "path": folder + "/p"}),
             ("url", {"type": "http", "listen": "127.0.0.1:9000"}, {"type": "http", "url": "http://localhost:9000/v1/values"}),
             ("to", {"type": "forward", "listen": ["unix:/run/f"]}, {"type": "forward", "to": "unix:/run/f"}),
             (None, {"type": "forward"}, {"type": "forward"})]
    for option, source, handler in pairs:
        where = f": handlers.back.{option}: " if option else ": handlers.back: "
        warning = where + 'the source "in" reads there, and its values may have routes to this handler: a loop'
        config = {"sources": {"in": source}, "handlers": {"back": handler}, "groups": {"*": ["null"], "a": ["inherit", "back"]}}
        assert_warnings(folder, config, warning)
        # with a prefix, no value of the source has the route
        source["group_prefix"] = "remote"
        assert_warnings(folder, config)
        config["groups"]["remote"] = ["null"]
        config["groups"]["*"] = ["back"]
        assert_warnings(folder, config)
        config["groups"]["remote.x"] = ["inherit", "back"]
        assert_warnings(folder, config, warning)
        del config["groups"]["remote"], config["groups"]["remote.x"]
        assert_warnings(folder, config, warning)
    tcp = {"sources": {"in": {"type": "statsd"}}, "handlers": {"h": {"type": "socket", "to": "tcp://127.0.0.1:8125"}}, "groups": {"*": "h"}}
    assert_warnings(folder, tcp)


@case
def weir_check_warns_of_sources_without_a_route(folder):
    sources = {"any": {"type": "stdin"}, "far": {"type": "stdin", "group_prefix": "far.away"}}
    far = ": sources.far: no route is for a group that its values can have, so none is delivered"
    for group, warns in (("a", True), ("far", False), ("far.away.b", False), ("far.awa", True), ("weir", True), ("*", False)):
        expected = ([": sources.any" + far[13:]] if group == "weir" else []) + ([far] if warns else [])
        assert_warnings(folder, {"sources": sources, "groups": {group: "null"}}, *expected)


@case
def weir_check_warns_of_a_relay_whose_senders_wait_for_an_interval(folder):
    words = ': sources.s: there is no settings.journal, and the handler "b" has "aggregate": senders with "ack": "stored", the default, wait for the end of its interval'
    for settings, source, aggregate, route, warns in (({}, "forward", "1s", "b", True), ({"journal": folder}, "forward", "1s", "b", False), ({}, "stdin", "1s", "b", False),
                                                      ({}, "forward", "0s", "b", False), ({}, "forward", "1s", "a", False), ({}, "forward", "1s", ["a", "b"], True)):
        handlers = {"a": {"type": "null"}, "b": {"type": "file", "path": "out", "aggregate": aggregate}}
        config = {"settings": settings, "sources": {"s": {"type": source}}, "handlers": handlers, "groups": {"*": route}}
        assert_warnings(folder, config, *([words] if warns else []))


@case
def weir_check_warns_of_sources_whose_only_group_has_no_route(folder):
    words = "no route is for a group that its values can have, so none is delivered"
    one_group = [{"type": "statsd"}, {"type": "stdin", "parse": "graphite"}, {"type": "stdin", "parse": "bai"}, {"type": "system", "group": "s"},
                 {"type": "fifo", "path": "p", "parse": "prometheus"}, {"type": "process", "group": "s"},
                 {"type": "file", "path": "p", "parse": "patterns", "patterns": [{"name": "x", "pattern": "x=(\\d+)"}]}]
    any_group = [{"type": "statsd", "split": "last"}, {"type": "stdin"}, {"type": "stdin", "parse": "csv"}, {"type": "forward"},
                 {"type": "stdin", "parse": "influx"}]
    for options, routes in (({}, ["s", "*"]), ({"group": "a.b"}, ["a.b", "a"]), ({"group": "b", "group_prefix": "a"}, ["a.b", "a"])):
        for source in one_group + any_group:
            config = {"sources": {"s": {**source, **options}}, "groups": {"a.c": "null", "sss": "null"}}
            assert_warnings(folder, config, *([f": sources.s: {words}"] if source in one_group else []))
            for route in routes:
                config["groups"] = {route: "null"}
                assert_warnings(folder, config)


@case
def other_files_are_refused_in_bounded_time(folder):
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    huge = os.path.join(folder, "huge")
    with open(huge, "wb") as file:
        file.truncate(1 << 30)
    writable = write(folder, "writable", '{"groups":{}}')
    os.chmod(writable, 0o666)
    nul = os.path.join(folder, "nul")
    with open(nul, "wb") as file:
        file.write(b'{"groups":\0{}}')
    latin = os.path.join(folder, "latin")
    with open(latin, "wb") as file:
        file.write(b'{"groups":{"\xe9":"console"}}')
    for path, words in ((fifo, "not a regular file"), ("/dev/zero", "not a regular file"), (huge, "at most 16 MiB"),
                        (folder, "not a regular file"), ("/no/such", "No such file"), (writable, "others may write"),
                        (nul, f"{nul}:1:11: NUL byte"), (latin, f"{latin}:1:13: invalid UTF-8")):
        done = run(WEIR, "check", path, timeout=240)
        assert done.returncode == 1 and words in done.stderr, (path, done.stderr)


@case
def an_invalid_weir_config_is_logged_once_and_the_programs_own_applies(folder):
    good = good_config(folder)
    bad = write(folder, "bad.json", '{"groups": {"*": "consol"}}')
    done = run(CONFIGURER, good, bad, WEIR_CONFIG='{"groups": {"*": ["consol"]}}')
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("weir: error: WEIR_CONFIG:1:19: "), done.stderr
    assert lines_of(os.path.join(folder, "out")) == ['{"n": 0}']


@case
def an_optional_handler_whose_type_is_not_installed_is_left_out_with_a_warning(folder):
    out = os.path.join(folder, "out")
    handlers = {"k": {"type": "no_such_type", "optional": True, "brokers": "x"}, "f": {"type": "file", "path": out, "format": "bai"},
                "p": {"type": "x", "plugin": "/no/such/x.so", "optional": "${YES:-true}"}}
    config = {"handlers": handlers, "groups": {"*": ["k", "f", "p"], "a": ["inherit"]}}
    done = run(WEIR, "emit", "-g", "a", "x=1", WEIR_CONFIG=config)
    assert done.returncode == 0 and lines_of(out) == ['{"x": 1.0}'], done
    warning = 'weir: warning: k: optional, and left out: "no_such_type" is not an installed handler type'
    assert done.stderr.startswith(warning) and "\nweir: warning: p: optional, and left out: /no/such/x.so: " in done.stderr, done.stderr
    shown = run(WEIR, "check", WEIR_CONFIG=config)
    assert shown.returncode == 0 and re.search(r"^  \* +-> k \(left out\), f, p \(left out\)$", shown.stdout, re.M), shown
    shown = run(WEIR, "check", "-g", "a", WEIR_CONFIG=config).stdout
    assert shown.startswith('a -> k (left out) (inherited from "*"), f (inherited from "*")'), shown
    for_all = {"handlers": {"*": {"optional": True}, "k": {"type": "no_such_type"}}, "groups": {"*": "k"}}
    assert run(WEIR, "check", WEIR_CONFIG=for_all).returncode == 0


@case
def a_variable_chooses_the_handler_of_a_route(folder):
    out = os.path.join(folder, "out")
    config = {"handlers": {"f": {"type": "file", "path": out, "format": "bai"}}, "groups": {"*": "${SINK:-console}", "a": ["${SINK:-null}"]}}
    shown = run(WEIR, "check", WEIR_CONFIG=config)
    assert re.search(r"^  \* +-> console$", shown.stdout, re.M) and re.search(r"^  a +-> null$", shown.stdout, re.M), shown
    done = run(WEIR, "emit", "-g", "a", "x=1", WEIR_CONFIG=config, SINK="f")
    assert done.returncode == 0 and lines_of(out) == ['{"x": 1.0}'], done


@case
def a_source_that_is_refused_after_a_valid_one_ends_the_check_with_its_message():
    sources = {"in": {"type": "stdin"}, "more": {"type": "stdin", "parse": "yaml"}, "last": {"type": "none"}}
    done = run(WEIR, "check", WEIR_CONFIG={"sources": sources, "groups": {"*": "null"}})
    assert done.returncode == 1 and "sources.more.parse: " in done.stderr, done


@case
def weir_config_may_begin_with_white_space_before_its_text(folder):
    done = run(WEIR, "check", WEIR_CONFIG=' \n\t{"groups": {"*": "null"}}')
    assert done.returncode == 0, done.stderr
    done = run(WEIR, "check", WEIR_CONFIG=' {"groups": {"*": "consol"}}')
    assert done.stderr.startswith("weir: WEIR_CONFIG:1:19: groups.*: "), done.stderr
    out = os.path.join(folder, "out")
    text = json.dumps({"handlers": {"f": {"type": "file", "path": out, "format": "bai"}}, "groups": {"*": "f"}})
    done = run(WEIR, "emit", "-g", "a", "x=1", WEIR_CONFIG="  " + text)
    assert done.returncode == 0 and lines_of(out) == ['{"x": 1.0}'], (done, os.listdir(folder))


@case
def a_valid_weir_config_takes_precedence_and_the_programs_own_is_only_checked(folder):
    bad = write(folder, "bad.json", '{"groups": {"*": "consol"}}')
    done = run(CONFIGURER, good_config(folder), bad, WEIR_CONFIG='{"groups": {"*": "console"}}')
    assert done.returncode == 0 and "]: n=0\n" in done.stdout, done
    assert '{"code":-4,"error":' in done.stdout, done.stdout
    assert not os.path.exists(os.path.join(folder, "out"))


main()
