"""Configurations of several files: "include"."""

import json
import os
import signal
import subprocess

from harness import ADDER, BUILD, WEIR, case, environment, lines_of, main, run, size_of, start, wait_for, without_waits

RELOAD = os.path.join(BUILD, "examples", "reload")


def write(folder, files):
    """Writes files by rename, as editors do; the text of each, or what is its JSON."""
    for name, config in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + "~", "w", encoding="utf-8") as file:
            file.write(config if isinstance(config, str) else json.dumps(config))
        os.rename(path + "~", path)


def disk(folder, name):
    return {"type": "file", "path": os.path.join(folder, name), "format": "bai"}


def check(folder, *arguments, name="main.json", **env):
    done = run(WEIR, "check", os.path.join(folder, name), *arguments, **env)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.replace(folder + "/", "")


def refused(folder, *parts, name="main.json", **env):
    """The error, which begins with the first part, without the folder's name."""
    done = run(WEIR, "check", os.path.join(folder, name), **env)
    assert done.returncode == 1 and done.stdout == "", done
    error = done.stderr.replace(folder + "/", "")
    assert error.startswith("weir: " + parts[0]), error
    for part in parts[1:]:
        assert part in error, (part, error)


# ---- What a configuration of several files is ---------------------------------------------------------


@case
def handlers_groups_and_metrics_of_all_files_are_one_configuration(folder):
    write(folder, {
        "main.json": {"include": ["more.json"], "handlers": {"a": disk(folder, "a")}, "groups": {"*": ["a", "b"]},
                      "metrics": {"x": {"n": "counter"}}},
        "more.json": {"handlers": {"b": disk(folder, "b"), "*": {"batch": 7}}, "groups": {"quiet": "inherit"},
                      "metrics": {"x": {"*.ms": "histogram"}, "*": {"n": "gauge"}}},
    })
    done = run(ADDER, "-n", 10, "-H", "a", "-H", "b", "-f", -1, WEIR_CONFIG=os.path.join(folder, "main.json"))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    handlers = json.loads(done.stdout)["handlers"]
    assert [handlers[name]["delivered"] for name in "ab"] == [10, 10] and [handlers[name]["offered"] for name in "ab"] == [10, 10]
    assert len(lines_of(os.path.join(folder, "a"))) == len(lines_of(os.path.join(folder, "b"))) == 10
    out = check(folder)
    assert out == (
        "main.json: valid\nfiles\n  more.json\n  main.json\nhandlers\n"
        "  b              file format=bai path=\"b\" batch=7  (more.json)\n"
        "  a              file format=bai path=\"a\" batch=7  (main.json)\n"
        "groups\n"
        '  quiet          -> a (inherited from "*"), b (inherited from "*")  (more.json)\n'
        "  *              -> a, b  (main.json)\n"
        "metrics\n"
        "  x              *.ms           histogram  (more.json)\n"
        "  *              n              gauge  (more.json)\n"
        "  x              n              counter  (main.json)\n"), out


@case
def one_file_alone_is_shown_without_its_name(folder):
    write(folder, {"main.json": {"include": [], "groups": {"*": "null"}}})
    assert check(folder) == "main.json: valid\nhandlers\n  null           null\ngroups\n  *              -> null\n"


@case
def later_settings_take_precedence_and_those_of_the_including_file_over_all(folder):
    write(folder, {
        "main.json": {"include": ["1.json", "2.json"], "settings": {"labels": {"c": "main", "d": "main"}},
                      "handlers": {"out": {"type": "file", "path": os.path.join(folder, "out"), "format": "json"}}, "groups": {"*": "out"}},
        "1.json": {"settings": {"max_series": 50, "labels": {"a": "1", "b": "1", "c": "1"}}},
        "2.json": {"settings": {"labels": {"b": "2"}}},
    })
    done = run(ADDER, "-n", 1, "-H", "out", "-f", -1, WEIR_CONFIG=os.path.join(folder, "main.json"))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    out = json.loads(done.stdout)["handlers"]["out"]
    assert out["offered"] == out["delivered"] == 1, out
    labels = json.loads(lines_of(os.path.join(folder, "out"))[0])["labels"]
    assert labels == {"a": "1", "b": "2", "c": "main", "d": "main"}, labels


