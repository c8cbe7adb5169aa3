"""Programs with raised privileges (setuid): no variable of the user who starts them has an effect, neither on weir nor on the libraries
that its handlers use. What these libraries read in other programs is documented, and nothing else."""

import ctypes
import json
import os
import re
import shutil
import socket
import struct
import subprocess

import certificates
from harness import PLUGINS, SOURCE, WEIR, Skip, case, environment, main, need_access_for_others
from scripted import Scripted, tls_context

USER = 65534
IN_NONBLOCK, IN_ALL_EVENTS = 0o4000, 0xFFF


class Trap:
    """A folder of files and folders, each named by a variable, that notices whatever is opened or created in it."""

    LOGIN = "machine 127.0.0.1 login x password y"
    FILES = {"SSLKEYLOGFILE": None, "SSL_CERT_FILE": "", "OPENSSL_CONF": "", "CTLOG_FILE": "", "RANDFILE": "", "NETRC": LOGIN,
             "GNUTLS_SYSTEM_PRIORITY_FILE": "", "KRB5_CONFIG": "", "KRB5_TRACE": None, "KRB5_KTNAME": "", "LDAPCONF": "", "LDAPRC": "",
             "HOSTALIASES": "127 x", "RESOLV_HOST_CONF": "", "TZ": "", "WEIR_CONFIG": '{"groups":{"*":"null"}}',
             "WEIR_TEE": '{"groups":{"*":"null"}}'}
    FOLDERS = ("HOME", "CURL_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSL_CERT_DIR", "OPENSSL_MODULES", "OPENSSL_ENGINES",
               "LDAPTLS_CACERTDIR", "SASL_PATH", "SASL_CONF_PATH", "TMPDIR", "SQLITE_TMPDIR", "TZDIR", "LOCPATH", "NLSPATH", "GCONV_PATH",
               "WEIR_PLUGIN_PATH", "WEIR_TRUST")
    IN_HOME = (".curlrc", ".netrc", "_netrc", ".ldaprc", "ldaprc", ".rnd", "curlrc")

    def __init__(self, folder):
        self.path = os.path.join(folder, "trap")
        self.variables = {"WEIR_LOG": "debug", "BENCHMARK_AI": "stdout", "RES_OPTIONS": "debug", "LOCALDOMAIN": "x.invalid",
                          "GNUTLS_DEBUG_LEVEL": "9", "SINK": "console"}
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.watches = {}
        os.mkdir(self.path)
        for name, content in self.FILES.items():
            self.variables[name] = (":" if name == "TZ" else "") + os.path.join(self.path, name)
            if content is not None:
                self.write(self.path, name, content)
        for name in self.FOLDERS:
            self.variables[name] = os.path.join(self.path, name)
            os.mkdir(self.variables[name])
            for file in self.IN_HOME if name.endswith("HOME") else ():
                self.write(self.variables[name], file, self.LOGIN if "netrc" in file else "")
        for name in (self.path, *(os.path.join(self.path, name) for name in self.FOLDERS)):
            os.chmod(name, 0o777)

    @staticmethod
    def write(folder, name, text):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)

    def __enter__(self):
        self.fd = self.libc.inotify_init1(IN_NONBLOCK)
        for name in ("", *self.FOLDERS):
            watch = self.libc.inotify_add_watch(self.fd, os.path.join(self.path, name).encode(), IN_ALL_EVENTS)
            assert self.fd >= 0 and watch >= 0, ctypes.get_errno()
            self.watches[watch] = name
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def sprung(self):
        """The variables whose files were opened or created, or looked up by listing their folder."""
        found = set()
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                watch, _, _, length = struct.unpack_from("iIII", data, at)
                name = data[at + 16:at + 16 + length].rstrip(b"\0").decode()
                found.add(self.watches[watch] or name)
                at += 16 + length


def copy_of_weir(folder, mode):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("it takes root and setpriv to make and run a setuid program")
    if os.environ.get("WEIR_TEST_SANITIZED"):
        raise Skip("a setuid program cannot load the sanitizers' libraries")
    os.chmod(folder, 0o755)
    program = shutil.copy(WEIR, os.path.join(folder, "weir"))
    os.chmod(program, mode)
    return program


def emit(program, trap, *arguments, **variables):
    """Runs it as a user without rights who sets all the variables."""
    env = {**environment(), **trap.variables, **variables}
    command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", program, "emit", "-g", "my_app", "-v", *arguments, "a=1"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)


