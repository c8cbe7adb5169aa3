"""Unloading a library that uses weir: with the shared libweir, and with its own static copy."""

import os

from harness import BUILD, case, lines_of, main, run, without_waits

UNLOAD = os.path.join(BUILD, "tests", "stress", "unload")
SUPPORT = os.path.join(BUILD, "tests", "support", ".libs")


def unload(library, folder):
    path = os.path.join(folder, "out")
    config = {"handlers": {"disk": {"type": "file", "path": path, "format": "bai", "block_timeout": "1m"}}, "groups": {"*": "disk"}}
    done = run(UNLOAD, os.path.join(SUPPORT, library), WEIR_CONFIG=config)
    assert done.returncode == 0 and without_waits(done.stderr) == "", (done.returncode, done.stderr)
    assert len(lines_of(path)) == 2000


@case
def a_library_with_the_shared_libweir_may_be_unloaded(folder):
    unload("user.so", folder)


@case
def a_library_with_a_static_libweir_inside_pins_itself(folder):
    unload("user_static.so", folder)


main()
