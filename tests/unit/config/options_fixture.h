/* filling: a struct filled from a text by a table of options, for tests of these. */
#ifndef FILLING_H
#define FILLING_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "config/document.h"
#include "text/error.h"
#include "config/options.h"

static const char *filling_entries[] = {"PORT=8080", "YES=true", "HALF=0.5", "WORD=always", "TIME=5s",
                                        "NUMBER=5",  "NAME=db",  "EMPTY=",   NULL};
static struct wr_environment filling_environment = {.entries = filling_entries, .folder = "/work"};
static struct wr_region filling_keep;
static struct wr_document *filling_document;
static struct wr_error error;
static unsigned char filling_seen[100];

static inline struct wr_options_fill fill_of(struct wr_options_table table, void *target)
{
    return (struct wr_options_fill){table, target, &filling_environment, &filling_keep, filling_seen};
}

/* Sets members from a JSON object; the document stays until forget_filling. */
static inline bool fill_members(const struct wr_options_fill *fills, size_t count, const char *const *others,
                                const char *text)
{
    wr_document_drop(filling_document);
    filling_document = wr_document_parse("weir.json", text, strlen(text), &error);
    cr_assert_not_null(filling_document, "%s: %s", text, error.text);
    error = (struct wr_error){0};
    return wr_options_set_members(fills, count, others, filling_document->root, &error);
}

static inline void forget_filling(void)
{
    wr_document_drop(filling_document);
    wr_region_fini(&filling_keep);
}

#endif
