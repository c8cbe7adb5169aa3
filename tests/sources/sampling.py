"""The source types system and process: figures of a made-up /proc and /sys, and of this machine."""

import os
import subprocess
import sys
import time
import urllib.request

from harness import free_port, main, skip_fork_under_sanitizers, wait_for
from peers import prometheus_client, prometheus_parsers
from sourced import Sourced, case

STAT = """cpu  {a} 0 0 {b} 0 0 0 0 0 0
cpu0 {a} 0 0 0 0 0 0 0 0 0
cpu1 0 0 0 {b} 0 0 0 0 0 0
intr {i} 1 2 3
ctxt {i}
processes {i}
procs_running 3
procs_blocked 1
"""
MEMINFO = """MemTotal:       1000 kB
MemFree:         300 kB
MemAvailable:    500 kB
Buffers:          50 kB
Cached:          200 kB
SwapCached:        1 kB
SwapTotal:       100 kB
SwapFree:         60 kB
SReclaimable:     50 kB
"""
HERTZ = os.sysconf("SC_CLK_TCK")
ENDED = 3  # enum weir_source_state


class Machine:
    """Folders like /proc and /sys."""

    def __init__(self, folder, lists_children=False):
        """lists_children: proc has the children of each thread, and more processes than the tree has threads."""
        self.lists_children, self.parents = lists_children, {}
        self.proc, self.sys = os.path.join(folder, "proc"), os.path.join(folder, "sys")
        os.makedirs(self.proc)
        os.makedirs(self.sys)
        for pid in range(1000, 1050) if lists_children else ():
            self.write_process(pid, 1, HERTZ)

    def write(self, path, text):
        """Readers see the whole file or the previous one."""
        path = os.path.join(os.path.dirname(self.proc), path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(text)
        os.rename(path + ".new", path)

    def write_stat(self, busy, idle, count):
        self.write("proc/stat", STAT.format(a=busy, b=idle, i=count))

    def source(self, name, **options):
        places = {"proc": self.proc, "sys": self.sys} if name == "system" else {"proc": self.proc}
        return {"type": name, "interval": "20ms", **places, **options}

    def write_process(self, pid, parent, ticks, name="some (name)", started=7, waited=None, disk=None):
        """waited: what children that it has waited for have used; by default as much again as user, and no system time."""
        child = (ticks, 0) if waited is None else (waited, waited)
        fields = [parent, 1, 1, 0, -1, 0, 10 * ticks, ticks, 2 * ticks, 0, ticks, 2 * ticks, *child, 20, 0, 3, 0, started, 4096, 5]
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) S " + " ".join(map(str, fields)) + " 0 0\n")
        disk = ticks if disk is None else disk
        self.write(f"proc/{pid}/io", f"rchar: 9\nread_bytes: {1000 * disk}\nwrite_bytes: {100 * disk}\n")
        for number in range(4):
            self.write(f"proc/{pid}/fd/{number}", "")
        before = self.parents.get(pid)
        self.parents[pid] = parent
        self.write_children(pid, parent, before)

    def end_process(self, pid):
        """Its files vanish at one moment."""
        path = os.path.join(self.proc, str(pid))
        os.rename(path, path + "-ended")
        self.write_children(self.parents.pop(pid))

    def write_children(self, *parents):
        """Each process has three threads, which share its children."""
        for parent in set(parents) & set(self.parents) if self.lists_children else ():
            for number, thread in enumerate((parent, 100 * parent + 1, 100 * parent + 2)):
                children = [pid for pid in sorted(self.parents) if self.parents[pid] == parent and pid % 3 == number]
                self.write(f"proc/{parent}/task/{thread}/children", "".join(f"{pid} " for pid in children))


def last(program, name, **labels):
    """The last value of a series; None: there is none."""
    values = [line["value"] for line in program.written() if line["name"] == name and line.get("labels", {}) == labels]
    return values[-1] if values else None


def total(program, name, **labels):
    return sum(line["value"] for line in program.written() if line["name"] == name and line.get("labels", {}) == labels)


