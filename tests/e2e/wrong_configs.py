"""Each invalid configuration is refused with place, value and allowed values, and the one in force stays."""

import json
import os

from harness import BUILD, WEIR, case, lines_of, main, run

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
    # handlers
    ('{"handlers": {"disk": {"path": "/tmp/x"}}}', "1:23", ['handlers.disk: the option "type" is missing']),
    ('{"handlers": {"disk": "file"}}', "1:23", ['handlers.disk: must be an object, got "file"']),
    ('{"handlers": {"disk": {"type": "file", "path": "/tmp/x", "retry_min": "1m"}}}', "1:71",
     ["handlers.disk.retry_min: a retry_min of 1m is longer than the retry_max of 30s"]),
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
    (FILE % '"overflow": "drop"', "1:64", ['"drop" is not allowed', "block, drop_newest, drop_oldest"]),
    (FILE % '"delivery": true', "1:64", ["true is not allowed", "async, sync"]),
    (FILE % '"batch": 1.5', "1:61", ["batch: 1.5 is not an integer"]),
    (FILE % '"batch": 0', "1:61", ["is out of range", "1..1000000"]),
    (FILE % '"format": "jsn"', "1:62", ['"jsn" is not a format', 'did you mean "json"?', "allowed: text, json, bai"]),
    (FILE % '"format": {"kind": "json"}', "1:62", ['"type" is missing']),
    (FILE % '"format": {"type": "json", "indent": "2"}', "1:79", ["handlers.disk.format.indent: unknown option"]),
    (FILE % '"format": 7', "1:62", ["7 is not a format"]),
    ('{"handlers": {"n": {"type": "null", "format": "json"}}, "groups": {"*": "n"}}', "1:37", ["writes no format"]),
    # routes
    (GROUPS % '{"*": "dsk"}', "1:17", ["groups.*", '"dsk"', "not an installed handler type"]),
    ('{"handlers":{"disk":{"type":"null"}},"groups":{"*":["dsk"]}}', "1:53",
     ['groups.*[0]: must be a handler of this configuration or an installed handler type, got "dsk"', 'did you mean "disk"?']),
    (GROUPS % '{"*": 5}', "1:17", ["groups.*: must be the name of a handler", "got 5"]),
    (GROUPS % '{"*": {"handlers": []}}', "1:17", ["groups.*: must be the name of a handler", "got an object"]),
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
def weir_check_reports_the_same_and_exits_with_1(folder):
    for i, (text, place, words) in enumerate(WRONG):
        path = write(folder, f"wrong{i}.json", text)
        done = run(WEIR, "check", path)
        assert done.returncode == 1 and done.stdout == "", (text, done)
        assert_message(text, "weir: " + path, place, words, done.stderr)


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
        done = run(WEIR, "check", path, timeout=20)
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
def a_valid_weir_config_takes_precedence_and_the_programs_own_is_only_checked(folder):
    bad = write(folder, "bad.json", '{"groups": {"*": "consol"}}')
    done = run(CONFIGURER, good_config(folder), bad, WEIR_CONFIG='{"groups": {"*": "console"}}')
    assert done.returncode == 0 and "]: n=0\n" in done.stdout, done
    assert '{"code":-4,"error":' in done.stdout, done.stdout
    assert not os.path.exists(os.path.join(folder, "out"))


main()
