/* options: option tables: they validate the members of an object in a configuration, fill a struct from them,
 * and are what users are shown. */
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
struct wr_problems;
struct wr_unknown_keys;

/* A table. A plugin's rows may be longer than weir_option here. */
struct wr_options_table {
    const weir_option *rows; /* NULL: none */
    size_t row_bytes;
    size_t struct_bytes;
};

/* A table of the core, which ends with a row without a name. */
#define WR_OPTIONS_TABLE(rows, type) ((struct wr_options_table){(rows), sizeof(weir_option), sizeof(type)})

/* A struct to fill, with its table. */
struct wr_options_fill {
    struct wr_options_table table;
    void *target; /* struct_bytes */
    const struct wr_environment *environment;
    struct wr_region *keep;       /* memory for strings, lists and maps */
    unsigned char *seen;          /* one byte per row: 1 if it was given; NULL: not needed */
    struct wr_expanded *expanded; /* of the configuration; NULL: only single strings are bounded */
    bool ignores_unknown; /* unknown keys are no errors: they are added to `unknown`, unless that is NULL */
    struct wr_unknown_keys *unknown;
    struct wr_problems *problems; /* gets the error of each option; NULL: the first one ends the filling */
};

/* The row of an option, or NULL. */
const weir_option *wr_options_find(const struct wr_options_table *table, const char *name);

/* The first row with a key in a configuration, which is its name up to a dot: "tls.verify" is in the object
 * "tls". NULL: there is none. */
const weir_option *wr_options_find_key(const struct wr_options_table *table, const char *key);

/* Row number i, or NULL after the last one. */
const weir_option *wr_options_row(const struct wr_options_table *table, size_t i);

/* Sets every option to its default. Returns false if a default is invalid. */
bool wr_options_set_defaults(const struct wr_options_fill *fill, struct wr_error *error);

/* Sets one option from a text, as in a default. On failure the error's message goes after the value: "is not a
 * duration (like 5s ...". */
bool wr_options_set_text(const struct wr_options_fill *fill, const weir_option *row, const char *text,
                         struct wr_error *error);

/* Sets one option from a configuration's value. */
bool wr_options_set_node(const struct wr_options_fill *fill, const weir_option *row, const struct wr_node *node,
                         struct wr_error *error);

/* Sets options from the members of an object, each in the first of `fills` whose table has it. Names in
 * `others` (ends with NULL) are skipped; any other name is an error, unless the first fill ignores these.
 * false: error is set, or all errors were added to the problems of the first fill. */
bool wr_options_set_members(const struct wr_options_fill *fills, size_t count, const char *const *others,
                            const struct wr_node *object, struct wr_error *error);

/* Checks that all required options were given. `object`: for the place in the message; NULL: none. */
bool wr_options_check_required(const struct wr_options_fill *fill, const struct wr_node *object,
                               struct wr_error *error);

/* Appends all options with their values, one a line, secrets included: equal texts are equal options. */
void wr_options_put_all(struct wr_buffer *out, const struct wr_options_table *table, const void *target);

/* Checks the table of a plugin: names, types, fields inside the struct and not overlapping, allowed values well
 * formed, defaults valid. */
bool wr_options_check_table(const struct wr_options_table *table, struct wr_error *error);

#endif
