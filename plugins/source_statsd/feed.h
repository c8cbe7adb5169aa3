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
    weir_text *held; /* it found no room: nothing more is read until it does. NULL: none */
    bool is_ending;  /* `held` has to be finished */
    bool is_whole;   /* for that */
};

static inline void feed_init(struct feed *feed, const weir_host *host)
{
    *feed = (struct feed){
        .host = host,
        .intake = host->service(host, WEIR_SERVICE_INTAKE),
        .parser = host->service(host, WEIR_SERVICE_PARSER),
    };
}

/* Parses what was written to the text's room. Returns false if the text is held now. */
static inline bool feed_parse(struct feed *feed, weir_text *text, size_t length)
{
    if (!feed->parser->parse(text, length))
        feed->held = text;
    return !feed->held;
}

/* The text ends: see weir_parser.finish. Returns false if the text is held now. */
static inline bool feed_finish(struct feed *feed, weir_text *text, bool is_whole)
{
    feed->is_ending = !feed->parser->finish(text, is_whole);
    feed->is_whole = is_whole;
    if (feed->is_ending)
        feed->held = text;
    return !feed->held;
}

/* Tries again to add what found no room. Returns whether no text is held any more. */
static inline bool feed_resume(struct feed *feed)
{
    weir_text *text = feed->held;
    if (!text)
        return true;
    feed->held = NULL;
    if (feed->is_ending)
        return feed_finish(feed, text, feed->is_whole);
    if (!feed->parser->resume(text))
        feed->held = text;
    return !feed->held;
}

#endif
