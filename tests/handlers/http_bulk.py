"""The http handler with the format elastic: each document of a request has a result of its own, and is stored exactly once."""

import json
import os
import re

from elastic import Elastic
from harness import ADDER, SOURCE, WEIR, assert_ledgers, case, main, run, start, start_in_steps, without_waits
from killable import Killable
from scripted import Scripted, reply

FACTOR = float(os.environ.get("WEIR_TEST_FACTOR", "1"))
REJECTED = 1


def config_of(url, options=None, **handler):
    handler = {"type": "http", "url": url, "format": {"type": "elastic", **(options or {})}, "linger": "100ms", "overflow": "block",
               "queue": "64MiB", "retry_min": "1ms", "retry_max": "20ms", **handler}
    return {"settings": {"shutdown_timeout": "240s"}, "handlers": {"push": handler}, "groups": {"*": "push"}}


def add(config, count, *arguments, **env):
    """Adds values, flushes, checks that the ledgers balance. Returns (the handler's ledger, messages)."""
    done = run(ADDER, "-n", count, "-f", -1, "-H", "push", *arguments, WEIR_CONFIG=config, **env)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert_ledgers(report)
    return report["handlers"]["push"], done.stderr


def number(document):
    return document["metrics"]["t0"]


def arrived_numbers(server):
    return [number(document) for _, _, _, document in server.arrived]


# ---- Documents ------------------------------------------------------------------------------------

@case
def an_event_is_a_document_with_the_id_of_its_origin_and_sequence():
    with Elastic() as server:
        config = config_of(server.url, {"index": "metrics-{group}"})
        config["settings"]["labels"] = {"host": "A b"}
        done = run(WEIR, "emit", "-g", "My.App", "-v", "loss=0.5", "epoch=3", "hits=100", WEIR_CONFIG=config)
        assert done.returncode == 0 and without_waits(done.stderr) == "", done
        ((index, identity), document), = server.documents.items()
        assert index == "metrics-my.app" and re.fullmatch(r"[0-9a-f]{32}-0", identity), (index, identity)
        assert document.pop("@timestamp")
        assert document == {"group": "My.App", "labels": {"host": "A b"}, "metrics": {"loss": 0.5, "epoch": 3.0, "hits": 100.0}}
        assert server.arrived[0][0] == "create"


@case
def all_values_are_stored_once_and_delivered():
    with Elastic() as server:
        for options, events in (({}, 1), ({"op_type": "index"}, 1), ({}, 7)):
            server.documents.clear()
            ledger, log = add(config_of(server.url, options, batch=300), 2000, "-e", events)
            assert ledger["delivered"] == ledger["offered"] == 2000 and without_waits(log) == "", (ledger, log)
            assert sorted(server.values("t0")) == list(range(2000))
    assert {operation for operation, *_ in server.arrived} == {"create", "index"}


@case
def bodies_are_compressed_if_configured():
    with Elastic() as server:
        ledger, _ = add(config_of(server.url, compress="gzip"), 1000)
        assert ledger["delivered"] == 1000 and server.server.requests[0].headers["content-encoding"] == "gzip"
        assert sorted(server.values("t0")) == list(range(1000))


# ---- Results --------------------------------------------------------------------------------------

@case
def only_documents_that_the_server_postpones_are_sent_again():
    for status in (429, 503):
        postponed = {}

        def answer(_, index, identity, document):
            if number(document) % 10 in (0, 4, 9) and postponed.setdefault(identity, 0) < 2:
                postponed[identity] += 1
                return status
            return None

        with Elastic(answer) as server:
            ledger, log = add(config_of(server.url, linger="1s"), 1000)
            assert ledger["delivered"] == 1000 and sum(ledger["dropped"]) == 0, ledger
            assert sorted(server.values("t0")) == list(range(1000))
            times = [arrived_numbers(server).count(value) for value in range(1000)]
            assert times == [3 if value % 10 in (0, 4, 9) else 1 for value in range(1000)], "the others were sent once"
            assert re.search(rf"push: POST {server.url}: \d+ of \d+ documents: status {status}: .*as told; retrying, ", log), log


