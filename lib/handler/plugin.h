/* plugin: handler types: those that the program registered, those in shared objects, those built in; found by
 * name, checked before anything of theirs is called, kept for the life of the process. */
#ifndef WR_PLUGIN_H
#define WR_PLUGIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <weir/handler.h>

#include "os/lock.h"
#include "config/options.h"

struct wr_error;

/* A handler type as the core uses it: a copy, with zeros for what a shorter struct did not have. */
struct wr_type {
    weir_handler_type is;
    struct wr_options_table options;
    const char *path; /* of the shared object; NULL: registered or built in */
    bool registered;
    struct wr_plugins *home;
    unsigned busy;            /* threads inside its code, without being a lane's worker; under the lock */
    _Atomic unsigned exits;   /* how often the exit handler was registered again for its sake */
    _Atomic bool fork_unsafe; /* [child] one of its handlers was inside its code when the parent forked */
    struct wr_type *next;
};

struct wr_plugins {
    struct wr_lock lock; /* for all below; never held while foreign code runs */
    struct wr_type *types;
    unsigned foreign,
        loading; /* threads inside a type's code, or the loader's, without being a lane's worker */
    bool held;   /* a fork is coming: nobody goes in */
    bool torn;   /* [child] the parent forked while the loader was at work: it cannot be used any more */
    struct wr_condition change; /* of these */
    const char *folders;        /* WEIR_PLUGIN_PATH, or NULL; borrowed for ever */
};

/* Types of this library itself: those of a static build. Ends with NULL. */
extern weir_handler_type const *(*const wr_builtin_types[])(uint32_t index);

/* Finds a type by its name, loading it if need be; path: the shared object to take it from, or NULL to search.
 * NULL: the error tells what was wrong, or where was searched in vain. */
struct wr_type *wr_plugins_find(struct wr_plugins *plugins, const char *name, const char *path,
                                struct wr_error *error);

/* Loads all handler types of a shared object. false: the error tells why; those before the one at fault are
 * known then. */
bool wr_plugins_load(struct wr_plugins *plugins, const char *path, struct wr_error *error);

/* See weir_register_handler_type. */
int wr_plugins_register(struct wr_plugins *plugins, const weir_handler_type *type, struct wr_error *error);

/* Whether a name may name a type: [a-z][a-z0-9_]*, at most 63 bytes. */
bool wr_plugins_is_type_name(const char *name);

/* Loads everything that can be found; what cannot be loaded is told to `complain` (may be NULL) and passed
 * over. */
void wr_plugins_load_all(struct wr_plugins *plugins, void (*complain)(void *ctx, const struct wr_error *error),
                         void *ctx);

/* Walks the types in the order in which they became known; NULL: the first; answers NULL behind the last. */
struct wr_type *wr_plugins_next(struct wr_plugins *plugins, const struct wr_type *type);

/* Around code of a type's (or, type NULL, of the loader's) that is not called by a lane's worker: fork waits
 * until it has been left. */
void wr_plugins_enter(struct wr_plugins *plugins, struct wr_type *type);
void wr_plugins_leave(struct wr_plugins *plugins, struct wr_type *type);

/* [fork] Keeps everybody out and waits until nobody is inside; takes the lock. false: it could not be had by
 * deadline_ns. */
bool wr_plugins_hold(struct wr_plugins *plugins, int64_t deadline_ns);

/* [fork, parent] Ends that. */
void wr_plugins_let_go(struct wr_plugins *plugins);

/* [fork, child] What somebody was inside of is marked as unsafe. */
void wr_plugins_mark_torn(struct wr_plugins *plugins);

/* In a forked child: frees the lock. */
void wr_plugins_after_fork(struct wr_plugins *plugins);

#endif
