"""doc/coming-from.md: its programs, configurations and commands are used as the page says, and what arrives is what the page shows.

A fenced block of C or JSON is the file that the text before it names; each program is compiled. A `console` block is run where these files
are, as one script: lines that begin with "$ " or "> " are its commands, and the others what they print. Only ports and times are
replaced."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import urllib.request

from brokers import CLUSTER, Cluster
from certificates import make
from harness import BUILD, PLUGIN_PATH, PLUGINS, SOURCE, WEIR, Skip, await_day, environment, free_port, lines_of, main, wait_for
from markdown import Text, spans
from receivers import Receiver
from scripted import Scripted, tls_context
from serving import Serving
from sourced import case, keep

PAGE = Text(os.path.join(SOURCE, "doc", "coming-from.md"))
CC = shlex.split(os.environ.get("WEIR_TEST_CC", "cc"))
LIBRARIES = os.path.join(BUILD, "lib", ".libs")
EVENTS = [{"loss": 0.5, "accuracy": 0.875}, {"epoch": 1, "loss": 0.25}]  # of emit.c
LABELS = {"action-id": "a1", "client-id": "c1", "task_name": "train"}
JOB = {"BACKEND_ARG_ACTION_ID": "a1", "BACKEND_ARG_CLIENT_ID": "c1", "CUSTOM_LABEL_TASK_NAME": "train"}
SECTIONS = dict(zip(*[iter(re.split(r"^##+ (.*)\n", PAGE.text, flags=re.M)[1:])] * 2))


def need(*plugins, command=None):
    if command and not shutil.which(command):
        raise Skip(f"{command} is not installed")
    for name in plugins:
        if not any(os.path.exists(os.path.join(folder, name + ".so")) for folder in PLUGIN_PATH.split(":")):
            raise Skip(f"{name} was not built")


def blocks_of(text):
    """Yields (name of the file, language, text of the block)."""
    for before, language, body in re.findall(r"((?:^(?!```)[^\n]*\n)*)^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        names = re.findall(r"`([\w-]+\.(?:c|json))`", before)
        yield (names[-1] if language in ("c", "json") else None), language, body


def without_times(text):
    """Times and durations differ in each run."""
    text = re.sub(r"\b\d{10}(\.\d+)?\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
    return re.sub(r"(duration\.ms)=\d+\b", r"\1=DURATION", text)


class Section:
    """The files of a section in a folder, in which its commands are run. ports: {that of the page: that of the test}."""

    def __init__(self, folder, *headings, ports=None, **env):
        self.folder, self.ports = folder, ports or {}
        self.env = {**environment(**env), "LD_LIBRARY_PATH": LIBRARIES, "WEIR_LOG": "info", "LC_ALL": "C",
                    "BENCHMARK_AI_FIFO_MAX_WAIT_TIME": "600", "BENCHMARK_AI_FIFO_FILEPATH": os.path.join(folder, "fifo")}
        self.env["PATH"] = os.path.dirname(WEIR) + ":" + self.env["PATH"]
        for heading in headings:
            self.commands, self.shown = [], []  # those of the last one
            for name, language, body in blocks_of(SECTIONS[heading]):
                self.take(name, language, self.with_ports(body))

    def with_ports(self, text):
        for documented, real in self.ports.items():
            text = re.sub(rf"\b{documented}\b", str(real), text)
        return text

    def take(self, name, language, body):
        if name:
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(body)
        if language == "c":
            self.compile(name)
        elif language == "console":
            lines = body.splitlines(True)
            self.commands.append("".join(line[2:] for line in lines if line.startswith(("$ ", "> "))))
            self.shown.append("".join(line for line in lines if not line.startswith(("$ ", "> "))))

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name):
        done = subprocess.run([*CC, "-Wall", "-Wextra", "-Werror", name, "-o", name[:-2], "-I", os.path.join(SOURCE, "include"),
                               "-I", os.path.join(BUILD, "include"), "-L", LIBRARIES, "-lweir"], cwd=self.folder, capture_output=True,
                              text=True, timeout=240)
        assert done.returncode == 0, done.stderr

    def change(self, name, change):
        """Changes a configuration."""
        with open(self.path(name), encoding="utf-8") as file:
            config = json.load(file)
        change(config)
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(config, file)

    def start(self, *command, log="log", **more):
        with open(self.path(log), "w", encoding="utf-8") as file:
            return keep(subprocess.Popen(command, env={**self.env, **more}, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=file, text=True, start_new_session=True))

    def end(self, program, log="log"):
        """Waits for its end. Returns its output and its messages."""
        out, _ = program.communicate(timeout=300)
        with open(self.path(log), encoding="utf-8") as file:
            messages = file.read()
        assert program.returncode == 0 and "error:" not in messages and "warning:" not in messages, (program.returncode, out, messages)
        return out, messages

    def follow(self, number):
        """Runs a block of commands, which print what the page shows. Returns the messages."""
        shell = self.start("sh", "-e", "-c", self.commands[number])
        try:
            out, messages = self.end(shell)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)  # what a command that failed has left in the background
        assert without_times(out).rstrip() == without_times(self.shown[number]).rstrip(), (out, self.shown[number])
        return messages


def ledgers_of(messages):
    """[(values added, {handler: values delivered})], one for each process: nothing was refused, unrouted or dropped."""
    found = []
    for line in re.findall(r"ledger: (.*)", messages):
        process = re.match(r"process \d+: (\d+) values added, 0 of them unrouted, 0 refused$", line)
        handler = re.match(r'handler "(.*)": (\d+) offered, (\d+) delivered, 0 dropped, 0 queued, 0 spooled', line)
        assert process or handler, line
        if process:
            found.append((int(process[1]), {}))
        else:
            assert handler[2] == handler[3], line
            found[-1][1][handler[1]] = int(handler[3])
    assert found, messages
    return found


# ---- torchelastic ---------------------------------------------------------------------------------------


@case
def torchelastic_s_calls_print_its_lines(folder):
    section = Section(folder, "torchelastic")
    assert ledgers_of(section.follow(0)) == [(6, {"console": 5, "null": 1})]


# ---- benchmarkai ----------------------------------------------------------------------------------------


def pusher(folder, **env):
    """The relay in place of the pusher, with the handlers that were built; kept for the section's commands."""
    need("http")
    section = Section(folder, "Programs: emit", "The metrics pusher", **JOB, **env)
    if not os.path.exists(os.path.join(PLUGINS, "kafka.so")):
        section.change("pusher.json", lambda config: config["handlers"].pop("kafka"))
    return section


