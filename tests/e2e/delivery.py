"""Every value arrives once and in order, and the ledger agrees."""

import json
import os

from harness import ADDER, assert_ledgers, case, main, run, without_waits


def file_config(path, **settings):
    return {"settings": settings, "handlers": {"disk": {"type": "file", "path": path, "block_timeout": "1m"}}, "groups": {"*": "disk"}}


MANY = 200000 if os.environ.get("WEIR_TEST_SANITIZED") else 1000000  # sanitizers are slow


def read_threads(path):
    """The values of each name, in file order. Every line must be a JSON object. Many lines are parsed at once, as an array: a torn or
    joined line is an error or changes the number of objects."""
    values = {}
    with open(path, encoding="utf-8") as file:
        while block := file.read(1 << 24):
            lines = (block + file.readline()).splitlines()
            records = json.loads("[" + ",".join(lines) + "]")
            assert len(records) == len(lines), "two objects in a line"
            for record in records:
                values.setdefault(record["name"], []).append(record["value"])
    return values


def assert_complete(path, threads, count):
    values = read_threads(path)
    assert sorted(values) == sorted(f"t{k}" for k in range(threads)), sorted(values)
    for name, got in values.items():
        assert got == list(range(count)), f"{name}: {len(got)} values, or out of order"


@case
def all_values_of_four_threads_with_a_million_each_arrive_in_order(folder):
    path = os.path.join(folder, "out.json")
    done = run(ADDER, "-t", 4, "-n", MANY, "-f", -1, "-H", "disk", WEIR_CONFIG=file_config(path))
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    assert report["flush"] == 0
    assert report["process"]["added"] == 4 * MANY == report["handlers"]["disk"]["delivered"], report
    assert_complete(path, 4, MANY)


@case
def the_same_while_the_configuration_is_reloaded_a_hundred_times(folder):
    path = os.path.join(folder, "out.json")
    files = []
    for number, extra in enumerate(({}, {"linger": "1ms"}, {"queue": "2MiB"})):
        config = file_config(path, labels={"round": str(number)})
        config["handlers"]["disk"].update(extra)
        config["handlers"]["none"] = {"type": "null"}
        config["groups"]["*"] = ["disk", "none"] if number % 2 else "disk"
        files.append(os.path.join(folder, f"{number}.json"))
        with open(files[-1], "w", encoding="utf-8") as file:
            json.dump(config, file)
    arguments = [argument for file in files for argument in ("-c", file)]
    done = run(ADDER, "-t", 4, "-n", MANY, "-r", 100, "-f", -1, "-H", "disk", *arguments,
               WEIR_CONFIG="")
    assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
    report = json.loads(done.stdout)
    assert_ledgers(report)
    process, disk = report["process"], report["handlers"]["disk"]
    assert process["added"] == 4 * MANY and disk["delivered"] == disk["offered"], report
    # values added before the first configuration had no route; no other is missing
    assert disk["delivered"] + process["unrouted"] == 4 * MANY, report
    for name, got in read_threads(path).items():
        assert got == list(range(MANY - len(got), MANY)), f"{name}: a gap, or out of order"


@case
def events_stay_together(folder):
    path = os.path.join(folder, "out.bai")
    config = file_config(path)
    config["handlers"]["disk"]["format"] = "bai"
    done = run(ADDER, "-t", 4, "-n", 100000, "-e", 100, "-f", -1, "-H", "disk", WEIR_CONFIG=config)
    assert_ledgers(json.loads(done.stdout))
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line, object_pairs_hook=list) for line in file]
    assert len(lines) == 4000
    for pairs in lines:
        values = [value for _, value in pairs]
        assert len(pairs) == 100 and values == [values[0] + i for i in range(100)]


@case
def two_processes_share_a_file_and_no_line_is_torn(folder):
    path = os.path.join(folder, "out.json")
    from harness import start
    programs = [start(ADDER, "-q", "-t", 2, "-n", 100000, WEIR_CONFIG=file_config(path)) for _ in range(3)]
    for program in programs:
        assert program.wait(240) == 0
    values = read_threads(path)
    assert sorted(map(len, values.values())) == [300000, 300000]


@case
def with_twenty_handlers_each_receives_every_value(folder):
    handlers = {f"disk{i}": {"type": "file", "path": os.path.join(folder, f"{i}.json"), "block_timeout": "1m"} for i in range(20)}
    config = {"handlers": handlers, "groups": {"*": list(handlers)}}
    arguments = [argument for name in list(handlers)[:16] for argument in ("-H", name)]
    done = run(ADDER, "-t", 2, "-n", 20000, "-f", -1, *arguments, WEIR_CONFIG=config)
    assert_ledgers(json.loads(done.stdout))
    for i in range(20):
        assert_complete(os.path.join(folder, f"{i}.json"), 2, 20000)


main()
