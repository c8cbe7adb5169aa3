/* series_template: a text with fields that a series replaces: {group}, {name}, {label.KEY}; {{ and }} are the
 * braces themselves. For options that name where a series' values go, such as a topic or an index. Also part of
 * plugins. */
#ifndef WR_SERIES_TEMPLATE_H
#define WR_SERIES_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/handler.h>

enum { SERIES_TEMPLATE_KEY = 256 }; /* bytes of a label's key, NUL included */

enum series_template_kind {
    SERIES_TEMPLATE_END = 0,
    SERIES_TEMPLATE_TEXT, /* constant */
    SERIES_TEMPLATE_GROUP,
    SERIES_TEMPLATE_NAME,
    SERIES_TEMPLATE_LABEL,
    SERIES_TEMPLATE_INVALID, /* a brace that has no meaning, with what follows it */
};

/* A part of a template. */
struct series_template_part {
    enum series_template_kind kind;
    const char *text; /* TEXT: its bytes; LABEL: the key; INVALID: the field. Within the template */
    size_t length;
};

/* How the value of a field is written. */
struct series_template_rules {
    /* Returns the byte that is written in place of a byte of the value; '\0': none. NULL: the byte itself. */
    char (*map)(enum series_template_kind field, char byte);

    /* Written for a label that the series does not have, or that is empty. Not mapped. NULL: nothing */
    const char *absent;
};

/* Returns the part at *pos and advances *pos behind it. */
struct series_template_part wr_series_template_next(const char **pos);

/* [create] Returns whether a template is valid. If not, refuses the option. */
bool wr_series_template_check(const weir_host *host, const char *option, const char *text);

/* Whether a template has no fields. */
bool wr_series_template_is_constant(const char *text);

/* Expands a valid template for a series of the batch into `room` bytes, which end in NUL. Returns the length
 * that the whole expansion has, as snprintf does. */
size_t wr_series_template_expand(const char *text, const struct series_template_rules *rules,
                                 const weir_batch *batch, const weir_series *series, char *out, size_t room);

#endif
