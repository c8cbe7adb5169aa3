"""The faults and bad inputs that weir survives: what each must lead to, and the tests that show it.

A test is FILE (all of it), FILE:WORD (the cases of a judge whose names contain the word) or FILE:SUITE/NAME (of a Criterion program, with
* for any). `tried` says what is tried how often. A row with `lacks` is not shown in that respect."""

FIFO, FILE, PLACE = "tests/handlers/fifo.py", "tests/handlers/file.py", "tests/handlers/fifo_place.py"
ANSWERS, HOSTILE = "tests/handlers/http_answers.py", "tests/handlers/http_hostile.py"
DEATHS, ERRORS, LIFE = "tests/faults/deaths.py", "tests/faults/errors.py", "tests/e2e/life.py"
SPOOL, RELOAD, WRONG = "tests/e2e/spool.py", "tests/e2e/reload.py", "tests/e2e/wrong_configs.py"
PLUGIN, TORTURE = "tests/unit/plugin.t", "tests/torture/torture.py"
KILLING, ROTATION = "tests/stress/killing.py", "tests/handlers/file_rotation.py"


class Row:
    def __init__(self, title, outcome, tried, tests, lacks=""):
        self.title, self.outcome, self.tried, self.tests, self.lacks = title, outcome, tried, tests, lacks


