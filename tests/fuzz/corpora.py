"""Each fuzzer is given its corpus: seeds, and whatever it once found."""

import os

from harness import BUILD, SOURCE, case, main, run


def replay(name):
    corpus = os.path.join(SOURCE, "tests", "fuzz", "corpus", name)
    done = run(os.path.join(BUILD, "tests", "fuzz", name), corpus)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == len(os.listdir(corpus)) > 0, done.stdout


@case
def configurations_are_taken_or_refused():
    replay("config")


@case
def texts_of_configurations_are_what_another_reader_finds_in_them():
    replay("document")


@case
def what_stands_for_something_else_is_expanded_or_refused():
    replay("expand")


@case
def values_of_options_are_taken_and_shown_alike_or_refused():
    replay("option")


@case
def numbers_come_back_as_they_were():
    replay("number")


@case
def names_and_labels_come_back_from_every_format_that_can_be_read():
    replay("formats")


@case
def input_of_the_command_is_taken_as_others_read_it_or_refused():
    replay("input")


@case
def journals_give_whole_events_of_series_that_there_are_and_only_once():
    replay("journal")


@case
def files_of_a_spool_hold_what_was_written_or_nothing():
    replay("spool")


if __name__ == "__main__":
    main()