@case
def documents_that_the_server_refuses_are_counted_with_the_first_reason_and_take_no_others_with_them():
    with Elastic(lambda _, index, identity, document: 400 if number(document) % 100 == 7 else None) as server:
        ledger, log = add(config_of(server.url, linger="1s"), 1000)
        assert ledger["delivered"] == 990 and ledger["dropped"][REJECTED] == 10 and ledger["retries"] == 0, ledger
        assert len(server.arrived) == 1000 and len(server.documents) == 990
        assert f"POST {server.url}: 10 of 1000 documents: status 400: document_parsing_exception: failed to parse field [metrics.x]" in log, log
    with Elastic(lambda *_: 404) as server:
        done = run(WEIR, "emit", "-g", "g", "-v", "a=1", "b=2", WEIR_CONFIG=config_of(server.url))
        assert done.returncode == 1 and done.stdout == "push: 0 delivered, 2 dropped (rejected), status.404 2\n", done


@case
def a_document_that_is_there_already_is_delivered():
    """All responses to the first requests are lost behind their documents."""
    spoiled = []

    def close_first(request, body):
        spoiled.append(body)
        return iter(()) if len(spoiled) <= 2 else None

    with Elastic(spoil=close_first) as server:
        ledger, log = add(config_of(server.url), 500)
        assert ledger["delivered"] == 500 and sum(ledger["dropped"]) == 0 and ledger["retries"] >= 2, ledger
        assert sorted(server.values("t0")) == list(range(500)) and len(server.arrived) > 500
        assert b'"status": 409' in b"".join(spoiled) and "back after" in log, log


@case
def refused_and_postponed_documents_beside_each_other_are_counted_exactly():
    """Many mixtures: what is postponed first is refused or stored later, in any order within a batch."""
    tries = {}

    def answer(_, index, identity, document):
        value = int(number(document))
        tries[value] = tries.get(value, 0) + 1
        digit = value * 2654435761 % 2 ** 32 >> 24
        if tries[value] <= digit % 4:
            return (429, 503, 502)[digit % 3]
        return 400 if digit % 5 == 0 else None

    with Elastic(answer) as server:
        ledger, _ = add(config_of(server.url, batch=64), 3000)
        refused = {value for value in range(3000) if (value * 2654435761 % 2 ** 32 >> 24) % 5 == 0}
        assert ledger["dropped"][REJECTED] == len(refused) and ledger["delivered"] == 3000 - len(refused), ledger
        assert set(server.values("t0")) == set(range(3000)) - refused
        assert all(tries[value] == (value * 2654435761 % 2 ** 32 >> 24) % 4 + 1 for value in range(3000)), "none was sent more often"


@case
def events_with_several_documents_are_settled_as_a_whole():
    def answer(count, index, identity, document):
        return 429 if count % 3 == 0 and count < 600 else 400 if number(document) % 50 == 0 else None

    with Elastic(answer) as server:
        ledger, _ = add(config_of(server.url, batch=100), 1000, "-e", 5)
        assert ledger["dropped"][REJECTED] == 20 * 5 and ledger["delivered"] == 900, ledger
        assert set(server.values("t0")) == {value for value in range(1000) if value % 50}


@case
def a_document_that_makes_the_server_fail_is_refused_after_five_tries():
    with Elastic(lambda _, index, identity, document: 500 if number(document) == 3 else None) as server:
        ledger, log = add(config_of(server.url, linger="1s"), 10)
        assert ledger["delivered"] == 9 and ledger["dropped"][REJECTED] == 1, ledger
        assert arrived_numbers(server).count(3) == 5 and len(server.arrived) == 14
        assert "status 500" in log and " rejected: " in log, log


@case
def documents_without_permission_are_kept_and_sent_again():
    denied = [True]

    def answer(*_):
        return 403 if denied[0] else None

    with Elastic(answer) as server:
        config = config_of(server.url, retry_min="1ms", retry_max="100ms")
        program = start_in_steps("-n", 20, "-i", 10, "-H", "push", "-f", -1, WEIR_CONFIG=config)
        server.server.wait(lambda s: len(s.requests) >= 2, "a second try")
        denied[0] = False
        report, log = program.communicate(timeout=240)
        assert json.loads(report)["handlers"]["push"]["delivered"] == 20 and "status 403" in log, log
        assert sorted(server.values("t0")) == list(range(20))


# ---- Responses that are none ----------------------------------------------------------------------

