"""Which shared objects register exit handlers in a program under test."""

import os
import re

from harness import BUILD, SANITIZED, Skip

_PRELOAD = os.path.join(BUILD, "tests", "support", "preload", ".libs", "exit_handlers.so")


def preload():
    """The value of LD_PRELOAD by which a program tells of registrations on stderr."""
    if SANITIZED:
        raise Skip("a sanitizer's own library has to be the first to be loaded")
    return _PRELOAD


def assert_only_weir_registers(stderr):
    """Programs, the shell of libtool's scripts among them, are left out."""
    found = re.findall(r"^exit handler of (.*)$", stderr, re.MULTILINE)
    assert found and all("/libweir.so" in path for path in found if ".so" in path), found