def emit_to(section):
    """Runs the program in mode fifo. A relay reads the pipe."""
    program = section.start("./emit", log="emit.log", BENCHMARK_AI="fifo")
    assert ledgers_of(section.end(program, "emit.log")[1]) == [(4, {"fifo": 4})]


@case
def a_program_emits_to_standard_output_and_to_a_relay_in_place_of_the_pusher(folder):
    section = pusher(folder)
    assert ledgers_of(section.follow(0)) == [(4, {"console": 4}), (4, {"fifo": 4}), (4, {"stdout": 4})]
    mode = os.stat(section.env["BENCHMARK_AI_FIFO_FILEPATH"]).st_mode
    assert stat.S_ISFIFO(mode) and stat.S_IMODE(mode) == 0o622, oct(mode)


@case
def from_standard_input_the_relay_ends_with_the_last_writer(folder):
    section = pusher(folder)
    *parts, command = re.search(r"replace `([^`]*)` by `([^`]*)`[^`]*`([^`]*)`", re.sub(r"\s+", " ", SECTIONS["The metrics pusher"])).groups()
    old, new = (json.loads("{" + part + "}") for part in parts)

    def read_standard_input(config):
        source = config["sources"]["job"]
        assert old.items() <= source.items(), source
        config["sources"]["job"] = {**{key: value for key, value in source.items() if key not in old}, **new}
    section.change("pusher.json", read_standard_input)
    relay = section.start("sh", "-e", "-c", command.replace("PIPE", section.env["BENCHMARK_AI_FIFO_FILEPATH"]))
    emit_to(section)
    out, messages = section.end(relay)
    assert [json.loads(line) for line in out.splitlines()] == [{**event, "labels": LABELS} for event in EVENTS], out
    assert ledgers_of(messages) == [(4, {"stdout": 4})]


