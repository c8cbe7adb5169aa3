/* name: the rules for the names that programs give: groups, values, label keys, and for the texts beside them.
 */
#ifndef WR_NAME_H
#define WR_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct wr_error;

enum {
    WR_NAME_LONGEST = 255,
    WR_NAME_VALUE_LONGEST = 1023,
    WR_NAME_UNIT_LONGEST = 63,
    WR_NAME_HELP_LONGEST = 1023
};

/* Answers a name's length, or 0 with the reason in error: valid UTF-8, 1 to 255 bytes, no control characters.
 * `what` says whose name it is, for the error. Reads at most 256 bytes. */
size_t wr_name_check(const char *name, const char *what, struct wr_error *error);

/* The same for a group: besides, no empty part between dots, and no '*'. */
size_t wr_name_check_group(const char *group, struct wr_error *error);

/* Whether a text is valid UTF-8 of at most `longest` bytes; control characters are allowed, since formats
 * escape them. */
bool wr_name_check_text(const char *text, size_t longest, const char *what, struct wr_error *error);

#endif