def spoil_first(times, spoiled):
    """Returns a `spoil` that lets `spoiled` answer to the first requests of more than one document."""
    left = [times]

    def spoil(request, body):
        if not left[0] or request.body.count(b"\n") < 4:
            return None
        left[0] -= 1
        return spoiled(request, body)
    return spoil


@case
def of_a_response_that_breaks_off_the_complete_items_count():
    def cut(request, body):
        whole = reply(200, body)
        return iter([whole[:len(whole) // 2]])

    with Elastic(spoil=spoil_first(1, cut)) as server:
        ledger, log = add(config_of(server.url, linger="1s"), 1000)
        assert ledger["delivered"] == 1000 and sorted(server.values("t0")) == list(range(1000)), ledger
        assert 1300 < len(server.arrived) < 1700, "about half was sent again"
        assert re.search(r"the response breaks off behind \d+ of 1000 documents; retrying", log), log


@case
def fault_responses_that_do_not_fit_the_request_settle_nothing_and_everything_is_sent_again():
    def with_items(change):
        def spoiled(_, body):
            answer = json.loads(body)
            answer["items"] = change(answer["items"])
            return reply(200, json.dumps({**answer, "errors": True}))
        return spoiled

    for spoiled, expected in (
            (with_items(lambda items: items[:-1]), "the response has fewer items than the 100 documents"),
            (with_items(lambda items: items + items[:1]), "the response has more items than the 100 documents"),
            (with_items(lambda items: []), "fewer items"),
            (with_items(lambda items: [{"create": {"_id": "x"}} for _ in items]), "status 0"),
            (lambda *_: reply(200, "<html>fine</html>"), "returned 200, but no response of _bulk"),
            (lambda *_: reply(200, ""), "no response of _bulk"),
            (lambda *_: reply(200, "null"), "no response of _bulk"),
            (lambda *_: reply(200, '{"errors":true}'), "no response of _bulk"),
            (lambda *_: reply(200, '{"errors":false,"items":[' + "[" * 100), "no response of _bulk"),
            (lambda *_: reply(200, "{" * 1000), "no response of _bulk"),
            (lambda *_: reply(500, "oops"), "returned 500: oops"),
            (lambda *_: reply(429, "slow down"), "returned 429: slow down")):
        with Elastic(spoil=spoil_first(2, spoiled)) as server:
            ledger, log = add(config_of(server.url, linger="1s"), 100)
            assert ledger["delivered"] == 100 and sum(ledger["dropped"]) == 0, (expected, ledger)
            assert sorted(server.values("t0")) == list(range(100)) and len(server.arrived) == 300, (expected, len(server.arrived))
            assert expected in log, (expected, log)


@case
def a_response_reduced_by_filter_path_is_enough():
    def reduce(_, body):
        answer = json.loads(body)
        if "errors" in answer and not answer["errors"]:
            return reply(200, '{"errors":false}')
        return reply(200, json.dumps({"errors": True, "items": [
            {operation: {key: item[key] for key in ("status", "error") if key in item} for operation, item in each.items()}
            for each in answer["items"]]}))

    with Elastic(lambda count, *_: 400 if count == 50 else None, reduce) as server:
        ledger, _ = add(config_of(server.url + "?filter_path=errors,items.*.status,items.*.error"), 1000)
        assert ledger["delivered"] == 999 and ledger["dropped"][REJECTED] == 1, ledger
        assert server.server.requests[0].path == "/_bulk?filter_path=errors,items.*.status,items.*.error"


@case
def a_request_too_large_is_halved_and_one_that_is_refused_as_a_whole_is_searched():
    def limit(request, body):
        return reply(413) if len(request.body) > 4000 else None

    with Elastic(spoil=limit) as server:
        ledger, log = add(config_of(server.url, linger="1s"), 500)
        assert ledger["delivered"] == 500 and ledger["retries"] == 0 and without_waits(log) == "", (ledger, log)
        assert sorted(server.values("t0")) == list(range(500))
    stored = []

    def respond(request):
        documents = [json.loads(line) for line in request.lines()[1::2]]
        if any(number(document) == 77 for document in documents):
            return reply(400, "malformed")
        stored.extend(number(document) for document in documents)
        return reply(200, json.dumps({"errors": False, "items": [{"create": {"status": 201}} for _ in documents]}))

    with Scripted(respond) as server:
        ledger, log = add(config_of(server.url + "/_bulk", linger="1s"), 200)
        assert ledger["delivered"] == 199 and ledger["dropped"][REJECTED] == 1 and "malformed" in log, (ledger, log)
        assert stored == [value for value in range(200) if value != 77]


@case
def values_that_json_has_no_number_for_are_dropped_as_unrepresentable():
    with Elastic() as server:
        done = run(WEIR, "emit", "-g", "g", "-v", "a=nan", "b=1", "c=inf", WEIR_CONFIG=config_of(server.url))
        assert server.values("b") == [1.0] and "unrepresentable" in done.stdout, done


@case
def the_example_configuration_sends_to_an_index_of_the_group():
    with Elastic() as server:
        done = run(WEIR, "emit", "-g", "my_app", "-v", "a=1", WEIR_CONFIG=os.path.join(SOURCE, "examples", "config", "elasticsearch.json"),
                   ELASTIC_URL=server.server.url, ELASTIC_PASSWORD="geheim")
        assert done.returncode == 0 and {index for index, _ in server.documents} == {"metrics-my_app"}, done
        assert server.server.requests[0].headers["authorization"].startswith("Basic ")


# ---- A server that dies ---------------------------------------------------------------------------

@case
def fault_a_server_that_is_killed_three_times_under_load_has_every_value_exactly_once(folder):
    count = int(20_000 * FACTOR)
    server = Killable(folder, "elastic.py", requests=3)
    config = config_of(f"http://127.0.0.1:{server.port}/_bulk", batch=1000, linger="10ms", spool=os.path.join(folder, "spool"))
    program = start(ADDER, "-n", count // 4, "-t", 4, "-f", -3, "-H", "push", WEIR_CONFIG=config)
    try:
        for requests in (3, 3, 0):
            server.await_end()
            server.start(requests)
        output, log = program.communicate(timeout=2400)
    finally:
        program.kill()
        server.kill()
    report = json.loads(output)
    assert_ledgers(report)
    ledger = report["handlers"]["push"]
    assert program.returncode == 0 and ledger["delivered"] == count and sum(ledger["dropped"]) == 0, (ledger, log)
    assert ledger["retries"] >= 3, ledger
    names, documents = {}, [json.loads(line) for line in server.lines()]
    for _, _, document in documents:
        (name, value), = document["metrics"].items()
        names.setdefault(name, []).append(value)
    assert len({identity for _, identity, _ in documents}) == len(documents) == count
    assert sorted(names) == ["t0", "t1", "t2", "t3"]
    assert all(sorted(values) == list(range(count // 4)) for values in names.values()), "each exactly once"


# ---- Configurations -------------------------------------------------------------------------------

@case
def wrong_configurations_are_refused_with_the_place_and_what_is_allowed():
    for options, url, expected in (
            ({"index": ""}, "http://h/_bulk", '"index" must have 1 to 255 characters'),
            ({"index": "x" * 256}, "http://h/_bulk", '"index" must have 1 to 255 characters'),
            ({"index": "Metrics"}, "http://h/_bulk", '"index" has a character that index names do not have; allowed: lowercase letters'),
            ({"index": "a b"}, "http://h/_bulk", '"index" has a character'),
            ({"index": "a{"}, "http://h/_bulk", '"index" has a character'),
            ({"index": "a}"}, "http://h/_bulk", '"index" has a character'),
            ({"index": "_x"}, "http://h/_bulk", '"index" must not begin with "-" or "_"'),
            ({"index": ".."}, "http://h/_bulk", 'nor be "." or ".."'),
            ({"index": "{host}"}, "http://h/_bulk", '"index" has an unknown field; allowed: {group}, {name}, {label.KEY}'),
            ({"index": "{label.}"}, "http://h/_bulk", '"index" has an unknown field'),
            ({"op_type": "update"}, "http://h/_bulk", '"update" is not allowed; did you mean "create"? allowed: create, index'),
            ({"indx": "x"}, "http://h/_bulk", 'did you mean "index"'),
            ({}, "http://h:9200", "handlers.push.url: the path must end in /_bulk for the format elastic, got http://h:9200/"),
            ({}, "http://h:9200/_bulk/", "the path must end in /_bulk")):
        done = run(WEIR, "check", WEIR_CONFIG=config_of(url, options))
        assert done.returncode == 1 and expected in done.stderr, (options, url, done)


main()
