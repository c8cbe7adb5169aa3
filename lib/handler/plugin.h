/* plugin: handler types and source types: those that the program registered, those in shared objects, those
 * built in. Found by name, checked before any of their code is called, and kept until the process ends. */
#ifndef WR_PLUGIN_H
#define WR_PLUGIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <weir/handler.h>
#include <weir/source.h>

#include "os/lock.h"
#include "config/options.h"

struct wr_error;
struct wr_suggest;

struct wr_type;

/* Kinds of plugins: what their files and entry points are called, and, of types, what is known of them. */
struct wr_plugins_kind {
    const char *noun;   /* in messages */
    const char *suffix; /* of the file, behind the type's name */
    const char *entry;  /* the symbol */
    const char *number; /* the contract's, in messages, and which it is */
    uint32_t abi;
    size_t least, bytes; /* of a type's struct: up to the last required member, and the whole */
    /* the type with that index that the entry point offers; NULL: there are no more */
    const void *(*offered)(void *entry, uint32_t index);
    /* checks a type, and fills what depends on the kind. Returns false with the error set */
    bool (*finish)(struct wr_type *type, const char *where, struct wr_error *error);
};
extern const struct wr_plugins_kind wr_plugins_handlers, wr_plugins_sources;

/* A type as the core uses it. */
struct wr_type {
    const struct wr_plugins_kind *kind;
    /* a copy, with zeros beyond the end of a shorter struct. The first members are the same, up to `defaults`
     */
    union {
        weir_handler_type is; /* its kinds is not 0 */
        weir_source_type source;
    };
    const void *given; /* the plugin's own, or the program's */
    void *context;     /* with which it was registered */
    struct wr_options_table options;
    struct wr_options_table common_options; /* of a handler type: those that its own options do not hide */
    const char *path;                       /* of the shared object; NULL: registered or built in */
    bool registered;
    struct wr_plugins *home;
    unsigned busy;            /* threads inside its code, lanes' workers not counted; under the lock */
    bool preparing, prepared; /* a thread is inside prepare; it has returned true. Under the lock */
    bool is_stuck;            /* one of its sources did not stop in time: see sources.c */
    _Atomic unsigned exits;   /* how often the exit handler was registered again because of it */
    _Atomic bool fork_unsafe; /* [child] one of its handlers was inside its code when the parent forked */
    struct wr_type *next;
};

struct wr_plugins {
    struct wr_lock lock; /* for all below; never held while a plugin's code runs */
    struct wr_type *types;
    unsigned foreign;           /* threads inside a type's code or the loader, lanes' workers not counted */
    unsigned loading;           /* of these, inside the loader */
    bool held;                  /* a fork is in progress: no thread may enter */
    bool torn;                  /* [child] the parent forked inside the loader, which cannot be used any more */
    struct wr_condition change; /* signalled when one of these, or a type's preparing, changes */
    const char *folders;        /* WEIR_PLUGIN_PATH, or NULL; valid until the process ends */
};

/* Handler types of this library itself: those of a static build. Ends with NULL. */
extern weir_handler_type const *(*const wr_builtin_types[])(uint32_t index);

/* Finds a type by its name, and loads it if necessary. path: the shared object to take it from, or NULL to
 * search. Returns NULL with the error set, and error->is_missing if no file of the type is there. */
struct wr_type *wr_plugins_find(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                                const char *name, const char *path, struct wr_error *error);

/* Loads all types of a shared object. Returns false with the error set; the types before the one at fault are
 * then known. */
bool wr_plugins_load(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *path,
                     struct wr_error *error);

/* See weir_register_handler_type. */
int wr_plugins_register(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const void *type,
                        void *context, struct wr_error *error);

/* Searches the plugin folders for the file of a type. Returns its path, which the caller frees; NULL: error is
 * set. */
char *wr_plugins_locate(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *name,
                        struct wr_error *error);

/* Loads a shared object and returns its entry point. NULL: error is set. */
void *wr_plugins_open(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *path,
                      struct wr_error *error);

/* For `finish`: checks what types of either kind need. missing: the required member that the type does not
 * have, or NULL. Returns false with the error set. */
bool wr_plugins_check_type(const struct wr_type *type, const char *missing, const char *where,
                           struct wr_error *error);

/* For `finish`: refuses an option whose name is reserved, for `whose`, unless it is NULL. Returns whether it
 * is. */
bool wr_plugins_check_clash(const struct wr_type *type, const weir_option *clash, const char *whose,
                            const char *where, struct wr_error *error);

/* Compares a word with the names of all handler types that are known or in the plugin folders. */
void wr_plugins_suggest(struct wr_plugins *plugins, struct wr_suggest *suggest);

/* Whether a name is valid for a type: [a-z][a-z0-9_]*, at most 63 bytes. */
bool wr_plugins_is_type_name(const char *name);

/* Loads every plugin of a kind in the search path. Those that cannot be loaded are reported to `complain` (may
 * be NULL) and skipped. */
void wr_plugins_load_all(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                         void (*complain)(void *ctx, const struct wr_error *error), void *ctx);

/* Returns the type of a kind after this one, in the order in which they became known; NULL: the first one.
 * Returns NULL after the last. */
struct wr_type *wr_plugins_next(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                                const struct wr_type *type);

/* Brackets around a call of a type's code (type NULL: of the loader) on a thread that is not a lane's worker:
 * fork waits until it has been left. */
void wr_plugins_enter(struct wr_plugins *plugins, struct wr_type *type);
void wr_plugins_leave(struct wr_plugins *plugins, struct wr_type *type);

/* The same for prepare, which is called once. begin waits for a thread that is inside prepare, then returns
 * whether the caller must call it, and then call end with whether it succeeded. */
bool wr_plugins_begin_prepare(struct wr_plugins *plugins, struct wr_type *type);
void wr_plugins_end_prepare(struct wr_plugins *plugins, struct wr_type *type, bool prepared);

/* [fork] Keeps threads out, waits until none is inside, and takes the lock. Returns false if the lock could not
 * be taken by deadline_ns. */
bool wr_plugins_hold(struct wr_plugins *plugins, int64_t deadline_ns);

/* [fork, parent] Reverses wr_plugins_hold. */
void wr_plugins_let_go(struct wr_plugins *plugins);

/* [fork, child] A thread of the parent was inside the type's code: marks it as unsafe, unless its handlers
 * share nothing. */
void wr_plugins_mark_interrupted(struct wr_type *type);

/* [fork, child] Marks what threads of the parent were inside of as unsafe. */
void wr_plugins_mark_torn(struct wr_plugins *plugins);

/* [fork, child] Resets the lock and the counts of threads. */
void wr_plugins_after_fork(struct wr_plugins *plugins);

#endif
