"""Replays the corpus of each fuzzer: seeds and past findings."""

import os

from harness import BUILD, SOURCE, Skip, case, main, run


def replay(name):
    corpus = os.path.join(SOURCE, "tests", "fuzz", "corpus", name)
    done = run(os.path.join(BUILD, "tests", "fuzz", name), corpus)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == len(os.listdir(corpus)) > 0, done.stdout


@case
def configurations_are_accepted_or_refused():
    replay("config")


@case
def configuration_texts_parse_as_with_another_parser():
    replay("document")


@case
def references_in_configurations_are_expanded_or_refused():
    replay("expand")


@case
def option_values_are_accepted_and_shown_alike_or_refused():
    replay("option")


@case
def parameters_of_queries_are_within_their_limits():
    replay("query")


@case
def numbers_survive_a_round_trip():
    replay("number")


@case
def names_and_labels_survive_a_round_trip_in_every_format():
    replay("formats")


@case
def input_of_weir_emit_becomes_events_or_is_refused():
    replay("input")


@case
def lines_of_text_and_json_are_read_as_by_other_parsers_or_refused():
    replay("parser_lines")


@case
def responses_give_the_verdicts_that_were_received():
    if not os.path.exists(os.path.join(BUILD, "tests", "fuzz", "responses")):
        raise Skip("weir was built without the handler http")
    replay("responses")


@case
def reports_are_merged_to_the_same_nodes_or_refused():
    replay("report")


@case
def parsers_read_inputs_alike_whole_and_in_pieces():
    replay("parsers")


@case
def matches_of_patterns_are_the_same_whole_in_pieces_and_interpreted():
    if not os.path.exists(os.path.join(BUILD, "tests", "fuzz", "patterns")):
        raise Skip("PCRE2 is missing")
    replay("patterns")


@case
def frames_of_the_link_are_decoded_or_refused():
    replay("forward")


@case
def what_formats_write_is_read_back():
    replay("read_back")


@case
def journals_yield_whole_events_of_existing_series_once():
    replay("journal")


@case
def sketches_are_refused_or_survive_a_round_trip():
    replay("sketch")


@case
def spool_files_yield_the_written_samples_or_none():
    replay("spool")


if __name__ == "__main__":
    main()
