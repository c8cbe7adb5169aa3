/* parse_fixture: parses texts and shows what came out as lines of text:
 *
 *     1 group{key=value} name=5 other=5.5 @1795219607000000000 total change counter rate=0.1 unit=ms help=h
 *       metadata=m member=x
 *     2:7 value: the text of a fault of one value; without "value" of a line
 *
 * A number without a point is an integer; missing parts are not shown. */
#ifndef PARSE_FIXTURE_H
#define PARSE_FIXTURE_H

#include "parse/parser.h"
#include "text/buffer.h"

struct parse_fixture {
    const struct wr_parser_type *type; /* NULL: found by its name */
    struct wr_parser_options options;
    struct wr_buffer shown;
    unsigned refused_each; /* the sink has no room for a record this often before it takes it */
    unsigned refused;
};

/* Appends a record as above. */
void parse_fixture_show(struct wr_buffer *out, const struct wr_parse_record *record);

/* Parses in pieces of so many bytes. Returns the lines, which the caller frees. */
char *parse_fixture_run(struct parse_fixture *fixture, const char *type, const char *text, size_t length,
                        size_t piece);

#endif
