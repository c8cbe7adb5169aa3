"""settings.unknown_keys: files that programs with different versions of weir share."""

import json
import os
import signal

from harness import ADDER, BUILD, WEIR, case, lines_of, main, run, skip_fork_under_sanitizers, start, wait_for

PREFORK = os.path.join(BUILD, "examples", "prefork")
RELOAD = os.path.join(BUILD, "examples", "reload")

# a key that is not known at each place where there may be one; %s: warn or error
SHARED = """{
  "exports": { "a": 1 },
  "settings": { "unknown_keys": "%s", "max_serie": 5 },
  "handlers": {
    "*": { "batc": 7, "format": { "type": "influx", "integer": true } },
    "disk": { "type": "file", "path": "PATH", "apend": true, "header": 1, "new": { "nested": 1 }, "format": { "type": "bai", "indent": 2 } },
    "more": { "type": "file", "path": "PATH2", "lingr": "1s" },
    "last": { "type": "file", "path": "PATH3" }
  },
  "groups": { "*": "disk" },
  "metrics": { "a": { "x": { "uint": "ms" } } }
}"""

MESSAGES = [
    "2:3: exports: unknown section, ignored",
    '3:41: settings.max_serie: unknown option, ignored; did you mean "max_series"?',
    '5:12: handlers.*.batc: unknown option, ignored; did you mean "batch"?',
    '11:30: metrics.a.x.uint: unknown option, ignored; did you mean "unit"?',
    '6:44: handlers.disk.apend: unknown option, ignored; did you mean "append"?',
    "6:59: handlers.disk.header: unknown option, ignored",
    "6:72: handlers.disk.new: unknown option, ignored",
    "6:123: handlers.disk.format.indent: unknown option, ignored",
    '7:45: handlers.more.lingr: unknown option, ignored; did you mean "linger"?',
    '5:53: handlers.*.format.integer: unknown option, ignored; did you mean "integers"?',
]


def write(folder, text, name="shared.json"):
    path = os.path.join(folder, name)
    with open(path + "~", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + "~", path)
    return path


def shared(folder, policy):
    return write(folder, (SHARED % policy).replace("PATH", "p"))


@case
def unknown_keys_are_ignored_and_logged_once_with_place_and_nearest_match(folder):
    path = shared(folder, "warn")
    done = run(ADDER, "-n", 5, "-H", "disk", "-f", -1, cwd=folder, WEIR_CONFIG=path)
    assert done.returncode == 0, done
    disk = json.loads(done.stdout)["handlers"]["disk"]
    assert disk["offered"] == disk["delivered"] == len(lines_of(os.path.join(folder, "p"))) == 5, disk
    assert sorted(done.stderr.splitlines()) == sorted(f"weir: warning: {path}:{message}" for message in MESSAGES), done.stderr


@case
def weir_check_lists_them(folder):
    path = shared(folder, "warn")
    done = run(WEIR, "check", path)
    assert done.returncode == 0 and done.stderr == "", done
    listed = done.stdout.split("unknown keys\n")[1].split("handlers\n")[0].splitlines()
    assert sorted(listed) == sorted(f"  {path}:{message}" for message in MESSAGES), listed


@case
def without_the_setting_the_first_is_an_error(folder):
    for policy in ("error", "${POLICY:-error}"):
        path = shared(folder, policy)
        done = run(WEIR, "check", path)
        assert done.returncode == 1 and done.stderr.startswith(f"weir: {path}:2:3: exports: unknown section; allowed: "), done
    assert run(WEIR, "check", path, POLICY="warn").returncode == 0
    done = run(WEIR, "check", shared(folder, "warning"))
    assert done.returncode == 1 and ':3:33: settings.unknown_keys: "warning" is not allowed; did you mean "warn"? allowed: error, warn' in done.stderr, done


@case
def all_other_errors_stay_errors(folder):
    for text, message in (('"groups": { "*": "no_such" }', '"no_such" is not an installed handler type'),
                          ('"handlers": { "a": { "type": "file", "pth": "x" } }', 'the option "path" is missing'),
                          ('"handlers": { "a": { "type": "null", "batch": "x" } }', '"x" is not an integer'),
                          ('"handlers": { "a": { "type": "null", "a.b": 1 } }', "dots are not allowed in a key")):
        done = run(WEIR, "check", write(folder, '{ "settings": { "unknown_keys": "warn" }, %s }' % text))
        assert done.returncode == 1 and message in done.stderr, done


