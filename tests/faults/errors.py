"""Errors of the system that are hard to come by, and a program that is not to trust its environment."""

import errno
import json
import os
import shutil
import subprocess

from judge import BUILD, PLUGINS, SOURCE, Skip, case, environment, lines_of, main

VICTIM = os.path.join(BUILD, "tests", "torture", "victim")
BREAKER = os.path.join(BUILD, "tests", "torture", ".libs", "breaker.so")
LEAKS = os.path.join(SOURCE, "tests", "torture", "leaks")


def write_config(folder, **options):
    path, config = os.path.join(folder, "out"), os.path.join(folder, "config.json")
    handler = {"type": "file", "path": path, "retry_min": "1ms", "retry_max": "20ms", **options}
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"handlers": {"h": handler}, "groups": {"victim": "h"}}, file)
    return path, config


def victim(config, **broken):
    """The delivered values of a program of which something is broken, and what it said."""
    if "thread" in os.environ.get("WEIR_TEST_SANITIZED", ""):
        raise Skip("ThreadSanitizer does not go with a library in front of it")
    env = environment(LD_PRELOAD=BREAKER, LSAN_OPTIONS=f"suppressions={LEAKS}:print_suppressions=0", **broken)
    done = subprocess.run([VICTIM, config, "victim", "h", "20000", "nofork"], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    offered, _, delivered, dropped, spooled, _, _, _ = map(int, done.stdout.split())
    assert offered == delivered + dropped + spooled, done.stdout
    return delivered, dropped, done.stderr


@case
def fault_19_an_input_output_error_is_said_and_tried_again_after_a_pause_and_nothing_is_torn(folder):
    path, config = write_config(folder)
    delivered, dropped, said = victim(config, BREAK_KIND="write", BREAK_AT=1, BREAK_FOR=1, BREAK_ERROR=errno.EIO)
    assert "Input/output error; retrying" in said and "h: back after" in said, said
    assert dropped == 0 and len([json.loads(line) for line in lines_of(path)]) == delivered > 0


@case
def fault_34_without_descriptors_opening_is_tried_again_until_there_are_some(folder):
    path, config = write_config(folder)
    delivered, dropped, said = victim(config, BREAK_KIND="open", BREAK_AT=3, BREAK_FOR=5)
    assert "Too many open files" in said, said
    assert dropped == 0 and len(lines_of(path)) == delivered > 0


@case
def fault_34_what_is_open_goes_on_without_descriptors(folder):
    path, config = write_config(folder)
    # its configuration and its file are the first: from then on nothing can be opened
    delivered, dropped, said = victim(config, BREAK_KIND="open", BREAK_AT=5)
    assert dropped == 0 and len(lines_of(path)) == delivered > 0, said


def setuid_copy(folder):
    if os.getuid() != 0:
        raise Skip("only root can make a program setuid to somebody else")
    os.chmod(folder, 0o755)
    copy = os.path.join(folder, "victim")
    shutil.copy(VICTIM, copy)
    os.chown(copy, 65534, 65534)
    os.chmod(copy, 0o4755)
    return copy


@case
def fault_38_a_setuid_program_ignores_what_the_environment_says(folder):
    if os.environ.get("WEIR_TEST_SANITIZED"):
        raise Skip("the sanitizers' libraries are not where a setuid program looks for them")
    copy = setuid_copy(folder)
    target = os.path.join(folder, "place")
    os.mkdir(target)
    os.chmod(target, 0o777)
    path = os.path.join(target, "out")
    env = environment(WEIR_CONFIG={"handlers": {"h": {"type": "file", "path": path}}, "groups": {"*": "h"}}, WEIR_LOG="debug",
                      BENCHMARK_AI="stdout")
    env["WEIR_PLUGIN_PATH"] = PLUGINS
    for program, heeds in ((VICTIM, True), (copy, False)):
        done = subprocess.run([program, "/missing.json", "victim", "h", "5000", "nofork"], env=env, capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, done.stderr
        assert os.path.exists(path) == heeds, done.stderr
        assert heeds or "{" not in done.stdout and "debug" not in done.stderr, done
        if heeds:
            os.unlink(path)


if __name__ == "__main__":
    main()
