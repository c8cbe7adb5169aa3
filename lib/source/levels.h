/* levels: what gauges with `merge` are, of the levels that several processes hand over.
 *
 * A sender is a connection of another process. Its share of a series is the level that it has sent last, for as
 * long as it is connected. The series' own level is made of the shares: their sum, or the largest one. A sender
 * that comes back gets its shares again. */
#ifndef WR_LEVELS_H
#define WR_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/source.h>

#include "os/lock.h"
#include "registry/registry.h"

struct wr_levels_share;
struct wr_levels_sender;
struct wr_levels_series;

/* All zeros: none. */
struct wr_levels {
    struct wr_lock lock; /* protects the rest; held by the caller of all that follows */
    struct wr_levels_share **shares;
    size_t share_count, share_room;   /* the room is a power of two */
    struct wr_levels_series **series; /* by their ids */
    uint32_t series_room;
    struct wr_levels_sender *first_away, *last_away; /* who may come back, latest first */
    size_t away_count;
    struct wr_levels_series *unpublished;
};

/* A sender has connected. id: of its process and handler. Its shares of an earlier connection count again.
 * Returns NULL if out of memory. */
struct wr_levels_sender *wr_levels_enter(struct wr_levels *levels, const char *id);

/* Its connection has ended: its shares do not count any more. Frees the sender, or keeps it for its return. */
void wr_levels_leave(struct wr_levels *levels, struct wr_levels_sender *sender);

/* A sender has sent a level. Returns what the level of the series is by that. The level itself if the series
 * does not merge, the level is not finite, or out of memory. */
double wr_levels_merge(struct wr_levels *levels, struct wr_levels_sender *sender, struct weir_metric *metric,
                       double level);

/* Returns the next series whose level has changed by a sender that came or went, and sets *level; NULL: none.
 * Those that do not merge any more are left out.
 * wr_levels_published: the series has it now. */
struct weir_metric *wr_levels_next(struct wr_levels *levels, double *level);
void wr_levels_published(struct wr_levels *levels);

#endif
