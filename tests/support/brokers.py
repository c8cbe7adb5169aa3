"""A cluster of librdkafka's mock brokers, in a process of its own (tests/support/kafka_cluster.c), and what arrives there."""

import os
import select
import signal
import socket
import subprocess
import threading

from harness import BUILD, free_port, wait_for

CLUSTER = os.path.join(BUILD, "tests", "support", "kafka_cluster")

# Error codes and request numbers of Kafka's protocol.
NOT_LEADER, TIMED_OUT, TOO_LARGE, NOT_ENOUGH_REPLICAS = 6, 7, 10, 19
UNKNOWN_TOPIC, TOPIC_DENIED, CLUSTER_DENIED = 3, 29, 31
PRODUCE, INIT_PRODUCER_ID = 0, 22


class Message:
    def __init__(self, line):
        partition, offset, timestamp, self.key, self.headers, self.value = line.split("\t")
        self.partition, self.offset, self.timestamp = int(partition), int(offset), int(timestamp)


class TlsProxy:
    """Takes TLS connections, and passes what comes over them on to another port, and back."""

    def __init__(self, context, target):
        self.context, self.target, self.refused = context, target, []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        try:
            client = self.context.wrap_socket(plain, server_side=True)
        except OSError as error:
            self.refused.append(str(error))
            return
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            while True:
                ready = [client] if client.pending() else select.select([client, server], [], [])[0]
                try:
                    for source in ready:
                        data = source.recv(65536)
                        if not data:
                            return
                        (server if source is client else client).sendall(data)
                except OSError:
                    return


class Cluster:
    """What arrives in watched topics is appended to files, which outlive a cluster that is killed."""

    def __init__(self, folder, brokers=1, topics=(("t", 4),), tls=None):
        """tls: an ssl.SSLContext; clients get to the brokers by proxies that use it."""
        self.folder, self.topics, self.starts, self.counted = folder, dict(topics), 0, {}
        self.ports = []
        while len(self.ports) < brokers:
            self.ports += {free_port()} - set(self.ports)
        self.places = [str(port) for port in self.ports]
        self.proxies = [TlsProxy(tls, free_port()) for _ in self.ports] if tls else []
        if tls:
            self.ports = [proxy.port for proxy in self.proxies]
            self.places = [f"{proxy.port}={proxy.target}" for proxy in self.proxies]
        self.brokers = [f"127.0.0.1:{port}" for port in self.ports]
        self.program = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        for proxy in self.proxies:
            proxy.close()

    def start(self):
        self.starts += 1
        self.program = subprocess.Popen([CLUSTER, *self.places], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.program.stdout.readline().strip() == ",".join(self.brokers)
        for topic, partitions in self.topics.items():
            self.do("create", topic, partitions)
            self.do("watch", topic, partitions, self._path(topic, self.starts))

    def kill(self):
        """Whatever it has stored is gone, except for what was written to the files."""
        if self.program:
            self.program.send_signal(signal.SIGKILL)
            self.program.communicate()
        self.program = None

    def do(self, *words):
        self.program.stdin.write(" ".join(map(str, words)) + "\n")
        self.program.stdin.flush()
        reply = self.program.stdout.readline().strip()
        assert reply == "ok", (words, reply)

    def down(self):
        for number in range(1, len(self.ports) + 1):
            self.do("down", number)

    def up(self):
        for number in range(1, len(self.ports) + 1):
            self.do("up", number)

    def _path(self, topic, start):
        return os.path.join(self.folder, f"{topic}.{start}")

    def messages(self, topic="t"):
        """All messages that have arrived so far, of all clusters in turn. Nothing was removed before it could be read."""
        found = []
        for start in range(1, self.starts + 1):
            path, following = self._path(topic, start), {}
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8", newline="\n") as file:
                text = file.read()
            for line in text[:text.rfind("\n") + 1].splitlines():
                message = Message(line)
                assert message.offset == following.get(message.partition, 0), (line, following)
                following[message.partition] = message.offset + 1
                found.append(message)
        return found

    def count(self, topic="t"):
        """How many messages have arrived. Reads only what is new since the last call."""
        paths = [self._path(topic, start) for start in range(1, self.starts + 1)]
        for path in filter(os.path.exists, paths):
            with open(path, "rb") as file:
                offset, lines = self.counted.get(path, (0, 0))
                file.seek(offset)
                lines += file.read().count(b"\n")
                self.counted[path] = (file.tell(), lines)
        return sum(self.counted.get(path, (0, 0))[1] for path in paths)

    def await_messages(self, count, topic="t"):
        wait_for(lambda: self.count(topic) >= count, f"{count} messages in {topic}")
        return self.messages(topic)
