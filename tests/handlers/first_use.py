"""Programs that end while a handler uses a library for the first time: libpq, and by it OpenSSL, with a real PostgreSQL."""

import json
import os

import certificates
from harness import ADDER, TEST_PLUGINS, Skip, assert_ledgers, case, main, run, without_waits
from peers import PostgreSQL

ENDS = int(os.environ.get("WEIR_TEST_ENDS", "30"))


@case
def a_program_that_ends_during_its_first_connection_delivers_its_value_and_keeps_its_status(folder):
    """A connection takes some 10 ms, and the ends are spread over 20 ms. libpq uses OpenSSL to verify the certificate and for SCRAM."""
    if not os.path.exists(os.path.join(TEST_PLUGINS, "postgres.so")):
        raise Skip("libpq is not installed (Debian: libpq-dev)")
    certificate = certificates.make(folder, "server", "127.0.0.1")
    with PostgreSQL(folder, certificate) as server:
        server.query("CREATE TABLE metrics (name text, value double precision)")
        config = {"settings": {"shutdown_timeout": "60s"}, "groups": {"*": "store"},
                  "handlers": {"store": {"type": "postgres", "to": server.uri}}}
        for end in ("return", "exit"):
            server.query("DELETE FROM metrics")
            for turn in range(ENDS):
                done = run(ADDER, "-n", 1, "-H", "store", "-p", turn * 20_000_000 // ENDS, "-x", end, WEIR_CONFIG=config)
                assert done.returncode == 0 and without_waits(done.stderr) == "", (turn, done)
                assert_ledgers(json.loads(done.stdout))
            assert server.query("SELECT count(*), sum(value) FROM metrics WHERE name = 't0'") == [f"{ENDS}|0"]
        done = run(ADDER, "-n", 1, "-f", -1, "-H", "store", WEIR_CONFIG=config)
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert done.returncode == 0 and report["handlers"]["store"]["delivered"] == 1, done


main()
