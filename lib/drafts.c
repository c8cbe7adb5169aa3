#include "drafts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A segment that is going to be. */
struct draft {
    uint64_t samples, text_bytes;
    struct wr_segment_file *file; /* NULL: there is nothing for it */
    uint32_t count, notes;
};

struct drafts {
    struct wr_journal_reader *reader;
    struct wr_router *router;
    const struct wr_registry *registry;
    const struct wr_drafts_ids *ids;
    struct wr_drafts_result result;
    struct draft *items; /* of the router's feeds */
    const struct wr_timeline *line;
};

/* ---- Going through the rings ----------------------------------------------------------------- */

typedef void visit(struct drafts *drafts, const struct wr_journal_reader_ring *ring,
                   const struct wr_journal_event *event, struct draft *draft);

/* NULL: its series means nothing. */
static struct wr_route *find_route(const struct drafts *drafts, uint32_t series)
{
    if (series >= drafts->ids->count || !drafts->ids->items[series])
        return NULL;
    return wr_router_series_route(drafts->router, drafts->registry, drafts->ids->items[series] - 1);
}

static void visit_event(struct drafts *drafts, const struct wr_journal_reader_ring *ring,
                        const struct wr_journal_event *event, visit *each)
{
    const struct wr_route *route = find_route(drafts, event->series);
    if (!route)
        drafts->result.corrupt += event->samples;
    else if (!route->feed_count)
        drafts->result.unrouted += event->samples;
    for (size_t i = 0; route && i < route->feed_count; i++)
        each(drafts, ring, event, &drafts->items[route->feeds[i] - drafts->router->feeds]);
}

/* What comes behind something that makes no sense makes none either. */
static void visit_all(struct drafts *drafts, visit *each)
{
    drafts->result = (struct wr_drafts_result){0};
    for (size_t i = 0; i < drafts->reader->ring_count; i++) {
        const struct wr_journal_reader_ring *ring = &drafts->reader->rings[i];
        struct wr_journal_event event;
        uint64_t at = ring->taken;
        for (; at < ring->tail && wr_journal_reader_event(ring, at, &event); at = event.end)
            visit_event(drafts, ring, &event, each);
        drafts->result.corrupt += ring->tail - at;
    }
}

/* ---- Filling --------------------------------------------------------------------------------- */

static void measure(struct drafts *drafts, const struct wr_journal_reader_ring *ring,
                    const struct wr_journal_event *event, struct draft *draft)
{
    (void)drafts;
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

static void copy(struct drafts *drafts, const struct wr_journal_reader_ring *ring,
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
            to->time_ns = wr_timeline_wall_ns(drafts->line, (uint64_t)to->time_ns);
        if (!(flags & WR_RING_TEXT))
            continue;
        copy_text(ring, at + 1, length, draft->file);
        to->note = ++draft->notes;
        at += wr_ring_text_slots(length);
    }
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* 0, or errno. */
static int make_file(struct drafts *drafts, const struct wr_feed *feed, struct draft *draft)
{
    struct wr_journal_head *head = drafts->reader->head;
    if (!draft->samples)
        return 0;
    if (draft->samples > UINT32_MAX || draft->text_bytes > UINT32_MAX)
        return EFBIG;
    const char **names = calloc(feed->lane_count, sizeof *names);
    if (!names)
        return ENOMEM;
    for (size_t i = 0; i < feed->lane_count; i++)
        names[i] = feed->lanes[i]->lane->name;
    const struct wr_segment_shape shape = {(uint32_t)draft->samples, (uint32_t)draft->text_bytes,
                                           (uint32_t)feed->lane_count, names};
    int problem = wr_segment_file_make(&draft->file, drafts->reader->folder, ++drafts->reader->files, &shape);
    free(names);
    if (problem)
        return problem;
    uint32_t number = atomic_fetch_add(&head->feeds, 1) + 1;
    wr_segment_file_begin(draft->file, atomic_fetch_add(&head->segments, 1) + 1, number, 0);
    wr_journal_put_origin(draft->file->origin, head, number);
    return 0;
}

static int make_files(struct drafts *drafts)
{
    int problem = 0;
    for (size_t i = 0; !problem && i < drafts->router->feed_count; i++)
        problem = make_file(drafts, &drafts->router->feeds[i], &drafts->items[i]);
    return problem;
}

/* All rings are taken, and all drafts are segments: by one store. */
static void commit(struct drafts *drafts)
{
    struct wr_journal_reader *reader = drafts->reader;
    for (size_t i = 0; i < drafts->router->feed_count; i++)
        if (drafts->items[i].file)
            wr_twin_put(&drafts->items[i].file->head->committed, reader->round, drafts->items[i].count);
    for (size_t i = 0; i < reader->ring_count; i++)
        wr_twin_put(&reader->rings[i].block->taken, reader->round, reader->rings[i].tail);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store(&reader->head->round, ++reader->round);
    for (size_t i = 0; i < drafts->router->feed_count; i++)
        if (drafts->items[i].file)
            reader->segments[reader->segment_count++] = drafts->items[i].file;
}

/* 0, or errno. */
static int fill(struct drafts *drafts)
{
    struct wr_journal_reader *reader = drafts->reader;
    size_t most = reader->segment_count + drafts->router->feed_count + 1;
    struct wr_segment_file **segments = realloc(reader->segments, most * sizeof(struct wr_segment_file *));
    if (!segments)
        return ENOMEM;
    reader->segments = segments;
    visit_all(drafts, measure);
    int problem = make_files(drafts);
    if (problem)
        return problem;
    visit_all(drafts, copy);
    commit(drafts);
    return 0;
}

int wr_drafts_make(struct wr_journal_reader *reader, struct wr_router *router,
                   const struct wr_registry *registry, const struct wr_drafts_ids *ids,
                   struct wr_drafts_result *result)
{
    struct drafts drafts = {.reader = reader, .router = router, .registry = registry, .ids = ids};
    drafts.line = &reader->head->lines[atomic_load(&reader->head->line) & 1];
    *result = (struct wr_drafts_result){0};
    if (!reader->ring_count)
        return 0;
    drafts.items = calloc(router->feed_count + 1, sizeof *drafts.items);
    int problem = drafts.items ? fill(&drafts) : ENOMEM;
    for (size_t i = 0; problem && drafts.items && i < router->feed_count; i++)
        wr_segment_file_free(drafts.items[i].file);
    free(drafts.items);
    *result = problem ? *result : drafts.result;
    return problem;
}