@case
def the_setting_applies_to_included_files_too(folder):
    write(folder, '{ "new": 1, "groups": { "*": "null" } }', "more.json")
    main_file = write(folder, '{ "include": "more.json", "settings": { "unknown_keys": "warn" } }', "main.json")
    done = run(WEIR, "check", main_file)
    assert done.returncode == 0 and f"unknown keys\n  {folder}/more.json:1:3: new: unknown section, ignored\n" in done.stdout, done
    write(folder, '{ "new": 1, "settings": { "unknown_keys": "warn" } }', "more.json")
    done = run(WEIR, "check", write(folder, '{ "include": "more.json", "settings": { "unknown_keys": "error" } }', "main.json"))
    assert done.returncode == 1 and "more.json:1:3: new: unknown section; allowed" in done.stderr, done


@case
def forked_children_do_not_log_them_again(folder):
    skip_fork_under_sanitizers()
    path = write(folder, json.dumps({"settings": {"unknown_keys": "warn"}, "groups": {"*": "out"},
                                     "handlers": {"out": {"type": "file", "path": os.path.join(folder, "out"), "apend": True}}}))
    done = run(PREFORK, 3, WEIR_CONFIG=path)
    assert done.returncode == 0 and done.stderr.count("apend: unknown option, ignored") == 1 and len(done.stderr.splitlines()) == 1, done
    assert len(lines_of(os.path.join(folder, "out"))) == 2 + 3 * 100 * 3


@case
def a_hundred_are_named_and_further_ones_counted(folder):
    keys = ",".join(f'"k{i}": 1' for i in range(150))
    path = write(folder, '{ "settings": { "unknown_keys": "warn" }, %s, "groups": { "*": "null" } }' % keys)
    done = run(ADDER, "-n", 1, WEIR_CONFIG=path)
    lines = done.stderr.splitlines()
    assert len(lines) == 101 and lines[-1] == "weir: warning: 50 further unknown keys of the configuration are ignored", lines[-2:]
    assert "  50 more\n" in run(WEIR, "check", path).stdout


@case
def at_most_a_thousand_are_ignored_and_those_of_all_handlers_count_once(folder):
    keys = [f'"k{i}": 1' for i in range(999)]
    handlers = ",".join(f'"h{i}": {{ "type": "file", "path": "p" }}' for i in range(2000))
    text = '{ "settings": { "unknown_keys": "warn" }, "handlers": { "*": { %s, "format": { "type": "json", "new": 1 } }, %s }, "new": 1, "groups": {} }'
    done = run(WEIR, "check", write(folder, text % (",".join(keys), handlers)))
    assert done.returncode == 0 and "  900 more\n" in done.stdout and "\n  1 more\n" not in done.stdout, done.stdout[-500:]
    assert done.stdout.count("handlers.*.format.new: unknown option, ignored") == 1
    path = write(folder, text % (",".join(keys + ['"one": 1']), handlers))
    done = run(WEIR, "check", path)
    assert done.returncode == 1 and "new: unknown section; at most 1,000 unknown keys are ignored" in done.stderr, done.stderr


@case
def a_reload_logs_them_again(folder):
    text = '{ "settings": { "unknown_keys": "warn" }, "new": 1, "handlers": { "out": { "type": "file", "path": "%s", "format": "bai" } }, "groups": { "*": "out" } }'
    a, b = (os.path.join(folder, name) for name in "ab")
    path = write(folder, text % a)
    program = start(RELOAD, path)
    wait_for(lambda: os.path.exists(a) and os.path.getsize(a), "values in a")
    write(folder, text % b)
    program.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(b) and os.path.getsize(b), "values in b")
    program.terminate()
    _, err = program.communicate(timeout=240)
    assert program.returncode == 0 and err.splitlines() == [f"weir: warning: {path}:1:43: new: unknown section, ignored"] * 2, err
    turns = [json.loads(line)["turn"] for name in (a, b) for line in lines_of(name)]
    assert turns == list(range(len(turns)))


main()
