/* parse: a configuration from its text. Everything in it is checked here that can be checked without loading a
 * plugin. */
#ifndef WR_PARSE_H
#define WR_PARSE_H

#include <stddef.h>

#include "config/config.h"

struct wr_error;

/* From a file or a text; `name` stands for the text's file in errors. environment: NULL takes the present one.
 * NULL: the error tells why. */
struct wr_config *wr_parse_file(const char *path, struct wr_environment *environment, struct wr_error *error);
struct wr_config *wr_parse_text(const char *name, const char *text, size_t length,
                                struct wr_environment *environment, struct wr_error *error);

#endif
