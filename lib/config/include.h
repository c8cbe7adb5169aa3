/* include: the files that a configuration includes. */
#ifndef WR_INCLUDE_H
#define WR_INCLUDE_H

#include <stdbool.h>

#include "config/config.h"

struct wr_error;

/* How deep files may include files, and how many a configuration may have. Together their texts are bounded as
 * one text is. */
enum { WR_INCLUDE_DEPTH_MAX = 8, WR_INCLUDE_FILES_MAX = 1000, WR_INCLUDE_PATTERNS_MAX = 1000 };

/* Reads the files that config->document includes, and those which these include. Adds the documents to the
 * configuration in the order in which they apply: what a file includes precedes it, and the configuration's own
 * is the last. A file that is reached twice is read once. false: error is set. */
bool wr_include_read(struct wr_config *config, struct wr_error *error);

#endif
