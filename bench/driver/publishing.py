"""A private nats-server with JetStream: on free loopback ports, with its own data folder, terminated by its PID."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from database import find_port
from programs import Void, write_config

SHARE = 1 / 20  # of the usual number of values: the server takes some ten thousand messages per second


class JetStream:
    def __init__(self, folder):
        program = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
        if not program:
            raise Void("nats-server is not installed")
        port, monitor = find_port(), find_port()
        self.url, self.monitor = f"nats://127.0.0.1:{port}", f"http://127.0.0.1:{monitor}/jsz?streams=true"
        command = [program, "-a", "127.0.0.1", "-p", str(port), "-m", str(monitor), "-js", "-sd", folder]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while self.count("") is None:
            if time.monotonic() > end or self.process.poll() is not None:
                raise Void("nats-server could not be started")
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def count(self, stream):
        """How many messages a stream has; None: the server does not respond."""
        try:
            with urllib.request.urlopen(self.monitor, timeout=30) as response:
                accounts = json.load(response).get("account_details") or []
        except (OSError, urllib.error.URLError):
            return None
        found = [one["state"]["messages"] for account in accounts for one in account.get("stream_detail") or [] if one["name"] == stream]
        return found[0] if found else 0


def measure_nats(workspace, scale, name):
    """Publishes values with weir ("weir") or with the peer ("nats") to an empty server, and checks that each is stored."""
    if not workspace.has_plugin("nats"):
        raise Void("the handler type nats was not built")
    task = {"mode": "lines", **scale.sizes({"mode": "lines"}, SHARE)}
    folder = tempfile.mkdtemp(prefix="weir-bench-jetstream-")
    try:
        with JetStream(os.path.join(folder, "store")) as server:
            if name == "weir":
                handler = {"type": "nats", "servers": [server.url], "stream": "WEIR", "create": True, "format": "json", "block_timeout": "1m"}
                config = write_config(workspace, [handler], {"shutdown_timeout": "5m"})
                figures = workspace.measure("weir/adding", config=config, way="name", handlers=1, **task)
            else:
                figures = workspace.measure("peers/nats", file=server.url, **task)
            stored = server.count("WEIR" if name == "weir" else "PEER")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if stored != figures["values"]:
        raise Void(f"{name}: {figures['values']} values were added, {stored} are stored")
    return figures
