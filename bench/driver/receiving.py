"""A server that takes bodies of the formats elastic and otlp, on a free loopback port, in a thread. What they hold is counted when a run has
ended: both sides send to the same server, which costs them as little as possible."""

import socket
import threading

from programs import Void, write_config

BATCH = 5000
RESPONSE = b'{"took":0,"errors":false}'
MESSAGE = 2  # the wire type of protobuf


class Receiver:
    def __init__(self):
        self.bodies = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(RESPONSE)}\r\n\r\n".encode()
        with connection, connection.makefile("rb") as stream:
            while stream.readline():
                length = 0
                while (line := stream.readline().strip()):
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                self.bodies.append(stream.read(length))
                connection.sendall(head + RESPONSE)


def count_documents(body):
    return body.count(b"\n") // 2


def read_varint(body, at):
    value = shift = 0
    while True:
        byte = body[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def count_points(body, path=(1, 2, 2, 5, 1)):
    """How many messages there are at the end of a path of fields: resource_metrics, scope_metrics, metrics, gauge, data_points."""
    at = count = 0
    while at < len(body):
        key, at = read_varint(body, at)
        if key & 7 != MESSAGE:
            raise Void("the body is not what is expected")
        length, at = read_varint(body, at)
        if key >> 3 == path[0]:
            count += count_points(memoryview(body)[at:at + length], path[1:]) if len(path) > 1 else 1
        at += length
    return count


def measure_posting(workspace, scale, name, kind):
    """Posts values with weir ("weir") or with the peer, to a server that counts them. kind: elastic, otlp."""
    task = {"mode": "lines", **scale.sizes({"mode": "lines"})}
    with Receiver() as server:
        url = server.url + ("/_bulk?filter_path=errors" if kind == "elastic" else "/v1/metrics")
        if name == "weir":
            handler = {"type": "http", "url": url, "format": kind, "batch": BATCH, "overflow": "block", "linger": "0s"}
            figures = workspace.measure("weir/adding", config=write_config(workspace, [handler]), way="name", handlers=1, **task)
        else:
            figures = workspace.measure("peers/" + name, file=url, format=kind, **task)
        count = sum(map(count_documents if kind == "elastic" else count_points, server.bodies))
    if count != figures["values"]:
        raise Void(f"{name}: {figures['values']} values were added, {count} arrived")
    return figures