def await_sampling(program):
    """Waits for at least two whole samplings after this moment: none has more than 100 values."""
    program.await_stats(added=program.stats()["added"] + 250)


def is_near(value, expected):
    return abs(value - expected) <= 1e-9 * max(1, abs(expected))


def tree_case(function):
    """A case for both ways to find the descendants: all processes of the machine, and the children of each thread."""
    def of_the_machine(folder):
        function(Machine(folder), folder)
    def by_children(folder):
        function(Machine(folder, lists_children=True), folder)
    of_the_machine.__name__ = function.__name__
    by_children.__name__ = function.__name__ + "_by_lists_of_children"
    case(of_the_machine)
    return case(by_children)


@case
def totals_of_the_kernel_become_increments(folder):
    machine = Machine(folder)
    machine.write_stat(1000 * HERTZ, 5000 * HERTZ, 10**12)
    program = Sourced(folder, machine.source("system"))
    program.await_stats(added=20)
    machine.write_stat(1001 * HERTZ, 5003 * HERTZ, 10**12 + 5)
    await_sampling(program)
    machine.write_stat(1002 * HERTZ, 5003 * HERTZ, 10**12 + 7)
    await_sampling(program)
    program.end()
    assert is_near(total(program, "cpu.time", mode="user"), 2), program.written()
    assert is_near(total(program, "cpu.time", mode="idle"), 3)
    for name in ("cpu.context_switches", "cpu.interrupts", "processes.created"):
        assert total(program, name) == 7, name
    shares = {line["value"] for line in program.written() if line["name"] == "cpu.utilization.max"}
    assert shares == {0, 1}, shares
    assert (last(program, "processes.running"), last(program, "processes.blocked"), last(program, "cpu.logical.count")) == (3, 1, 2)


@case
def a_total_that_falls_begins_anew(folder):
    machine = Machine(folder)
    machine.write_stat(100, 100, 50)
    program = Sourced(folder, machine.source("system"))
    program.await_stats(added=20)
    machine.write_stat(100, 100, 10)
    await_sampling(program)
    machine.write_stat(100, 100, 12)
    await_sampling(program)
    program.end()
    assert total(program, "cpu.context_switches") == 2


@case
def each_processor_has_its_own_series_on_request(folder):
    machine = Machine(folder)
    machine.write_stat(0, 0, 0)
    program = Sourced(folder, machine.source("system", per_cpu=True))
    program.await_stats(added=20)
    machine.write_stat(HERTZ, 2 * HERTZ, 0)
    await_sampling(program)
    program.end()
    assert is_near(total(program, "cpu.time", mode="user", cpu="0"), 1)
    assert is_near(total(program, "cpu.time", mode="idle", cpu="1"), 2)
    assert last(program, "cpu.time", mode="user") is None
    assert last(program, "cpu.utilization", cpu="0") == 0


@case
def memory_is_that_of_the_machine_or_of_the_cgroup(folder):
    machine = Machine(folder)
    machine.write("proc/meminfo", MEMINFO)
    program = Sourced(folder, machine.source("system"))
    program.await_stats(added=30)
    program.end()
    states = {state: last(program, "memory.usage", state=state) for state in ("used", "free", "buffers", "cached")}
    assert states == {"used": 400 * 1024, "free": 300 * 1024, "buffers": 50 * 1024, "cached": 250 * 1024}, states
    assert (last(program, "memory.limit"), last(program, "memory.utilization")) == (1000 * 1024, 0.5)
    assert last(program, "paging.usage", state="used") == 40 * 1024
    os.remove(os.path.join(folder, "out"))
    machine.write("proc/self/cgroup", "0::/a/b\n")
    machine.write("sys/fs/cgroup/a/b/memory.max", "max\n")
    machine.write("sys/fs/cgroup/a/memory.max", "100000\n")
    machine.write("sys/fs/cgroup/a/memory.current", "30000\n")
    machine.write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 5000\n")
    program = Sourced(folder, machine.source("system"))
    program.await_stats(added=30)
    program.end()
    assert (last(program, "memory.limit"), last(program, "memory.utilization")) == (100000, 0.25)
    assert last(program, "memory.total") == 1000 * 1024, "whatever a cgroup allows"


