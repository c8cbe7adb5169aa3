"""A running `weir serve`, and requests to it."""

import http.client
import json
import os
import sqlite3

from harness import WEIR, free_port, start, wait_for
from sourced import keep


class Serving:
    """Made in a folder, in which a next one goes on."""

    def __init__(self, folder, *arguments, **env):
        self.folder, self.port, self.http_port = folder, free_port(), free_port()
        self.socket, self.state = os.path.join(folder, "forward.sock"), os.path.join(folder, "state")
        self.arguments, self.env = arguments, env
        self.begin()

    def begin(self):
        self.program = keep(start(WEIR, "serve", "--state", self.state, "--listen", f"127.0.0.1:{self.port}", "--http",
                             f"127.0.0.1:{self.http_port}", "--forward", self.socket, *self.arguments, **self.env))
        self.greeting = [self.program.stdout.readline() for _ in range(8)]
        assert self.greeting[-1] == "\n", (self.greeting, self.program.poll() and self.program.communicate())
        self.url = self.greeting[2].strip()
        wait_for(lambda: self.ask("/readyz")[0] == 200, "all sources")
        with open(os.path.join(self.state, "collector", "token"), encoding="ascii") as file:
            self.token = file.read().strip()

    def ask(self, path, method="GET", body=None, port=None, **headers):
        """Returns status, headers and body; redirects are not followed."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=240)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.ask(path, Authorization="Bearer " + self.token)
        assert status == 200, (status, body)
        return json.loads(body)

    def post(self, lines, **parameters):
        body = "".join(json.dumps(line) + "\n" for line in lines) if isinstance(lines, list) else lines
        return self.ask("/ingest", "POST", body, self.http_port, Content_Type="application/x-ndjson", **parameters)

    def status(self):
        """The state, whose ledgers are right."""
        found = self.get("/api/v1/status")
        for handler in found["handlers"]:
            assert handler["offered"] + handler["recovered"] == handler["delivered"] + sum(handler["dropped"].values()) + \
                handler["queued"] + handler["spooled"] + handler["summing"], found
        return found

    def delivered(self):
        return self.status()["handlers"][0]["delivered"]

    def kill(self):
        self.program.kill()
        self.program.communicate()

    def end(self):
        """Returns what it has logged."""
        self.program.terminate()
        _, log = self.program.communicate(timeout=300)
        assert self.program.returncode == 0, log
        return log

    def count(self):
        """How many values are in the file."""
        with sqlite3.connect(os.path.join(self.state, "weir.db")) as db:
            return db.execute("SELECT ifnull((SELECT sum(count) FROM chunks), 0) + (SELECT count(*) FROM tail)").fetchone()[0]
