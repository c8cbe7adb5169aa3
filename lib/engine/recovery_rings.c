#include "engine/recovery_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/recovery_cells.h"

/* A segment to be made. */
struct new_segment {
    uint64_t samples, text_bytes;
    struct wr_segment_file *file; /* NULL: it would be empty */
    uint32_t count, notes;
    struct wr_lane_left_out left_out; /* by the routes */
};

struct move {
    struct wr_journal_reader *reader;
    struct wr_router *router;
    const struct wr_registry *registry;
    const struct wr_recovery_rings_ids *ids;
    struct wr_recovery_rings_result result;
    struct new_segment *items; /* one for each of the router's feeds */
    struct wr_recovery_cells cells;
    const struct wr_timeline *line;
    struct wr_mapping *mapping; /* of the present event */
    bool no_memory;
};

/* ---- Visiting the events --------------------------------------------------------------------- */

/* mapper: of the branch; move->mapping says which samples pass. NULL: all do. */
typedef void visit(struct move *move, const struct wr_journal_reader_ring *ring,
                   const struct wr_journal_event *event, const struct wr_mapper *mapper,
                   struct new_segment *segment);

/* Returns NULL if the series is invalid. */
static struct wr_route *find_route(const struct move *move, uint32_t series)
{
    if (series >= move->ids->count || !move->ids->items[series])
        return NULL;
    return wr_router_series_route(move->router, move->registry, move->ids->items[series] - 1);
}

static void visit_branch(struct move *move, const struct wr_journal_reader_ring *ring,
                         const struct wr_journal_event *event, const struct wr_branch *branch, visit *each)
{
    if (branch->mapper) {
        const struct wr_mapper_event slots = {ring->block->slots, ring->block->size - 1, event->at,
                                              event->end,         move->ids->items,      move->ids->count};
        wr_mapper_event(branch->mapper, &slots, move->mapping);
        move->no_memory |= move->mapping->lost > 0;
    }
    for (size_t i = 0; i < branch->feed_count; i++)
        each(move, ring, event, branch->mapper, &move->items[branch->feeds[i] - move->router->feeds]);
}

static void visit_event(struct move *move, const struct wr_journal_reader_ring *ring,
                        const struct wr_journal_event *event, visit *each)
{
    const struct wr_route *route = find_route(move, event->series);
    if (!route) {
        move->result.corrupt += event->samples;
        return;
    }
    if (!route->lane_count)
        move->result.unrouted += event->samples;
    visit_branch(move, ring, event, &route->plain, each);
    for (size_t i = 0; i < route->mapped_count; i++)
        visit_branch(move, ring, event, &route->mapped[i], each);
}

