"""The socket handler with host names: missing ones, ones whose address changes, and a name server that is silent."""

import json
import os
import subprocess
import sys

from harness import SOURCE, Skip, assert_handler_ledger, assert_ledgers, environment, main
from sockets import case, values_of


def run_in_network_namespace(*arguments):
    """Runs tests/support/names.py in a network namespace with its own name server. Returns its JSON output."""
    probe = subprocess.run(["unshare", "-rmn", "true"], capture_output=True)
    if probe.returncode:
        raise Skip("not allowed to create a network namespace")
    done = subprocess.run(["unshare", "-rmn", sys.executable, "-B", os.path.join(SOURCE, "tests", "support", "names.py"), *arguments],
                          env=environment(), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@case
def a_name_that_does_not_exist_at_first_is_resolved_again():
    for scheme in ("tcp", "udp"):
        result = run_in_network_namespace("late", scheme)
        assert result["code"] == 0 and result["report"]["handlers"]["push"]["delivered"] == 500, result
        assert_ledgers(result["report"])
        assert "push: resolve late.test:2003: no such host; retrying" in result["stderr"], result
        assert values_of(result["lines"]) == list(range(500)), result


@case
def a_changed_address_is_found_while_datagrams_are_sent():
    result = run_in_network_namespace("changing", "udp")
    count, (first, second) = result["count"], result["lines"]
    assert_handler_ledger(result["ledger"])
    assert result["flush"]["code"] == 0 and result["ledger"]["delivered"] == count, result
    assert first and second and values_of(first + second) == list(range(count)), result


@case
def a_silent_name_server_delays_neither_the_program_nor_its_exit():
    """The resolver itself would wait for 150 seconds."""
    result = run_in_network_namespace("mute", "tcp")
    assert result["code"] == 0 and result["report"]["process"]["added"] == 1000, result
    assert_ledgers(result["report"])


main()
