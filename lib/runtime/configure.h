/* configure: applies configurations: the first one, those of the program's calls, and reloads.
 *
 * Each goes one way: text -> document (document) -> config (config_read) -> config (config_edit) -> plan (plan)
 * -> in force (commit). No lock is held while plugins are loaded: if another thread commits meanwhile, the
 * steps from config_edit on are repeated on top of its configuration. */
#ifndef WR_CONFIGURE_H
#define WR_CONFIGURE_H

#include <stdbool.h>

#include "runtime/runtime.h"

struct wr_error;

/* As weir_start. */
int wr_configure_start(struct wr_runtime *runtime, struct wr_error *error);

/* Applies the process's first configuration, if that was not done: the environment's, or, in a forked child,
 * its parent's. false: another thread is doing so; values added meanwhile wait in the rings. */
bool wr_configure_ready(struct wr_runtime *runtime);

/* Whether the calling thread itself is applying the first configuration, further up its stack: it is inside a
 * plugin or a signal handler, and must not wait for that. */
bool wr_configure_is_here(struct wr_runtime *runtime);

enum wr_warmth {
    WR_WARMTH_WARM,
    WR_WARMTH_NOT_YET,   /* another thread configures first: a value may be added, and waits in its ring */
    WR_WARMTH_NO_ROUTES, /* out of memory; the gate is unchanged */
};

/* [producer] Configures first if need be, finds a group's route and sets its gate. start: a value follows:
 * starts the threads if the group has handlers; if another thread configures first, waits for its journal,
 * since the value would not be in it otherwise. */
enum wr_warmth wr_configure_warm(struct wr_runtime *runtime, struct wr_group *group, bool start);

/* The following return 0 or an error code, with error set; with a configuration from the environment, all
 * but wr_configure_reload only check theirs. A thread with a small stack waits for one with a larger one. */

/* Replaces the configuration in force. Takes the reference. */
int wr_configure_whole(struct wr_runtime *runtime, struct wr_config *config, struct wr_error *error);

/* The same with one that is read from a file or a text. */
int wr_configure_file(struct wr_runtime *runtime, const char *path, struct wr_error *error);
int wr_configure_text(struct wr_runtime *runtime, const char *text, size_t length, struct wr_error *error);

/* As weir_configure: edits the configuration in force. */
int wr_configure_route(struct wr_runtime *runtime, const char *group, const char *type, const char *options,
                       struct wr_error *error);

/* Rereads the file of the configuration in force. in_background: with the environment of the first time. */
int wr_configure_reload(struct wr_runtime *runtime, bool in_background, struct wr_error *error);

#endif
