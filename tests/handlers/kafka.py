"""The kafka handler with a cluster of librdkafka's mock brokers, over Kafka's protocol: outages, kills, errors, forks.

The mock brokers know no idempotent producers: a request whose answer is lost with its connection is stored again when it is resent.
So repeats are counted where connections are cut, and there they must lie among what was on its way; elsewhere each value arrives once."""

import glob
import json
import os
import re
import ssl
import subprocess

import certificates
from exits import assert_only_weir_registers, preload
from fifos import ScriptedApp
from harness import ADDER, SOURCE, WEIR, assert_handler_ledger, assert_ledgers, case, environment, free_port, main, run, without_waits, \
    skip_fork_under_sanitizers, wait_for
from brokers import CLUSTER_DENIED, INIT_PRODUCER_ID, NOT_ENOUGH_REPLICAS, NOT_LEADER, PRODUCE, TIMED_OUT, TOO_LARGE, TOPIC_DENIED, \
    UNKNOWN_TOPIC, Cluster

FACTOR = float(os.environ.get("WEIR_TEST_FACTOR", "1"))
QUICK = {"reconnect.backoff.ms": "10", "reconnect.backoff.max.ms": "50", "retry.backoff.ms": "10"}


def config_of(brokers, labels=None, shutdown="1m", properties=None, **options):
    handler = {"type": "kafka", "brokers": brokers, "topic": "t", "linger": "0s", "retry_min": "5ms", "retry_max": "50ms",
               "properties": {**QUICK, **(properties or {})}, **options}
    return {"settings": {"labels": labels or {}, "shutdown_timeout": shutdown}, "handlers": {"k": handler}, "groups": {"*": "k"}}


def ledger_of(app):
    stats = app.do("ledger", "k")
    assert_handler_ledger(stats)
    return stats


def add_all(app, *values, name="v"):
    for value in values:
        assert app.do("add", name, value)["code"] == 0


def values_in(messages):
    return [json.loads(message.value)["value"] for message in messages]


# ---- What arrives ------------------------------------------------------------------------------------------------


@case
def values_arrive_with_the_series_as_key_their_time_and_headers(folder):
    with Cluster(folder) as cluster:
        config = config_of(cluster.brokers, labels={"host": "a=b"}, headers={"source": "weir", "of": "{group}/{label.route}"})
        done = run(WEIR, "emit", "-g", "my_app", "-l", "route=/x", "latency=49.5", "n=3", WEIR_CONFIG=config)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done.stderr
        found = {json.loads(message.value)["name"]: message for message in cluster.await_messages(2)}
        for name, value in (("latency", 49.5), ("n", 3)):
            message, record = found[name], json.loads(found[name].value)
            assert record["value"] == value and record["labels"] == {"host": "a=b", "route": "/x"}, record
            assert message.key == f"my_app|{name}|host=a\\=b|route=/x", message.key
            assert message.timestamp == int(record["timestamp"] * 1000), (message.timestamp, record)
            assert message.headers == "source=weir,of=my_app//x", message.headers


@case
def topics_and_keys_are_made_of_templates(folder):
    with Cluster(folder, topics=(("m.my_app.db.lat_ncy", 2), ("m._", 2))) as cluster:
        config = config_of(cluster.brokers, topic="m.{group}.{name}", key="{label.route}-{name}")
        done = run(WEIR, "emit", "-g", "my_app.db", "-l", "route=/x", "lat ncy=1", WEIR_CONFIG=config)
        assert done.returncode == 0, done.stderr
        (message,) = cluster.await_messages(1, "m.my_app.db.lat_ncy")
        assert message.key == "/x-lat ncy", message.key
        done = run(WEIR, "emit", "-g", "g", "v=1", WEIR_CONFIG=config_of(cluster.brokers, topic="m.{label.nowhere}", key="none"))
        assert done.returncode == 0, done.stderr
        (message,) = cluster.await_messages(1, "m._")
        assert message.key == "", message.key