def write_config(folder, handlers):
    path = os.path.join(folder, "weir.json")
    for handler in handlers.values():
        handler["plugin"] = os.path.join(PLUGINS, handler["type"] + ".so")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"handlers": handlers, "groups": {"*": list(handlers)}}, file)
    return path


def proxies():
    """A socket that accepts connections, and the variables that name it as a proxy."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY")
    return listener, {**{name: url for name in names}, "no_proxy": "", "NO_PROXY": ""}


def assert_unused(listener):
    try:
        listener.accept()
    except BlockingIOError:
        listener.close()
        return
    raise AssertionError("the proxy of the environment is used")


def documented():
    """The variables that the README of http lists."""
    with open(os.path.join(SOURCE, "plugins", "http", "README.md"), encoding="utf-8") as file:
        section = file.read().split("## Environment\n")[1].split("\n## ")[0]
    return set(re.findall(r"`([A-Za-z_0-9]+)`", section))


@case
def a_setuid_program_finds_no_configuration_plugin_or_reference_in_its_environment(folder):
    program, output = copy_of_weir(folder, 0o4755), os.path.join(folder, "out")
    with Trap(folder) as trap:
        done = emit(program, trap)
        assert not trap.sprung() and "debug" not in done.stderr and "a=1" not in done.stdout, done
        done = emit(program, trap, "-c", write_config(folder, {"disk": {"type": "file", "path": output + "-${SINK}"}}))
        assert done.returncode != 0 and "SINK" in done.stderr and not trap.sprung() and not os.path.exists(output + "-console"), done


@case
def the_libraries_of_a_setuid_program_read_and_write_nothing_that_its_environment_names(folder):
    program, output = copy_of_weir(folder, 0o4755), os.path.join(folder, "out-%Y%m%d-%H.jsonl")
    handlers = {"disk": {"type": "file", "path": output, "rotate_every": "1d", "compress": "gzip"},
                "base": {"type": "sqlite", "path": os.path.join(folder, "base.db")},
                "screen": {"type": "console"}, "none": {"type": "null"}}
    if not os.path.exists(os.path.join(PLUGINS, "sqlite.so")):
        del handlers["base"]
    with Trap(folder) as trap:
        done = emit(program, trap, "-c", write_config(folder, handlers))
        assert done.returncode == 0 and all(f"{name}: 1 delivered" in done.stdout for name in handlers), done
        assert not trap.sprung(), trap.sprung()


@case
def a_setuid_program_cannot_use_http_and_its_libraries_read_nothing(folder):
    if not os.path.exists(os.path.join(PLUGINS, "http.so")):
        raise Skip("built without http")
    program = copy_of_weir(folder, 0o4755)
    listener, variables = proxies()
    with Trap(folder) as trap:
        done = emit(program, trap, "-c", write_config(folder, {"push": {"type": "http", "url": "https://127.0.0.1:1/"}}), **variables)
        assert done.returncode != 0 and "not available in a program with raised privileges" in done.stderr, done
        assert not trap.sprung() and "gnutls" not in done.stderr, done
    assert_unused(listener)


@case
def in_other_programs_http_reads_the_documented_variables_and_uses_no_proxy_or_password_of_the_environment(folder):
    """This is also what shows that the traps work."""
    if not os.path.exists(os.path.join(PLUGINS, "http.so")):
        raise Skip("built without http")
    need_access_for_others()
    program = copy_of_weir(folder, 0o755)
    certificate, key = certificates.make(folder, "server", "127.0.0.1")
    listener, variables = proxies()
    with Trap(folder) as trap, Scripted(tls=tls_context(certificate, key), address="127.0.0.1") as server:
        config = write_config(folder, {"push": {"type": "http", "url": server.url, "ca_file": certificate, "linger": "0s"}})
        trap.variables = {name: value for name, value in trap.variables.items() if not name.startswith(("WEIR_", "BENCHMARK_AI"))}
        done = emit(program, trap, "-c", config, **variables)
        assert done.returncode == 0 and "push: 1 delivered" in done.stdout, done
        headers = {name.lower() for request in server.requests for name in request.headers}
        assert headers and "authorization" not in headers, headers
        sprung = trap.sprung() - {"XDG_RUNTIME_DIR"}  # where weir keeps its status
        assert {"SSLKEYLOGFILE", "OPENSSL_CONF"} <= sprung, sprung
        assert sprung <= documented(), sprung - documented()
    assert_unused(listener)


main()
