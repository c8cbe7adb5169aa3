"""A private cluster of librdkafka's mock brokers: a process of its own on a free loopback port, with the topic `bench` of one partition."""

import subprocess

from database import find_port
from programs import Void, write_config


def measure(workspace, scale, name):
    """Sends values with weir ("weir") or with the peer ("kafka"); the delivery reports of both are counted."""
    port = find_port()
    command = [workspace.program("support/kafka_cluster"), str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        broker = cluster.stdout.readline().strip()
        cluster.stdin.write("create bench 1\n")
        cluster.stdin.flush()
        if cluster.stdout.readline().strip() != "ok":
            raise Void("the cluster could not be started")
        task = {"mode": "lines", **scale.sizes({"mode": "lines"})}
        if name == "weir":
            handler = {"type": "kafka", "brokers": [broker], "topic": "bench", "format": "text", "overflow": "block", "linger": "0s"}
            return workspace.measure("weir/adding", config=write_config(workspace, [handler]), way="name", handlers=1, **task)
        return workspace.measure("peers/kafka", file=broker, **task)
