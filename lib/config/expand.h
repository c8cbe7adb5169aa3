/* expand: expands variables in a configuration's strings:
 *
 *     ${NAME}  ${NAME:-default}   a variable of the environment
 *     ${file:/run/secrets/token}  the contents of a file, without the newline at its end
 *     ${HOSTNAME}  ${PID}         built in
 *     $$                          a dollar sign
 */
#ifndef WR_EXPAND_H
#define WR_EXPAND_H

#include <stdatomic.h>
#include <stdbool.h>

#include "text/region.h"

struct wr_buffer;
struct wr_error;

/* A snapshot of the environment: reading environ later would race with the program's setenv. Immutable and
 * reference-counted: any thread may read it. */
struct wr_environment {
    _Atomic unsigned references;
    struct wr_region keep;
    const char **entries; /* "NAME=value", NULL at the end */
    const char *folder;   /* the working folder; NULL: it was deleted */
};

/* Without variables, for what is expanded where there is no configuration. Its working folder is /. */
extern const struct wr_environment wr_environment_empty;

/* Returns one reference. NULL: out of memory. In a setuid program it is empty: its environment is untrusted. */
struct wr_environment *wr_environment_take(void);

void wr_environment_hold(struct wr_environment *environment);
void wr_environment_drop(struct wr_environment *environment);

/* What the strings of one configuration may become together: a short text may name a long file many times. */
enum { WR_EXPAND_BYTES_MAX = 16 * 1024 * 1024, WR_EXPAND_FILES_MAX = 10000 };

/* How much they have become. All zeros: nothing so far. */
struct wr_expanded {
    size_t bytes, files;
};

/* Adds bytes. false: there are too many; error is set, without a place. total may be NULL. */
bool wr_expand_count(struct wr_expanded *total, size_t bytes, struct wr_error *error);

/* Appends the expanded text, and adds it to `total`; NULL: it is bounded alone. false: error is set, without a
 * place. Files must be valid UTF-8 without NUL, at most 64 KiB. */
bool wr_expand(const struct wr_environment *environment, const char *text, struct wr_buffer *out,
               struct wr_expanded *total, struct wr_error *error);

#endif
