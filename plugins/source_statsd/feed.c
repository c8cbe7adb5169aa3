#include "feed.h"

void feed_init(struct feed *feed, const weir_host *host)
{
    *feed = (struct feed){
        .host = host,
        .intake = host->service(host, WEIR_SERVICE_INTAKE),
        .parser = host->service(host, WEIR_SERVICE_PARSER),
        .bad_lines = feed->bad_lines,
    };
}

bool feed_parse(struct feed *feed, weir_text *text, size_t length)
{
    feed->parts++;
    if (!feed->parser->parse(text, length))
        feed->held = text;
    return !feed->held;
}

bool feed_finish(struct feed *feed, weir_text *text, bool is_whole)
{
    feed->is_ending = !feed->parser->finish(text, is_whole);
    feed->is_whole = is_whole;
    if (feed->is_ending)
        feed->held = text;
    return !feed->held;
}

uint64_t feed_bad_lines(const struct feed *feed, const weir_text *text)
{
    weir_text_totals totals = {.size = sizeof totals};
    feed->parser->read_totals(text, &totals);
    return totals.bad_lines;
}

void feed_end(struct feed *feed, weir_text *text)
{
    if (!text)
        return;
    feed->bad_lines += feed_bad_lines(feed, text);
    feed->parser->end(text);
}

bool feed_resume(struct feed *feed)
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
