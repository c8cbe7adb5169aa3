#include "engine/recovery_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A segment that is going to be. */
struct draft {
    uint64_t samples, text_bytes;
    struct wr_segment_file *file; /* NULL: there is nothing for it */
    uint32_t count, notes;
};

struct recovery_rings {
    struct wr_journal_reader *reader;
    struct wr_router *router;
    const struct wr_registry *registry;
    const struct wr_recovery_rings_ids *ids;
    struct wr_recovery_rings_result result;
    struct draft *items; /* of the router's feeds */
    const struct wr_timeline *line;
};

/* ---- Going through the rings ----------------------------------------------------------------- */

typedef void visit(struct recovery_rings *recovery_rings, const struct wr_journal_reader_ring *ring,
                   const struct wr_journal_event *event, struct draft *draft);

/* NULL: its series means nothing. */
static struct wr_route *find_route(const struct recovery_rings *recovery_rings, uint32_t series)
{
    if (series >= recovery_rings->ids->count || !recovery_rings->ids->items[series])
        return NULL;
    return wr_router_series_route(recovery_rings->router, recovery_rings->registry,
                                  recovery_rings->ids->items[series] - 1);
}

static void visit_event(struct recovery_rings *recovery_rings, const struct wr_journal_reader_ring *ring,
                        const struct wr_journal_event *event, visit *each)
{
    const struct wr_route *route = find_route(recovery_rings, event->series);
    if (!route)
        recovery_rings->result.corrupt += event->samples;
    else if (!route->feed_count)
        recovery_rings->result.unrouted += event->samples;
    for (size_t i = 0; route && i < route->feed_count; i++)
        each(recovery_rings, ring, event,
             &recovery_rings->items[route->feeds[i] - recovery_rings->router->feeds]);
}

/* What comes behind something that makes no sense makes none either. */
static void visit_all(struct recovery_rings *recovery_rings, visit *each)
{
    recovery_rings->result = (struct wr_recovery_rings_result){0};
    for (size_t i = 0; i < recovery_rings->reader->ring_count; i++) {
        const struct wr_journal_reader_ring *ring = &recovery_rings->reader->rings[i];
        struct wr_journal_event event;
        uint64_t at = ring->taken;
        for (; at < ring->tail && wr_journal_reader_event(ring, at, &event); at = event.end)
            visit_event(recovery_rings, ring, &event, each);
        recovery_rings->result.corrupt += ring->tail - at;
    }
}

/* ---- Filling --------------------------------------------------------------------------------- */

static void measure(struct recovery_rings *recovery_rings, const struct wr_journal_reader_ring *ring,
                    const struct wr_journal_event *event, struct draft *draft)
{
    (void)recovery_rings;
    (void)ring;
    draft->samples += event->samples;
    draft->text_bytes += event->text_bytes;
}

/* Its note's number counts the texts in the file. */
static void copy_text(const struct wr_journal_reader_ring *ring, uint64_t at, uint32_t length,
                      struct wr_segment_file *file)
{
    char *to = file->texts + file->text_used;
    for (uint32_t done = 0; done < length; at++) {
        uint32_t part = length - done < sizeof(weir_sample) ? length - done : (uint32_t)sizeof(weir_sample);
        memcpy(to + done, &ring->block->slots[at & (ring->block->size - 1)], part);
        done += part;
    }
    to[length] = '\0';
    file->text_used += length + 1;
}

