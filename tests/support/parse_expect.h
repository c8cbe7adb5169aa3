/* parse_expect: what a text must be parsed to, whole and in pieces. Include after <criterion/criterion.h>. */
#ifndef PARSE_EXPECT_H
#define PARSE_EXPECT_H

#include <stdlib.h>
#include <string.h>

#include "parse_fixture.h"

static inline void parse_expect_by(const struct wr_parser_options *options, const char *type, const char *text,
                                   const char *expected)
{
    for (size_t piece = 1; piece < 100000; piece *= 7) {
        struct parse_fixture fixture = {.options = *options, .refused_each = piece % 3};
        char *shown = parse_fixture_run(&fixture, type, text, strlen(text), piece);
        cr_assert_str_eq(shown, expected, "%s in pieces of %zu:\n%s-- expected:\n%s", text, piece, shown,
                         expected);
        free(shown);
    }
}

static inline void parse_expect(const char *type, const char *text, const char *expected)
{
    const struct wr_parser_options options = {0};
    parse_expect_by(&options, type, text, expected);
}

#endif
