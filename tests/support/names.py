"""Runs a program in a network namespace with its own name server, and prints the result as JSON. A test script runs this file under
unshare.

usage: names.py silent|moving
       names.py late|changing|mute SCHEME      with the handler type socket"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from fifos import ScriptedApp
from harness import ADDER, environment, wait_for
from receivers import Receiver
from scripted import Scripted


def bring_up_loopback():
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))


def use_own_name_server(folder):
    path = os.path.join(folder, "resolv.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n")
    subprocess.run(["mount", "--bind", path, "/etc/resolv.conf"], check=True)


class NameServer:
    """A name server that returns one address for every name; "": there is no such name; None: it never replies."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            if self.address is not None:
                self.socket.sendto(self._reply_to(query), peer)

    def _reply_to(self, query):
        end = 12
        while query[end]:
            end += query[end] + 1
        question, kind = query[12:end + 5], struct.unpack(">H", query[end + 1:end + 3])[0]
        if not self.address:
            return query[:2] + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(self.address) if kind == 1 else b""
        return query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1 if record else 0, 0, 0) + question + record


def config_of(url, shutdown, **options):
    handler = {"type": "http", "url": url, "format": "influx", "linger": "0s", "retry_min": "5ms", "retry_max": "50ms", **options}
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"push": handler}, "groups": {"*": "push"}}


def start(config, *arguments):
    return subprocess.Popen([ADDER, *arguments, "-H", "push"], env=environment(WEIR_CONFIG=config), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finish(program, **more):
    out, err = program.communicate(timeout=240)
    print(json.dumps({"code": program.returncode, "report": json.loads(out), "stderr": err, **more}))


def silent():
    NameServer(None)
    finish(start(config_of("http://db.test:8086/", "300ms", connect_timeout="100ms"), "-n", "100000", "-f", "300"))


def moving():
    names = NameServer("127.0.0.2")
    first = Scripted(address="127.0.0.2", port=8086)
    program = start(config_of("http://db.test:8086/", "10s", batch=50), "-n", "3000", "-p", "300000", "-f", "-1")
    first.wait(lambda server: len(server.requests) > 5, "requests")
    second = Scripted(address="127.0.0.3", port=8086)
    names.address = "127.0.0.3"
    first.close()
    first.respond = lambda _: None
    out, err = program.communicate(timeout=240)
    values = list(dict.fromkeys(first.values() + second.values()))
    print(json.dumps({"code": program.returncode, "report": json.loads(out), "stderr": err, "first": len(first.requests),
                      "second": len(second.requests), "values": values}))


def socket_config(scheme, shutdown="10s", **options):
    handler = {"type": "socket", "to": f"{scheme}://late.test:2003", "format": "statsd", "retry_min": "5ms", "retry_max": "50ms",
               "overflow": "block", "block_timeout": "1h", **options}
    return {"settings": {"shutdown_timeout": shutdown}, "handlers": {"push": handler}, "groups": {"*": "push"}}


def late(scheme):
    names = NameServer("")
    receiver = Receiver(scheme, port=2003)
    program = start(socket_config(scheme, linger="20ms"), "-n", "500", "-f", "-1")
    message = program.stderr.readline()
    names.address = "127.0.0.1"
    out, err = program.communicate(timeout=240)
    receiver.wait_for_lines(500)
    print(json.dumps({"code": program.returncode, "report": json.loads(out), "stderr": message + err, "lines": receiver.lines()}))


def changing(scheme):
    names = NameServer("127.0.0.2")
    receivers = [Receiver(scheme, port=2003, host=host) for host in ("127.0.0.2", "127.0.0.3")]
    app, count = ScriptedApp(socket_config(scheme, resolve_every="10ms", linger="20ms"), place), 0
    for receiver in receivers:
        names.address = receiver.host
        while not receiver.pieces:
            assert app.do("add", "t0", count)["code"] == 0
            count += 1
    flushed, ledger = app.do("flush", -1), app.do("ledger", "push")
    app.end()
    wait_for(lambda: sum(receiver.data().count(b"\n") for receiver in receivers) >= count, f"{count} lines")
    print(json.dumps({"flush": flushed, "ledger": ledger, "count": count, "lines": [receiver.lines() for receiver in receivers]}))


def mute(scheme):
    NameServer(None)
    finish(start(socket_config(scheme, "300ms", block_timeout="0s"), "-n", "1000", "-f", "300"))


with tempfile.TemporaryDirectory(prefix="weir-names-") as place:
    bring_up_loopback()
    use_own_name_server(place)
    {"silent": silent, "moving": moving, "late": late, "changing": changing, "mute": mute}[sys.argv[1]](*sys.argv[2:])
