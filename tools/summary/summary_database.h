/* summary_database: reads the values of a database that the handler type sqlite has written. */
#ifndef WEIR_TOOLS_SUMMARY_DATABASE_H
#define WEIR_TOOLS_SUMMARY_DATABASE_H

#include <stdbool.h>
#include <stddef.h>

struct statistics;

/* Whether a file that begins so is an SQLite database. */
bool summary_database_is(const char *bytes, size_t length);

/* Adds the values of all its prefixes, in the order of their times. Returns false after printing why it cannot
 * be read. */
bool summary_database_read(const char *path, struct statistics *statistics);

#endif
