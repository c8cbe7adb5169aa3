"""Configurations, plugins, spools and journals that another user may write or replace are refused, also by root."""

import json
import os
import shutil

from harness import ADDER, PLUGINS, WEIR, Skip, assert_ledgers, case, main, run

NOBODY = 65534
CONFIG = '{"groups":{"*":"null"}}'


def need_root():
    if os.geteuid() != 0:
        raise Skip("only root can give files away")


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def check(path, **env):
    return run(WEIR, "check", path, **env)


def assert_refused(done, *parts):
    assert done.returncode == 1, done
    for part in parts:
        assert part in done.stderr, (part, done.stderr)


def give_away(path):
    os.chown(path, NOBODY, NOBODY)


@case
def root_refuses_a_configuration_of_another_user(folder):
    need_root()
    path = write(folder, "weir.json", CONFIG)
    give_away(path)
    assert_refused(check(path), f"{path}: refused: another user ({NOBODY}) owns this file")
    done = run(ADDER, "-n", "1", WEIR_CONFIG=path)
    assert "refused: another user" in done.stderr and "WEIR_CONFIG is not used" in done.stderr, done.stderr


@case
def root_refuses_a_configuration_in_a_folder_of_another_user(folder):
    need_root()
    above = os.path.join(folder, "home")
    os.makedirs(os.path.join(above, "conf"))
    path = write(os.path.join(above, "conf"), "weir.json", CONFIG)
    assert check(path).returncode == 0
    give_away(above)
    assert_refused(check(path), f"{path}: refused: another user ({NOBODY}) owns the folder {above}; ")


@case
def a_configuration_whose_folder_others_may_write_is_refused_unless_that_is_sticky(folder):
    above = os.path.join(folder, "shared")
    os.makedirs(above)
    path = write(above, "weir.json", CONFIG)
    os.chmod(above, 0o777)
    assert_refused(check(path), f"{path}: refused: others may write the folder {above} (mode 0777); chmod o-w or +t helps")
    os.chmod(above, 0o1777)
    assert check(path).returncode == 0


@case
def root_refuses_a_plugin_of_another_user_and_in_a_folder_of_another_user(folder):
    need_root()
    plugins = os.path.join(folder, "plugins")
    os.makedirs(plugins)
    plugin = shutil.copy(os.path.join(PLUGINS, "null.so"), plugins)
    config = write(folder, "weir.json", json.dumps({"handlers": {"n": {"type": "null", "plugin": plugin}}}))
    assert check(config).returncode == 0
    give_away(plugin)
    assert_refused(check(config), f"{plugin}: refused: another user ({NOBODY}) owns this file")
    os.chown(plugin, 0, 0)
    give_away(plugins)
    assert_refused(check(config), f"{plugins}: refused: another user ({NOBODY}) owns this folder")
    found = write(folder, "found.json", CONFIG)
    assert_refused(check(found, WEIR_PLUGIN_PATH=plugins), f"{plugins}: refused: another user ({NOBODY}) owns this folder")


@case
def a_plugin_that_is_not_a_regular_file_is_refused_without_opening_it(folder):
    fifo = os.path.join(folder, "null.so")
    os.mkfifo(fifo, 0o600)
    config = write(folder, "weir.json", json.dumps({"handlers": {"n": {"type": "null", "plugin": fifo}}}))
    assert_refused(check(config, timeout=240), f"{fifo}: not a regular file")
    found = write(folder, "found.json", CONFIG)
    assert_refused(check(found, timeout=240, WEIR_PLUGIN_PATH=folder), f"{fifo}: not a regular file")
    assert run(WEIR, "vet", fifo, timeout=240).returncode == 1


@case
def spool_and_journal_below_a_folder_that_others_may_write_are_not_used(folder):
    above = os.path.join(folder, "shared")
    os.makedirs(os.path.join(above, "disk"))
    os.chmod(above, 0o777)
    for name, config in (("spool", {"handlers": {"*": {}, "f": {"type": "fifo", "path": os.path.join(folder, "no", "fifo"),
                                                                 "spool": os.path.join(above, "disk", "spool")}},
                                    "settings": {"shutdown_timeout": "2s"}, "groups": {"*": "f"}}),
                         ("journal", {"settings": {"journal": os.path.join(above, "disk", "journal")}, "groups": {"*": "null"}})):
        done = run(ADDER, "-n", "10", "-H", "f" if name == "spool" else "null", WEIR_CONFIG=config)
        assert_ledgers(json.loads(done.stdout))
        assert f"{above}/disk/{name}: refused: others may write the folder {above} (mode 0777)" in done.stderr, done.stderr
        assert not os.path.exists(os.path.join(above, "disk", name))


@case
def weir_trust_names_folders_whose_files_are_trusted(folder):
    volume = os.path.join(folder, "volume")
    os.makedirs(volume)
    path = write(volume, "weir.json", CONFIG)
    os.chmod(path, 0o666)
    assert_refused(check(path), "others may write this file")
    assert check(path, WEIR_TRUST=volume).returncode == 0
    assert check(path, WEIR_TRUST=f"/no/such:{folder}/").returncode == 0
    for other in ("", ".", "volume", os.path.join(folder, "vol"), path[:-1]):
        assert_refused(check(path, WEIR_TRUST=other), "others may write this file")


main()
