"""`weir check --open` tries destinations without changing them."""

import json
import os
import select
import re
import socket

from https import Server
from harness import BUILD, PLUGINS, WEIR, Skip, case, lines_of, main, run, wait_for
from receivers import Receiver
from scripted import Scripted


def check(handlers, *arguments):
    return run(WEIR, "check", "--open", *arguments, WEIR_CONFIG={"handlers": handlers, "groups": {"*": list(handlers)}})


def verdicts(done):
    """The line of each handler: {name: (type and destination, verdict)}."""
    head, title, *lines = done.stdout.splitlines()
    assert head == "WEIR_CONFIG: valid" and title == "destinations" and done.stderr == "", done
    found = [re.fullmatch(r"  (\S+) +(\w+(?: .*?)?): (ok.*|[^\"]*)", line) for line in lines]
    assert all(found), lines
    return {match[1]: (match[2], match[3]) for match in found}


def assert_verdict(handler, expected, *arguments):
    done = check({"it": handler}, *arguments)
    found = verdicts(done)["it"][1]
    assert re.fullmatch(expected, found), (handler, expected, found)
    assert done.returncode == (0 if found.startswith("ok") else 1), done


@case
def files_are_neither_created_nor_emptied(folder):
    there = os.path.join(folder, "there")
    with open(there, "w", encoding="utf-8") as file:
        file.write("kept\n")
    missing = os.path.join(folder, "missing")
    deep = os.path.join(folder, "a", "b", "c")
    assert_verdict({"type": "file", "path": there, "append": False}, "ok")
    assert_verdict({"type": "file", "path": missing}, "ok, it does not exist yet")
    assert_verdict({"type": "file", "path": deep}, f"open {deep}: No such file or directory")
    assert_verdict({"type": "file", "path": deep, "create_folders": True}, "ok, it does not exist yet")
    assert_verdict({"type": "file", "path": folder}, f"open {folder}: Is a directory")
    below_file = os.path.join(there, "x", "y")
    assert_verdict({"type": "file", "path": below_file, "create_folders": True}, f"open {below_file}: Not a directory")
    assert lines_of(there) == ["kept"] and os.listdir(folder) == ["there"]


@case
def a_named_pipe_is_not_opened(folder):
    path = os.path.join(folder, "pipe")
    pipe = {"type": "fifo", "path": path}
    assert_verdict(pipe, f"the named pipe {path} does not exist")
    assert_verdict({**pipe, "create": True}, "ok, it does not exist yet")
    assert os.listdir(folder) == []
    os.mkfifo(path)
    untouched = "ok, it exists; not opened, since that may end its reader"
    assert_verdict(pipe, untouched)
    assert_verdict({"type": "file", "path": path}, f"open {path}: a named pipe, not a regular file; the handler type for pipes is fifo")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    assert_verdict(pipe, untouched)
    assert poll.poll(0) == [], "the reader has seen a writer"
    os.close(reader)
    os.remove(path)
    os.mkdir(path)
    assert_verdict(pipe, f"{path} is a folder, not a named pipe")
    inside = os.path.join(folder, "no", "pipe")
    assert_verdict({"type": "fifo", "path": inside, "create": True}, f"create {inside}: No such file or directory")


@case
def handlers_that_open_nothing_pass():
    done = check({"screen": {"type": "console", "to": "stderr"}, "sink": {"type": "null"}})
    assert done.returncode == 0
    assert verdicts(done) == {"screen": ("console stderr", "ok, nothing to open"),
                              "sink": ("null", "ok, nothing to open")}


@case
def every_handler_has_a_line_and_one_failure_sets_the_exit_status(folder):
    path = os.path.join(folder, "x")
    config = {"handlers": {"a": {"type": "file", "path": path}, "b": {"type": "file", "path": "/no/such/x"}},
              "groups": {"*": "a"}}
    done = run(WEIR, "check", "-o", WEIR_CONFIG=config)
    assert done.returncode == 1 and done.stdout.splitlines()[2:] == [
        f'  a              file "{path}": ok, it does not exist yet',
        '  b              file "/no/such/x": open /no/such/x: No such file or directory  (no route leads to it)'], done.stdout


# ---- http ---------------------------------------------------------------------------------------------


def needs_http():
    if not os.path.exists(os.path.join(PLUGINS, "http.so")):
        raise Skip("the handler type http was not built")


