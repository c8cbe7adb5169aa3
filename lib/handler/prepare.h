/* prepare: what handlers and sources have in common until they run: the filling of options, and the calls of
 * their type's prepare, create and destroy. */
#ifndef WR_PREPARE_H
#define WR_PREPARE_H

#include <stdbool.h>

#include "config/config.h"
#include "config/options.h"

struct wr_buffer;
struct wr_error;
struct wr_log;
struct wr_type;

/* ---- Options --------------------------------------------------------------------------------- */

/* Options that are filled, and where they come from; the later ones take precedence. */
struct wr_prepare_options {
    const struct wr_config *config;
    const struct wr_node *defaults; /* what is set for all handlers; NULL: nothing */
    const struct wr_config_handler *given;
    struct wr_type *type;
    struct wr_options_table all, common; /* that each one has, and those of them that the type does not hide */
    void *commons, *own;                 /* are filled; own: is made */
    struct wr_region *keep;              /* memory that options point to */
    struct wr_expanded *expanded;
    struct wr_unknown_keys *unknown;
    struct wr_error *error;
};

/* Expands the strings. */
const struct wr_environment *wr_prepare_environment(const struct wr_prepare_options *options);

/* For the members of `node`, which may be NULL. */
struct wr_options_fill wr_prepare_fill(const struct wr_prepare_options *options, struct wr_options_table table,
                                       void *target, const struct wr_node *node);

/* Whether more of one with an error is checked. Of one that a route made, the caller sets the error's place. */
bool wr_prepare_go_on(const struct wr_prepare_options *options, bool done);

/* Sets the options that each one has to their defaults, those of the type and those of `defaults`. "format" is
 * none of them. */
bool wr_prepare_commons(const struct wr_prepare_options *options);

/* Makes the type's own options, and sets what is given. others: as for wr_options_set_members. */
bool wr_prepare_given(struct wr_prepare_options *options, const char *const *others);

/* Where an option is set. NULL: nowhere. */
const struct wr_node *wr_prepare_find(const struct wr_prepare_options *options, const char *option);

/* Checks retry_min and retry_max. A default of the type is no limit for what the user has chosen. */
bool wr_prepare_check_retry(const struct wr_prepare_options *options, int64_t least_ns, int64_t *most_ns);

/* Appends the type and all options, secrets included. */
void wr_prepare_put_identity(struct wr_buffer *out, const struct wr_prepare_options *options);

/* ---- Calls ----------------------------------------------------------------------------------- */

/* [configuring, no locks held] Calls the optional `prepare` of a type, once in a process. name: of the handler
 * or source that needs the type, for messages; node: that in its configuration, or NULL. Returns true if it was
 * called before, or has none. Returns false with the error set. */
bool wr_prepare(struct wr_type *type, const char *name, const struct wr_node *node, struct wr_log *log,
                struct wr_error *error);

/* [configuring, no locks held] Calls `create`. *breach: what it changed of its thread, which was reverted;
 * NULL: nothing. Returns the instance, or NULL with the error set, which has no code before. */
void *wr_prepare_create(struct wr_type *type, const weir_host *host, const void *options, const char **breach,
                        struct wr_error *error);

/* Calls `destroy`. */
void wr_prepare_destroy(struct wr_type *type, const char *name, void *self, struct wr_log *log);

/* breach: NULL: none. log may be NULL. */
void wr_prepare_log_breach(const struct wr_type *type, const char *name, const char *breach,
                           struct wr_log *log);

#endif
