/* mapper: does to samples what an object in a route says (config/transform). Which series become which is
 * worked out when a value of a series comes for the first time, and remembered. [dispatcher's round], which
 * must not use malloc. */
#ifndef WR_MAPPER_H
#define WR_MAPPER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "config/transform.h"
#include "producer/producer.h"
#include "producer/ring.h"
#include "registry/registry.h"

/* The most samples of an event. */
enum { WR_MAPPER_EVENT = WR_PRODUCER_SLOTS / WR_RING_QUARTERS };

struct wr_mapper_entry;

struct wr_mapper {
    const struct wr_transform *transform;
    struct wr_registry *registry;
    uint64_t seed; /* of this mapper; see struct wr_mapper_entry */
    uint64_t step; /* of the sampling: the part of the events that passes, times 2^64; 0: all */
    struct wr_mapper_entry *entries;
    uint32_t count, room;
    uint32_t *by_series; /* place in entries, plus 1 */
    uint32_t by_series_room;
    uint32_t seen_route, seen_branch; /* while a router is built */
};

/* A sample of an event that passes. */
struct wr_mapped {
    uint32_t offset; /* of its slot, from the event's first */
    uint32_t series;
    bool scaled; /* an increment that includes those that the sampling leaves out */
};

/* What became of an event's samples. */
struct wr_mapping {
    uint32_t passed, filtered;
    uint32_t unrepresentable; /* no valid name or label set would result */
    uint32_t lost;            /* out of memory */
    uint32_t text_bytes;      /* of those that passed, with their NULs */
    struct wr_mapped items[WR_MAPPER_EVENT];
};

/* The transform is borrowed. [any thread] */
void wr_mapper_init(struct wr_mapper *mapper, const struct wr_transform *transform);
void wr_mapper_fini(struct wr_mapper *mapper);

/* The samples of an event, in slots of a ring of which `mask` is the size less 1. ids: this process's series
 * ids plus 1, by those in the slots; NULL: they are of this process. */
struct wr_mapper_event {
    const weir_sample *slots;
    uint64_t mask, at, end;
    const uint32_t *ids;
    uint32_t id_count;
};

/* Maps an event. The sampling decides for events, by the series of the first sample that passes the filters:
 * of any number of such events it takes the given part, to within one event, evenly spread. */
void wr_mapper_event(struct wr_mapper *mapper, const struct wr_mapper_event *event, struct wr_mapping *mapping);

/* Sets the series and value of a copied sample. */
void wr_mapper_apply(const struct wr_mapper *mapper, const struct wr_mapped *mapped, weir_sample *sample);

/* Sets the value only. */
void wr_mapper_scale(const struct wr_mapper *mapper, const struct wr_mapped *mapped, weir_sample *sample);

/* What a series becomes, whatever the sampling decides. Returns false if its values do not pass. */
bool wr_mapper_series(struct wr_mapper *mapper, uint32_t series, uint32_t *mapped);

/* The id of a series that has ended may stand for another one from now on. */
void wr_mapper_forget(struct wr_mapper *mapper, uint32_t series);

/* Has the sampling begin anew, so that the same events get the same decisions again. */
void wr_mapper_restart(struct wr_mapper *mapper);

#endif
