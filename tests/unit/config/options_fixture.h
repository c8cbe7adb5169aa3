/* options_fixture: fills a struct from JSON by a table of options. */
#ifndef OPTIONS_FIXTURE_H
#define OPTIONS_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "config/document.h"
#include "text/error.h"
#include "config/options.h"

static const char *fixture_entries[] = {"PORT=8080", "YES=true", "HALF=0.5", "WORD=always", "TIME=5s",
                                        "NUMBER=5",  "NAME=db",  "EMPTY=",   NULL};
static struct wr_environment fixture_environment = {.entries = fixture_entries, .folder = "/work"};
static struct wr_region fixture_region;
static struct wr_document *fixture_document;
static struct wr_error error;
static unsigned char fixture_seen[100];

static inline struct wr_options_fill make_fill(struct wr_options_table table, void *target)
{
    return (struct wr_options_fill){.table = table,
                                    .target = target,
                                    .environment = &fixture_environment,
                                    .keep = &fixture_region,
                                    .seen = fixture_seen};
}

/* Sets members from a JSON object. The document lives until free_options_fixture. */
static inline bool fill_members(const struct wr_options_fill *fills, size_t count, const char *const *others,
                                const char *text)
{
    wr_document_drop(fixture_document);
    fixture_document = wr_document_read_text("weir.json", text, strlen(text), &error);
    cr_assert_not_null(fixture_document, "%s: %s", text, error.text);
    error = (struct wr_error){0};
    return wr_options_set_members(fills, count, others, fixture_document->root, &error);
}

static inline void free_options_fixture(void)
{
    wr_document_drop(fixture_document);
    wr_region_fini(&fixture_region);
}

#endif
