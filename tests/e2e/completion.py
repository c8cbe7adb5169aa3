"""The bash completion of `weir`, called as bash calls it."""

import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess

from installed import install, variable
from harness import BUILD, SOURCE, WEIR, Skip, case, environment, main, run

SCRIPT = os.path.join(SOURCE, "tools", "completion", "weir.bash")


def bash():
    found = shutil.which("bash")
    if not found:
        raise Skip("bash is not installed")
    return found


def offered(*words, cwd=None, **env):
    """The completions offered for the last word of the command line `weir WORDS`."""
    program = f"source {shlex.quote(SCRIPT)}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _weir; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run([bash(), "--norc", "-c", program, "bash", WEIR, *words], env=environment(**env), cwd=cwd,
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stderr == "", (words, done)
    return sorted(done.stdout.split("\n")[:-1]) if done.stdout.strip() else []


def commands():
    found = re.findall(r"^  ([\w-]+) +[A-Z]", run(WEIR, "--help").stdout, re.M)
    assert {"check", "emit", "schema", "help"} <= set(found), found
    return found


def options_of(*command):
    """Every option that a help text names, in both forms."""
    found = re.findall(r"^ {2,}(?:(-\w), )?(--[\w-]+)", run(WEIR, *command, "--help").stdout, re.M)
    assert found, command
    return sorted(form for forms in found for form in forms if form)


@case
def the_first_word_is_a_command_or_an_option():
    assert offered("") == sorted(commands() + options_of())
    assert offered("c") == ["check"] and offered("--v") == ["--version"] and offered("nothing") == []


@case
def every_command_has_the_options_of_its_help():
    for command in commands():
        assert offered(command, "-") == options_of(command), command
        for option in options_of(command):
            assert option in offered(command, option), (command, option)


@case
def every_operand_of_a_usage_line_is_completed_by_its_kind():
    """The completion handles every operand that a usage line names."""
    free = {"TIME", "SECONDS", "JSON", "NAME", "CHECK", "SEED", "CMD", "LABEL", "URL", "ADDRESS", "NUMBER", "PATTERN"}
    known = free | {"FILE", "FOLDER", "COMMAND", "TYPE", "SOURCE", "FORMAT", "GROUP", "PID", "PROGRAM", "ARGUMENT", "KEY=VALUE", "NAME=VALUE"}
    for command in commands():
        usage = run(WEIR, command, "--help").stdout.splitlines()[0]
        assert set(re.findall(r"[A-Z][A-Z=]+", usage)) <= known, usage
    script = open(SCRIPT, encoding="utf-8").read()
    offers = set(re.findall(r"^    ([A-Z]+)(?: \| [A-Z]+\.\.\.)?\)", script, re.M))
    assert offers == {place for place in known if "=" not in place and place not in free}, offers


@case
def types_formats_commands_and_keywords_are_completed():
    types = [handler["name"] for handler in json.loads(run(WEIR, "handlers", "--json").stdout)]
    formats = [form["name"] for form in json.loads(run(WEIR, "formats", "--json").stdout)]
    assert offered("handlers", "") == sorted(types) and "file" in types
    assert offered("handlers", "--json", "fi") == ["fifo", "file"]
    assert offered("sources", "") == sorted(source["name"] for source in json.loads(run(WEIR, "sources", "--json").stdout))
    assert offered("sources", "st") == ["statsd", "stdin"]
    assert offered("formats", "") == sorted(formats)
    assert offered("help", "") == sorted(commands())
    assert offered("spool", "") == ["list", "replay", "verify"] and offered("spool", "v") == ["verify"]
    for words in (("settings", ""), ("schema", ""), ("handlers", "file", ""), ("emit", "-t", ""), ("emit", "-l", ""), ("no", "")):
        assert offered(*words) == [], words


@case
def files_and_folders_are_completed(folder):
    os.mkdir(os.path.join(folder, "some folder"))
    for name in ("some.json", "other.json"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump({"groups": {"*": "console", "my_app": "null", "my_app.db": []}}, file)
    assert offered("check", "so", cwd=folder) == ["some folder", "some.json"]
    assert offered("check", "--open", "-t", "5s", "o", cwd=folder) == ["other.json"]
    assert offered("emit", "-c", "so", cwd=folder) == offered("emit", "--config", "so", cwd=folder) == ["some folder", "some.json"]
    assert offered("spool", "list", "so", cwd=folder) == ["some folder"]
    assert offered("check", "some.json", "", cwd=folder) == []


@case
def groups_of_the_configuration_are_completed(folder):
    config = {"groups": {"*": "console", "my_app": "null", "my_app.db": [], "other": "console"}}
    with open(os.path.join(folder, "weir.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    assert offered("check", "weir.json", "--group", "", cwd=folder) == ["my_app", "my_app.db", "other"]
    assert offered("check", "-g", "my", cwd=folder, WEIR_CONFIG=config) == ["my_app", "my_app.db"]
    assert offered("emit", "-c", "weir.json", "-g", "o", cwd=folder) == ["other"]
    assert offered("emit", "-g", "", cwd=folder) == []


@case
def process_ids_are_completed_where_a_command_takes_one():
    """Applies to every command whose usage has PID, whatever its name."""
    fake = "weir() { echo 'usage: weir watch [PID] [--json]'; }; "
    program = f"source {shlex.quote(SCRIPT)}; {fake} COMP_WORDS=(weir watch $$); COMP_CWORD=2; _weir; printf '%s\\n' $$ \"${{COMPREPLY[@]}}\""
    done = subprocess.run([bash(), "--norc", "-c", program], env=environment(), capture_output=True, text=True, timeout=240)
    own, *found = done.stdout.split()
    assert done.returncode == 0 and own in found and all(pid.startswith(own) for pid in found), done


@case
def bash_completes_typed_text(folder):
    leader, follower = pty.openpty()
    env = dict(environment(PATH=os.path.dirname(WEIR) + ":" + os.environ["PATH"], PS1="> ", TERM="dumb", INPUTRC="/dev/null", HOME=folder))
    shell = subprocess.Popen([bash(), "--norc", "--noprofile", "-i"], env=env, cwd=folder, stdin=follower, stdout=follower, stderr=follower,
                             start_new_session=True)
    os.close(follower)
    open(os.path.join(folder, "a name"), "w", encoding="utf-8").close()
    seen = b""

    def type_in(text, expected):
        nonlocal seen
        seen = b""
        os.write(leader, text)
        while expected not in seen:
            assert select.select([leader], [], [], 60)[0], (text, seen)
            seen += os.read(leader, 10000)

    type_in(b"source " + shlex.quote(SCRIPT).encode() + b" && echo rea''dy\n", b"ready")
    type_in(b"weir che\t", b"weir check ")
    type_in(b"--op\t", b"--open ")
    type_in(b"a\t", b"a\\ name ")
    os.close(leader)
    shell.wait(240)


@case
def it_is_installed_where_bash_looks(folder):
    install(folder)
    place = os.path.join(folder + variable("prefix"), "share", "bash-completion", "completions", "weir")
    with open(place, encoding="utf-8") as installed, open(SCRIPT, encoding="utf-8") as source:
        assert installed.read() == source.read()


main()
