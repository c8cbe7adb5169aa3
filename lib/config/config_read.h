/* config_read: document -> config: checks everything that can be checked without loading a plugin. */
#ifndef WR_CONFIG_READ_H
#define WR_CONFIG_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

struct wr_error;

/* The configuration in a file, or in a text; `name`: instead of the file's path in errors. environment: expands
 * its strings; NULL: the present one. Returns one reference. NULL: error is set. */
struct wr_config *wr_config_read_file(const char *path, struct wr_environment *environment,
                                      struct wr_error *error);
struct wr_config *wr_config_read_text(const char *name, const char *text, size_t length,
                                      struct wr_environment *environment, struct wr_error *error);

/* Reads the file of a configuration again, or its text, with all files that it includes. *tried: if it fails, a
 * configuration of which only `watched` is valid: the files that it consists of as far as it was read; NULL:
 * none. Returns and sets one reference each. */
struct wr_config *wr_config_read_again(const struct wr_config *config, struct wr_environment *environment,
                                       struct wr_config **tried, struct wr_error *error);

/* In a forked child: expands settings.labels anew, which may contain ${PID}. No other thread uses the
 * configuration yet. Returns false with the error set. */
bool wr_config_read_labels_again(struct wr_config *config, struct wr_error *error);

/* Whether a variable of the environment, like WEIR_CONFIG, is set, and not empty. */
bool wr_config_has_variable(const char *name);

/* The configuration in it, which is a path, or the text itself if that begins with '{' after white space. An
 * error if it is not set. */
struct wr_config *wr_config_read_variable(const char *name, struct wr_error *error);

/* The configuration in a file, or in WEIR_CONFIG if path is NULL, with all its errors: they are added to
 * `problems`, which its plan and its sources add theirs to, and must outlive it. Returns one reference. NULL:
 * it could not be read, because of the problems, or of an error that is set. */
struct wr_config *wr_config_read_all(const char *path, struct wr_problems *problems, struct wr_error *error);

#endif
