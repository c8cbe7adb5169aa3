"""A cluster of librdkafka's mock brokers, in a process of its own (tests/support/kafka_cluster.c), and what arrives there."""

import os
import signal
import subprocess

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


class Cluster:
    """What arrives in watched topics is appended to files, which outlive a cluster that is killed."""

    def __init__(self, folder, brokers=1, topics=(("t", 4),)):
        self.folder, self.topics, self.starts, self.counted = folder, dict(topics), 0, {}
        self.ports = []
        while len(self.ports) < brokers:
            self.ports += {free_port()} - set(self.ports)
        self.brokers = [f"127.0.0.1:{port}" for port in self.ports]
        self.program = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self.starts += 1
        self.program = subprocess.Popen([CLUSTER, *map(str, self.ports)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