@case
def the_pusher_s_documents_reach_elasticsearch(folder):
    certificate, key = make(folder, "server")
    with Scripted(tls=tls_context(certificate, key)) as server:
        section = pusher(folder, BACKEND="elasticsearch", BACKEND_ARG_HOSTNAME="localhost", BACKEND_ARG_PORT=server.port)
        section.change("pusher.json", lambda config: config["handlers"]["elasticsearch"].update(ca_file=certificate))
        relay = section.start(WEIR, "relay", "-c", "pusher.json")
        emit_to(section)
        relay.terminate()
        assert ledgers_of(section.end(relay)[1]) == [(4, {"elasticsearch": 4})]
        assert {(request.method, request.path, request.headers["content-type"]) for request in server.requests} == {
            ("POST", "/job-metrics/metric", "application/json")}
        documents = [json.loads(request.body) for request in server.requests]
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?", document.pop("timestamp")) for document in documents)
        assert documents == [{**LABELS, "metrics": event, "tracing": {"service": "metrics-pusher"}} for event in EVENTS], documents


@case
def the_pusher_s_records_reach_kafka(folder):
    need("kafka")
    if not os.path.exists(CLUSTER):
        raise Skip("the mock brokers were not built")
    with Cluster(folder, topics=(("BAI_METRICS", 1),)) as cluster:
        section = pusher(folder, BACKEND="kafka", BACKEND_ARG_BOOTSTRAP_SERVERS=cluster.brokers[0], BACKEND_ARG_KEY="c1")
        relay = section.start(WEIR, "relay", "-c", "pusher.json")
        emit_to(section)
        relay.terminate()
        assert ledgers_of(section.end(relay)[1]) == [(4, {"kafka": 4})]
        messages = cluster.await_messages(4, "BAI_METRICS")
    records = [json.loads(message.value) for message in messages]
    assert [record.pop("timestamp") for record in records] == [message.timestamp for message in messages]
    expected = [{"name": name, "value": value, "labels": LABELS} for event in EVENTS for name, value in event.items()]
    assert records == expected and {message.key for message in messages} == {"c1"}, messages


