/* sources: all sources of the process: started, stopped, and changed with the configuration.
 *
 * A configuration's sources are made before it is put in force (plan), and take the place of the present ones
 * after that (commit). One that is the same as before goes on. */
#ifndef WR_SOURCES_H
#define WR_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

struct wr_config;
struct wr_error;
struct wr_levels;
struct wr_runtime;
struct wr_source;
struct wr_unknown_keys;

/* Starts the sources of the configuration in force. As weir_start_sources. */
int wr_sources_start(struct wr_runtime *runtime, struct wr_error *error);

/* As weir_stop_sources and weir_wait_sources, with deadlines. */
int wr_sources_stop(struct wr_runtime *runtime, int64_t deadline_ns, struct wr_error *error);
int wr_sources_wait(struct wr_runtime *runtime, int64_t deadline_ns, struct wr_error *error);

/* Makes a configuration's sources, without starting any: a list, which wr_sources_free frees. Returns false
 * with the error set. */
bool wr_sources_make(struct wr_runtime *runtime, const struct wr_config *config, struct wr_source **first,
                     struct wr_unknown_keys *unknown, struct wr_error *error);
void wr_sources_free(struct wr_source *first);

/* [source] The levels that the sources of the process merge. NULL: it has started none. */
struct wr_levels *wr_sources_levels(struct wr_runtime *runtime);

/* Returns false if there is no source of that name. */
bool wr_sources_read_stats(struct wr_runtime *runtime, const char *name, weir_source_stats *stats);

/* The name of the source with an index; it stays. NULL: there are not that many, or out of memory. */
const char *wr_sources_name(struct wr_runtime *runtime, size_t index);

#endif