ROWS = {
    1: Row("fork in a threaded program, the child goes on", "both deliver their own, nothing twice, no hang",
           "5,000 forks of a threaded program, 1,000 by four threads at once",
           ["tests/stress/forks.py:five_thousand_children_of_a", "tests/stress/forkers.p"]),
    2: Row("fork while another thread holds our locks", "no hang; descriptors close on exec",
           "a fork inside create, and while handlers wait",
           ["tests/stress/torn.p", f"{FIFO}:a_fork_gets_through", "tests/e2e/hygiene.py:closed_on_exec"]),
    3: Row("a program closes all descriptors", "files are opened anew, strangers' descriptors left alone", "file, fifo and http",
           [f"{FILE}:somebody_else", f"{PLACE}:somebody_else", f"{ANSWERS}:closes_all_descriptors"]),
    4: Row("exit without shutdown", "everything is delivered", "150,000 values in each of three ways", [f"{LIFE}:return_exit"]),
    5: Row("_exit, abort, SIGSEGV, SIGTERM", "nothing is lost with a journal; else at most what was in rings and queues",
           "5 ways to die with a journal, 5 without", [f"{KILLING}:fault_05", f"{DEATHS}:fault_05", f"{LIFE}:_exit_loses"]),
    6: Row("kill -9 in mid-write", "an exact prefix of each thread, with a journal all of it",
           "1,000 kills with a journal, 200 without, 200 while values go to disk",
           [f"{KILLING}:fault_06", f"{DEATHS}:fault_06", f"{SPOOL}:killed_two_hundred_times"]),
    7: Row("adding in signal handlers", "added, or refused as busy and counted", "3 s of interrupts", ["tests/stress/interrupts.p"]),
    8: Row("adding too early and too late", "a counted no-op", "constructors, destructors, exit handlers, after shutdown",
           ["tests/stress/lifecycle.p"]),
    9: Row("the first use and the end by many at once", "idempotent", "100 threads race",
           ["tests/stress/crowd.p", "tests/stress/shutdown.p", "tests/e2e/control.t:control/shutdown*"]),
    10: Row("threads that do not live long", "memory is bounded, nothing is lost", "100,000 threads", ["tests/stress/crowd.p"]),
    11: Row("plugin missing, no shared object, for another machine, a symbol missing", "an error with path and reason", "7 kinds",
            [f"{PLUGIN}:plugin/{name}" for name in ("what_is_not_found*", "a_file_that_is_not_there*", "what_is_no_shared*",
                                                    "what_was_made_for*", "a_symbol_that_nobody*")]),
    12: Row("plugin of another ABI or size", "refused with both numbers; a shorter layout works", "6 kinds",
            [f"{PLUGIN}:plugin/{name}" for name in ("a_shared_object_without*", "another_abi*", "a_struct_that*", "a_shorter*",
                                                    "a_longer*", "rows_of_options*")]),
    13: Row("plugin crashes", "the process dies; what others took is there, with a journal everything",
            "three times in a row with a journal, once without", [f"{KILLING}:fault_13", f"{DEATHS}:fault_13"]),
    14: Row("plugin blocks for ever", "others go on, the end comes at its deadline", "in open, emit, flush and close",
            [f"{LIFE}:blocks", f"{LIFE}:drop_policies"]),
    15: Row("plugin answers garbage, changes mask or locale, calls weir", "put right, counted, disabled after ten in a row",
            "18 answers, in each of its calls; 7 formats under a locale with a decimal comma",
            ["tests/unit/lane_fault.t", "tests/faults/manners.t:manners/fault_15*", "tests/vet/verdicts.py:each_fault_is_found"]),
    16: Row("plugin path that others may write, or that is a path", "refused with the reason", "13 ways",
            ["tests/unit/file_perms.t", f"{PLUGIN}:plugin/names_of*", f"{PLUGIN}:plugin/a_f*others_may*", f"{PLUGIN}:plugin/what_a_link*",
             "tests/unit/config_errors.t:config_errors/a_plugin_is_an_absolute*"]),
    17: Row("open fails", "tried again after a pause, said once", "file, fifo, http",
            [f"{FILE}:appears_later", f"{PLACE}:come_late", f"{HOSTILE}:server_that_is_down"]),
    18: Row("disk full, file size limit", "no torn line; counted; goes on when there is space", "4 ways",
            [f"{FILE}:full_d", f"{FILE}:size_limit", f"{SPOOL}:full_disk"]),
    19: Row("input/output error, a failing fsync", "said; a write is tried again after a pause, an fsync is not", "3 ways",
            [f"{ERRORS}:fault_19", f"{ROTATION}:fault_19"]),
    20: Row("interrupted and short writes", "nothing lost, order kept", "every other write, at most 7 bytes a write",
            [f"{FILE}:interrupted_and_short", f"{FILE}:comes_out_short"]),
    21: Row("file deleted, rotated, folder gone", "opened anew; the old one kept if that fails", "4 ways",
            [f"{FILE}:rotated", f"{FILE}:deleted", f"{FILE}:folder_that_is_gone", f"{FILE}:reload_opens"]),
    22: Row("FIFO's reader absent, killed, back", "no SIGPIPE, no torn record", "a reader killed 10 times",
            [f"{FIFO}:killed_ten", f"{FIFO}:survives_its_reader", f"{PLACE}:come_late"]),
    23: Row("FIFO's reader slow; something in its place", "no call waits under drop policies; refused", "file, link, device",
            [f"{FIFO}:stops_nobody", f"{PLACE}:refused", f"{PLACE}:takes_the_place"]),
    24: Row("HTTP server slow or silent", "deadlines", "3 ways", [f"{HOSTILE}:fault_24"]),
    25: Row("5xx, 429, Retry-After", "clamped; other 4xx dropped and counted", "by status and header",
            [f"{ANSWERS}:fault_25", "tests/unit/backoff.t"]),
    26: Row("redirects, endless replies, bombs", "not followed; cut off", "4 ways", [f"{ANSWERS}:fault_26", f"{HOSTILE}:fault_26"]),
    27: Row("certificates that are wrong", "said with the host; never plain", "untrusted, expired, another host",
            [f"{HOSTILE}:fault_27"]),
    28: Row("DNS fails, is slow, changes", "off the caller's path; asked again", "3 ways", [f"{HOSTILE}:fault_28"]),
    29: Row("the wall clock steps, the machine sleeps", "durations are monotonic",
            "both ways; an hour's sleep, as a stopped process finds its clocks after it",
            ["tests/unit/dispatcher.t:dispatcher/*step*", "tests/unit/timeline.t:clock/*", "tests/unit/timeline.t",
             f"{ERRORS}:fault_29"]),
    30: Row("special numbers", "an exact round trip, or counted as unrepresentable", "1,000,000 doubles, all special ones",
            ["tests/stress/doubles.p", "tests/fuzz/corpora.py:numbers", "tests/unit/lane_outcome.t:lane_outcome/*left_out*",
             "tests/e2e/values.t:values/*"]),
    31: Row("names of all kinds", "refused with the rule, or escaped; what is written parses", "names, labels, 8 formats",
            ["tests/unit/name.t", "tests/e2e/refusals.t", "tests/fuzz/corpora.py:names"]),
    32: Row("too many names", "an overflow series; totals kept; said once", "10,000,000 names; to the limit and beyond by 100 threads",
            ["tests/unit/limit.t", "tests/e2e/refusals.t:refusals/beyond*", "tests/stress/names.p", "tests/stress/flood.p"]),
    33: Row("counters that go down or to the end", "values pass as they are", "both ends of int64",
            ["tests/e2e/values.t:values/integers*", "tests/unit/format_json.t:format_json/integers*"]),
    34: Row("no descriptors left", "what is open works, opening is tried again", "for five calls, and for good",
            [f"{ERRORS}:fault_34"]),
    35: Row("the Nth call fails, for every N", "an error or a counted drop, no leak, no hang", "hundreds here; ./dev torture tries all",
            [TORTURE, "tests/unit/memory.t"]),
    36: Row("configuration deep, huge, no file, torn", "an error with its place; bounded", "by kind",
            [f"{WRONG}:other_files_are_refused", "tests/unit/json.t", "tests/unit/document_file.t", "tests/fuzz/corpora.py:configurations"]),
    37: Row("configuration wrong", "an error with place and nearest match; nothing half applied", "by kind",
            [f"{WRONG}:each_is_refused", "tests/unit/config_errors.t"]),
    38: Row("setuid program; configuration others may write", "variables ignored; refused", "once; by kind",
            [f"{ERRORS}:fault_38", "tests/unit/file_perms.t", "tests/unit/document_file.t"]),
    39: Row("escape sequences, CR LF", "shown escaped; the header refused", "by kind",
            ["tests/e2e/console_line.py:fool", f"{ANSWERS}:fault_39", "tests/unit/error.t:error/*disguise*"]),
    40: Row("reloading under traffic", "each value by one configuration, nothing lost", "100 reloads a second, valid and not",
            [f"{RELOAD}:hundred", "tests/e2e/delivery.py:hundred"]),
}