@case
def an_unknown_backend_is_an_error_at_the_start(folder):
    section = pusher(folder, BACKEND="cloudwatch")
    done = subprocess.run([WEIR, "relay", "-c", "pusher.json"], env=section.env, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1 and '"cloudwatch"' in done.stderr, done


@case
def the_extractor_s_patterns_find_numbers(folder):
    need("patterns.parser")
    section = Section(folder, "The metrics extractor")
    assert ledgers_of(section.follow(0)) == [(2, {"console": 2})]


# ---- MLBench --------------------------------------------------------------------------------------------


@case
def a_run_of_mlbench_is_kept_by_weir_serve(folder):
    need("http", "collector.source", "store", command="curl")
    server = Serving(folder)
    section = Section(folder, "MLBench", ports={8080: server.port})
    assert ledgers_of(section.follow(0)) == [(2, {"mlbench": 2})]
    found = {name: [value["value"] for value in values] for name, values in server.get("/api/metrics/1/?metric_type=run").items()}
    assert found == {"train_loss @ 0": ["0.5"], "val_loss @ 0": ["0.25"], "TaskResult @ 0": ["80% reached"]}, found
    of_all = server.get("/api/metrics/")["run_metrics"]["run1"]["val_loss @ 0"]
    assert [json.loads(value["metadata"]) for value in of_all] == [{"rank": 0, "epoch": 1}], of_all
    run = server.get("/api/runs/1/")
    assert (run["name"], run["state"], run["num_workers"]) == ("run1", "finished", 1) and run["finished_at"], run
    server.end()


# ---- StatsD ---------------------------------------------------------------------------------------------


@case
def a_relay_in_place_of_statsd_writes_to_graphite(folder):
    """Sends the lines of the table. The interval is a day, and ends with the relay, as that of sets does."""
    rows = next(PAGE.tables("StatsD"))
    sent = [line for row in rows for line in spans(row["StatsD"]) if line.startswith("app.")]
    arrives = [line for row in rows for line in spans(row["Graphite gets at the end of the interval"]) if line.startswith("app.")]
    assert len(sent) == 6 and len(arrives) == 9, (sent, arrives)
    await_day()
    graphite = Receiver("tcp")
    section = Section(folder, "StatsD", ports={8125: free_port(), 2003: graphite.port})

    def wait_for_the_end(config):
        config["handlers"]["graphite"]["aggregate"] = "1d"
        config["sources"]["statsd"]["set_interval"] = "1d"
    section.change("statsd.json", wait_for_the_end)
    relay = section.start(WEIR, "relay", "-c", "statsd.json", "-v", "--every", "100ms", log="relay.log")

    def has_logged(text):
        with open(section.path("relay.log"), encoding="utf-8") as file:
            return text in file.read()
    wait_for(lambda: has_logged(f"listens at udp://127.0.0.1:{section.ports[8125]}"), "the source")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for line in sent:
            sender.sendto(line.encode(), ("127.0.0.1", section.ports[8125]))
    wait_for(lambda: has_logged("statsd: running, 6 lines (0 invalid)"), "the lines")
    relay.terminate()
    assert ledgers_of(section.end(relay, "relay.log")[1]) == [(6, {"graphite": 6})]
    wait_for(lambda: b"".join(graphite.pieces).count(b".bucket.") == 23, "what Graphite gets")
    graphite.stop()
    lines = [line.rsplit(" ", 1)[0] for line in b"".join(graphite.pieces).decode().splitlines()]
    assert sorted(line for line in lines if ".bucket." not in line or line in arrives) == sorted(arrives), lines
    assert {line.split()[1] for line in lines if ".bucket." in line} == {"0", "1"}, lines


# ---- Prometheus -----------------------------------------------------------------------------------------


def fetch_samples(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=240) as response:
        return dict(line.rsplit(" ", 1) for line in response.read().decode().splitlines() if not line.startswith("#"))


@case
def a_program_s_instruments_are_scraped(folder):
    need("prometheus", command="curl")
    section = Section(folder, "prometheus-cpp and client_golang", ports={9464: free_port()})
    app = section.start("./app", log="app.log", WEIR_CONFIG="scrape.json")

    def is_shown():
        assert app.poll() is None, lines_of(section.path("app.log"))
        done = subprocess.run(["sh", "-c", section.commands[0]], capture_output=True, text=True, timeout=240, check=False)
        return done.stdout == section.shown[0]
    wait_for(is_shown, "the samples")
    samples = fetch_samples(section.ports[9464])
    assert [samples[f'my_app_latency_seconds{part}{{route="/x"}}'] for part in ("_sum", "_count", "_min", "_max", "_p90")] == \
        ["0.25", "1", "0.25", "0.25", "0.25"], samples
    assert ledgers_of(section.end(app, "app.log")[1]) == [(4, {"scrape": 4})]


# ---- The page -------------------------------------------------------------------------------------------


@case
def every_block_of_the_page_is_in_a_section_with_a_case():
    counts = {heading: [language for _, language, _ in blocks_of(text)] for heading, text in SECTIONS.items()}
    assert {heading: languages.count("console") for heading, languages in counts.items() if languages} == {
        "torchelastic": 1, "Programs: emit": 0, "The metrics pusher": 1, "The metrics extractor": 1, "MLBench": 1, "StatsD": 0,
        "prometheus-cpp and client_golang": 1}, counts
    assert {language for languages in counts.values() for language in languages} == {"c", "json", "console"}, counts


@case
def the_readme_links_to_the_page():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        assert "(doc/coming-from.md)" in file.read()


main()
