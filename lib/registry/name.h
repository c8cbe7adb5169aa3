/* name: validates the names of groups, values and label keys, and texts like label values, units and help. */
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

/* Returns the length of a valid name: valid UTF-8, 1 to 255 bytes, no control characters. Otherwise returns 0
 * and sets the error; `what` describes the name there. Reads at most 256 bytes. */
size_t wr_name_check(const char *name, const char *what, struct wr_error *error);

/* The same for a group, which has no empty part between dots and no '*'. */
size_t wr_name_check_group(const char *group, struct wr_error *error);

/* Whether it is the group of weir's own metrics or a descendant: "*" does not apply to these. */
bool wr_name_is_own_group(const char *group);

/* Whether a text is valid UTF-8 of at most `longest` bytes. Control characters are allowed, since formats
 * escape them. */
bool wr_name_check_text(const char *text, size_t longest, const char *what, struct wr_error *error);

/* Whether a name matches a pattern, in which '*' matches any characters. */
bool wr_name_matches(const char *pattern, const char *name);

#endif
