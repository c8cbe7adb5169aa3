/* options: tables of options: what a configuration may say, and the struct that it fills. One table validates,
 * fills, and is what users are shown. */
#ifndef WR_OPTIONS_H
#define WR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/handler.h>

#include "config/document.h"
#include "config/expand.h"
#include "text/region.h"

struct wr_buffer;
struct wr_error;

/* A table, whose rows may be of another size than ours. */
struct wr_options_table {
    const weir_option *rows; /* NULL: none */
    size_t row_bytes;
    size_t struct_bytes;
};

/* A table of our own, that ends with a row without a name. */
#define WR_OPTIONS_TABLE(rows, type) ((struct wr_options_table){(rows), sizeof(weir_option), sizeof(type)})

/* What is needed to fill a struct. */
struct wr_options_fill {
    struct wr_options_table table;
    void *target; /* struct_bytes */
    const struct wr_environment *environment;
    struct wr_region *keep; /* for strings, lists and maps */
    unsigned char *seen;    /* a byte for each row: 1 for what was given; NULL: not wanted */
};

/* The row of an option, or NULL. */
const weir_option *wr_options_find(const struct wr_options_table *table, const char *name);

/* The row number i, or NULL behind the last one. */
const weir_option *wr_options_row(const struct wr_options_table *table, size_t i);

/* Sets every option to its default. false: a default breaks the table's own rules. */
bool wr_options_set_defaults(const struct wr_options_fill *fill, struct wr_error *error);

/* Sets one option from a text, as a default is written. When it fails, the error's words go behind the value:
 * "is not a duration (like 5s ...". */
bool wr_options_set_text(const struct wr_options_fill *fill, const weir_option *row, const char *text,
                         struct wr_error *error);

/* Sets one option from a configuration's value. */
bool wr_options_set_node(const struct wr_options_fill *fill, const weir_option *row, const struct wr_node *node,
                         struct wr_error *error);

/* Sets options from the members of an object, each in the first of `fills` whose table has it; the names in
 * `others` (ending with NULL) are left alone. What is in none of them is an error. */
bool wr_options_set_members(const struct wr_options_fill *fills, size_t count, const char *const *others,
                            const struct wr_node *object, struct wr_error *error);

/* Checks that all required options were seen; `object`: where they should have been. */
bool wr_options_check_required(const struct wr_options_fill *fill, const struct wr_node *object,
                               struct wr_error *error);

/* Checks a table as a plugin brought it: names, types, fields within the struct and not across each other, what
 * is allowed well-formed, defaults lawful. */
bool wr_options_check_table(const struct wr_options_table *table, struct wr_error *error);

#endif