static void copy(struct recovery_rings *recovery_rings, const struct wr_journal_reader_ring *ring,
                 const struct wr_journal_event *event, struct draft *draft)
{
    uint32_t mask = ring->block->size - 1;
    for (uint64_t at = event->at; at < event->end; at++) {
        weir_sample *to = &draft->file->samples[draft->count++];
        *to = ring->block->slots[at & mask];
        uint16_t flags = to->flags;
        to->flags = flags & (uint16_t)~WR_RING_FLAGS;
        uint32_t length = to->note;
        to->note = to->reserved = 0;
        if (flags & WR_RING_TICKS)
            to->time_ns = wr_timeline_wall_ns(recovery_rings->line, (uint64_t)to->time_ns);
        if (!(flags & WR_RING_TEXT))
            continue;
        copy_text(ring, at + 1, length, draft->file);
        to->note = ++draft->notes;
        at += wr_ring_text_slots(length);
    }
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* 0, or errno. */
static int make_file(struct recovery_rings *recovery_rings, const struct wr_feed *feed, struct draft *draft)
{
    struct wr_journal_head *head = recovery_rings->reader->head;
    if (!draft->samples)
        return 0;
    if (draft->samples > UINT32_MAX || draft->text_bytes > UINT32_MAX)
        return EFBIG;
    const char **names = calloc(feed->lane_count, sizeof *names);
    if (!names)
        return ENOMEM;
    for (size_t i = 0; i < feed->lane_count; i++)
        names[i] = wr_lane_name(feed->lanes[i]->lane);
    const struct wr_segment_shape shape = {(uint32_t)draft->samples, (uint32_t)draft->text_bytes,
                                           (uint32_t)feed->lane_count, names};
    int problem = wr_segment_file_make(&draft->file, recovery_rings->reader->folder,
                                       ++recovery_rings->reader->files, &shape);
    free(names);
    if (problem)
        return problem;
    uint32_t number = atomic_fetch_add(&head->feeds, 1) + 1;
    /* these samples have no identities yet: they get the next ones of each lane, which are taken on commit */
    for (size_t i = 0; i < feed->lane_count; i++)
        draft->file->ids[i] = wr_lane_take_ids(feed->lanes[i]->lane, 0);
    wr_segment_file_begin(draft->file, atomic_fetch_add(&head->segments, 1) + 1, number);
    return 0;
}

static int make_files(struct recovery_rings *recovery_rings)
{
    int problem = 0;
    for (size_t i = 0; !problem && i < recovery_rings->router->feed_count; i++)
        problem = make_file(recovery_rings, &recovery_rings->router->feeds[i], &recovery_rings->items[i]);
    return problem;
}

/* All rings are taken, and all recovery_rings are segments: by one store. */
static void commit(struct recovery_rings *recovery_rings)
{
    struct wr_journal_reader *reader = recovery_rings->reader;
    for (size_t i = 0; i < recovery_rings->router->feed_count; i++)
        if (recovery_rings->items[i].file)
            wr_versioned_put(&recovery_rings->items[i].file->head->committed, reader->round,
                             recovery_rings->items[i].count);
    for (size_t i = 0; i < reader->ring_count; i++)
        wr_versioned_put(&reader->rings[i].block->taken, reader->round, reader->rings[i].tail);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store(&reader->head->round, ++reader->round);
    for (size_t i = 0; i < recovery_rings->router->feed_count; i++) {
        const struct wr_feed *feed = &recovery_rings->router->feeds[i];
        if (!recovery_rings->items[i].file)
            continue;
        for (size_t j = 0; j < feed->lane_count; j++)
            wr_lane_take_ids(feed->lanes[j]->lane, recovery_rings->items[i].count);
        reader->segments[reader->segment_count++] = recovery_rings->items[i].file;
    }
}

/* 0, or errno. */
static int fill(struct recovery_rings *recovery_rings)
{
    struct wr_journal_reader *reader = recovery_rings->reader;
    size_t most = reader->segment_count + recovery_rings->router->feed_count + 1;
    struct wr_segment_file **segments = realloc(reader->segments, most * sizeof(struct wr_segment_file *));
    if (!segments)
        return ENOMEM;
    reader->segments = segments;
    visit_all(recovery_rings, measure);
    int problem = make_files(recovery_rings);
    if (problem)
        return problem;
    visit_all(recovery_rings, copy);
    commit(recovery_rings);
    return 0;
}

int wr_recovery_rings_make(struct wr_journal_reader *reader, struct wr_router *router,
                           const struct wr_registry *registry, const struct wr_recovery_rings_ids *ids,
                           struct wr_recovery_rings_result *result)
{
    struct recovery_rings recovery_rings = {
        .reader = reader, .router = router, .registry = registry, .ids = ids};
    recovery_rings.line = &reader->head->lines[atomic_load(&reader->head->line) & 1];
    *result = (struct wr_recovery_rings_result){0};
    if (!reader->ring_count)
        return 0;
    recovery_rings.items = calloc(router->feed_count + 1, sizeof *recovery_rings.items);
    int problem = recovery_rings.items ? fill(&recovery_rings) : ENOMEM;
    for (size_t i = 0; problem && recovery_rings.items && i < router->feed_count; i++)
        wr_segment_file_free(recovery_rings.items[i].file);
    free(recovery_rings.items);
    *result = problem ? *result : recovery_rings.result;
    return problem;
}