@case
def disks_and_networks_come_and_go(folder):
    machine = Machine(folder)
    disk = "   8  0 sda {0} 0 {1} 30 20 0 40 50 0 60 70\n   8  1 sda1 9 0 9 9 9 0 9 9 0 9 9\n   7  0 loop0 1 0 1 1 1 0 1 1 0 1 1\n"
    head = "Inter-|   Receive  |  Transmit\n face |bytes packets |bytes packets\n"
    one = "    lo: {0} 2 0 0 0 0 0 0 {0} 2 0 0 0 0 0 0\n"
    two = "eth0.1:1000 1 2 3 0 0 0 0 500 5 6 7 0 0 0 0\n"
    for name in ("sda", "loop0"):
        os.makedirs(os.path.join(machine.sys, "block", name))
    machine.write("proc/diskstats", disk.format(5, 100))
    machine.write("proc/net/dev", head + one.format(100) + two)
    program = Sourced(folder, machine.source("system"))
    program.await_stats(added=50)
    machine.write("proc/diskstats", disk.format(7, 104))
    machine.write("proc/net/dev", head + one.format(150))
    await_sampling(program)
    machine.write("proc/net/dev", head + one.format(150) + two)
    await_sampling(program)
    program.end()
    assert total(program, "disk.io", device="sda", direction="read") == 4 * 512
    assert total(program, "disk.operations", device="sda", direction="read") == 2
    assert {line["labels"]["device"] for line in program.written() if line["name"] == "disk.io"} == {"sda"}
    assert total(program, "network.io", device="lo", direction="receive") == 50
    assert total(program, "network.io", device="eth0.1", direction="transmit") == 0, "it was made anew"
    moved = [(line["labels"], line["value"]) for line in program.written() if line["name"] == "disk.io.since_boot"]
    assert moved[:2] == [({"direction": "read"}, 101 * 512), ({"direction": "write"}, 41 * 512)], "with loop0, without partitions"
    assert last(program, "disk.io.since_boot", direction="read") == 105 * 512
    since_boot = {(way, scope): last(program, "network.io.since_boot", direction=way, scope=scope)
                  for way in ("receive", "transmit") for scope in ("loopback", "external")}
    assert since_boot == {("receive", "loopback"): 150, ("receive", "external"): 1000, ("transmit", "loopback"): 150,
                          ("transmit", "external"): 500}, since_boot


@case
def what_a_machine_does_not_have_is_left_out_and_logged_once(folder):
    machine = Machine(folder)
    machine.write("proc/uptime", "12.34 50.00\n")
    machine.write("proc/stat", "strange\ncpu\ncpux 1\nctxt\n")
    machine.write("proc/meminfo", "MemTotal: none\n")
    machine.write("proc/diskstats", "1 2\n\n 8 0\n")
    nowhere = [f"/nowhere/{number:02}" for number in range(100)]
    program = Sourced(folder, machine.source("system", filesystems=nowhere))
    program.await_stats(added=20)
    program.end()
    assert {line["name"] for line in program.written()} == {"uptime"}, program.written()
    for what in ("pressure.time", "cpu.load_average", "memory", *nowhere):
        assert program.log().count(f"source \"in\": {what} is left out") + program.log().count(f"in: {what} is left out") == 1, program.log()


@tree_case
def a_process_is_measured_with_its_descendants(machine, folder):
    for pid, parent in ((10, 1), (11, 10), (5, 11), (12, 1)):
        machine.write_process(pid, parent, HERTZ)
    program = Sourced(folder, machine.source("process", pid=10))
    program.await_stats(added=20)
    machine.write_process(5, 11, 3 * HERTZ)
    machine.write_process(12, 1, 100 * HERTZ)
    await_sampling(program)
    program.end()
    assert is_near(total(program, "cpu.time", mode="user"), 4), "user and that of children"
    assert is_near(total(program, "cpu.time", mode="system"), 4)
    assert total(program, "disk.io", direction="read") == 2000 * HERTZ
    assert (last(program, "count"), last(program, "thread.count"), last(program, "unix.file_descriptor.count")) == (3, 9, 12)
    assert last(program, "memory.usage") == 3 * 5 * os.sysconf("SC_PAGESIZE")
    assert last(program, "memory.virtual") == 3 * 4096


