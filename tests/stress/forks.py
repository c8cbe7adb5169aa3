"""Forks of a threaded program: nothing is lost, nothing is delivered twice, no child hangs."""

import json
import os

from harness import BUILD, PLUGINS, TEST_PLUGINS, Skip, case, main, run, skip_fork_under_sanitizers, without_waits
from https import Server

FORKER = os.path.join(BUILD, "tests", "stress", "forker")
SHIM = os.path.join(BUILD, "tests", "support", "preload", ".libs", "shim.so")
FORKS = int(os.environ.get("WEIR_TEST_FORKS", "1500"))
THREADS = 3
VALUES = 10


def ledgers(output, who, handler):
    """(offered, delivered, dropped, fork_unsafe, queued) of each process."""
    rows = [line.split() for line in output.splitlines()]
    return [tuple(map(int, row[2:])) for row in rows if row[:2] == [who, handler]]


def assert_disk(path, output, forks):
    parents, children = {}, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if record["group"] == "my_app.parent":
                parents.setdefault(record["name"], []).append(record["value"])
            else:
                children[record["value"]] = children.get(record["value"], 0) + 1
    added = {row[1]: int(row[2]) for row in map(str.split, output.splitlines()) if row[0] == "added"}
    for name, count in added.items():
        assert parents[name] == list(range(count)), f"{name}: {len(parents[name])} of {count}, or out of order"
    # in a child whose parent's worker was inside the handler at the fork, the handler is disabled; its values are counted
    unsafe = sum(row[3] for row in ledgers(output, "child", "disk"))
    expected = {i: VALUES for i in range(forks) if i % 5 >= 2}
    wrong = {i: children.get(i, 0) for i in expected if children.get(i, 0) not in (0, VALUES)}
    assert not wrong and set(children) <= set(expected), f"children lost or repeated values: {list(wrong.items())[:5]}"
    lost = sum(expected.values()) - sum(children.values())
    assert lost == unsafe, f"{lost} values of children are missing, {unsafe} were dropped as fork_unsafe"


def assert_ledgers(output, handler):
    for who in ("parent", "child"):
        rows = ledgers(output, who, handler)
        assert rows, who
        for offered, delivered, dropped, unsafe, queued in rows:
            assert offered == delivered + dropped + queued and queued == 0 and dropped == unsafe, (who, rows)


@case
def children_of_a_threaded_program(folder):
    skip_fork_under_sanitizers()
    path = os.path.join(folder, "out")
    config = {"handlers": {"disk": {"type": "file", "path": path, "block_timeout": "1m"}}, "groups": {"*": "disk"}}
    done = run(FORKER, FORKS, THREADS, VALUES, timeout=3000, WEIR_CONFIG=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr[-2000:]
    assert_disk(path, done.stdout, FORKS)
    assert_ledgers(done.stdout, "disk")


@case
def children_where_the_kernel_cannot_wipe_memory(folder):
    skip_fork_under_sanitizers()
    forks, path = 100, os.path.join(folder, "out")
    config = {"handlers": {"disk": {"type": "file", "path": path, "block_timeout": "1m"}}, "groups": {"*": "disk"}}
    done = run(FORKER, forks, THREADS, VALUES, timeout=3000, WEIR_CONFIG=config, LD_PRELOAD=SHIM, WEIR_SHIM="keep")
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr[-2000:]
    assert_disk(path, done.stdout, forks)
    assert_ledgers(done.stdout, "disk")


@case
def children_while_a_handler_is_busy_with_libcurl_over_tls(folder):
    skip_fork_under_sanitizers()
    if not os.path.exists(os.path.join(TEST_PLUGINS, "tls.so")):
        raise Skip("the tests were built without libcurl")
    server = Server(folder)
    path = os.path.join(folder, "out")
    config = {
        "settings": {"shutdown_timeout": "30s"},
        "handlers": {
            "disk": {"type": "file", "path": path, "block_timeout": "1m"},
            "tls": {"type": "tls", "url": server.url, "ca": server.certificate, "retry_min": "10ms", "retry_max": "50ms",
                    "block_timeout": "4m"},
        },
        "groups": {"*": "disk", "my_app.parent": ["disk", "tls"]},
    }
    # children use TLS in another test, with fewer forks: a handshake takes Python's server some milliseconds
    done = run(FORKER, FORKS, THREADS, VALUES, timeout=3000, WEIR_CONFIG=config)
    server.close()
    assert done.returncode == 0, done.stderr[-2000:]
    assert_disk(path, done.stdout, FORKS)
    assert_ledgers(done.stdout, "disk")
    rows = ledgers(done.stdout, "parent", "tls")
    assert rows and rows[0][0] == rows[0][1] == server.lines, (rows, server.lines)


def fork_and_send(folder, share, describe):
    """Parent and children send over TLS: the server's count equals the delivered values. Runs 1/share of the usual forks."""
    server = Server(folder)
    path = os.path.join(folder, "out")
    config = {
        "settings": {"shutdown_timeout": "30s"},
        "handlers": {
            "disk": {"type": "file", "path": path, "block_timeout": "1m"},
            "tls": {**describe(server), "retry_min": "10ms", "retry_max": "50ms", "block_timeout": "4m"},
        },
        "groups": {"*": ["disk", "tls"]},
    }
    forks = max(FORKS // share, 5)
    done = run(FORKER, forks, THREADS, VALUES, timeout=3000, WEIR_CONFIG=config)
    server.close()
    assert done.returncode == 0, done.stderr[-2000:]
    assert_disk(path, done.stdout, forks)
    for handler in ("disk", "tls"):
        assert_ledgers(done.stdout, handler)
    delivered = sum(row[1] for who in ("parent", "child") for row in ledgers(done.stdout, who, "tls"))
    assert delivered == server.lines, (delivered, server.lines)


@case
def children_that_use_tls_themselves(folder):
    skip_fork_under_sanitizers()
    if not os.path.exists(os.path.join(TEST_PLUGINS, "tls.so")):
        raise Skip("the tests were built without libcurl")
    fork_and_send(folder, 10, lambda server: {"type": "tls", "url": server.url, "ca": server.certificate})


@case
def children_of_a_program_that_sends_by_http_over_tls_and_do_so_themselves(folder):
    skip_fork_under_sanitizers()
    if not os.path.exists(os.path.join(PLUGINS, "http.so")):
        raise Skip("the handler type http is not built")
    fork_and_send(folder, 5, lambda server: {"type": "http", "url": server.url, "ca_file": server.certificate, "linger": "0s",
                                             "overflow": "block"})


main()
