"""weir installed into a folder, and found there by pkg-config."""

import fcntl
import os
import shlex
import subprocess

from harness import BUILD, Skip, environment

PKG_CONFIG_FILE = os.path.join(BUILD, "lib", "api", "weir.pc")


def make(*arguments):
    """Holds a lock: test scripts run in parallel, and make must not run twice in one build folder."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    with open(os.path.join(BUILD, "config.status"), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-C", BUILD, "-s", *arguments], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def variable(name):
    """The value of a variable of weir.pc."""
    done = subprocess.run(["pkg-config", f"--variable={name}", PKG_CONFIG_FILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def install(folder):
    """Installs below the folder. Returns the path of the prefix in it."""
    if os.environ.get("WEIR_TEST_SANITIZED"):
        raise Skip("programs built without the sanitizer cannot link a sanitized library")
    make("install", f"DESTDIR={folder}")
    return os.path.join(folder, variable("prefix").lstrip("/"))


def uninstall(folder):
    make("uninstall", f"DESTDIR={folder}")


def environment_of(folder, **more):
    """An environment in which pkg-config, linker, loader and weir find what was installed below the folder."""
    libdir = folder + variable("libdir")
    return dict(environment(**more), PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"), PKG_CONFIG_SYSROOT_DIR=folder,
                LD_LIBRARY_PATH=libdir, WEIR_PLUGIN_PATH=folder + variable("plugindir"))


def pkg_config(folder, *arguments, package="weir"):
    done = subprocess.run(["pkg-config", *arguments, package], capture_output=True, text=True, env=environment_of(folder))
    assert done.returncode == 0, done.stderr
    # the sysroot applies to weir only, not to the libraries it depends on
    return [flag.replace(folder + "/usr/include", "/usr/include") for flag in shlex.split(done.stdout)]
