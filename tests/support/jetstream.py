"""A nats-server with JetStream on a free port, and a client that asks it and reads its streams.

As a program, `jetstream.py PORT STREAM`: prints NAME=VALUE for each message of a stream whose payload is weir's JSON."""

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import sys

from harness import Skip, free_port, wait_for


class Client:
    """Speaks the protocol over a socket, one request at a time."""

    def __init__(self, port, **login):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=240)
        self.lines = self.socket.makefile("rb", buffering=1 << 20)
        info = json.loads(self.lines.readline()[5:])
        if info.get("tls_required"):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
            self.lines = self.socket.makefile("rb", buffering=1 << 20)
        self.inboxes = 0
        self.inbox = f"_INBOX.{secrets.token_hex(8)}"  # a consumer that an earlier client has left behind must not send to this one
        options = {"verbose": False, "headers": True, "no_responders": True, "protocol": 1, **login}
        self.send(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
        line = self.lines.readline()
        if line.strip() != b"PONG":
            raise ConnectionError(line.decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def publish(self, subject, payload=b"", reply=""):
        self.send(f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n")

    def subscribe(self, subject):
        self.inboxes += 1
        self.send(f"SUB {subject} {self.inboxes}\r\n".encode())

    def receive(self):
        """The next message: (subject, reply or "", headers, payload)."""
        while True:
            line = self.lines.readline()
            if not line:
                raise ConnectionError("the server has closed the connection")
            words = line.split()
            if words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words[0] in (b"MSG", b"HMSG"):
                sizes = 2 if words[0] == b"HMSG" else 1
                data = self.lines.read(int(words[-1]) + 2)[:-2]
                header = int(words[-2]) if sizes == 2 else 0
                reply = words[3].decode() if len(words) - sizes == 4 else ""
                return words[1].decode(), reply, data[:header].decode(), data[header:]
            elif words[0] == b"-ERR":
                raise ConnectionError(line.decode())

    def request(self, subject, payload=b""):
        """The reply, from JSON; {} if nobody listens."""
        self.inboxes += 1
        inbox = f"{self.inbox}.{self.inboxes}"
        self.send(f"SUB {inbox} {self.inboxes}\r\n".encode())
        self.publish(subject, payload, inbox)
        reply = self.receive()[3]
        self.send(f"UNSUB {self.inboxes}\r\n".encode())
        return json.loads(reply or b"{}")

    def api(self, verb, **body):
        return self.request(f"$JS.API.{verb}", json.dumps(body).encode() if body else b"")

    def create_stream(self, name, *subjects, **more):
        reply = self.api(f"STREAM.CREATE.{name}", name=name, subjects=list(subjects), retention="limits", max_consumers=-1, max_msgs=-1,
                         max_bytes=-1, discard="old", storage="file", num_replicas=1, **more)
        assert "error" not in reply, reply

    def count(self, stream):
        """How many messages a stream has; 0 if there is none of that name."""
        return self.api(f"STREAM.INFO.{stream}").get("state", {}).get("messages", 0)

    def read(self, stream):
        """All messages of a stream: (subject, headers, payload)."""
        count = self.count(stream)
        if not count:
            return
        self.subscribe(self.inbox + ".read")
        consumer = {"deliver_subject": self.inbox + ".read", "deliver_policy": "all", "ack_policy": "none", "replay_policy": "instant",
                    "flow_control": True, "idle_heartbeat": 10 * 10**9}
        self.inboxes += 1
        self.send(f"SUB {self.inbox}.create {self.inboxes}\r\n".encode())
        self.publish(f"$JS.API.CONSUMER.CREATE.{stream}", json.dumps({"stream_name": stream, "config": consumer}).encode(), self.inbox + ".create")
        while count:
            subject, reply, headers, payload = self.receive()
            if subject == self.inbox + ".create":
                assert b'"error"' not in payload, payload
            elif headers.startswith("NATS/1.0 100"):
                if reply:
                    self.publish(reply)
            else:
                count -= 1
                yield subject, headers, payload


class Server:
    """Started by start(); its streams stay in `folder` when it is killed and started again."""

    def __init__(self, folder, jetstream=True, config=""):
        if not shutil.which("nats-server"):
            raise Skip("nats-server is not installed")
        self.port = free_port()
        self.login = {}
        self.scheme = "nats"
        self.log = os.path.join(folder, "nats.log")
        self.config = os.path.join(folder, "nats.conf")
        self.store = os.path.join(folder, "jetstream")
        self.text = f"listen: 127.0.0.1:{self.port}\n{config}\n"
        if jetstream:
            self.text += f'jetstream: {{store_dir: "{self.store}"}}\n'
        self.process = None

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def start(self):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(self.text)
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(["nats-server", "-c", self.config], stdout=log, stderr=log)
        wait_for(self.is_ready, "nats-server")
        return self

    def is_ready(self):
        assert self.process.poll() is None, open(self.log, encoding="utf-8").read()
        with contextlib.suppress(OSError, ValueError):
            with self.client() as client:
                return "jetstream" not in self.text or "error" not in client.api("INFO")
        return False

    def client(self):
        return Client(self.port, **self.login)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def messages(self, stream):
        """All messages of a stream as (subject, id, payload)."""
        with self.client() as client:
            return [(subject, id_of(headers), payload.decode()) for subject, headers, payload in client.read(stream)]

    def count(self, stream):
        """0 also if the server does not answer."""
        with contextlib.suppress(OSError, ValueError):
            with self.client() as client:
                return client.count(stream)
        return 0


def id_of(headers):
    found = re.search(r"^Nats-Msg-Id: *(\S+)", headers, re.M)
    return found.group(1) if found else None


def print_values(port, stream):
    with Client(port) as client:
        for _, _, payload in client.read(stream):
            for line in payload.decode().split("\n"):
                sample = json.loads(line)
                print(f"{sample['name']}={sample['value']}")


if __name__ == "__main__":
    print_values(int(sys.argv[1]), sys.argv[2])