@case
def a_process_alone_has_no_descendants(folder):
    machine = Machine(folder)
    machine.write_process(10, 1, HERTZ)
    machine.write_process(11, 10, HERTZ)
    program = Sourced(folder, machine.source("process", pid=10, children=False))
    program.await_stats(added=20)
    machine.write_process(10, 1, 2 * HERTZ)
    await_sampling(program)
    program.end()
    assert is_near(total(program, "cpu.time", mode="user"), 1), "without that of children"
    assert last(program, "count") == 1


@case
def only_the_tree_is_read_where_children_are_listed(folder):
    """One process has a parent in the tree, but is in none of its lists."""
    machine = Machine(folder, lists_children=True)
    machine.write_process(10, 1, HERTZ)
    program = Sourced(folder, machine.source("process", pid=10))
    program.await_stats(added=20)
    machine.lists_children = False
    machine.write_process(12, 10, HERTZ)
    machine.lists_children = True
    await_sampling(program)
    assert last(program, "count") == 1
    machine.write_process(11, 10, HERTZ)
    wait_for(lambda: last(program, "count") == 3, "the child that is listed now, and the one beside it")
    for pid in range(100, 150):  # more threads than the machine had processes
        machine.write_process(pid, 11, HERTZ)
    machine.write_process(9, 10, HERTZ)
    machine.lists_children = False
    machine.write_process(8, 10, HERTZ)
    wait_for(lambda: last(program, "count") == 55, "the processes of the whole machine")
    program.end()


def user_time(program):
    return total(program, "cpu.time", mode="user")


@tree_case
def a_child_is_counted_once_before_and_after_its_parent_has_waited_for_it(machine, folder):
    machine.write_process(10, 1, 0, waited=0)
    machine.write_process(11, 10, 5 * HERTZ, waited=0)
    program = Sourced(folder, machine.source("process", pid=10))
    program.await_stats(added=20)
    machine.write_process(11, 10, 7 * HERTZ, waited=0)
    await_sampling(program)
    machine.end_process(11)  # nobody has its time for a while
    await_sampling(program)
    machine.write_process(10, 1, 0, waited=8 * HERTZ, disk=8 * HERTZ)
    await_sampling(program)
    machine.write_process(10, 1, HERTZ, waited=8 * HERTZ, disk=9 * HERTZ)
    await_sampling(program)
    program.end()
    assert is_near(user_time(program), 2 + 1 + 1), (user_time(program), "5 were used before the first measurement")
    assert is_near(total(program, "disk.io", direction="read"), 4000 * HERTZ)


@tree_case
def children_that_come_and_go_between_two_measurements_are_counted_once_they_were_waited_for(machine, folder):
    machine.write_process(10, 1, 0, waited=0)
    program = Sourced(folder, machine.source("process", pid=10))
    program.await_stats(added=20)
    machine.write_process(11, 10, 2 * HERTZ, waited=0)
    machine.write_process(12, 11, 3 * HERTZ, waited=HERTZ)
    await_sampling(program)
    machine.end_process(12)  # its parent ends with it: the nearest ancestor inherits both
    machine.end_process(11)
    await_sampling(program)
    machine.write_process(10, 1, 0, waited=10 * HERTZ, disk=0)
    await_sampling(program)
    program.end()
    assert is_near(user_time(program), 10), user_time(program)


