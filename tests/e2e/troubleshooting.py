"""doc/troubleshooting.md: each command in it is run, and its output must equal the page's.

A fenced block of JSON (json5: intentionally invalid) whose first line is a comment with a file name is that file. In `console` blocks a
line that begins with "$ " is a command, followed by its output, standard error included; `...` matches anything within a line. An HTML
comment defines my_app for the next block: "my_app: ARGUMENTS" of tests/support/unrouted_app, or "running: CONFIG ARGUMENTS" for one
that runs in the background, is shown as process 4711, and logs to my_app.log."""

import os
import re
import shlex
import subprocess

from harness import BUILD, PLUGIN_PATH, SOURCE, WEIR, case, environment, main, skip_fork_under_sanitizers, wait_for
from markdown import Text, spans

PAGE = Text(os.path.join(SOURCE, "doc", "troubleshooting.md"))
UNROUTED_APP = os.path.join(BUILD, "tests", "support", ".libs", "unrouted_app")
LIBRARIES = os.path.join(BUILD, "lib", ".libs")
PID = "4711"


def blocks_of(text):
    """Yields (definition of my_app or None, language of the fenced block, its text)."""
    pattern = r"(?:^<!-- (my_app|running): (.*?) -->\n)?^```(\w+)\n(.*?)^```$"
    for kind, arguments, language, body in re.findall(pattern, text, re.M | re.S):
        yield (kind, arguments) if kind else None, language, body


def sections():
    """Yields (heading, blocks)."""
    head, *rest = re.split(r"^## (.*)\n", PAGE.text, flags=re.M)
    yield "beginning", list(blocks_of(head))
    for heading, text in zip(rest[::2], rest[1::2]):
        yield heading, list(blocks_of(text))


def commands_of(body):
    """[(command, [lines of its output])]"""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def matches(expected, lines):
    if len(expected) != len(lines):
        return False
    return all(re.fullmatch(".*".join(map(re.escape, pattern.split("..."))), line) for pattern, line in zip(expected, lines))


class Place:
    """A folder with the page's files, in which the page's commands are run."""

    def __init__(self, folder):
        self.folder, self.bin = folder, os.path.join(folder, ".bin")
        os.mkdir(self.bin)
        os.symlink(WEIR, os.path.join(self.bin, "weir"))
        os.symlink(os.path.join(BUILD, "examples", "prefork"), os.path.join(self.bin, "prefork"))
        self.env = environment(PATH=self.bin + os.pathsep + os.environ["PATH"], XDG_RUNTIME_DIR=folder)
        self.env["LC_ALL"] = "C"
        self.running = None
        for _, language, body in blocks_of(PAGE.text):
            if language in ("jsonc", "json5"):
                self.write(body)

    def write(self, body):
        name = re.match(r"// (\S+\.json)\n", body)
        assert name, body
        path = os.path.join(self.folder, name.group(1))
        assert not os.path.exists(path), path
        with open(path, "w", encoding="utf-8") as file:
            file.write(body)

    def set_my_app(self, arguments):
        path = os.path.join(self.bin, "my_app")
        with open(path, "w", encoding="utf-8") as file:  # set here, since `env -i` removes the test's variables
            file.write(f"#!/bin/bash\nexport LD_LIBRARY_PATH={shlex.quote(LIBRARIES)} WEIR_PLUGIN_PATH={shlex.quote(PLUGIN_PATH)}\n"
                       f"exec -a my_app {shlex.quote(UNROUTED_APP)} -q {arguments}\n")
        os.chmod(path, 0o755)

    def start(self, arguments):
        config, arguments = arguments.split(" ", 1)
        self.set_my_app("-w " + arguments)
        with open(os.path.join(self.folder, "my_app.log"), "w", encoding="utf-8") as log:
            self.running = subprocess.Popen([os.path.join(self.bin, "my_app")], env={**self.env, "WEIR_CONFIG": config}, cwd=self.folder,
                                            stdin=subprocess.PIPE, stderr=log)

    def stop(self):
        if self.running:
            self.running.stdin.close()
            self.running.wait(timeout=240)
        self.running = None

    def run(self, command):
        if self.running:
            command = re.sub(rf"\b{PID}\b", str(self.running.pid), command)
        elif PID in command:  # a process id that cannot exist
            with open("/proc/sys/kernel/pid_max", encoding="utf-8") as file:
                command = command.replace(PID, str(int(file.read()) + 1))
        done = subprocess.run(["bash", "-c", command], env=self.env, cwd=self.folder, timeout=240, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        shown = done.stdout
        if self.running:
            shown = shown.replace(f"{self.running.pid:8}", f"{PID:>8}").replace(str(self.running.pid), PID)
        elif PID not in shown:
            shown = re.sub(r"process \d+ cannot", f"process {PID} cannot", shown)
        return shown.splitlines()

    def expect(self, command, expected):
        """Output about a program in the background is repeated until it matches."""
        lines = []

        def output_matches():
            lines[:] = self.run(command)
            return matches(expected, lines)

        if not self.running:
            assert output_matches(), "\n".join(["$ " + command, "--- expected", *expected, "--- printed", *lines])
            return
        try:
            wait_for(output_matches, command)
        except AssertionError:
            raise AssertionError("\n".join(["$ " + command, "--- expected", *expected, "--- printed", *lines])) from None


def try_section(folder, blocks):
    os.umask(0o022)
    place = Place(folder)
    tried = 0
    for my_app, language, body in blocks:
        if language == "console":
            if my_app and my_app[0] == "my_app":
                place.set_my_app(my_app[1])
            elif my_app:
                place.start(my_app[1])
            try:
                for command, expected in commands_of(body):
                    place.expect(command, expected)
                    tried += 1
            finally:
                place.stop()
    return tried


@case
def each_symptom_has_a_command():
    for heading, blocks in sections():
        assert any(language == "console" for _, language, _ in blocks), heading
        assert all(language in ("console", "jsonc", "json5", "ini") for _, language, _ in blocks), heading


@case
def every_reason_is_in_the_tables_and_no_other():
    with open(os.path.join(SOURCE, "include", "weir", "weir.h"), encoding="utf-8") as file:
        header = file.read()
    for word in ("DROPPED", "REFUSED"):
        real = [name.lower() for name in re.findall(rf"^ {{4}}WEIR_{word}_(\w+)[, ]", header, re.M) if name != "MAX"]
        documented = [spans(row[word.lower()])[0] for table in PAGE.tables(word.lower()) for row in table]
        assert real and documented == real, (word, documented, real)


@case
def the_readme_links_to_the_page():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        assert "(doc/troubleshooting.md)" in file.read()


def add_case(heading, blocks):
    def run_it(folder):
        if any("prefork" in body for _, _, body in blocks):
            skip_fork_under_sanitizers()
        commands = sum(len(commands_of(body)) for _, language, body in blocks if language == "console")
        assert try_section(folder, blocks) == commands > 0
    run_it.__name__ = "the_commands_of_" + re.sub(r"\W+", "_", heading.lower()).strip("_")
    case(run_it)


for _heading, _blocks in sections():
    add_case(_heading, _blocks)

main()
