"""What a configuration costs: time and memory that grow with its text, and bounds that are stated where they are exceeded."""

import json
import os
import resource
import subprocess

from harness import BUILD, WEIR, case, environment, main

CONFIGURER = os.path.join(BUILD, "tests", "support", "configurer")

# Far more than is needed; a cost that grows faster than the text exceeds it by factors.
CPU_SECONDS = 100
MEMORY_BYTES = 2 << 30


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    if not os.environ.get("WEIR_TEST_SANITIZED"):  # sanitizers reserve terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def run_limited(*command):
    return subprocess.run([str(c) for c in command], env=environment(), capture_output=True, text=True, preexec_fn=limit, check=False)


def write(folder, config):
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


def accept(folder, config):
    """The configuration is valid, and can be put in force."""
    path = write(folder, config)
    checked = run_limited(WEIR, "check", path)
    assert checked.returncode == 0, (checked.returncode, checked.stderr[:500])
    first = os.path.join(folder, "first.json")
    with open(first, "w", encoding="utf-8") as file:
        file.write('{"groups":{"*":"null"}}')
    configured = run_limited(CONFIGURER, first, path)
    assert configured.returncode == 0, (configured.returncode, configured.stderr[:500])
    assert [json.loads(line)["code"] for line in configured.stdout.splitlines()] == [0], configured.stdout[:500]


def refuse(folder, config, *parts):
    checked = run_limited(WEIR, "check", write(folder, config))
    assert checked.returncode == 1, checked.returncode
    for part in parts:
        assert part in checked.stderr, (part, checked.stderr[:500])


def nested(levels):
    return [".".join("a" for _ in range(level)) for level in range(1, levels + 1)]


@case
def a_route_that_inherits_twice_costs_no_more_than_one_that_inherits_once(folder):
    groups = {group: ["inherit", "inherit"] for group in nested(127)}
    accept(folder, {"groups": {"*": "null", **groups}})


@case
def a_hundred_thousand_groups_can_be_configured(folder):
    groups = {f"g{i}": ["inherit", "h"] if i % 2 else "h" for i in range(99999)}
    accept(folder, {"handlers": {"h": {"type": "null"}}, "groups": {"*": "null", **groups}})


@case
def ten_thousand_handlers_can_be_configured(folder):
    handlers = {f"h{i}": {"type": "null"} for i in range(10000)}
    groups = {f"g{i}": [f"h{j}" for j in range(i * 1000, i * 1000 + 1000)] for i in range(10)}
    accept(folder, {"handlers": handlers, "groups": groups})


@case
def deep_groups_may_each_add_a_handler(folder):
    handlers = {f"h{i}": {"type": "null"} for i in range(127)}
    groups = {group: ["inherit", f"h{i}"] for i, group in enumerate(nested(127))}
    accept(folder, {"handlers": handlers, "groups": groups})


@case
def too_many_handlers_groups_and_items_are_refused_with_their_place(folder):
    handlers = {f"h{i}": {"type": "null"} for i in range(10001)}
    refuse(folder, {"handlers": handlers}, "config.json:1:", "handlers.h10000: too many handlers; at most 10,000 are allowed")
    groups = {f"g{i}": "null" for i in range(100001)}
    refuse(folder, {"groups": groups}, "config.json:1:", "groups.g100000: too many groups; at most 100,000 are allowed")
    refuse(folder, {"groups": {"*": ["null"] * 1001}}, "groups.*[1000]: too many handlers in one route; at most 1,000 are allowed")


@case
def a_hundred_thousand_names_can_have_a_meaning(folder):
    metrics = {f"g{i}": {f"n{j}": "counter" for j in range(100)} for i in range(500)}
    accept(folder, {"groups": {"*": "null"}, "metrics": {"*": {f"n{j}": "gauge" for j in range(50000)}, **metrics}})


@case
def too_many_patterns_of_names_are_refused_with_their_place(folder):
    metrics = {f"g{i}": {f"*{j}": "counter" for j in range(100)} for i in range(10)}
    accept(folder, {"groups": {"*": "null"}, "metrics": metrics})
    refuse(folder, {"metrics": {**metrics, "g10": {"x*": "gauge"}}}, "metrics.g10.x*: too many names with '*'; at most 1,000 are allowed")


@case
def groups_that_reach_too_many_handlers_together_are_refused_with_the_route(folder):
    handlers = {f"h{i}": {"type": "null"} for i in range(1000)}
    groups = {f"a.g{i}": ["inherit", "null"] for i in range(1000)}
    refuse(folder, {"handlers": handlers, "groups": {"a": list(handlers), **groups}},
           "config.json:1:", "groups.a.g998[0]: with this route, all groups together reach too many handlers", "at most 1,000,000")


@case
def strings_that_grow_too_long_are_refused_with_their_place(folder):
    token = os.path.join(folder, "token")
    with open(token, "w", encoding="utf-8") as file:
        file.write("x" * 60000)
    # in one string, in many, and in the options of all handlers
    refuse(folder, {"settings": {"labels": {"a": f"${{file:{token}}}" * 300}}},
           "settings.labels.a: with it, the strings of the configuration take more than 16 MiB after expansion")
    path = f"/tmp/${{file:{token}}}"
    handlers = {f"h{i}": {"type": "null", "spool": path} for i in range(1000)}
    refuse(folder, {"handlers": handlers}, "handlers.h279.spool: with it, the strings of the configuration take more than 16 MiB")
    handlers = {"*": {"spool": path}, **{f"h{i}": {"type": "null"} for i in range(1000)}}
    refuse(folder, {"handlers": handlers}, "handlers.*.spool: with it, the strings of the configuration take more than 16 MiB")


@case
def too_many_files_are_refused_with_the_place_of_the_last(folder):
    token = os.path.join(folder, "token")
    with open(token, "w", encoding="utf-8") as file:
        file.write("x\n")
    labels = {f"k{i}": f"${{file:{token}}}" for i in range(10001)}
    refuse(folder, {"settings": {"labels": labels}}, f"settings.labels.k10000: ${{file:{token}}}: ",
           "too many files; at most 10,000 are allowed")


main()
