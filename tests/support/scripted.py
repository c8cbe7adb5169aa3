"""An HTTP server whose responses a test scripts, and that records the requests."""

import gzip
import socket
import ssl
import threading


class Request:
    def __init__(self, method, path, headers, body, connection):
        self.method, self.path, self.headers, self.connection = method, path, headers, connection
        self.raw = body
        self.body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body

    def lines(self):
        return self.body.decode().splitlines()


def reply(status, body="", **headers):
    """The bytes of a response. Header names are written with _ for -."""
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Scripted:
    """respond(request) returns the bytes of the response; or None to close the connection; or an iterator, whose pieces are sent until the
    peer disconnects or it ends, and then the connection is closed. Requests are recorded in the order in which they were completed."""

    def __init__(self, respond=lambda request: reply(204), tls=None, address="127.0.0.1", port=0):
        self.respond, self.tls = respond, tls
        self.requests, self.connections, self.sent = [], 0, 0
        self.change = threading.Condition()
        self.listener = socket.create_server((address, port), backlog=100)
        self.address, self.port = self.listener.getsockname()
        self.url = f"{'https' if tls else 'http'}://{address}:{self.port}"
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.change:
                self.connections += 1
                number = self.connections
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection, number):
        try:
            with connection:
                if self.tls:
                    connection = self.tls.wrap_socket(connection, server_side=True)
                with connection, connection.makefile("rb") as stream:
                    while self._serve_one(connection, stream, number):
                        pass
        except (OSError, ValueError):
            pass  # the peer disconnected or sent something invalid, as some cases intend

    def _serve_one(self, connection, stream, number):
        request = self._read(stream, number)
        if not request:
            return False
        with self.change:
            self.requests.append(request)
            self.change.notify_all()
        response = self.respond(request)
        if isinstance(response, bytes):
            connection.sendall(response)
            return True
        for piece in response or ():
            connection.sendall(piece)
            self.sent += len(piece)
        return False

    @staticmethod
    def _read(stream, number):
        line = stream.readline()
        if not line:
            return None
        method, path, _ = line.decode().split(" ", 2)
        headers = {}
        while (line := stream.readline()).strip():
            name, value = line.decode().split(":", 1)
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        body = stream.read(length)
        return Request(method, path, headers, body, number) if len(body) == length else None

    def wait(self, condition, what, seconds=240):
        """Waits until condition(server) holds."""
        with self.change:
            assert self.change.wait_for(lambda: condition(self), seconds), "timed out waiting for " + what

    def values(self):
        """The values of all lines of the format influx that were received, in order."""
        return [float(line.split(" ")[1].split("=")[1]) for request in self.requests for line in request.lines()]

    def close(self):
        if not self.closed:
            self.closed = True
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def tls_context(certificate, key, authorities=None):
    """authorities: if set, clients must present a certificate signed by these."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if authorities:
        context.load_verify_locations(authorities)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
