"""Receivers of what the socket handler sends: a server for each kind of socket, in this process, that can be stopped and started again."""

import os
import select
import socket
import threading

from harness import wait_for

SO_RCVBUFFORCE = 33  # Linux; not in the module socket


class Receiver:
    """Receives in a thread of its own. kind: udp, udp6, tcp, tcp6, unix, unix-dgram. `pieces` has each datagram, or all that came over
    each connection. copy: a file that
    whole lines are appended to as well."""

    def __init__(self, kind, folder=None, port=0, copy=None, host="127.0.0.1"):
        self.kind, self.port = kind, port
        self.copy = open(copy, "ab", buffering=0) if copy else None
        self.path = os.path.join(folder, "socket") if folder else None
        self.host = "::1" if kind.endswith("6") else host
        self.pieces, self.connections = [], 0
        self.has_datagrams = kind in ("udp", "udp6", "unix-dgram")
        self.listener = None
        self.start()

    @property
    def to(self):
        if self.kind.startswith("unix"):
            return f"{self.kind}:{self.path}"
        host = f"[{self.host}]" if self.kind.endswith("6") else self.host
        return f"{self.kind.rstrip('6')}://{host}:{self.port}"

    def start(self):
        family = {"unix": socket.AF_UNIX, "unix-dgram": socket.AF_UNIX, "udp6": socket.AF_INET6, "tcp6": socket.AF_INET6}
        self.listener = socket.socket(family.get(self.kind, socket.AF_INET), socket.SOCK_DGRAM if self.has_datagrams else socket.SOCK_STREAM)
        if self.path:
            if os.path.exists(self.path):
                os.remove(self.path)
            self.listener.bind(self.path)
        else:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._enlarge_buffer()
            self.listener.bind((self.host, self.port))
            self.port = self.listener.getsockname()[1]
        if not self.has_datagrams:
            self.listener.listen(16)
        self.end_reader, self.end_writer = os.pipe()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _enlarge_buffer(self):
        """So that no datagram is lost while this thread waits for a processor. Beyond the system's limit if permitted."""
        try:
            self.listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        except PermissionError:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)

    def _run(self):
        poll, streams = select.poll(), {}
        poll.register(self.end_reader)
        poll.register(self.listener, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.end_reader:
                    for stream, _ in streams.values():
                        stream.close()
                    return
                if fd in streams:
                    self._read(poll, streams, fd)
                elif self.has_datagrams:
                    self._store(len(self.pieces), self.listener.recv(1 << 17))
                else:
                    stream, _ = self.listener.accept()
                    streams[stream.fileno()] = (stream, len(self.pieces))
                    self.pieces.append(b"")
                    self.connections += 1
                    poll.register(stream, select.POLLIN)

    def _read(self, poll, streams, fd):
        stream, piece = streams[fd]
        try:
            data = stream.recv(1 << 16)
        except ConnectionError:
            data = b""
        self._store(piece, data)
        if not data:
            poll.unregister(stream)
            stream.close()
            del streams[fd]

    def _store(self, piece, data):
        if piece == len(self.pieces):
            self.pieces.append(b"")
        start = self.pieces[piece].rfind(b"\n") + 1 if self.copy else 0
        self.pieces[piece] += data
        if self.copy:
            self.copy.write(self.pieces[piece][start:self.pieces[piece].rfind(b"\n") + 1])

    def stop(self):
        """Ends without reading what has arrived meanwhile."""
        os.write(self.end_writer, b"x")
        self.thread.join()
        self.listener.close()
        os.close(self.end_reader)
        os.close(self.end_writer)

    def data(self):
        return b"".join(self.pieces)

    def lines(self):
        """All lines. Each datagram and each connection begins and ends with a whole line."""
        pieces = list(self.pieces)
        assert all(not piece or piece.endswith(b"\n") for piece in pieces), [piece[-100:] for piece in pieces]
        return b"".join(pieces).decode().splitlines()

    def wait_for_lines(self, count):
        wait_for(lambda: self.data().count(b"\n") >= count, f"{count} lines over {self.kind}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        if self.copy:
            self.copy.close()
