"""The source collector over a store's file, in a relay of its own."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request

from harness import WEIR, free_port, start, wait_for
from sourced import keep

RUN = {"name": "run1", "num_workers": 2, "num_cpus": 2, "image_name": "custom_image", "custom_image_name": "x", "custom_image_command": "y",
       "gpu_enabled": "false", "backend": "mpi", "light_target": "true"}


class Collector:
    def __init__(self, folder, **options):
        self.port, self.path = free_port(), os.path.join(folder, "m.db")
        self.config = {"sources": {"c": {"type": "collector", "listen": f"127.0.0.1:{self.port}", "path": self.path, "access": os.path.join(folder, "access"), **options}},
                       "handlers": {"db": {"type": "store", "path": self.path}}, "groups": {"*": "db"}}
        self.begin()

    def begin(self):
        self.program = keep(start(WEIR, "relay", WEIR_CONFIG=self.config))
        wait_for(self.is_up, "the server")

    def is_up(self):
        assert self.program.poll() is None, self.program.communicate()
        try:
            return self.call("GET", "/healthz")[:2] == (200, b"ok\n")
        except (urllib.error.URLError, ConnectionError):
            return False

    def is_listening(self):
        assert self.program.poll() is None, self.program.communicate()
        try:
            return self.call("GET", "/healthz")
        except (urllib.error.URLError, ConnectionError):
            return False

    def call(self, method, path, form=None, body=None, **headers):
        """Returns status, body and headers."""
        data = urllib.parse.urlencode(form).encode() if form is not None else body
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=240) as reply:
                return reply.status, reply.read(), reply.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers

    def get(self, path, status=200):
        found, body, _ = self.call("GET", path)
        assert found == status, (found, body)
        return json.loads(body)

    def post(self, path, form, status=201):
        found, body, _ = self.call("POST", path, form)
        assert found == status, (found, body)
        return json.loads(body)

    def patch(self, number, change, status=200):
        found, body, _ = self.call("PATCH", f"/api/runs/{number}/", body=json.dumps(change).encode(), Content_Type="application/json")
        assert found == status, (found, body)
        return json.loads(body)

    def add(self, name, value, date, status=201, **more):
        form = {"run_id": 1, "name": name, "cumulative": "False", "date": date, "value": value, "metadata": "", **more}
        return self.post("/api/metrics/", {key: text for key, text in form.items() if text is not None}, status)

    def move(self, path):
        """Moves the file, the journal first: nobody opens the file between the two."""
        for ending in ("-wal", "-shm", ""):
            if os.path.exists(self.path + ending):
                os.rename(self.path + ending, path + ending)

    def end(self):
        self.program.terminate()
        _, log = self.program.communicate(timeout=300)
        assert self.program.returncode == 0, log
