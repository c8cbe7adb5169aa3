/* feed: parses what was read, and holds back all reading while a text finds no room. */
#ifndef STATSD_FEED_H
#define STATSD_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/source.h>

struct feed {
    const weir_host *host;
    const weir_intake *intake;
    const weir_parser *parser;
    weir_text *held;    /* it found no room: nothing more is read until it does. NULL: none */
    bool is_ending;     /* `held` has to be finished */
    bool is_whole;      /* for that */
    uint64_t parts;     /* that were parsed */
    uint64_t bad_lines; /* of texts that have ended */
};

void feed_init(struct feed *feed, const weir_host *host);

/* Parses what was written to the text's room. Returns false if the text is held now. */
bool feed_parse(struct feed *feed, weir_text *text, size_t length);

/* The text ends: see weir_parser.finish. Returns false if the text is held now. */
bool feed_finish(struct feed *feed, weir_text *text, bool is_whole);

/* Of a text that has not ended. */
uint64_t feed_bad_lines(const struct feed *feed, const weir_text *text);

/* Frees a text; NULL allowed. */
void feed_end(struct feed *feed, weir_text *text);

/* Tries again to add what found no room. Returns whether no text is held any more. */
bool feed_resume(struct feed *feed);

#endif