@case
def each_line_of_a_format_is_a_message(folder):
    with Cluster(folder, topics=(("json", 1), ("bai", 1), ("record", 1))) as cluster:
        for topic, form, key in (("json", "json", "series"), ("bai", "bai", "series"), ("record", {"type": "bai", "style": "kafka"}, "CLI")):
            config = config_of(cluster.brokers, topic=topic, format=form, key=key, labels={"client-id": "CLI"})
            with ScriptedApp(config, folder) as app:
                assert app.do("event", 3)["code"] == 0 and app.do("flush", -1)["code"] == 0
                assert ledger_of(app)["delivered"] == 3
        assert sorted(values_in(cluster.await_messages(3, "json"))) == [0, 1, 2]
        assert sorted(message.key for message in cluster.messages("json")) == [f"my_app|n{i}|client-id=CLI" for i in range(3)]
        (event,) = cluster.await_messages(1, "bai")
        assert json.loads(event.value) == {"n0": 0.0, "n1": 1.0, "n2": 2.0} and event.key == "my_app|n0|client-id=CLI", event.value
        records = [json.loads(message.value) for message in cluster.await_messages(3, "record")]
        assert [(record["name"], record["value"], record["labels"]) for record in records] == \
            [(f"n{i}", i, {"client-id": "CLI"}) for i in range(3)], records
        assert {message.key for message in cluster.messages("record")} == {"CLI"}


@case
def summaries_arrive_and_what_a_format_cannot_represent_is_counted(folder):
    with Cluster(folder, topics=(("t", 4), ("influx", 4))) as cluster:
        with ScriptedApp(config_of(cluster.brokers, aggregate="1h", percentiles=["50"]), folder) as app:
            add_all(app, 1, 2, 6)
            assert app.do("flush", -1)["code"] == 0
            stats = ledger_of(app)
            assert stats["delivered"] == 3, stats
        parts = {json.loads(message.value)["name"]: json.loads(message.value)["value"] for message in cluster.await_messages(6)}
        assert parts["v.count"] == 3 and parts["v.sum"] == 9 and parts["v.last"] == 6, parts
        with ScriptedApp(config_of(cluster.brokers, topic="influx", format="influx"), folder) as app:
            add_all(app, 1, "nan", 2)
            app.do("flush", -1)
            stats = ledger_of(app)
            assert stats["delivered"] == 2 and sum(stats["dropped"]) == 1, stats
        assert len(cluster.await_messages(2, "influx")) == 2


# ---- TLS ---------------------------------------------------------------------------------------------------------


@case
def with_tls_both_sides_show_certificates(folder):
    server, client, stranger = (certificates.make(folder, name, "127.0.0.1") for name in ("server", "client", "stranger"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*server)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(client[0])
    good = {"tls": True, "ca_file": server[0], "cert_file": client[0], "key_file": client[1]}
    with Cluster(folder, brokers=2, tls=context) as cluster:
        with ScriptedApp(config_of(cluster.brokers, **good), folder) as app:
            add_all(app, *range(500))
            assert app.do("flush", -1)["code"] == 0
            assert ledger_of(app)["delivered"] == 500
        assert sorted(values_in(cluster.await_messages(500))) == list(range(500))
        for wrong, words in (({"ca_file": stranger[0]}, "certificate verify failed"),
                             ({"cert_file": stranger[0], "key_file": stranger[1]}, "")):
            with ScriptedApp(config_of(cluster.brokers, shutdown="0s", timeout="100ms", **{**good, **wrong}), folder) as app:
                add_all(app, 1)
                wait_for(lambda: ledger_of(app)["retries"], "a failure")
                assert "ssl://127.0.0.1" in app.stderr_text() and words in app.stderr_text(), app.stderr_text()
                assert ledger_of(app)["delivered"] == 0
        assert any("certificate verify failed" in reason for proxy in cluster.proxies for reason in proxy.refused), \
            [proxy.refused for proxy in cluster.proxies]
        assert cluster.count() == 500


# ---- The end of the program --------------------------------------------------------------------------------------


@case
def values_of_exit_handlers_arrive(folder):
    with Cluster(folder) as cluster:
        done = run(ADDER, "-q", "-n", 100, "-x", "late", WEIR_LOG="info", WEIR_CONFIG=config_of(cluster.brokers))
        assert done.returncode == 0 and ": 103 values added, 0 of them unrouted, 0 refused\n" in done.stderr, done.stderr
        assert 'handler "k": 103 offered, 103 delivered, 0 dropped, 0 queued, 0 spooled,' in done.stderr, done.stderr
        late = [json.loads(message.value) for message in cluster.await_messages(103) if '"late"' in message.value]
        assert sorted(record["value"] for record in late) == [0, 1, 2], late


@case
def librdkafka_registers_no_exit_handler(folder):
    path = os.path.join(folder, "config")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config_of([f"127.0.0.1:{free_port()}"], tls=True, timeout="100ms"), file)
    done = run(WEIR, "check", "--open", path, LD_PRELOAD=preload())
    assert done.returncode != 0 and "ssl://127.0.0.1" in done.stdout + done.stderr, done
    assert_only_weir_registers(done.stderr)


