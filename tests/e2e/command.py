"""The `weir` command."""

import json
import os
import re
import subprocess

from harness import PLUGINS, WEIR, Skip, become_nobody, case, environment, lines_of, main, need_access_for_others, run, without_waits

CONFIG = {
    "settings": {"labels": {"host": "here"}},
    "handlers": {
        "*": {"queue": "4MiB"},
        "disk": {"type": "file", "path": "/tmp/metrics.jsonl"},
        "spare": {"type": "null"},
    },
    "groups": {"*": "console", "my_app": ["disk"], "my_app.db": ["inherit", "console"], "my_app.noise": []},
}


def write(folder, config, name="weir.json"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


@case
def check_shows_handlers_and_routes(folder):
    path = write(folder, CONFIG)
    done = run(WEIR, "check", path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"{path}: valid"
    assert '  disk           file format=json path="/tmp/metrics.jsonl" queue=4MiB' in lines, lines
    assert "  spare          null queue=4MiB  (no route leads to it)" in lines, lines
    assert '  my_app.db      -> disk (inherited from "my_app"), console' in lines, lines
    assert "  my_app.noise   -> (unrouted)" in lines, lines


@case
def columns_are_aligned_behind_names_that_are_not_ascii(folder):
    config = {"handlers": {"Größe": {"type": "null"}}, "groups": {"*": "Größe", "Maß": "Größe"}}
    lines = run(WEIR, "check", write(folder, config)).stdout.splitlines()
    assert "  Größe          null" in lines and "  Maß            -> Größe" in lines, lines


@case
def check_shows_which_handlers_a_group_reaches_and_why(folder):
    path = write(folder, CONFIG)
    for group, expected in (
            ("my_app", "my_app -> disk\n  by its own route\n"),
            ("my_app.db.pool", 'my_app.db.pool -> disk (inherited from "my_app"), console\n'
                               '  by the route of its parent "my_app.db"\n'),
            ("my_application", 'my_application -> console\n  by the default route "*"\n'),
            ("my_app.noise", "my_app.noise -> (unrouted)\n  by its own route\n"),
            ("weir", "weir -> (unrouted)\n  because no route names it: \"*\" does not apply to weir's own metrics\n")):
        done = run(WEIR, "check", path, "--group", group)
        assert done.returncode == 0 and done.stdout == expected, done.stdout


@case
def check_reads_weir_config_when_no_file_is_given(folder):
    assert run(WEIR, "check", WEIR_CONFIG=CONFIG).stdout.startswith("WEIR_CONFIG: valid\n")
    assert run(WEIR, "check", WEIR_CONFIG=write(folder, CONFIG)).returncode == 0
    assert run(WEIR, "check").returncode == 1


@case
def check_opens_no_destination(folder):
    out = os.path.join(folder, "out")
    path = write(folder, {"handlers": {"disk": {"type": "file", "path": out}}, "groups": {"*": "disk"}})
    assert run(WEIR, "check", path).returncode == 0
    assert not os.path.exists(out)


@case
def handlers_lists_the_installed_types():
    done = run(WEIR, "handlers")
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert {"null", "console", "file", "fifo"} <= set(names), names
    assert re.search(r"^file .*\(.*/file\.so\)$", done.stdout, re.M), done.stdout


@case
def handlers_shows_options_with_types_defaults_and_help():
    done = run(WEIR, "handlers", "console")
    assert done.returncode == 0
    assert re.search(r"^  color +enum +auto: on a terminal, unless NO_COLOR is set .*\n +default: auto; allowed: auto, always, never$",
                     done.stdout, re.M), done.stdout
    assert re.search(r"^  format .*\n +default: text$", done.stdout, re.M), done.stdout
    assert re.search(r"^  queue +size ", done.stdout, re.M)
    assert re.search(r"^  formats  lines$", done.stdout, re.M), done.stdout
    assert re.search(r"^  formats  none$", run(WEIR, "handlers", "null").stdout, re.M)


@case
def handlers_and_formats_print_json_on_request():
    one = json.loads(run(WEIR, "handlers", "file", "--json").stdout)
    path = next(option for option in one["options"] if option["name"] == "path")
    assert path == {"name": "path", "type": "path", "required": True, "secret": False, "default": None, "allowed": None,
                    "help": "the file, optionally with date fields (metrics-%Y-%m-%d.jsonl)"}
    assert any(option["name"] == "linger" for option in one["common_options"])
    assert (one["lines"], one["documents"], one["records"]) == (True, False, False), one
    everything = json.loads(run(WEIR, "handlers", "--json").stdout)
    assert {"null", "console", "file", "fifo"} <= {handler["name"] for handler in everything}
    formats = json.loads(run(WEIR, "formats", "--json").stdout)
    assert [f["name"] for f in formats][:3] == ["text", "json", "bai"]
    assert json.loads(run(WEIR, "formats", "bai", "--json").stdout)["makes"] == "lines"


@case
def settings_shows_types_defaults_and_allowed_values():
    done = run(WEIR, "settings")
    assert done.returncode == 0 and done.stderr == "", done
    assert re.search(r"^  shutdown_timeout +duration  .*\n +default: 5s; allowed: 0s\.\.1d$", done.stdout, re.M), done.stdout
    settings = {setting["name"]: setting for setting in json.loads(run(WEIR, "settings", "--json").stdout)}
    assert settings["labels"]["type"] == "map" and settings["labels"]["default"] is None
    assert settings["max_series"]["default"] == "100000" and settings["max_series"]["allowed"] == "1..30000000"


@case
def a_broken_plugin_is_reported_and_the_others_are_shown(folder):
    with open(os.path.join(folder, "broken.so"), "w", encoding="utf-8") as file:
        file.write("no object at all")
    from harness import PLUGIN_PATH
    done = run(WEIR, "handlers", WEIR_PLUGIN_PATH=folder + ":" + PLUGIN_PATH)
    assert done.returncode == 1 and "broken.so" in done.stderr and "file" in done.stdout, done


@case
def a_plugin_folder_that_cannot_be_read_is_reported_as_such(folder):
    if os.geteuid() != 0:
        raise Skip("needs root, to become another user")
    need_access_for_others()
    os.chmod(folder, 0o755)
    secret = os.path.join(folder, "secret")
    os.mkdir(secret, 0o700)
    env = environment(WEIR_PLUGIN_PATH=secret, WEIR_CONFIG={"groups": {"*": "secret_type"}})
    for arguments in (("emit", "-g", "g", "x=1"), ("handlers",)):
        done = subprocess.run([WEIR, *arguments], env=env, preexec_fn=become_nobody, capture_output=True, text=True, timeout=240)
        assert done.returncode == 1 and secret in done.stderr and "Permission denied" in done.stderr, done
        assert "not an installed" not in done.stderr, done.stderr


@case
def emit_delivers_one_event_and_reports_the_result_of_each_handler(folder):
    out = os.path.join(folder, "out")
    config = write(folder, {"handlers": {"disk": {"type": "file", "path": out}}, "groups": {"*": ["disk", "null"]}})
    done = run(WEIR, "emit", "-c", config, "-g", "backup", "-l", "host=db1", "-v", "bytes=1e6", "seconds=12.5")
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    assert sorted(done.stdout.splitlines()) == ["disk: 2 delivered", "null: 2 delivered"], done.stdout
    records = [json.loads(line) for line in lines_of(out)]
    assert [(r["group"], r["name"], r["value"], r["labels"]) for r in records] == [
        ("backup", "bytes", 1e6, {"host": "db1"}), ("backup", "seconds", 12.5, {"host": "db1"})]
    assert records[0]["timestamp"] == records[1]["timestamp"]


@case
def emit_says_what_its_values_are(folder):
    out = os.path.join(folder, "out")
    config = write(folder, {"handlers": {"disk": {"type": "file", "path": out, "format": "json"}},
                            "groups": {"*": "disk"}, "metrics": {"g": {"level": {"instrument": "gauge"}}}})
    for option in ("counter", "gauge", "histogram"):
        done = run(WEIR, "emit", "-c", config, "-g", "g", "-l", "a=b", "--" + option, "x=1", "level=2", WEIR_LOG="info")
        assert done.returncode == 0 and "2 values added, 0 of them unrouted, 0 refused" in done.stderr, done
        for text, parse in (("y:3|c\n", "statsd"), ("z=4\n", "text")):
            done = subprocess.run([WEIR, "emit", "-c", config, "-g", "g", "--" + option, "-", "--parse", parse], input=text,
                                  env=environment(), capture_output=True, text=True, timeout=240, check=False)
            assert done.returncode == 0, done
        with open(out, encoding="utf-8") as file:
            found = {line["name"]: line["instrument"] for line in map(json.loads, file)}
        assert found == {"x": option, "level": "gauge", "y": "counter", "z": option}, found
        os.remove(out)
    done = run(WEIR, "emit", "-c", config, "-g", "g", "--gauge", "--counter", "x=1")
    assert done.returncode == 2 and "only one of --counter, --gauge and --histogram is allowed" in done.stderr, done


@case
def emit_prefers_the_named_file_to_weir_config(folder):
    out = os.path.join(folder, "out")
    config = write(folder, {"handlers": {"disk": {"type": "file", "path": out}}, "groups": {"*": "disk"}})
    done = run(WEIR, "emit", "-c", config, "-g", "g", "-v", "x=1", WEIR_CONFIG={"groups": {"*": "null"}})
    assert (done.returncode, done.stdout, done.stderr) == (0, "disk: 1 delivered\n", ""), done
    assert len(lines_of(out)) == 1


@case
def emit_exits_with_1_if_a_value_was_not_delivered():
    config = {"handlers": {"disk": {"type": "file", "path": "/no/such/folder/x"}}, "groups": {"*": "disk"}}
    done = run(WEIR, "emit", "-g", "g", "-t", "50ms", "-v", "x=1", WEIR_CONFIG=config)
    assert done.returncode == 1 and done.stdout == "disk: 0 delivered, 1 not delivered yet, failing\n", done
    assert "No such file or directory" in done.stderr


@case
def emit_to_a_group_without_handlers_warns_and_fails_only_with_strict():
    done = run(WEIR, "emit", "-g", "g", "-v", "x=1", WEIR_CONFIG={"groups": {}})
    assert done.returncode == 0 and done.stdout == "the group is not routed to any handler\n", done
    config = {"groups": {"my_app": "null", "quiet": []}}
    for group, reason in (("my_ap", 'no route matches; did you mean "my_app"?'), ("quiet", 'the route of "quiet" is empty')):
        for options, status in (((), 0), (("--strict",), 1)):
            done = run(WEIR, "emit", "-g", group, *options, "x=1", "y=2", WEIR_CONFIG=config)
            expected = f'weir: warning: ledger: group "{group}": 2 values had no handler: {reason}\n'
            assert (done.returncode, done.stdout, done.stderr) == (status, "", expected), (expected, done)
    done = run(WEIR, "emit", "-g", "my_app", "--strict", "x=1", WEIR_CONFIG=config)
    assert (done.returncode, done.stderr) == (0, ""), done


@case
def untrusted_names_are_escaped_wherever_they_are_printed(folder):
    """A right-to-left override in names of the configuration, an escape sequence in file names and arguments."""
    override, sequence = "a\u202eb", "x\033[2Jy"
    config = {"handlers": {override: {"type": "null"}}, "groups": {override: override, override + ".c": ["inherit", "null"]}}
    boxes = os.path.join(folder, "boxes")
    os.makedirs(os.path.join(boxes, sequence + ".0123abcd.1.0"))
    commands = [("check",), ("check", "-g", override + ".c.d"), ("check", "--open"), ("check", sequence), ("check", "-g", sequence),
                ("emit", "-g", override, "-v", "x=1"), ("emit", "-g", "g", sequence), ("emit", "-g", "g", "-t", sequence, "x=1"),
                ("emit", "-c", sequence, "-g", "g", "x=1"), ("handlers", sequence), ("formats", sequence), ("help", sequence), (sequence,),
                ("spool", "list", boxes), ("spool", "list", sequence), ("journal", "verify", sequence), ("status", sequence),
                ("status", "--folder", sequence), ("new-handler", sequence), ("vet", sequence), ("bench-handler", sequence)]
    for arguments in commands:
        done = run(WEIR, *arguments, WEIR_CONFIG=config, cwd=folder)
        printed = done.stdout + done.stderr
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", printed), (arguments, printed)
        assert "\\u202e" in printed or "\\x1b[2J" in printed, (arguments, printed)


@case
def usage_errors_exit_with_2_and_are_explained():
    config = {"groups": {"*": "null"}}
    for arguments, words in ((("emit",), "-g GROUP is missing"),
                             (("emit", "-g", "g"), "no value is given"),
                             (("emit", "-g", "a..b", "x=1"), "empty part"),
                             (("emit", "-g", "g", "x"), '"x" is not a value'),
                             (("emit", "-g", "g", "x=y"), '"y" is not a number'),
                             (("emit", "-g", "g", "-l", "k", "x=1"), '"k" is not a label'),
                             (("emit", "-g", "g", "-t", "5", "x=1"), "is not a duration"),
                             (("emit", "-g", "g", "--colour", "x=1"), "weir emit: unrecognized option '--colour'\nusage: weir emit "),
                             (("emit", "-g"), "weir emit: option requires an argument -- 'g'\nusage: weir emit "),
                             (("formats", "-j"), "weir formats: invalid option -- 'j'\nusage: weir formats "),
                             (("check", "a", "b"), "at most one FILE is allowed"),
                             (("check", "--group", "a..b"), "empty part"),
                             (("handlers", "a", "b"), "at most one name is allowed"),
                             (("settings", "a"), "no arguments are allowed"),
                             (("chek",), 'did you mean "check"?'),
                             (("help", "chek"), 'did you mean "check"?'),
                             (("help", "check", "emit"), "at most one name is allowed"),
                             (("schema", "x"), "no arguments are allowed"),
                             ((), "usage: weir COMMAND")):
        done = run(WEIR, *arguments, stdin=subprocess.DEVNULL, WEIR_CONFIG=config)
        assert done.returncode == 2 and words in done.stderr, (arguments, done)
    done = run(WEIR, "emit", "-g", "g", "x=1")
    assert done.returncode == 2 and "none of WEIR_CONFIG, BENCHMARK_AI and WEIR_TEE is set" in done.stderr


@case
def unknown_names_exit_with_1_and_suggest_the_nearest():
    done = run(WEIR, "handlers", "fil")
    assert done.returncode == 1 and 'did you mean "file"?' in done.stderr, done.stderr
    done = run(WEIR, "formats", "jso")
    assert done.returncode == 1 and 'did you mean "json"?' in done.stderr, done.stderr


@case
def help_groups_the_commands():
    sections = re.findall(r"^([A-Z][\w ]+):\n((?:  [a-z][\w-]* +[A-Z].*\n)+)", run(WEIR, "--help").stdout, re.M)
    assert {title: re.findall(r"^  (\S+)", lines, re.M) for title, lines in sections} == {
        "Everyday commands": ["run", "check", "emit", "handlers", "sources", "formats", "settings", "schema", "summary", "help"],
        "Operating": ["serve", "relay", "status", "top", "spool", "journal"],
        "Writing plugins": ["new-handler", "vet", "bench-handler"]}


@case
def a_short_option_means_the_same_in_every_command():
    overview = run(WEIR, "--help").stdout
    meanings = {}
    for command in re.findall(r"^  ([\w-]+) +[A-Z]", overview, re.M):
        for short, long in re.findall(r"^ +-(\w), --([\w-]+)", run(WEIR, command, "--help").stdout, re.M):
            meanings.setdefault(short, set()).add(long)
    assert meanings["c"] == {"config"} and meanings["t"] == {"timeout"}, meanings


@case
def help_and_version_go_to_standard_output():
    assert re.fullmatch(r"weir \d+\.\d+\.\d+\n", run(WEIR, "--version").stdout)
    for arguments in (("--help",), ("check", "--help"), ("emit", "--help"), ("handlers", "-h"), ("formats", "--help"),
                      ("settings", "-h")):
        done = run(WEIR, *arguments)
        assert done.returncode == 0 and done.stdout.startswith("usage: weir ") and done.stderr == "", arguments


@case
def a_write_error_on_standard_output_is_reported():
    with open("/dev/full", "w", encoding="utf-8") as full:
        for arguments in (("formats",), ("help",), ("--help",), ("--version",), ("emit", "--help"), ("vet", os.path.join(PLUGINS, "null.so"))):
            done = subprocess.run([WEIR, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), timeout=240)
            assert done.returncode == 1 and done.stderr.count("cannot be written") == 1, (arguments, done)


@case
def an_option_with_control_characters_is_escaped_in_its_refusal():
    for arguments in (("emit", "--a\x1b[31mb"), ("spool", "-\x1b"), ("check", "--group=\x9b")):
        done = run(WEIR, *arguments)
        assert done.returncode == 2 and "an option must be UTF-8 without control characters" in done.stderr, done
        assert "\x1b" not in done.stderr and "\x9b" not in done.stderr, done


@case
def bench_handler_names_places_in_the_options_that_were_given(folder):
    plugin = os.path.join(PLUGINS, "file.so")
    for options, expected in (
            ('{"pth": 1}', '--options:1:2: pth: unknown option; did you mean "path"?'),
            ('{"path": "x", "queue": "1"}', '--options:1:24: queue: "1" has no unit'),
            ("{}", '--options:1:1: the option "path" is missing')):
        done = run(WEIR, "bench-handler", plugin, "-o", options, "-d", "1ms", cwd=folder)
        assert done.returncode == 1 and done.stderr.startswith(f"weir: {expected}"), done.stderr
    done = run(WEIR, "bench-handler", plugin, "-d", "1ms", cwd=folder)
    assert done.returncode == 1 and done.stderr.startswith('weir: the option "path" is missing'), done.stderr


main()
