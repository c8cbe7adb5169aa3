/* template: a path with parts of the date in it, as strftime has them. */
#ifndef FILE_TEMPLATE_H
#define FILE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* Those that are digits, of a fixed number, whatever the locale: so old files can be told by their names. */
#define WR_TEMPLATE_ALLOWED "%Y %m %d %H %M %S %y %j %G %V %F, and %% for a percent sign"

/* The first conversion that is not allowed, within the path; NULL: all are. The functions below take only such
 * paths. */
const char *wr_template_find_fault(const char *path);

bool wr_template_is_dated(const char *path);
bool wr_template_has_dated_folders(const char *path);

/* The path at a time. false: it does not fit. */
bool wr_template_expand(const char *path, time_t time, bool utc, char *out, size_t room);

/* A glob(7) pattern of all that begins like the path at some time. false: it does not fit. */
bool wr_template_glob(const char *path, char *out, size_t room);

/* Where in `name` the part ends that is the path at some time; NULL: it does not begin with one. */
const char *wr_template_match(const char *path, const char *name);

#endif
