/* option: one option of a table: its type, its value as text, its field in the struct that it fills. */
#ifndef WR_OPTION_H
#define WR_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "config/expand.h"
#include "text/region.h"

struct wr_buffer;
struct wr_error;

/* What some values need besides their text. */
struct wr_option_site {
    const struct wr_environment *environment; /* the folder that relative paths are meant from */
    struct wr_region *keep;                   /* for strings and lists */
};

/* What a type is called where options are described: "duration". */
const char *wr_option_type_name(uint32_t type);

/* The lower or upper end of what is allowed of a number, as it is written; false: there is none. */
bool wr_option_get_bound(const weir_option *row, bool upper, char *bound, size_t room);

/* The word number i of those allowed of an enum, which is `length` bytes long; NULL behind the last. */
const char *wr_option_word(const weir_option *row, int64_t index, size_t *length);

/* What is wrong with a row as a plugin brought it, its default aside; NULL: nothing. */
const char *wr_option_find_fault(const weir_option *row, size_t struct_bytes);

/* How long the field is of a row without a fault. */
size_t wr_option_bytes(const weir_option *row);

/* Sets the option's field in `target` from a text, as in a default. On failure the error's message goes
 * behind the value: "is not a duration (like 5s ...". */
bool wr_option_set(const weir_option *row, void *target, const char *text, const struct wr_option_site *site,
                   struct wr_error *error);

/* Writes the message for a value of another type than the option's, without the value. */
void wr_option_describe_mismatch(const weir_option *row, bool is_number, char *out, size_t room);

/* Appends the present value, as one would write it; "***" for a secret one, or for what is secret in a URL,
 * unless `unmasked`. */
void wr_option_show(const weir_option *row, const void *target, bool unmasked, struct wr_buffer *out);

#endif
