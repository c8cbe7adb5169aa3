/* template: a path with date fields, as in strftime. */
#ifndef FILE_TEMPLATE_H
#define FILE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* Only fields with a fixed number of digits in all locales, so that old files can be recognized by their
 * names. */
#define WR_TEMPLATE_ALLOWED "%Y %m %d %H %M %S %y %j %G %V %F, and %% for a percent sign"

/* Returns the first conversion that is not allowed, or NULL. The functions below require a path without
 * errors. */
const char *wr_template_find_error(const char *path);

bool wr_template_is_dated(const char *path);
bool wr_template_has_dated_folders(const char *path);

/* Expands the path for a time. Returns false if it does not fit. */
bool wr_template_expand(const char *path, time_t time, bool utc, char *out, size_t room);

/* Writes a glob(7) pattern for all names that begin with an expansion of the path. Returns false if it does
 * not fit. */
bool wr_template_glob(const char *path, char *out, size_t room);

/* Returns the end of the expansion of the path at the beginning of `name`, or NULL if there is none. */
const char *wr_template_match(const char *path, const char *name);

#endif
