/* summer: sums the values of a lane that takes summaries (its option "aggregate"), interval by interval.
 *
 * Intervals end at multiples of their length since 1970; a flush, a shutdown, and a change of the lane's
 * configuration end one early. A summary has the values of its interval, and totals: these begin with the first
 * summer that a series is routed to, go on in others that it is routed to later, and when a handler is
 * replaced, since the summer belongs to the lane; they begin anew in a forked child, and when the series has
 * ended.
 *
 * [dispatcher's round], which must not use malloc. */
#ifndef WR_SUMMER_H
#define WR_SUMMER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "producer/cells.h"
#include "registry/registry.h"
#include "segment/segment.h"

struct wr_summer;
struct wr_input;

/* Settings of the configuration. */
struct wr_summing {
    int64_t every_ns;
    uint32_t parts; /* at most so many series are what a summary of each consists of: with so many, no further
                       series is summed */
    uint32_t percentiles; /* parts of each that has some */
    bool ranks;           /* percentiles of histograms are wanted: their buckets do not do */
    int64_t expiry_ns;    /* after that time without a value a series has expired; 0: never */
};

/* registry: of the series. Returns NULL if out of memory. [any thread] */
struct wr_summer *wr_summer_new(struct wr_registry *registry);

/* Frees one that was never used. May be NULL. [any thread] */
void wr_summer_free(struct wr_summer *summer);

enum wr_summed {
    WR_SUMMED,
    WR_SUMMED_BEYOND_LIMIT, /* there are too many series */
    WR_SUMMED_NO_MEMORY,
    WR_SUMMED_NOT, /* not a finite number, a negative increment, or one that would make a sum infinite */
};

/* Adds a value to the open interval, whatever its time. */
enum wr_summed wr_summer_add(struct wr_summer *summer, const struct wr_summing *summing,
                             const weir_sample *sample);

/* Adds what was taken of a thread's cell: of a counter, the number and the sum of its increments; of a gauge,
 * whose level is known, the number of its values; of a histogram, what it is known by without its values. */
enum wr_summed wr_summer_add_taken(struct wr_summer *summer, const struct wr_summing *summing, uint32_t series,
                                   const struct wr_cell_taken *taken);

/* The same in a summary's text: see taken.h. */
enum wr_summed wr_summer_add_summary(struct wr_summer *summer, const struct wr_summing *summing,
                                     uint32_t series, const char *text);

/* A series has ended: it has its last summary with the open interval, or the first one of a new total if values
 * come in this interval yet. */
void wr_summer_end_series(struct wr_summer *summer, uint32_t series);

/* Whether nothing is known of a series that has ended: what has no last summary to come is forgotten. */
bool wr_summer_let_go(struct wr_summer *summer, uint32_t series);

/* The lane is routed to again: what it knows of series that ended meanwhile is forgotten. */
void wr_summer_return(struct wr_summer *summer);

/* Returns the next series that has expired, as far as this summer knows, behind the one that was returned
 * before; from *place 0 on. A counter or histogram without labels of its own does not. */
bool wr_summer_next_expired(const struct wr_summer *summer, const struct wr_summing *summing, uint32_t *place,
                            int64_t now_ns, uint32_t *series);

/* Whether the summer knows of a value that the series had within that time. */
bool wr_summer_is_used(const struct wr_summer *summer, uint32_t series, int64_t now_ns, int64_t within_ns);

/* After a change of the configuration: the totals of a series become those of a summer that has had it for
 * longer, if that has. */
void wr_summer_take_over(struct wr_summer *summer, const struct wr_summing *summing,
                         const struct wr_summer *from, uint32_t series);

/* Returns the next series that has totals, behind the one that was returned before; from *place 0 on. */
bool wr_summer_next_total(const struct wr_summer *summer, uint32_t *place, uint32_t *series);

/* The values are in a journal, which keeps them until the summaries of the open interval are settled. Beyond a
 * limit, or without memory, they are settled at once, since they would fill the disk: then they are in memory
 * only. Returns false in this case. */
bool wr_summer_keep(struct wr_summer *summer, const struct wr_input *input);

/* The open interval has values of the journal of an earlier process, whose files are kept open until these are
 * settled. */
void wr_summer_has_recovered(struct wr_summer *summer);

/* Whether the open interval is to end early: it has recovered values, or much of it is in a journal. */
bool wr_summer_ends_early(const struct wr_summer *summer);

/* Finds the next series that was declared to be more than a value, and not returned since the last change of
 * the configuration. Series that only a route's transform makes are left out. */
bool wr_summer_next_declared(struct wr_summer *summer, uint32_t *series);

/* Whether the route of such a series leads here: then it has a summary in each interval, also without values,
 * if there are not too many series. */
void wr_summer_declare(struct wr_summer *summer, const struct wr_summing *summing, uint32_t series,
                       bool routed);

/* A change of the configuration: the interval is this from now on; 0: no longer any. */
void wr_summer_plan(struct wr_summer *summer, int64_t every_ns);

/* Whether that differs from what it was. */
bool wr_summer_changes(const struct wr_summer *summer, const struct wr_summing *summing);

/* After the last interval under the old configuration: series that were declared are looked at again; without a
 * new length the next interval begins with wr_summer_is_due. */
void wr_summer_follow_plan(struct wr_summer *summer);

/* Whether the interval has ended. The first call, and one with other settings, begins one. */
bool wr_summer_is_due(struct wr_summer *summer, const struct wr_summing *summing, int64_t now_ns);

/* When it ends; monotonic. */
int64_t wr_summer_due(const struct wr_summer *summer);

/* Sets the time when it ends to the next multiple. */
void wr_summer_postpone(struct wr_summer *summer, int64_t now_ns);

/* Ends the interval, early or on time, and begins the next one. now_ns: monotonic. Returns a segment with a
 * summary of each series that has one, with a reference; NULL: there is none, or no memory; then the interval
 * stays open. */
struct wr_segment *wr_summer_end(struct wr_summer *summer, const struct wr_summing *summing,
                                 struct wr_segment_pool *pool, int64_t now_ns, bool early);

/* Removes the values of the open interval, but not from the totals. leave: those in a journal stay there for a
 * later process. Returns how many stay there. */
uint64_t wr_summer_discard(struct wr_summer *summer, bool leave);

#endif