# ---- Outages -----------------------------------------------------------------------------------------------------


class Adder:
    """The program that adds values from four threads, with its messages in a file. Each thread waits for `go_on` after every quarter."""

    def __init__(self, folder, config, threads, each):
        self.total, self.threads = threads * each, threads
        self.path = os.path.join(folder, "errors")
        with open(self.path, "w", encoding="utf-8") as errors:
            self.program = subprocess.Popen([ADDER, "-t", str(threads), "-n", str(each), "-i", str((each - 1) // 4), "-f", "-1", "-H", "k"],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment(WEIR_CONFIG=config),
                                            text=True)

    def await_step(self, cluster, step):
        """Until what is sure to be added after so many calls of go_on(4) has arrived: any thread may take each line, one with its last value too."""
        cluster.await_messages((3 * step + 1) * ((self.total // self.threads - 1) // 4))

    def go_on(self, threads):
        self.program.stdin.write("\n" * threads)
        self.program.stdin.flush()

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def outages(self):
        return len(re.findall(r"\bk: .*no delivery report", self.text()))

    def kill(self):
        if self.program.poll() is None:
            self.program.kill()
            self.program.communicate()

    def end(self):
        report = json.loads(self.program.communicate(timeout=600)[0])
        assert_ledgers(report)
        assert self.program.returncode == 0 and report["flush"] == 0, (report, self.text())
        stats = report["handlers"]["k"]
        assert stats["offered"] == stats["delivered"] == self.total, stats
        return stats


def count_repeats(messages, threads, each):
    """Each value of each thread has arrived, and in order, where a repeat goes back to what was on its way. Returns how many repeats."""
    seen, repeats = {f"t{i}": 0 for i in range(threads)}, 0
    for message in messages:
        record = json.loads(message.value)
        assert message.key == f"my_app|{record['name']}", message.key
        following = seen[record["name"]]
        assert record["value"] <= following, f"{record['name']}: {record['value']} after {following - 1}"
        repeats += record["value"] < following
        seen[record["name"]] = max(following, int(record["value"]) + 1)
    assert set(seen.values()) == {each}, seen
    assert len(messages) == threads * each + repeats
    return repeats


# The queue is small, so that the program cannot end before the outages; the brokers store compressed data, of which they keep enough.
STEADY = {"overflow": "block", "block_timeout": "1h", "queue": "256KiB", "compression": "zstd"}


@case
def brokers_that_are_down_three_times_get_each_value_of_four_threads_in_order(folder):
    each = int(25000 * FACTOR)
    with Cluster(folder, brokers=2) as cluster:
        adder = Adder(folder, config_of(cluster.brokers, **STEADY), 4, each)
        try:
            for outage in range(1, 4):
                adder.await_step(cluster, outage)
                before = adder.outages()
                adder.go_on(2)
                cluster.down()
                adder.go_on(2)
                wait_for(lambda: adder.outages() > before, "the outage to be noticed")
                cluster.up()
            adder.end()
        finally:
            adder.kill()
        cluster.await_messages(adder.total)
        wait_for(lambda: len({m.value for m in cluster.messages()}) >= adder.total, "all messages")
        repeats = count_repeats(cluster.messages(), 4, each)
        print(f"# {adder.total} values, {repeats} repeats by brokers that do not recognise them")
        assert repeats <= 3 * 256 * 1024 // 32, repeats


@case
def errors_that_pass_and_new_leaders_cost_no_value_and_repeat_none(folder):
    each = int(10000 * FACTOR)
    with Cluster(folder, brokers=2) as cluster:
        adder = Adder(folder, config_of(cluster.brokers, **STEADY), 4, each)
        try:
            for step, error in enumerate((NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS), 1):
                adder.await_step(cluster, step)
                cluster.do("error", PRODUCE, 5, error)
                adder.go_on(4)
                for partition in range(4):
                    cluster.do("leader", "t", partition, 1 + (step + partition) % 2)
            adder.end()
        finally:
            adder.kill()
        cluster.await_messages(adder.total)
        assert count_repeats(cluster.messages(), 4, each) == 0


@case
def a_cluster_that_is_killed_and_started_again_gets_what_was_added_meanwhile(folder):
    with Cluster(folder) as cluster, ScriptedApp(config_of(cluster.brokers), folder) as app:
        for number in range(3):
            add_all(app, *range(number * 20, number * 20 + 10))
            assert app.do("flush", -1)["code"] == 0
            cluster.await_messages(number * 20 + 10)
            cluster.kill()
            add_all(app, *range(number * 20 + 10, number * 20 + 20))
            wait_for(lambda: ledger_of(app)["failing"], "the outage to be noticed")
            cluster.start()
            assert app.do("flush", -1)["code"] == 0
            cluster.await_messages(number * 20 + 20)
        stats = ledger_of(app)
        assert stats["delivered"] == 60 and stats["retries"] > 0, stats
        assert values_in(cluster.messages()) == list(range(60))


@case
def values_of_a_program_that_reached_no_broker_are_sent_by_the_next_one(folder):
    port, spool = free_port(), os.path.join(folder, "spool")
    config = config_of([f"127.0.0.1:{port}"], shutdown="200ms", spool=spool)
    done = run(ADDER, "-n", 20000, "-H", "k", WEIR_CONFIG=config)
    assert done.returncode == 0 and "20000 spooled" in done.stderr, done.stderr
    assert_ledgers(json.loads(done.stdout))
    with Cluster(folder) as cluster:
        done = run(ADDER, "-n", 100, "-f", -1, "-H", "k", WEIR_CONFIG=config_of(cluster.brokers, spool=spool))
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["flush"] == 0 and report["handlers"]["k"]["recovered"] == 20000, (report, done.stderr)
        assert values_in(cluster.await_messages(20100)) == [*range(20000), *range(100)]
    assert glob.glob(os.path.join(spool, "*", "*.seg")) == []


@case
def what_goes_to_the_spool_during_an_outage_is_sent_once(folder):
    with Cluster(folder) as cluster, ScriptedApp(config_of(cluster.brokers, queue="1KiB", spool=os.path.join(folder, "spool")), folder) as app:
        add_all(app, *range(10))
        assert app.do("flush", -1)["code"] == 0
        cluster.await_messages(10)
        cluster.kill()
        add_all(app, *range(10, 500))
        wait_for(lambda: ledger_of(app)["spooled"] > 100, "values in the spool")
        cluster.start()
        wait_for(lambda: app.do("flush", -1)["code"] == 0, "the spool to be sent")
        stats = ledger_of(app)
        assert stats["delivered"] == 500, stats
        assert values_in(cluster.await_messages(500)) == list(range(500))


@case
def a_full_queue_of_the_producer_delays_values_and_loses_none(folder):
    with Cluster(folder) as cluster:
        config = config_of(cluster.brokers, overflow="block", block_timeout="1h",
                           properties={"queue.buffering.max.messages": "10", "linger.ms": "0"})
        done = run(ADDER, "-n", 3000, "-f", -1, "-H", "k", WEIR_CONFIG=config)
        report = json.loads(done.stdout)
        assert_ledgers(report)
        assert report["flush"] == 0 and report["handlers"]["k"]["delivered"] == 3000, (report, done.stderr)
        assert values_in(cluster.await_messages(3000)) == list(range(3000))


@case
def a_program_that_ends_during_an_outage_ends_in_time_and_counts_what_is_lost(folder):
    with Cluster(folder) as cluster:
        app = ScriptedApp(config_of(cluster.brokers, shutdown="100ms"), folder)
        add_all(app, 1)
        assert app.do("flush", -1)["code"] == 0
        cluster.await_messages(1)
        cluster.kill()
        add_all(app, 2, 3)
        app.do("shutdown", 100)
        stats = ledger_of(app)
        assert stats["delivered"] == 1 and sum(stats["dropped"]) == 2, stats
        app.end()
        assert values_in(cluster.messages()) == [1]


# ---- Refusals ----------------------------------------------------------------------------------------------------


@case
def a_message_that_is_too_large_is_rejected_and_its_neighbours_are_delivered(folder):
    with Cluster(folder) as cluster, ScriptedApp(config_of(cluster.brokers, linger="1s", message_bytes="2000B"), folder) as app:
        add_all(app, 1)
        assert app.do("note", 3000)["code"] == 0
        add_all(app, 2)
        app.do("flush", -1)
        stats = ledger_of(app)
        assert stats["delivered"] == 2 and sum(stats["dropped"]) == 1, stats
        assert values_in(cluster.await_messages(2)) == [1, 2]
        assert 'topic "t"' in app.stderr_text() and "too large" in app.stderr_text(), app.stderr_text()


@case
def a_request_that_brokers_find_too_large_is_sent_again_message_by_message(folder):
    with Cluster(folder, topics=(("t", 1),)) as cluster, ScriptedApp(config_of(cluster.brokers, linger="10s"), folder) as app:
        cluster.do("error", PRODUCE, 2, TOO_LARGE)
        add_all(app, *range(10))
        app.do("flush", -1)
        stats = ledger_of(app)
        assert stats["delivered"] == 9 and sum(stats["dropped"]) == 1, (stats, app.stderr_text())
        assert values_in(cluster.await_messages(9)) == list(range(1, 10))


@case
def a_topic_that_does_not_exist_is_rejected_and_others_are_not(folder):
    with Cluster(folder, topics=(("good", 1), ("missing", 1))) as cluster:
        cluster.do("topic_error", "missing", UNKNOWN_TOPIC)
        config = config_of(cluster.brokers, topic="{name}", properties={"topic.metadata.propagation.max.ms": "100"})
        with ScriptedApp(config, folder) as app:
            for value in range(3):
                for name in ("good", "missing"):
                    add_all(app, value, name=name)
            app.do("flush", -1)
            stats = ledger_of(app)
            assert stats["delivered"] == 3 and sum(stats["dropped"]) == 3, (stats, app.stderr_text())
            assert 'topic "missing", "missing" of group "my_app": Broker: Unknown topic' in app.stderr_text(), app.stderr_text()
        assert values_in(cluster.await_messages(3, "good")) == [0, 1, 2]


@case
def a_topic_that_the_user_may_not_write_to_is_rejected_until_it_is_allowed(folder):
    with Cluster(folder, topics=(("t", 1),)) as cluster:
        cluster.do("error", PRODUCE, 1, TOPIC_DENIED)
        with ScriptedApp(config_of(cluster.brokers, properties={"topic.metadata.refresh.interval.ms": "50"}), folder) as app:

            def is_taken():
                add_all(app, 1)
                app.do("flush", -1)
                return ledger_of(app)["delivered"] == 1
            assert not is_taken()
            wait_for(is_taken, "the topic to be allowed")
            stats = ledger_of(app)
            assert sum(stats["dropped"]) == stats["offered"] - 1 >= 1, stats
            assert "Topic authorization failed" in app.stderr_text(), app.stderr_text()
        assert len(cluster.await_messages(1)) == 1


@case
def a_cluster_that_denies_everything_is_asked_again_and_nothing_is_dropped(folder):
    with Cluster(folder) as cluster:
        cluster.do("error", INIT_PRODUCER_ID, 3, CLUSTER_DENIED)
        with ScriptedApp(config_of(cluster.brokers), folder) as app:
            add_all(app, 1, 2)
            assert app.do("flush", -1)["code"] == 0
            stats = ledger_of(app)
            assert stats["delivered"] == 2 and stats["retries"] > 0, stats
            assert "authorization" in app.stderr_text().lower(), app.stderr_text()
        assert values_in(cluster.await_messages(2)) == [1, 2]


# ---- The program -------------------------------------------------------------------------------------------------


@case
def children_have_producers_of_their_own_and_the_parent_keeps_its_connection(folder):
    skip_fork_under_sanitizers()
    with Cluster(folder) as cluster, ScriptedApp(config_of(cluster.brokers), folder) as app:
        add_all(app, 1, name="parent")
        assert app.do("flush", -1)["code"] == 0
        for number in range(3):
            assert app.do("fork", f"child{number}")["code"] > 0
            assert app.do("reap")["code"] == 0
        add_all(app, 2, name="parent")
        assert app.do("flush", -1)["code"] == 0
        assert ledger_of(app)["delivered"] == 2
        names = [json.loads(message.value)["name"] for message in cluster.await_messages(5)]
        assert sorted(names) == ["child0", "child1", "child2", "parent", "parent"], names


def sockets_of(pid):
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            place = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        if place.startswith("socket:"):
            found.add(place)
    return found


@case
def a_child_has_none_of_the_parents_connections(folder):
    skip_fork_under_sanitizers()
    with Cluster(folder) as cluster, ScriptedApp(config_of(cluster.brokers), folder) as app:
        add_all(app, 1)
        assert app.do("flush", -1)["code"] == 0
        assert sockets_of(app.pid)
        child = app.do("fork")["code"]
        assert child > 0
        wait_for(lambda: not sockets_of(app.pid) & sockets_of(child), "the child to close them")
        add_all(app, 2)
        assert app.do("flush", -1)["code"] == 0
        assert values_in(cluster.await_messages(2)) == [1, 2]


@case
def all_signals_are_blocked_in_the_producers_threads(folder):
    with Cluster(folder) as cluster, ScriptedApp(config_of(cluster.brokers), folder) as app:
        add_all(app, 1)
        assert app.do("flush", -1)["code"] == 0
        names = {}
        for task in os.listdir(f"/proc/{app.pid}/task"):
            with open(f"/proc/{app.pid}/task/{task}/status", encoding="utf-8") as file:
                status = dict(line.split(":", 1) for line in file)
            names[task] = (status["Name"].strip(), int(status["SigBlk"], 16))
        threads = [mask for name, mask in names.values() if name.startswith("rdk:")]
        assert len(threads) >= 2, names
        assert all(mask >> signal - 1 & 1 for mask in threads for signal in (1, 2, 10, 13, 14, 15, 17)), names


@case
def statistics_become_counters_and_messages(folder):
    with Cluster(folder) as cluster:
        config = config_of(cluster.brokers, statistics="100ms")
        with ScriptedApp(config, folder, WEIR_LOG="info") as app:
            add_all(app, 1)
            assert app.do("flush", -1)["code"] == 0

            def is_reported():
                add_all(app, 1)
                return app.do("flush", -1)["code"] == 0 and "round trip: mean" in app.stderr_text()
            wait_for(is_reported, "a report")
            assert "requests without a response: " in app.stderr_text()
            ledger_of(app)


@case
def check_open_reports_the_cluster_or_why_it_is_not_reachable(folder):
    path, port = os.path.join(folder, "c.json"), free_port()
    with Cluster(folder, brokers=2) as cluster:
        for brokers, code, words in ((cluster.brokers, 0, "a cluster with 2 brokers"), ([f"127.0.0.1:{port}"], 1, "Connection refused")):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config_of(brokers), file)
            done = run(WEIR, "check", "--open", "-t", "20s" if not code else "2s", path)
            assert (done.returncode == 0) == (code == 0) and words in done.stdout + done.stderr, (done.stdout, done.stderr)


@case
def secrets_are_masked(folder):
    path = os.path.join(folder, "c.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config_of(["127.0.0.1:1"], sasl="scram-sha-256", username="u", password="s3cret-word",
                            properties={"ssl.key.password": "s3cret-key"}), file)
    done = run(WEIR, "check", path)
    assert done.returncode == 0 and "s3cret" not in done.stdout + done.stderr, (done.stdout, done.stderr)


@case
def the_example_is_valid_and_names_its_broker():
    path = os.path.join(SOURCE, "examples", "config", "kafka.json")
    done = run(WEIR, "check", path, KAFKA_BROKER="kafka.example.org:9093")
    assert done.returncode == 0 and 'brokers=["kafka.example.org:9093"]' in done.stdout, (done.stdout, done.stderr)


# ---- Configurations ----------------------------------------------------------------------------------------------

FIELDS = "allowed: {group}, {name}, {label.KEY}, and {{ and }} for braces"
WRONG = [
    ({"brokers": None}, ': the option "brokers" is missing: '),
    ({"brokers": []}, "brokers: the list is empty; allowed: at least one HOST or HOST:PORT"),
    ({"brokers": ["a:9092", "b:port"]}, 'brokers: "b:port" is not a broker; allowed: HOST or HOST:PORT, as 127.0.0.1:9092'),
    ({"brokers": ["b:1,,c:2"]}, 'brokers: "b:1,,c:2" is not a broker; allowed: HOST or HOST:PORT, as 127.0.0.1:9092'),
    ({"brokers": ["user:pass@a:1"]}, "brokers: a broker has no user and no password; they are options of their own"),
    ({"brokers": ["kafka://a:9092"]}, 'brokers: "kafka://a:9092" is not a broker; allowed: HOST or HOST:PORT, as 127.0.0.1:9092'),
    ({"topic": None}, ': the option "topic" is missing: '),
    ({"topic": ""}, 'topic: "" is not a topic; allowed: 1 to 249 bytes, not "." or ".."'),
    ({"topic": ".."}, 'topic: ".." is not a topic; allowed: 1 to 249 bytes, not "." or ".."'),
    ({"topic": "a b"}, 'topic: "a b" is not a topic; allowed: letters, digits, ".", "_", "-", and the fields {group}, {name}, {label.KEY}'),
    ({"topic": "m.{grp}"}, 'topic: "m.{grp}": {grp} is not a field; ' + FIELDS),
    ({"key": "{name"}, 'key: "{name": the brace in "{name" has no partner; ' + FIELDS),
    ({"key": ""}, "key: the value is empty; allowed: series, none, or a text with fields"),
    ({"headers": {"h": "{label}"}}, 'headers: "{label}": {label} is not a field; ' + FIELDS),
    ({"compression": "brotli"}, 'compression: "brotli" is not allowed; allowed: none, gzip, snappy, lz4, zstd'),
    ({"acks": "1"}, 'acks: "1" is not allowed; allowed: all, leader, none'),
    ({"message_bytes": "10B"}, 'message_bytes: "10B" is out of range; allowed: 1000B..100MiB'),
    ({"ca_file": "/x"}, 'ca_file: it requires "tls": true'),
    ({"tls": True, "key_file": "/x"}, 'key_file: it requires "cert_file"'),
    ({"tls": True, "cert_file": "/x"}, 'cert_file: it requires "key_file"'),
    ({"sasl": "plain", "username": "u"}, 'sasl: it requires "username" and "password"'),
    ({"username": "u"}, 'username: it requires "sasl": plain, scram-sha-256 or scram-sha-512'),
    ({"properties": {"enable.idempotence": "false"}},
     'properties: "enable.idempotence" cannot be set here: the handler sets it: no value is lost or stored twice because of it'),
    ({"properties": {"dr_cb": "x"}}, 'properties: "dr_cb" cannot be set here: the handler has no use for a callback or an object of a program'),
    ({"properties": {"bootstrap.servers": "x"}}, 'properties: "bootstrap.servers" cannot be set here: use the option "brokers"'),
    ({"properties": {"linger.mss": "5"}}, 'properties: "linger.mss" is not a setting of librdkafka '),
    ({"properties": {"linger.ms": "soon"}}, 'properties: librdkafka does not accept the value of "linger.ms": '),
    ({"format": "mlbench"}, "format: "),
]


@case
def wrong_options_are_refused_with_place_value_and_what_is_allowed(folder):
    path = os.path.join(folder, "c.json")
    for options, message in WRONG:
        handler = {"type": "kafka", "brokers": ["127.0.0.1:9092"], "topic": "t", **options}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"handlers": {"k": {name: value for name, value in handler.items() if value is not None}}, "groups": {"*": "k"}}, file)
        done = run(WEIR, "check", path)
        text = done.stdout + done.stderr
        assert done.returncode != 0 and f"handlers.k{'' if message.startswith(':') else '.'}{message}" in text, (options, text)



main()