/* What follows an invalid event in a ring cannot be read either. */
static void visit_all(struct move *move, visit *each)
{
    move->result = (struct wr_recovery_rings_result){0};
    for (size_t i = 0; i < move->router->mapper_count; i++) /* the sampling decides as before */
        wr_mapper_restart(&move->router->mappers[i]);
    for (size_t i = 0; i < move->reader->ring_count; i++) {
        const struct wr_journal_reader_ring *ring = &move->reader->rings[i];
        struct wr_journal_event event;
        uint64_t at = ring->taken;
        for (; at < ring->tail && wr_journal_reader_event(ring, at, &event); at = event.end)
            visit_event(move, ring, &event, each);
        move->result.corrupt += ring->tail - at;
    }
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* passes: the objects in the route let it through; is_mapped: they are to give it other names, then. */
typedef void visit_sum(const struct wr_recovery_sum *sum, bool is_mapped, bool passes,
                       struct new_segment *segment);

static void visit_sum_branch(struct move *move, const struct wr_recovery_sum *sum,
                             const struct wr_branch *branch, visit_sum *each)
{
    uint32_t series;
    bool passes =
        !branch->mapper || wr_mapper_series(branch->mapper, move->ids->items[sum->series] - 1, &series);
    for (size_t i = 0; i < branch->feed_count; i++)
        each(sum, branch->mapper, passes, &move->items[branch->feeds[i] - move->router->feeds]);
}

static void visit_sums(struct move *move, visit_sum *each)
{
    for (size_t i = 0; i < move->cells.count; i++) {
        const struct wr_recovery_sum *sum = &move->cells.items[i];
        const struct wr_route *route = find_route(move, sum->series);
        if (!route || !route->lane_count)
            *(route ? &move->result.unrouted : &move->result.corrupt) += sum->taken.values;
        if (!route)
            continue;
        visit_sum_branch(move, sum, &route->plain, each);
        for (size_t j = 0; j < route->mapped_count; j++)
            visit_sum_branch(move, sum, &route->mapped[j], each);
    }
    move->result.corrupt += move->cells.damaged;
}

static void measure_sum(const struct wr_recovery_sum *sum, bool is_mapped, bool passes,
                        struct new_segment *segment)
{
    (void)is_mapped;
    if (!passes) {
        segment->left_out.filtered += sum->taken.values;
        return;
    }
    segment->samples++;
    segment->text_bytes += sum->length + 1;
}

static void copy_sum(const struct wr_recovery_sum *sum, bool is_mapped, bool passes,
                     struct new_segment *segment)
{
    if (!passes)
        return;
    segment->file->samples[segment->count++] = (weir_sample){.series = sum->series,
                                                             .kind = WEIR_KIND_SUMMARY,
                                                             .flags = is_mapped ? WR_RECOVERY_TO_MAP : 0,
                                                             .time_ns = sum->time_ns,
                                                             .value.i64 = (int64_t)sum->taken.values,
                                                             .note = ++segment->notes};
    wr_segment_file_put_text(segment->file, sum->text, sum->length);
}

/* ---- Filling --------------------------------------------------------------------------------- */

static void measure(struct move *move, const struct wr_journal_reader_ring *ring,
                    const struct wr_journal_event *event, const struct wr_mapper *mapper,
                    struct new_segment *segment)
{
    (void)ring;
    segment->samples += mapper ? move->mapping->passed : event->samples;
    segment->text_bytes += mapper ? move->mapping->text_bytes : event->text_bytes;
    if (!mapper)
        return;
    segment->left_out.filtered += move->mapping->filtered;
    segment->left_out.unrepresentable += move->mapping->unrepresentable;
}

/* Texts are numbered in the order in which they are in the file, where each ends with a NUL. A damaged one that
 * has a NUL in it must not move the others: it becomes one that is no UTF-8, so that its sample is invalid. */
static void copy_text(const struct wr_journal_reader_ring *ring, uint64_t at, uint32_t length,
                      struct wr_segment_file *file)
{
    char *to = file->texts + file->text_used;
    for (uint32_t done = 0; done < length; at++) {
        uint32_t part = length - done < sizeof(weir_sample) ? length - done : (uint32_t)sizeof(weir_sample);
        memcpy(to + done, &ring->block->slots[at & (ring->block->size - 1)], part);
        done += part;
    }
    for (uint32_t i = 0; i < length; i++)
        to[i] = (char)(to[i] ? to[i] : 0xff);
    to[length] = '\0';
    file->text_used += length + 1;
}

/* Copies a sample, and its text. Returns the copy. */
static weir_sample *copy_sample(struct move *move, const struct wr_journal_reader_ring *ring, uint64_t at,
                                struct new_segment *segment)
{
    weir_sample *to = &segment->file->samples[segment->count++];
    *to = ring->block->slots[at & (ring->block->size - 1)];
    uint16_t flags = to->flags;
    to->flags = flags & (uint16_t)~WR_RING_FLAGS;
    uint32_t length = to->note;
    to->note = to->reserved = 0;
    if (flags & WR_RING_TICKS)
        to->time_ns = wr_timeline_wall_ns(move->line, (uint64_t)to->time_ns);
    else if (flags & WR_RING_WALL && !to->time_ns) /* all of its handlers summed */
        to->time_ns = move->line->latest.wall_ns;
    if (flags & WR_RING_TEXT) {
        copy_text(ring, at + 1, length, segment->file);
        to->note = ++segment->notes;
    }
    return to;
}

static void copy_all(struct move *move, const struct wr_journal_reader_ring *ring,
                     const struct wr_journal_event *event, struct new_segment *segment)
{
    for (uint64_t at = event->at; at < event->end; at++) {
        const weir_sample *from = &ring->block->slots[at & (ring->block->size - 1)];
        uint32_t text_slots = from->flags & WR_RING_TEXT ? wr_ring_text_slots(from->note) : 0;
        copy_sample(move, ring, at, segment);
        at += text_slots;
    }
}

/* The journal defines no series for what these become: that is set when they are given to the lanes. */
static void copy_mapped(struct move *move, const struct wr_journal_reader_ring *ring,
                        const struct wr_journal_event *event, const struct wr_mapper *mapper,
                        struct new_segment *segment)
{
    for (uint32_t i = 0; i < move->mapping->passed; i++) {
        const struct wr_mapped *item = &move->mapping->items[i];
        weir_sample *to = copy_sample(move, ring, event->at + item->offset, segment);
        to->flags &= (uint16_t)~WEIR_SAMPLE_MORE;
        to->flags |= WR_RECOVERY_TO_MAP | (i + 1 < move->mapping->passed ? WEIR_SAMPLE_MORE : 0);
        wr_mapper_scale(mapper, item, to);
    }
}

static void copy(struct move *move, const struct wr_journal_reader_ring *ring,
                 const struct wr_journal_event *event, const struct wr_mapper *mapper,
                 struct new_segment *segment)
{
    if (mapper)
        copy_mapped(move, ring, event, mapper, segment);
    else
        copy_all(move, ring, event, segment);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* Returns 0 or errno. */
static int make_file(struct move *move, const struct wr_feed *feed, struct new_segment *segment)
{
    struct wr_journal_head *head = move->reader->head;
    if (!segment->samples)
        return 0;
    if (segment->samples > UINT32_MAX || segment->text_bytes > UINT32_MAX)
        return EFBIG;
    const char **names = calloc(feed->lane_count, sizeof *names);
    if (!names)
        return ENOMEM;
    for (size_t i = 0; i < feed->lane_count; i++)
        names[i] = wr_lane_name(feed->lanes[i]->lane);
    const struct wr_segment_shape shape = {(uint32_t)segment->samples, (uint32_t)segment->text_bytes,
                                           (uint32_t)feed->lane_count, names};
    int problem;
    do /* as in wr_journal_segment */
        problem = wr_segment_file_make(&segment->file, move->reader->folder, ++move->reader->files, &shape);
    while (problem == EEXIST);
    free(names);
    if (problem)
        return problem;
    uint32_t number = atomic_fetch_add(&head->feeds, 1) + 1;
    /* these samples have no identities yet: they get the next ones of each lane, which are taken on commit */
    for (size_t i = 0; i < feed->lane_count; i++)
        segment->file->ids[i] = wr_lane_take_ids(feed->lanes[i]->lane, 0);
    wr_segment_file_begin(segment->file, atomic_fetch_add(&head->segments, 1) + 1, number);
    return 0;
}

static int make_files(struct move *move)
{
    int problem = 0;
    for (size_t i = 0; !problem && i < move->router->feed_count; i++)
        problem = make_file(move, &move->router->feeds[i], &move->items[i]);
    return problem;
}

static void count_left_out(const struct wr_feed *feed, struct wr_lane_left_out *left_out)
{
    left_out->recovered = true;
    for (size_t i = 0; (left_out->filtered || left_out->unrepresentable) && i < feed->lane_count; i++)
        wr_lane_leave_out(feed->lanes[i]->lane, left_out);
}

/* Marks all rings and cells as taken and all new segments as filled, by one store. */
static void commit(struct move *move)
{
    struct wr_journal_reader *reader = move->reader;
    for (size_t i = 0; i < move->router->feed_count; i++)
        if (move->items[i].file)
            wr_versioned_put(&move->items[i].file->head->committed, reader->round, move->items[i].count);
    for (size_t i = 0; i < reader->ring_count; i++)
        wr_versioned_put(&reader->rings[i].block->taken, reader->round, reader->rings[i].tail);
    for (size_t i = 0; i < reader->cells_count; i++)
        wr_journal_cells_take(reader->cells[i].block, reader->round);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store(&reader->head->round, ++reader->round);
    for (size_t i = 0; i < move->router->feed_count; i++) {
        const struct wr_feed *feed = &move->router->feeds[i];
        count_left_out(feed, &move->items[i].left_out);
        if (!move->items[i].file)
            continue;
        for (size_t j = 0; j < feed->lane_count; j++)
            wr_lane_take_ids(feed->lanes[j]->lane, move->items[i].count);
        reader->segments[reader->segment_count++] = move->items[i].file;
    }
}

/* Returns 0 or errno. */
static int fill(struct move *move)
{
    struct wr_journal_reader *reader = move->reader;
    size_t most = reader->segment_count + move->router->feed_count + 1;
    struct wr_segment_file **segments = realloc(reader->segments, most * sizeof(struct wr_segment_file *));
    if (!segments)
        return ENOMEM;
    reader->segments = segments;
    if (!wr_recovery_cells_read(&move->cells, reader, move->ids->count, move->line->latest.wall_ns))
        return ENOMEM;
    visit_all(move, measure);
    visit_sums(move, measure_sum);
    int problem = move->no_memory ? ENOMEM : make_files(move);
    if (problem)
        return problem;
    visit_all(move, copy);
    visit_sums(move, copy_sum);
    commit(move);
    return 0;
}

int wr_recovery_rings_make(struct wr_journal_reader *reader, struct wr_router *router,
                           const struct wr_registry *registry, const struct wr_recovery_rings_ids *ids,
                           struct wr_recovery_rings_result *result)
{
    struct move move = {.reader = reader, .router = router, .registry = registry, .ids = ids};
    move.line = &reader->head->lines[atomic_load(&reader->head->line) & 1];
    *result = (struct wr_recovery_rings_result){0};
    if (!reader->ring_count && !reader->cells_count)
        return 0;
    move.items = calloc(router->feed_count + 1, sizeof *move.items);
    move.mapping = malloc(sizeof *move.mapping);
    int problem = move.items && move.mapping ? fill(&move) : ENOMEM;
    for (size_t i = 0; problem && move.items && i < router->feed_count; i++)
        wr_segment_file_free(move.items[i].file);
    wr_recovery_cells_fini(&move.cells);
    free(move.items);
    free(move.mapping);
    *result = problem ? *result : move.result;
    return problem;
}
