/* source_type: source types: found by name, loaded from shared objects, checked before any of their code is
 * called, and kept until the process ends. */
#ifndef WR_SOURCE_TYPE_H
#define WR_SOURCE_TYPE_H

#include <weir/source.h>

#include "config/options.h"
#include "handler/plugin.h"
#include "os/lock.h"

struct wr_error;

/* A source type as the core uses it. */
struct wr_source_type {
    weir_source_type is;           /* a copy, with zeros beyond the end of a shorter struct */
    const weir_source_type *given; /* the plugin's own */
    struct wr_options_table options;
    const char *path; /* of the shared object */
    bool is_stuck;    /* one of its sources did not stop in time: see sources.c */
    struct wr_source_type *next;
};

/* All zeros: none. */
struct wr_source_types {
    struct wr_lock lock; /* for the list; never held while a plugin's code runs */
    struct wr_source_type *first;
};

/* Finds a type by its name, and loads it if necessary. path: the shared object to take it from, or NULL to
 * search. Returns NULL with the error set. */
struct wr_source_type *wr_source_types_find(struct wr_source_types *types, struct wr_plugins *plugins,
                                            const char *name, const char *path, struct wr_error *error);

/* Loads the types of a shared object. Returns false with the error set. */
bool wr_source_types_load(struct wr_source_types *types, struct wr_plugins *plugins, const char *path,
                          struct wr_error *error);

/* Loads every plugin with source types in the search path. Those that cannot be loaded are reported to
 * `complain` and skipped. */
void wr_source_types_load_all(struct wr_source_types *types, struct wr_plugins *plugins,
                              void (*complain)(void *ctx, const struct wr_error *error), void *ctx);

/* Returns the type after this one, in the order in which they became known; NULL: the first one. Returns NULL
 * after the last. */
struct wr_source_type *wr_source_types_next(struct wr_source_types *types, const struct wr_source_type *type);

#endif