def dead_port():
    """A port that is bound, so that no other process gets it, and not listening. Returns (socket, port)."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    return holder, holder.getsockname()[1]


@case
def a_server_is_connected_to_and_receives_no_data():
    needs_http()
    with Scripted() as server:
        assert_verdict({"type": "http", "url": server.url}, f"ok, 127.0.0.1:{server.port} accepts connections")
        wait_for(lambda: server.connections == 1, "the connection")
        assert server.requests == [], server.requests
    holder, port = dead_port()
    assert_verdict({"type": "http", "url": f"http://127.0.0.1:{port}/"}, f"connect 127.0.0.1:{port}: Connection refused")
    assert_verdict({"type": "http", "url": "http://no-such-name.invalid/"}, r"resolve no-such-name\.invalid:80: .*")
    with Scripted() as proxy:
        assert_verdict({"type": "http", "url": "http://127.0.0.1:1/", "proxy": proxy.url}, f"ok, 127.0.0.1:{proxy.port} accepts connections")
        wait_for(lambda: proxy.connections == 1, "the connection")
        assert proxy.requests == [], proxy.requests
    holder.close()


@case
def the_tls_handshake_is_tried(folder):
    needs_http()
    server = Server(folder)
    peer = server.url.split("/")[2]
    assert_verdict({"type": "http", "url": server.url}, r".*: the certificate of 127\.0\.0\.1 is not trusted: .*")
    assert_verdict({"type": "http", "url": server.url, "ca_file": server.certificate}, f"ok, {peer} accepts connections")
    assert_verdict({"type": "http", "url": server.url, "ca_file": "/no/such.pem"}, "ca_file: .*")
    server.close()
    with Scripted() as plain:
        assert_verdict({"type": "http", "url": plain.url.replace("http:", "https:")}, rf"connect 127\.0\.0\.1:{plain.port}: TLS: .*")
        assert plain.requests == []


@case
def a_silent_server_times_out_at_the_deadline():
    needs_http()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        peer = f"127.0.0.1:{silent.getsockname()[1]}"
        assert_verdict({"type": "http", "url": f"https://{peer}/"}, rf"connect {peer}: no connection within 100 ms", "-t", "100ms")
        assert_verdict({"type": "http", "url": f"https://{peer}/", "connect_timeout": "50ms"},
                       rf"connect {peer}: no connection within 50 ms")


@case
def secrets_are_masked():
    needs_http()
    holder, port = dead_port()
    url = f"http://user:hidden-one@127.0.0.1:{port}/x?token=hidden-two"
    done = check({"push": {"type": "http", "url": url}, "auth": {"type": "http", "url": f"http://127.0.0.1:{port}/", "username": "u",
                                                                  "password": "hidden-three", "headers": {"X-Key": "hidden-four"}}})
    holder.close()
    assert done.returncode == 1 and "hidden" not in done.stdout and f"http://***@127.0.0.1:{port}/x?token=***" in done.stdout, done


# ---- socket -------------------------------------------------------------------------------------------


def assert_socket_verdict(to, expected, *arguments):
    assert_verdict({"type": "socket", "to": to, "format": "statsd"}, expected, *arguments)


@case
def sockets_are_connected_to_and_receive_no_data(folder):
    for kind, words in (("tcp", "connections"), ("unix", "connections"), ("unix-dgram", "datagrams")):
        with Receiver(kind, folder if kind != "tcp" else None) as receiver:
            peer = receiver.path or f"127.0.0.1:{receiver.port}"
            assert_socket_verdict(receiver.to, f"ok, {peer} accepts {words}")
            if words == "connections":
                wait_for(lambda: receiver.connections == 1, "the connection")
            assert receiver.data() == b"" and len(receiver.pieces) == receiver.connections, receiver.pieces
    holder, port = dead_port()
    assert_socket_verdict(f"tcp://127.0.0.1:{port}", f"connect 127.0.0.1:{port}: Connection refused")
    assert_socket_verdict(f"udp://127.0.0.1:{port}", "ok, there is a route; without sending it is not known whether anybody receives")
    assert_socket_verdict(f"unix:{folder}/missing", f"connect {folder}/missing: No such file or directory")
    assert_socket_verdict("tcp://no-such-name.invalid:2003", r"resolve no-such-name\.invalid:2003: .*")
    holder.close()


@case
def a_socket_of_the_other_kind_is_reported(folder):
    with Receiver("unix", folder) as receiver:
        assert_socket_verdict(f"unix-dgram:{receiver.path}", f"connect {receiver.path}: Protocol wrong type for socket")


@case
def a_full_queue_of_connections_times_out_at_the_deadline(folder):
    path = os.path.join(folder, "full")
    with socket.socket(socket.AF_UNIX) as full, socket.socket(socket.AF_UNIX) as first:
        full.bind(path)
        full.listen(0)
        first.connect(path)
        assert_socket_verdict(f"unix:{path}", f"connect {path}: no connection within 100 ms", "-t", "100ms")
    with socket.socket() as full, socket.socket() as first:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        first.connect(full.getsockname())
        peer = f"127.0.0.1:{full.getsockname()[1]}"
        assert_socket_verdict(f"tcp://{peer}", f"connect {peer}: no connection within 100 ms", "-t", "100ms")


# ---- Types without a probe ----------------------------------------------------------------------------


def opener(folder, **options):
    return {"type": "opener", "notes": os.path.join(folder, "notes"), **options}


@case
def a_type_without_a_probe_is_opened_and_closed(folder):
    assert_verdict(opener(folder), "ok")
    assert lines_of(os.path.join(folder, "notes")) == ["open", "close"]


@case
def the_error_of_a_handler_is_one_line_without_its_secrets(folder):
    assert_verdict(opener(folder, how="refuses", key="hidden-key"), r"the key \*{10}\\nis wrong")
    assert lines_of(os.path.join(folder, "notes")) == ["open"]


@case
def a_handler_that_hangs_times_out_and_the_others_are_reported(folder):
    done = check({"stuck": opener(folder, how="hangs"), "other": opener(folder)}, "--timeout", "20ms")
    assert done.returncode == 1
    found = verdicts(done)
    assert found == {"stuck": ("opener", "no result within 20ms"), "other": ("opener", "ok")}, found


# ---- The command --------------------------------------------------------------------------------------


@case
def an_invalid_configuration_is_refused_before_anything_is_opened(folder):
    done = check({"it": opener(folder), "bad": {"type": "file"}})
    assert done.returncode == 1 and 'the option "path" is missing' in done.stderr and done.stdout == "", done
    assert not os.path.exists(os.path.join(folder, "notes"))


@case
def usage_errors_are_refused():
    for arguments, words in ((("--open", "--group", "g"), "--open and --group cannot be combined"),
                             (("--open", "-t", "5"), "is not a duration")):
        done = run(WEIR, "check", *arguments, WEIR_CONFIG={"groups": {}})
        assert done.returncode == 2 and words in done.stderr, done


@case
def the_options_that_name_a_destination_are_shown(folder):
    path = os.path.join(folder, "a b")
    found = verdicts(check({"disk": {"type": "file", "path": path}}))
    assert found["disk"][0] == f"file {json.dumps(path)}", found


def verdicts_of_sources(*sources):
    """The verdicts of sources a, b, ..., and the exit code."""
    config = {"sources": dict(zip("abc", sources)), "handlers": {"out": {"type": "null"}}, "groups": {"*": "out"}}
    done = run(WEIR, "check", "--open", WEIR_CONFIG=config)
    lines = done.stdout.partition("sources\n")[2].splitlines()
    return [line.partition(": ")[2] for line in lines], done.returncode


@case
def sources_with_a_probe_are_tried(folder):
    there, scripted = os.path.join(folder, "there"), os.path.join(BUILD, "tests", "support", "plugins", ".libs", "scripted.source.so")
    with open(there, "w", encoding="utf-8") as file:
        file.write("kept\n")
    source = {"type": "file", "state": os.path.join(folder, "state")}
    found = verdicts_of_sources({**source, "path": there}, {**source, "path": there + ".*"}, {"type": "stdin"})
    assert found == (["ok", "ok, there is no such file yet", "not tried"], 0), found
    assert os.listdir(folder) == ["there"]
    found = verdicts_of_sources({"type": "scripted", "plugin": scripted}, {"type": "scripted", "plugin": scripted, "tag": "unreachable"})
    assert found == (["ok", "it is not there"], 1), found


main()
