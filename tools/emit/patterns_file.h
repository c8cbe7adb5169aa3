/* patterns_file: the patterns of --parse patterns. */
#ifndef WEIR_TOOLS_PATTERNS_FILE_H
#define WEIR_TOOLS_PATTERNS_FILE_H

#include <stdbool.h>

struct wr_patterns;

/* Whether benchmarkai's variable ANUBIS_METRICS is set. */
bool patterns_file_has_variable(void);

/* Whether there are no patterns: the variable, which is in use without a path, is empty. */
bool patterns_file_is_empty(const char *path);

/* Reads a file, or the preset of this name; NULL: ANUBIS_METRICS. Returns NULL after printing an error. The
 * caller frees the patterns. */
struct wr_patterns *patterns_file_read(const char *path);

#endif