@case
def the_including_file_overrides_the_settings_of_an_included_one(folder):
    # the status folder shows which of the two is in force: a relative one is refused
    write(folder, {"main.json": {"include": "more.json", "settings": {"status": "relative"}}, "more.json": {"settings": {"status": "off"}}})
    refused(folder, 'main.json:1:', 'settings.status: must be off, auto', 'got "relative"')
    write(folder, {"main.json": {"settings": {"status": "relative"}, "include": "more.json"}})
    refused(folder, 'main.json:1:25: settings.status')
    write(folder, {"main.json": {"include": ["more.json", "3.json"]}, "3.json": {"settings": {"status": "relative"}}})
    refused(folder, '3.json:1:25: settings.status')


@case
def paths_are_relative_to_the_including_file_and_expand_variables(folder):
    write(folder, {"main.json": {"include": "${SUB:-none}/a.json"}, "sub/a.json": {"include": ["b.json", "../c.json"]},
                   "sub/b.json": {"groups": {"b": "null"}}, "c.json": {"groups": {"c": "null"}}})
    out = check(folder, SUB="sub")
    assert "files\n  sub/b.json\n  sub/../c.json\n  sub/a.json\n  main.json\n" in out, out
    done = subprocess.run([WEIR, "check", "main.json"], cwd=folder, env=environment(SUB="sub"), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "files\n  sub/b.json\n" in done.stdout, done
    refused(folder, "main.json:1:13: include: none/a.json: No such file or directory")


@case
def a_pattern_includes_the_matching_files_in_the_order_of_their_names(folder):
    write(folder, {"main.json": {"include": ["conf.d/*.json"]}, "conf.d/20.json": {"groups": {"b": "null"}},
                   "conf.d/10.json": {"groups": {"a": "null"}}, "conf.d/.hidden.json": "{", "conf.d/README": "no JSON"})
    assert "files\n  conf.d/10.json\n  conf.d/20.json\n  main.json\n" in check(folder)
    write(folder, {"main.json": {"include": "conf.d/1[1-9].json"}})
    assert "files" not in check(folder)


@case
def the_folder_of_a_configuration_may_have_any_name(folder):
    write(folder, {"[a]*/main.json": {"include": ["b.json", "c*.json"]}, "[a]*/b.json": {}, "[a]*/c1.json": {}})
    assert "files\n  [a]*/b.json\n  [a]*/c1.json\n" in check(folder, name="[a]*/main.json")


@case
def a_file_that_two_files_include_is_read_once(folder):
    write(folder, {"main.json": {"include": ["a.json", "b.json", "./a.json"]}, "a.json": {"include": "base.json"},
                   "b.json": {"include": "link.json"}, "base.json": {"handlers": {"h": {"type": "null"}}}})
    os.symlink("base.json", os.path.join(folder, "link.json"))
    assert "files\n  base.json\n  a.json\n  b.json\n  main.json\n" in check(folder)


@case
def a_text_includes_files_relative_to_the_working_folder(folder):
    write(folder, {"more.json": {"handlers": {"a": disk(folder, "a")}, "groups": {"*": "a"}}})
    done = subprocess.run([ADDER, "-n", "3", "-H", "a", "-f", "-1"], cwd=folder, capture_output=True, text=True, timeout=240,
                          env=environment(WEIR_CONFIG='{"include": "more.json"}'))
    assert done.returncode == 0 and done.stderr == "", done
    a = json.loads(done.stdout)["handlers"]["a"]
    assert a["offered"] == a["delivered"] == len(lines_of(os.path.join(folder, "a"))) == 3


# ---- What is refused ----------------------------------------------------------------------------------


@case
def a_name_that_two_files_define_is_refused_with_both_places(folder):
    for section, name in (("handlers", "disk"), ("handlers", "*"), ("groups", "a.b"), ("groups", "*")):
        value = {} if name == "*" else {"type": "null"}
        value = "null" if section == "groups" else value
        write(folder, {"main.json": {"include": "more.json", section: {name: value}}, "more.json": {section: {name: value}}})
        refused(folder, "main.json:1:", f": {section}.{name}: defined twice; also at more.json:1:")
    write(folder, {"main.json": {"include": ["more.json"], "metrics": {"a": {"n": "gauge", "m": "gauge"}}},
                   "more.json": '{"metrics": {\n  "a": { "m": "gauge" },\n  "*": { "n": "gauge" } } }'})
    refused(folder, "main.json:1:60: metrics.a.m: defined twice; also at more.json:2:10")


@case
def errors_name_the_included_file(folder):
    write(folder, {"main.json": {"include": "more.json"}, "more.json": '{\n "handlers": { "h": { "type": "null", "qeue": "1MiB" } }\n}'})
    refused(folder, "more.json:2:39: handlers.h.qeue: unknown option", 'did you mean "queue"?')
    write(folder, {"more.json": '{\n "groups": {},\n}'})
    refused(folder, "more.json:2:14: trailing comma")
    write(folder, {"more.json": "[]"})
    refused(folder, "more.json:1:1: must be an object, got an array")
    write(folder, {"more.json": '{"group": {}}'})
    refused(folder, "more.json:1:2: group: unknown section")
    write(folder, {"more.json": '{"groups": {"*": "nul"}}'})
    refused(folder, "more.json:1:18: groups.*: ", 'did you mean "null"?')
    write(folder, {"more.json": '{"settings": {"labels": {"a\\nb": "c"}}}'})
    refused(folder, "more.json:1:25: settings.labels: ", "control character")
    write(folder, {"more.json": '{"include": ["main.d"]}'})
    refused(folder, "more.json:1:14: include[0]: main.d: No such file or directory")


@case
def cycles_are_refused(folder):
    write(folder, {"main.json": '{"include": "main.json"}'})
    refused(folder, "main.json:1:13: include: main.json: includes itself\n")
    write(folder, {"main.json": '{"include": "a.json"}', "a.json": '{"include": "b.json"}', "b.json": '{"include": ["main.json"]}'})
    refused(folder, "b.json:1:14: include[0]: main.json: includes itself, by way of a.json, b.json\n")
    write(folder, {"main.json": '{"include": "a.json"}', "a.json": '{"include": "./*.json"}', "b.json": "{}"})
    refused(folder, "a.json:1:13: include: ./a.json: includes itself\n")


@case
def depth_number_and_size_are_bounded(folder):
    write(folder, {f"{i}.json": {"include": f"{i + 1}.json"} for i in range(8)})
    write(folder, {"8.json": {"groups": {"*": "null"}}})
    assert "  *              -> null  (8.json)" in check(folder, name="0.json")
    write(folder, {"8.json": {"include": ["9.json"]}, "9.json": {}})
    refused(folder, "8.json:1:14: include[0]: 9.json: files include files too deeply; at most 8 levels are allowed", name="0.json")
    write(folder, {"main.json": {"include": "many/*"}})
    write(folder, {f"many/{i}": "{}" for i in range(1000)})
    check(folder)
    write(folder, {"main.json": {"include": ["many/*", "8.json"]}})
    refused(folder, "main.json:1:24: include[1]: 8.json: too many files; at most 1,000 are allowed")
    write(folder, {"many/1000": "{}"})
    refused(folder, "main.json:1:14: include[0]: many: too many files; at most 1,000 are allowed")
    write(folder, {"main.json": {"include": ["long1", "long2"]}, "long1": "{}" + " " * (8 << 20), "long2": "{}" + " " * (8 << 20)})
    refused(folder, "main.json:1:23: include[1]: long2: with it, the configuration's files are longer than 16 MiB")
    values = '{"settings": {"labels": [%s0]}}' % ("0," * 499998)
    write(folder, {"main.json": {"include": ["long1", "long2"]}, "long1": values, "long2": values})
    refused(folder, "main.json:1:23: include[1]: long2: with it, the configuration's files have more than 1,000,000 values")


@case
def included_files_that_others_may_write_are_refused(folder):
    write(folder, {"main.json": {"include": ["conf.d/*"]}, "conf.d/a": {}})
    os.chmod(os.path.join(folder, "conf.d", "a"), 0o666)
    refused(folder, "main.json:1:14: include[0]: conf.d/a: refused: others may write this file")
    check(folder, WEIR_TRUST=os.path.join(folder, "conf.d"))
    os.chmod(os.path.join(folder, "conf.d", "a"), 0o644)
    os.chmod(os.path.join(folder, "conf.d"), 0o777)
    refused(folder, "main.json:1:14: include[0]: conf.d/a: refused: others may write the folder")
    if os.geteuid() == 0:
        os.chmod(os.path.join(folder, "conf.d"), 0o755)
        os.chown(os.path.join(folder, "conf.d", "a"), 65534, 65534)
        refused(folder, "main.json:1:14: include[0]: conf.d/a: refused: another user (65534) owns this file")


# ---- Reloading ----------------------------------------------------------------------------------------


def finish(program, *paths):
    program.terminate()
    out, err = program.communicate(timeout=240)
    assert program.returncode == 0, err
    turns = [json.loads(line)["turn"] for path in paths for line in lines_of(path)]
    assert sorted(turns) == list(range(len(turns))), turns
    return err


@case
def a_changed_included_file_is_reloaded(folder):
    a, b, c = (os.path.join(folder, name) for name in "abc")
    write(folder, {"main.json": {"include": ["more.json"], "settings": {"reload": "20ms"}},
                   "more.json": {"handlers": {"out": disk(folder, "a")}, "groups": {"*": "out"}}})
    program = start(RELOAD, os.path.join(folder, "main.json"))
    wait_for(lambda: size_of(a), "values in a")
    write(folder, {"more.json": {"handlers": {"out": disk(folder, "b")}, "groups": {"*": "out"}}})
    wait_for(lambda: size_of(b), "values in b")
    # a file that was not included before
    write(folder, {"last.json": {"handlers": {"out": disk(folder, "b")}, "groups": {"*": "out"}}, "more.json": {"include": "last.json"}})
    before = size_of(b)
    wait_for(lambda: size_of(b) > before, "more values in b")
    write(folder, {"last.json": {"handlers": {"out": disk(folder, "c")}, "groups": {"*": "out"}}})
    wait_for(lambda: size_of(c), "values in c")
    finish(program, a, b, c)


@case
def a_file_that_is_added_to_the_folder_of_a_pattern_is_reloaded(folder):
    a, b = (os.path.join(folder, name) for name in "ab")
    write(folder, {"main.json": {"include": ["conf.d/*.json"], "settings": {"reload": "20ms"}, "handlers": {"a": disk(folder, "a")}},
                   "conf.d/1.json": {"groups": {"*": "a"}}})
    program = start(RELOAD, os.path.join(folder, "main.json"))
    wait_for(lambda: size_of(a), "values in a")
    write(folder, {"conf.d/2.json": {"handlers": {"b": disk(folder, "b")}, "groups": {"my_app": "b"}}})
    wait_for(lambda: size_of(b), "values in b")
    finish(program, a, b)


@case
def the_files_of_a_failed_reload_are_watched_too(folder):
    a, b = (os.path.join(folder, name) for name in "ab")
    errors = os.path.join(folder, "errors")
    write(folder, {"main.json": {"settings": {"reload": "20ms"}, "handlers": {"out": disk(folder, "a")}, "groups": {"*": "out"}}})
    with open(errors, "w", encoding="utf-8") as file:
        program = subprocess.Popen([RELOAD, os.path.join(folder, "main.json")], env=environment(), stderr=file,
                                   stdout=subprocess.PIPE, text=True)
    wait_for(lambda: size_of(a), "values in a")
    write(folder, {"main.json": {"settings": {"reload": "20ms"}, "include": ["more.json"]}})
    wait_for(lambda: "more.json: No such file" in open(errors, encoding="utf-8").read(), "an error")
    write(folder, {"more.json": {"handlers": {"out": {**disk(folder, "b"), "apend": True}}, "groups": {"*": "out"}}})
    wait_for(lambda: "handlers.out.apend: unknown option" in open(errors, encoding="utf-8").read(), "another error")
    write(folder, {"more.json": {"handlers": {"out": disk(folder, "b")}, "groups": {"*": "out"}}})
    wait_for(lambda: size_of(b), "values in b")
    finish(program, a, b)
    assert len(lines_of(errors)) == 2, lines_of(errors)


@case
def too_many_patterns_are_refused(folder):
    write(folder, {"main.json": {"include": ["*.none"] * 1000}})
    check(folder)
    write(folder, {"main.json": {"include": ["*.none"] * 1001}})
    refused(folder, "main.json:1:", ": include[1000]: *.none: too many patterns; at most 1,000 are allowed")


@case
def a_text_that_includes_a_file_is_reloaded(folder):
    a, b = (os.path.join(folder, name) for name in "ab")
    write(folder, {"more.json": {"handlers": {"out": disk(folder, "a")}, "groups": {"*": "out"}}, "none.json": {}})
    program = start(RELOAD, os.path.join(folder, "none.json"), WEIR_CONFIG={"include": os.path.join(folder, "more.json")})
    wait_for(lambda: size_of(a), "values in a")
    write(folder, {"more.json": {"handlers": {"out": disk(folder, "b")}, "groups": {"*": "out"}}})
    program.send_signal(signal.SIGHUP)
    wait_for(lambda: size_of(b), "values in b")
    finish(program, a, b)


main()
