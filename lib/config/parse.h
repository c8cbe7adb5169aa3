/* parse: document -> config: checks everything that can be checked without loading a plugin. */
#ifndef WR_PARSE_H
#define WR_PARSE_H

#include <stddef.h>

#include "config/config.h"

struct wr_error;

/* The configuration of a document, which it takes. environment: expands its strings; NULL: the present one.
 * Returns one reference. NULL: error is set. */
struct wr_config *wr_parse_document(struct wr_document *document, struct wr_environment *environment,
                                    struct wr_error *error);

/* The same for the document in a file, or in a text; `name`: instead of the file's path in errors. */
struct wr_config *wr_parse_file(const char *path, struct wr_environment *environment, struct wr_error *error);
struct wr_config *wr_parse_text(const char *name, const char *text, size_t length,
                                struct wr_environment *environment, struct wr_error *error);

#endif