@tree_case
def a_process_that_another_one_adopts_stays_part_of_the_tree(machine, folder):
    machine.write_process(10, 1, 0, waited=0)
    machine.write_process(11, 10, HERTZ, waited=0)
    machine.write_process(12, 11, HERTZ, waited=0)
    program = Sourced(folder, machine.source("process", pid=10))
    program.await_stats(added=20)
    machine.end_process(11)
    machine.write_process(10, 1, 0, waited=HERTZ, disk=HERTZ)
    machine.write_process(12, 1, 4 * HERTZ, waited=0)
    await_sampling(program)
    machine.end_process(12)
    machine.write_process(10, 1, 2 * HERTZ, waited=HERTZ, disk=3 * HERTZ)
    await_sampling(program)
    program.end()
    assert is_near(user_time(program), 3 + 2), user_time(program)
    assert last(program, "count") == 1


@tree_case
def what_was_used_before_the_first_measurement_counts_on_request(machine, folder):
    machine.write_process(10, 1, 2 * HERTZ, waited=HERTZ)
    machine.write_process(11, 10, HERTZ, waited=0)
    program = Sourced(folder, machine.source("process", pid=10, from_start=True))
    program.await_stats(added=20)
    program.end()
    assert is_near(user_time(program), 4), user_time(program)


LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max address space         unlimited            unlimited            bytes
Max open files            1000                 4096                 files
"""


@case
def names_of_prometheus_are_for_one_process_from_its_start(folder):
    machine = Machine(folder)
    machine.write("proc/stat", "cpu  1 2 3\nbtime 1700000000\n")
    machine.write_process(10, 1, HERTZ, started=50 * HERTZ)
    machine.write_process(11, 10, HERTZ)
    machine.write("proc/10/limits", LIMITS)
    program = Sourced(folder, machine.source("process", pid=10, names="prometheus"))
    await_sampling(program)
    program.end()
    figures = {line["name"]: (line["value"], line.get("unit")) for line in program.written() if line["name"] != "cpu"}
    assert is_near(total(program, "cpu"), 1 + 2), total(program, "cpu")
    assert figures == {"open_fds": (4, None), "max_fds": (1000, None), "virtual_memory": (4096, "By"), "virtual_memory_max": (2**64, "By"),
                       "resident_memory": (5 * os.sysconf("SC_PAGESIZE"), "By"), "start_time": (1700000050, "s"), "threads": (3, None)}, figures


@case
def what_cannot_be_read_is_left_out_of_the_names_of_prometheus(folder):
    machine = Machine(folder)
    machine.write_process(10, 1, HERTZ)
    program = Sourced(folder, machine.source("process", pid=10, names="prometheus"))
    await_sampling(program)
    program.end()
    assert {line["name"] for line in program.written()} == {"cpu", "open_fds", "virtual_memory", "resident_memory", "threads"}, program.written()


BUSY = "sum(number * number for number in range(10**6)); print(); input()"


@case
def names_of_prometheus_are_exported_as_its_own_client_does(folder):
    client, parsers = prometheus_client(), prometheus_parsers()
    where = f"127.0.0.1:{free_port()}"
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as busy:
        busy.stdout.readline()  # from now on it waits, and its figures stay
        program = Sourced(folder, {"type": "process", "pid": busy.pid, "names": "prometheus", "interval": "20ms"},
                          {"type": "prometheus", "listen": where})
        await_sampling(program)

        def exported():
            with urllib.request.urlopen(f"http://{where}/metrics", timeout=240) as page:
                families = parsers[0](page.read().decode())
                return {sample.name: (family.type, sample.value) for family in families for sample in family.samples}

        wait_for(lambda: "process_threads" in exported(), "the page")
        registry = client.CollectorRegistry()
        client.ProcessCollector(pid=lambda: busy.pid, registry=registry)
        expected = {sample.name: (family.type, sample.value) for family in registry.collect() for sample in family.samples}
        found = exported()
        busy.stdin.write(b"\n")
        busy.stdin.flush()
        program.end()
    assert len(expected) == 6 and expected["process_cpu_seconds_total"][1] > 0, expected
    for name, (kind, value) in expected.items():
        assert found[name][0] == kind and is_near(found[name][1], value), (name, found[name], value)


@case
def the_last_part_of_an_interval_is_counted(folder):
    machine = Machine(folder)
    machine.write_process(10, 1, HERTZ, waited=0)
    machine.write_stat(HERTZ, 0, 10)
    for source in (machine.source("process", pid=10, interval="1h"), machine.source("system", interval="1h")):
        program = Sourced(folder, source)
        program.await_stats(added=10)
        machine.write_process(10, 1, 4 * HERTZ, waited=0)
        machine.write_stat(4 * HERTZ, 0, 10)
        program.end()
        assert is_near(user_time(program), 3), program.written()
        assert len({line["timestamp"] for line in program.written() if line["name"] == "thread.count"}) <= 1
        machine.write_process(10, 1, HERTZ, waited=0)
        machine.write_stat(HERTZ, 0, 10)
        os.remove(os.path.join(folder, "out"))


@case
def a_measurement_that_fails_is_logged_and_made_up_for(folder):
    machine = Machine(folder)
    machine.write_process(10, 1, HERTZ, waited=0)
    program = Sourced(folder, machine.source("process", pid=10))
    program.await_stats(added=20)
    machine.write("proc/10/stat", "10 (strange) S none\n")
    program.await_log("process 10: Protocol error; measured again after the interval")
    machine.write_process(10, 1, 3 * HERTZ, waited=0)
    await_sampling(program)
    program.end()
    assert is_near(user_time(program), 2), user_time(program)
    assert program.log().count("measured again") == 1, program.log()


@tree_case
def what_cannot_be_read_once_is_made_up_for_and_not_counted_twice(machine, folder):
    machine.write_process(10, 1, HERTZ)
    machine.write_process(11, 10, HERTZ)
    program = Sourced(folder, machine.source("process", pid=10))
    program.await_stats(added=20)
    machine.write_process(10, 1, 2 * HERTZ)
    await_sampling(program)
    io = os.path.join(machine.proc, "11", "io")
    os.rename(io, io + ".kept")
    os.mkdir(io)
    program.await_log("disk.io is left out")
    await_sampling(program)
    os.rmdir(io)
    machine.write_process(11, 10, 3 * HERTZ)
    await_sampling(program)
    program.end()
    assert total(program, "disk.io", direction="read") == 3000 * HERTZ, total(program, "disk.io", direction="read")
    assert total(program, "disk.io", direction="write") == 300 * HERTZ


@case
def a_cgroup_that_cannot_be_read_is_not_taken_for_a_removed_one(folder):
    machine = Machine(folder)
    machine.write("group/cpu.stat", "user_usec 2000000\nsystem_usec 1000000\n")
    machine.write("group/cgroup.procs", "1\n2\n")
    program = Sourced(folder, machine.source("process", cgroup=os.path.join(folder, "group")))
    program.await_stats(added=20)
    machine.write("group/cpu.stat", "user_usec 5000000\nsystem_usec 1000000\n")
    os.rename(os.path.join(folder, "group", "cgroup.procs"), os.path.join(folder, "procs"))
    os.mkdir(os.path.join(folder, "group", "cgroup.procs"))  # EISDIR
    program.await_log("group: Is a directory; measured again after the interval")
    os.rmdir(os.path.join(folder, "group", "cgroup.procs"))
    program.await_log("group was removed")
    program.end()


@tree_case
def another_process_with_the_same_number_is_not_mistaken(machine, folder):
    machine.write_process(10, 1, HERTZ)
    program = Sourced(folder, machine.source("process", pid=10))
    program.await_stats(added=20)
    machine.write_process(10, 1, 50 * HERTZ, started=8)
    wait_for(lambda: program.stats()["state"] == ENDED, "the end of the source")
    program.end()
    assert total(program, "cpu.time", mode="user") == 0


@case
def a_process_that_is_not_there_is_an_error(folder):
    program = Sourced(folder, Machine(folder).source("process", pid=10))
    program.await_log("process 10: No such process")
    program.end()


@case
def a_cgroup_is_measured_and_waited_for(folder):
    machine = Machine(folder)
    group = os.path.join(folder, "group")
    program = Sourced(folder, machine.source("process", cgroup=group))
    program.await_log("group: No such file or directory")
    machine.write("group/cpu.stat", "usage_usec 5\nuser_usec 2000000\nsystem_usec 1000000\n")
    machine.write("group/memory.current", "4096\n")
    machine.write("group/pids.current", "3\n")
    machine.write("group/io.stat", "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=5 wbytes=1 rios=1\n")
    machine.write("group/cgroup.procs", "1\n2\n")
    program.await_stats(added=20)
    machine.write("group/io.stat", "8:0 rbytes=110 wbytes=20 rios=1\n8:16 rbytes=5 wbytes=2 rios=1\n")
    await_sampling(program)
    program.end()
    assert total(program, "disk.io", direction="read") == 100 and total(program, "disk.io", direction="write") == 1
    assert (last(program, "count"), last(program, "thread.count"), last(program, "memory.usage")) == (2, 3, 4096)
    assert last(program, "memory.virtual") is None


@case
def this_machine_is_measured(folder):
    program = Sourced(folder, {"type": "system", "interval": "20ms"})
    program.await_stats(added=200)
    program.end()
    names = {line["name"] for line in program.written()}
    assert {"cpu.time", "cpu.utilization", "memory.usage", "memory.limit", "filesystem.usage", "uptime"} <= names, names
    assert all(line["group"] == "in" or line["group"] == "system" for line in program.written())
    assert all(0 <= line["value"] <= 1 for line in program.written() if line["name"].startswith("cpu.utilization"))


@case
def the_time_of_a_child_that_computes_is_seen(folder):
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        program = Sourced(folder, {"type": "process", "interval": "20ms", "pid": child.pid})
        program.await_stats(added=20)
        before = used_by(child.pid)
        wait_for(lambda: used_by(child.pid) > before + 0.2, "some time of the child")
        await_sampling(program)
        program.end()
    finally:
        child.kill()
        child.wait()
    used = total(program, "cpu.time", mode="user") + total(program, "cpu.time", mode="system")
    spent = os.times().children_user + os.times().children_system
    assert 0 < used <= spent + 0.1, (used, spent)


def used_by(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / HERTZ


@case
def a_child_that_is_forked_while_files_are_read_has_none_of_them(folder):
    skip_fork_under_sanitizers()
    for name in ("system", "process"):
        machine = Machine(os.path.join(folder, name))
        machine.write_stat(0, 0, 0)
        machine.write_process(7, 1, HERTZ)
        for path in ("stat", "7/io"):
            with open(os.path.join(machine.proc, path), "a", encoding="ascii") as file:
                file.write("x" * 12000000 + "\n")  # reading it takes most of the interval
        program = Sourced(folder, {**machine.source(name, **({"pid": 7} if name == "process" else {})), "interval": "10ms"})
        program.await_stats(added=10)
        open_count = sum(program.ask("fork") for _ in range(30))
        # Between a system call and the note of it a descriptor may escape; without notes it is open in nearly every child.
        assert open_count < 15, open_count
        program.end()


@case
def measurements_are_due_at_multiples_of_the_interval(folder):
    start = time.monotonic()
    program = Sourced(folder, {"type": "system", "interval": "100ms"})
    program.await_stats(added=500)
    program.end()
    elapsed = time.monotonic() - start
    times = {line["timestamp"] for line in program.written() if line["name"] == "uptime"}
    assert 2 <= len(times) <= elapsed / 0.1 + 2, (len(times), elapsed)


@case
def options_that_make_no_sense_are_refused(folder):
    program = Sourced(folder, {"type": "process", "pid": 1, "cgroup": "/sys/fs/cgroup"})
    program.await_log("only one of cgroup and pid may be given")
    program = Sourced(folder, {"type": "process", "names": "prometheus", "cgroup": "/sys/fs/cgroup"})
    program.await_log('names: "prometheus" names figures of a process, and cgroup is given')


main()
