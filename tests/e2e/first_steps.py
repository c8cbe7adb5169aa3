"""Follows doc/first-steps.md exactly: every fenced block, with an installed weir and a real InfluxDB."""

import json
import os
import re
import shutil
import subprocess

from installed import environment_of, install
from harness import PLUGINS, SOURCE, WEIR, Skip, case, free_port, main, start, wait_for, without_waits
from markdown import Text
from peers import InfluxDB
from sourced import keep

REQUESTS = 25
GUIDE = Text(os.path.join(SOURCE, "doc", "first-steps.md"))


def without_times(text):
    """Replaces the times, which differ in each run, and removes a trailing newline."""
    return re.sub(r"\b\d{10}(\.\d{6}|\d{9})\b", "TIME", text.strip())


class Walk:
    """Follows the guide in a folder: writes its files, runs its commands, and compares their output with the guide."""

    def __init__(self, folder, prefix, port):
        self.folder = os.path.join(folder, "work")
        os.mkdir(self.folder)
        self.env = environment_of(folder, XDG_STATE_HOME=os.path.join(folder, "state"), XDG_RUNTIME_DIR=folder)
        self.env["PATH"] = os.path.join(prefix, "bin") + ":" + self.env["PATH"]
        self.port, self.collector_port = port, free_port()
        self.collector = None
        self.shown = None
        self.commands = 0

    def follow(self, text):
        """Two things are changed: servers of the test use free ports, and its program of a minute ends earlier."""
        for told, used in (("8086", str(self.port)), ("8080", str(self.collector_port)), ("./requests\n", f"./requests {REQUESTS}\n")):
            assert told in text, told
            text = text.replace(told, used)
        for before, language, block in re.findall(r"((?:^(?!```)[^\n]*\n)*)^```(\w+)\n(.*?)^```\n", text, re.M | re.S):
            if language == "sh":
                self.run(block)
            elif language == "text":
                self.compare(block)
            else:
                self.write(re.findall(r"`(\w+\.\w+)`", before)[-1], language, block)

    def write(self, name, language, block):
        assert name.rpartition(".")[2] == {"c": "c", "jsonc": "json"}[language], (name, language)
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(block)

    def run(self, block):
        self.commands += 1
        if block == "weir serve\n":
            self.serve()
            return
        done = subprocess.run(["sh", "-e", "-c", block], cwd=self.folder, env=self.env, timeout=240, capture_output=True, text=True)
        assert done.returncode == 0 and without_waits(done.stderr) == "", (block, done)
        self.shown = done.stdout
        if "weir status" in block:
            self.check_status()

    def serve(self):
        """In the background, as in a second terminal."""
        self.collector = keep(start(WEIR, "serve", "--listen", f"127.0.0.1:{self.collector_port}", "--http", f"127.0.0.1:{free_port()}", **self.env))
        wait_for(lambda: os.path.exists(os.path.join(self.folder, "..", "weir", "forward.sock")), "the collector")

    def check_status(self):
        """Each request has three values, and what the page of the guide shows is stored."""
        assert f"{3 * REQUESTS} values in 4 series" in self.shown and "nothing was lost" in self.shown, self.shown
        self.collector.terminate()
        out, log = self.collector.communicate(timeout=240)
        assert self.collector.returncode == 0 and f"http://127.0.0.1:{self.collector_port}/" in out and without_waits(log) == "", (out, log)

    def run_first_metric(self, config):
        return subprocess.run(["./first_metric"], cwd=self.folder, env=dict(self.env, WEIR_CONFIG=json.dumps(config)), timeout=240,
                              capture_output=True, text=True)

    def compare(self, block):
        assert without_times(self.shown) == without_times(block), (self.shown, block)


@case
def following_the_first_steps_stores_the_value_in_influxdb(folder):
    if not os.path.exists(os.path.join(PLUGINS, "http.so")):
        raise Skip("the handler type http was not built")
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    prefix = install(folder)
    with InfluxDB(folder) as server:
        walk = Walk(folder, prefix, server.port)
        walk.follow(GUIDE.text)
        assert walk.commands == GUIDE.text.count("```sh\n") >= 6, walk.commands
        # exactly one value is stored, which the output in the guide does not show
        assert count_values(server) == 1
        continue_with_a_spool(walk, server)


def count_values(server):
    rows = server.query("SELECT calculate_latency FROM my_app", db="bench")
    assert all(row["calculate_latency"] == 12.375 for row in rows), rows
    return len(rows)


def continue_with_a_spool(walk, server):
    """The suggestion at the end of the guide, with a short timeout while the server is stopped."""
    config = json.loads(re.sub(r"//.*group$", "", GUIDE.snippets("jsonc")[0].replace("8086", str(server.port)), flags=re.M))
    config["handlers"]["influxdb"]["spool"] = "spool"
    config["settings"]["shutdown_timeout"] = "50ms"
    server.stop()
    away = walk.run_first_metric(config)
    assert away.returncode == 0 and "1 spooled" in away.stderr and os.listdir(os.path.join(walk.folder, "spool")), away
    server.start()
    config["settings"]["shutdown_timeout"] = "1m"
    back = walk.run_first_metric(config)
    assert back.returncode == 0 and without_waits(back.stderr) == "" and count_values(server) == 3, (back, count_values(server))


@case
def the_programs_of_the_guide_are_that_of_the_readme_and_an_example():
    first, second = GUIDE.snippets("c")
    assert [first] == Text(os.path.join(SOURCE, "README.md")).snippets("c")[:1]
    with open(os.path.join(SOURCE, "examples", "requests.c"), encoding="utf-8") as file:
        assert file.read().partition("*/\n\n")[2] == second


main()
