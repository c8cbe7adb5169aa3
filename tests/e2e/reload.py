"""Reloading the configuration: when the file changes, and when the program calls weir_reload."""

import json
import os
import signal

from harness import ADDER, BUILD, case, lines_of, main, run, size_of, start, wait_for, without_waits

RELOAD = os.path.join(BUILD, "examples", "reload")


def write(path, config):
    """Replaces the file by rename, as editors do."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(config if isinstance(config, str) else json.dumps(config))
    os.rename(path + ".new", path)


def config_to(path, reload="20ms", **more):
    handler = {"type": "file", "path": path, "format": "bai", "block_timeout": "1m", **more}
    return {"settings": {"reload": reload}, "handlers": {"disk": handler}, "groups": {"*": "disk"}}


def turns(*paths):
    return [json.loads(line)["turn"] for path in paths for line in lines_of(path)]


@case
def a_changed_file_is_reloaded_and_each_value_follows_exactly_one_configuration(folder):
    config, a, b = (os.path.join(folder, name) for name in ("config.json", "a", "b"))
    write(config, config_to(a))
    program = start(RELOAD, config)
    wait_for(lambda: size_of(a), "values in a")
    write(config, config_to(b))
    wait_for(lambda: size_of(b), "values in b")
    program.terminate()
    assert program.wait(240) == 0
    values = turns(a, b)
    assert values == list(range(len(values)))


@case
def a_changed_symbolic_link_is_reloaded(folder):
    config, a, b = (os.path.join(folder, name) for name in ("config.json", "a", "b"))
    write(config + ".1", config_to(a))
    write(config + ".2", config_to(b))
    os.symlink(config + ".1", config)
    program = start(RELOAD, config)
    wait_for(lambda: size_of(a), "values in a")
    os.symlink(config + ".2", config + ".link")
    os.rename(config + ".link", config)
    wait_for(lambda: size_of(b), "values in b")
    program.terminate()
    assert program.wait(240) == 0
    values = turns(a, b)
    assert values == list(range(len(values)))


@case
def an_invalid_file_is_logged_once_and_the_configuration_in_force_stays(folder):
    config, a, b, errors = (os.path.join(folder, name) for name in ("config.json", "a", "b", "errors"))
    write(config, config_to(a))
    with open(errors, "w", encoding="utf-8") as file:
        import subprocess
        from harness import environment
        program = subprocess.Popen([RELOAD, config], env=environment(), stderr=file)
    wait_for(lambda: size_of(a), "values in a")
    write(config, '{"groups": {"*": "dsk"}}')
    wait_for(lambda: size_of(errors), "the error")
    before = size_of(a)
    wait_for(lambda: size_of(a) > before + 200, "more values in a")
    write(config, config_to(b))
    wait_for(lambda: size_of(b), "values in b")
    program.terminate()
    assert program.wait(240) == 0
    logged = lines_of(errors)
    assert len(logged) == 1 and "config.json:1:18: groups.*" in logged[0] and logged[0].endswith("the configuration in force stays"), logged
    values = turns(a, b)
    assert values == list(range(len(values)))


@case
def weir_reload_rereads_the_file(folder):
    config, a, b = (os.path.join(folder, name) for name in ("config.json", "a", "b"))
    write(config, config_to(a, reload="0s"))
    program = start(RELOAD, config)
    wait_for(lambda: size_of(a), "values in a")
    write(config, config_to(b, reload="0s"))
    program.send_signal(signal.SIGHUP)
    wait_for(lambda: size_of(b), "values in b")
    write(config, "{")
    program.send_signal(signal.SIGHUP)
    lines = iter(program.stderr.readline, "")
    assert any("reload: " in line and "unclosed {" in line for line in lines), "the message that the file is invalid"
    before = size_of(b)
    wait_for(lambda: size_of(b) > before, "more values in b")
    program.terminate()
    program.communicate(timeout=240)
    assert program.returncode == 0
    values = turns(a, b)
    assert values == list(range(len(values)))


@case
def a_removed_handler_delivers_its_queue(folder):
    first, second, out = (os.path.join(folder, name) for name in ("1.json", "2.json", "out"))
    write(first, config_to(out, reload="0s", linger="1h"))
    write(second, {"groups": {"*": "null"}})
    done = run(ADDER, "-n", 20000, "-r", 2, "-w", 1000, "-c", first, "-c", second, "-p", 1000, "-f", -1, "-H", "disk", "-H", "null")
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    report = json.loads(done.stdout)
    disk = report["handlers"]["disk"]
    assert disk["offered"] == disk["delivered"] == len(lines_of(out)), report
    assert disk["offered"] + report["handlers"]["null"]["delivered"] + report["process"]["unrouted"] == 20000


@case
def a_hundred_reloads_a_second_valid_and_invalid_lose_nothing(folder):
    out = [os.path.join(folder, f"out{i}") for i in range(3)]
    files = []
    for i in range(3):
        files += ["-c", os.path.join(folder, f"{i}.json")]
        handlers = {f"disk{j}": {"type": "file", "path": out[j], "format": "bai", "block_timeout": "1m"} for j in range(3) if j != i}
        write(files[-1], {"handlers": handlers, "groups": {"*": f"disk{(i + 1) % 3}", "my_app": ["inherit"]}})
    done = run(ADDER, "-t", 2, "-n", 500000, "-r", 300, *files, "-f", -1, "-H", "disk0", "-H", "disk1", "-H", "disk2")
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    report = json.loads(done.stdout)
    delivered = sum(handler["delivered"] for handler in report["handlers"].values())
    assert delivered + report["process"]["unrouted"] == 1000000, report
    assert delivered == sum(len(lines_of(path)) for path in out)


main()
