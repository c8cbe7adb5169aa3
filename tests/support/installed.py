"""weir as a stranger has it: installed into a folder, and found there by pkg-config."""

import fcntl
import os
import shlex
import subprocess

from harness import BUILD, Skip, environment

PKG_CONFIG_FILE = os.path.join(BUILD, "lib", "api", "weir.pc")


def make(*arguments):
    """One judge at a time: several may be running, and make is not meant to be run twice in one build folder."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    with open(os.path.join(BUILD, "config.status"), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-C", BUILD, "-s", *arguments], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def variable(name):
    """What weir.pc says of one of its folders."""
    done = subprocess.run(["pkg-config", f"--variable={name}", PKG_CONFIG_FILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def install(folder):
    """Installs below the folder; answers where the prefix is there."""
    if os.environ.get("WEIR_TEST_SANITIZED"):
        raise Skip("a sanitized library is not for others to link with")
    make("install", f"DESTDIR={folder}")
    return os.path.join(folder, variable("prefix").lstrip("/"))


def uninstall(folder):
    make("uninstall", f"DESTDIR={folder}")


def environment_of(folder, **more):
    """The environment in which what was installed below the folder is found: by pkg-config, linker, loader and weir."""
    libdir = folder + variable("libdir")
    return dict(environment(**more), PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"), PKG_CONFIG_SYSROOT_DIR=folder,
                LD_LIBRARY_PATH=libdir, WEIR_PLUGIN_PATH=folder + variable("plugindir"))


def pkg_config(folder, *arguments):
    done = subprocess.run(["pkg-config", *arguments, "weir"], capture_output=True, text=True, env=environment_of(folder))
    assert done.returncode == 0, done.stderr
    # the sysroot is for what we have installed, not for what weir itself is built on
    return [flag.replace(folder + "/usr/include", "/usr/include") for flag in shlex.split(done.stdout)]
