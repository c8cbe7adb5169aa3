/* configure: configurations come into force: the first one, and those that programs give.
 *
 * Planning and committing are optimistic: nothing is locked while plugins are loaded, and who finds that
 * another configuration came in between plans again. */
#ifndef WR_CONFIGURE_H
#define WR_CONFIGURE_H

#include <stdbool.h>

#include "runtime/runtime.h"

struct wr_error;

/* Makes sure that the configuration of this process is in force: the environment's, or, in a forked child, its
 * parent's. false: another thread is at it; what is added meanwhile waits in the rings. */
bool wr_configure_ready(struct wr_runtime *runtime);

/* Whether the calling thread is the one that is at it: then it is a plugin of this configuration, or a signal
 * handler, and cannot wait for it. */
bool wr_configure_is_here(struct wr_runtime *runtime);

enum wr_warmth {
    WR_WARMTH_WARM,
    WR_WARMTH_NOT_YET,   /* another thread is configuring: a value may go into its ring and wait there */
    WR_WARMTH_NO_ROUTES, /* there is no memory for them; the gate stays as it was */
};

/* [producer] Makes ready, looks a group up and sets its gate; `start`: a value is coming, so weir's threads
 * have to run if somebody listens, and where another thread is configuring what may have a journal, that is
 * waited for: else the value would not be in it. */
enum wr_warmth wr_configure_warm(struct wr_runtime *runtime, struct wr_group *group, bool start);

/* Puts a configuration in force, or, with one from the environment, only checks it. Takes over the reference.
 */
int wr_configure_whole(struct wr_runtime *runtime, struct wr_config *config, struct wr_error *error);

/* As weir_configure; a change of the configuration in force, whatever that is by then. */
int wr_configure_route(struct wr_runtime *runtime, const char *group, const char *type, const char *options,
                       struct wr_error *error);

/* Reads the file in force again. in_background: with the environment as it was at the first time. */
int wr_configure_reload(struct wr_runtime *runtime, bool in_background, struct wr_error *error);

#endif
