#include "engine/recovery.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "engine/recovery_rings.h"
#include "text/error.h"
#include "journal/journal.h"
#include "journal/journal_reader.h"
#include "os/dir_list.h"
#include "segment/queue.h"
#include "segment/series_codec.h"
#include "text/utf8.h"

/* ---- A box that is being read ---------------------------------------------------------------- */

struct find {
    struct wr_recovery *recovery;
    struct wr_dispatcher *dispatcher;
    struct wr_recovery_box *box;
    struct wr_journal_reader reader;
    uint32_t *ids; /* of this process, plus 1; 0: it means nothing */
    int64_t now_ns;
    uint64_t given, corrupt;
};

/* false: no memory. */
static bool intern_all(struct find *find)
{
    const struct wr_journal_views *views = &find->reader.views;
    weir_label labels[WR_SERIES_CODEC_LABELS_MOST];
    weir_series view;
    bool no_memory = false;
    find->ids = calloc(views->count + 1, sizeof *find->ids);
    for (uint32_t i = 0; find->ids && i < views->count; i++)
        if (wr_journal_views_get(views, i, &view, labels))
            find->ids[i] = wr_series_codec_intern(find->dispatcher->taking.registry, &view, &no_memory);
    return find->ids && !no_memory;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Texts in the file, by number, as far as samples refer to them. */
static void point_to_notes(struct wr_segment *segment, uint32_t notes)
{
    const char *at = segment->file->texts, *end = at + segment->file->head->text_room;
    for (uint32_t i = 0; i < notes; i++) {
        const char *nul = memchr(at, '\0', (size_t)(end - at));
        if (!nul || !wr_segment_point_to_note(segment, at))
            return;
        at = nul + 1;
    }
}

/* Metadata is checked when it is added, so what is no text was damaged. */
static bool is_note_sound(const struct wr_segment *segment, uint32_t note)
{
    const struct wr_segment_notes *notes = atomic_load(&segment->notes);
    return notes && note < notes->count &&
           wr_utf8_is_valid(notes->texts[note], strlen(notes->texts[note]), NULL);
}

static bool is_sound(const struct find *find, const struct wr_segment *segment, const weir_sample *sample)
{
    return sample->series < find->reader.views.count && find->ids[sample->series] &&
           sample->kind <= WEIR_KIND_INT && (!sample->note || is_note_sound(segment, sample->note));
}

/* Its series is that of this process, and whether it is a running total goes by that, as when it is added. */
static void translate(const struct find *find, weir_sample *sample)
{
    sample->series = find->ids[sample->series] - 1;
    sample->flags &= WEIR_SAMPLE_MORE;
    sample->flags |= wr_registry_series(find->dispatcher->taking.registry, sample->series)->flags;
}

/* A sample that makes no sense gets a kind that there is not. */
enum { SENSELESS = UINT16_MAX };

static void copy_samples(const struct find *find, struct wr_segment *segment, uint32_t count)
{
    uint32_t notes = 0;
    memcpy(segment->samples, segment->file->samples, count * sizeof *segment->samples);
    for (uint32_t i = 0; i < count; i++)
        notes += segment->samples[i].note != 0;
    point_to_notes(segment, notes);
    for (uint32_t i = 0; i < count; i++) {
        weir_sample *sample = &segment->samples[i];
        if (is_sound(find, segment, sample))
            translate(find, sample);
        else
            *sample = (weir_sample){.kind = SENSELESS, .flags = sample->flags & WEIR_SAMPLE_MORE};
    }
    segment->count = count;
}

/* ---- Giving it to the lanes ------------------------------------------------------------------ */

/* A lane that lives, by its name. */
static struct wr_feed_lane *find_lane(const struct find *find, const char *name)
{
    struct wr_router *router = find->dispatcher->taking.router;
    for (size_t i = 0; i < router->lane_count; i++)
        if (strcmp(wr_lane_name(router->lanes[i].lane), name) == 0)
            return &router->lanes[i];
    return NULL;
}

/* false: the lane is at its end, or there is no memory. */
static bool give(struct find *find, struct wr_feed_lane *entry, struct wr_range range)
{
    range.id = wr_sample_id_behind(&range.segment->file->ids[range.slot], range.first);
    bool given = wr_lane_recover(entry->lane, &range, find->now_ns, &entry->full);
    entry->wanted |= given;
    find->given += given ? range.count : 0;
    return given;
}

static void drop_corrupt(struct find *find, struct wr_lane *lane, const struct wr_range *range)
{
    wr_lane_drop_corrupt(lane, range);
    find->corrupt += range->count;
}

/* Whether the event that a sample begins makes sense as a whole. */
static bool is_event_sound(const struct wr_segment *segment, uint32_t first)
{
    for (uint32_t end = wr_segment_event_end(segment, first); first < end; first++)
        if (segment->samples[first].kind == SENSELESS)
            return false;
    return true;
}

/* false: some of it has to stay. */
static bool give_all(struct find *find, struct wr_feed_lane *entry, struct wr_range range)
{
    bool given = true;
    while (range.count) {
        struct wr_range part = range;
        bool sound = is_event_sound(range.segment, range.first);
        for (part.count = 0; part.count < range.count;) {
            uint32_t next = range.first + part.count;
            if (is_event_sound(range.segment, next) != sound)
                break;
            part.count = wr_segment_event_end(range.segment, next) - range.first;
        }
        if (sound)
            given &= give(find, entry, part);
        else
            drop_corrupt(find, entry->lane, &part);
        range.first += part.count;
        range.count -= part.count;
    }
    return given;
}

/* What the lane of one slot has not settled. Answers how many samples have to stay. */
static uint64_t give_slot(struct find *find, struct wr_segment *segment, uint32_t slot)
{
    struct wr_feed_lane *entry = find_lane(find, wr_segment_file_lane(segment->file, slot));
    struct wr_range range = {.segment = segment, .slot = slot};
    uint64_t kept = 0;
    uint32_t next = 0;
    while ((range.count = wr_journal_reader_unsettled(segment->file, slot, &next, segment->count))) {
        range.first = next;
        if (!entry || !give_all(find, entry, range))
            kept += range.count;
        next += range.count;
    }
    return kept;
}

static void tell_kept(const struct find *find, const char *lane, uint64_t kept)
{
    wr_deferred_log_add(&find->dispatcher->words, "journal", WEIR_LOG_WARNING,
                        "%" PRIu64
                        " values are kept for handler \"%s\", which no route leads to; configure it and start "
                        "again, or delete %s to give them up",
                        kept, lane, find->box->box.path);
}

/* Takes the file. */
static void give_segment(struct find *find, struct wr_segment_file *file)
{
    uint32_t count = wr_journal_reader_count(&find->reader, file);
    struct wr_segment *segment = wr_segment_of_file(&find->recovery->pool, file, false);
    if (!segment)
        return; /* the file stays for the next time */
    copy_samples(find, segment, count);
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        uint64_t kept = give_slot(find, segment, slot);
        if (!kept)
            continue;
        wr_segment_leave(segment);
        tell_kept(find, wr_segment_file_lane(file, slot), kept);
    }
    wr_segment_drop(segment);
}

/* ---- A box ----------------------------------------------------------------------------------- */

static void tell_box(const struct find *find, const struct wr_recovery_rings_result *recovery_rings)
{
    const char *path = find->box->box.path;
    if (find->given)
        wr_deferred_log_add(&find->dispatcher->words, "journal", WEIR_LOG_INFO,
                            "%s: %" PRIu64 " values of an earlier process are recovered", path, find->given);
    if (recovery_rings->unrouted)
        wr_deferred_log_add(&find->dispatcher->words, "journal", WEIR_LOG_WARNING,
                            "%s: %" PRIu64
                            " values belong to groups that nobody listens to now, and are dropped",
                            path, recovery_rings->unrouted);
    if (find->corrupt || recovery_rings->corrupt || find->reader.damaged)
        wr_deferred_log_add(&find->dispatcher->words, "journal", WEIR_LOG_ERROR,
                            "%s: damaged; %" PRIu64 " values and %" PRIu32 " files make no sense, and are lost",
                            path, find->corrupt + recovery_rings->corrupt, find->reader.damaged);
}

static void give_box(struct find *find)
{
    struct wr_recovery_rings_result recovery_rings = {0};
    struct wr_drain *taking = &find->dispatcher->taking;
    if (!intern_all(find)) {
        wr_deferred_log_add(&find->dispatcher->words, "journal", WEIR_LOG_ERROR,
                            "%s: no memory; it is left as it is", find->box->box.path);
        free(find->ids);
        return;
    }
    const struct wr_recovery_rings_ids ids = {find->ids, find->reader.views.count};
    int problem =
        wr_recovery_rings_make(&find->reader, taking->router, taking->registry, &ids, &recovery_rings);
    if (problem)
        wr_deferred_log_add(&find->dispatcher->words, "journal", WEIR_LOG_ERROR,
                            "%s: what was in the rings stays there: %s", find->box->box.path,
                            wr_error_of_system(problem));
    for (size_t i = 0; i < find->reader.segment_count; i++)
        give_segment(find, find->reader.segments[i]);
    find->reader.segment_count = 0;
    tell_box(find, &recovery_rings);
    free(find->ids);
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* Gives up a box that was adopted, for another process to find. */
static void leave(struct wr_owner_dir *box)
{
    wr_owner_dir_leave(box);
    free(box->path);
}

/* Adopts a box, unless its process lives, and opens what is in it. false: there is nothing to be had. */
static bool adopt(struct find *find, const char *place, const char *name)
{
    struct wr_owner_dir *box = &find->box->box;
    if (!wr_owner_dir_adopt(box, place, name))
        return false;
    switch (wr_journal_reader_open(&find->reader, box->path, true)) {
    case WR_JOURNAL_READ: return true;
    case WR_JOURNAL_NOTHING: wr_journal_remove(box); return false;
    case WR_JOURNAL_OTHER_VERSION:
        wr_deferred_log_add(&find->dispatcher->words, "journal", WEIR_LOG_ERROR,
                            "%s: written by another version of weir (format %" PRIu32
                            ", this one reads %d); it is left as it is",
                            box->path, find->reader.version, WR_JOURNAL_VERSION);
        leave(box);
        return false;
    default:
        wr_deferred_log_add(&find->dispatcher->words, "journal", WEIR_LOG_ERROR, "%s: %s; it is left as it is",
                            box->path, wr_error_of_system(errno));
        leave(box);
        return false;
    }
}

static int compare(const void *a, const void *b)
{
    int64_t first = ((const struct find *)a)->reader.head->created_ns;
    int64_t second = ((const struct find *)b)->reader.head->created_ns;
    return first < second ? -1 : first > second;
}

/* Adds a find; false: no memory. */
static bool add(struct wr_buffer *finds, struct find find, const char *place, const char *name)
{
    find.box = calloc(1, sizeof *find.box);
    if (!find.box)
        return false;
    if (!adopt(&find, place, name)) {
        free(find.box);
        return true;
    }
    wr_buffer_put(finds, &find, sizeof find);
    if (finds->failed) {
        wr_journal_reader_close(&find.reader);
        leave(&find.box->box);
        free(find.box);
        return false;
    }
    find.box->next = find.recovery->boxes;
    find.recovery->boxes = find.box;
    return true;
}

static void adopt_all(struct wr_buffer *finds, const struct find *pattern, const char *place)
{
    const struct dirent *entry;
    DIR *folder = opendir(place);
    int problem = folder ? 0 : errno;
    while (folder && !problem && (entry = wr_dir_list_next(folder, &problem)))
        if (wr_owner_dir_is_name(entry->d_name, WR_JOURNAL_BOX) && !add(finds, *pattern, place, entry->d_name))
            problem = ENOMEM;
    if (folder)
        closedir(folder);
    if (problem)
        wr_deferred_log_add(&pattern->dispatcher->words, "journal", WEIR_LOG_ERROR,
                            "%s: %s; what other processes have left there may stay there", place,
                            wr_error_of_system(problem));
}

void wr_recovery_run(struct wr_recovery *recovery, const char *place, struct wr_dispatcher *dispatcher,
                     int64_t now_ns)
{
    struct wr_buffer list = {0};
    const struct find pattern = {.recovery = recovery, .dispatcher = dispatcher, .now_ns = now_ns};
    uint64_t given = 0;
    adopt_all(&list, &pattern, place);
    struct find *finds = (struct find *)list.data;
    size_t count = list.length / sizeof *finds;
    if (count)
        qsort(finds, count, sizeof *finds, compare);
    for (size_t i = 0; i < count; i++) {
        give_box(&finds[i]);
        given += finds[i].given;
        wr_journal_reader_close(&finds[i].reader);
    }
    wr_buffer_fini(&list);
    if (given)
        wr_dispatcher_start(dispatcher);
    wr_recovery_tidy(recovery);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Rings that could not be taken over stay too. */
static bool is_done(const struct wr_recovery_box *box)
{
    struct wr_journal_reader reader;
    size_t segments = 0;
    uint32_t *numbers = wr_mapped_file_list(box->box.path, WR_SEGMENT_FILE_KIND, &segments);
    bool done =
        numbers && !segments && wr_journal_reader_open(&reader, box->box.path, false) == WR_JOURNAL_READ;
    free(numbers);
    if (!done)
        return false;
    done = !reader.ring_count;
    wr_journal_reader_close(&reader);
    return done;
}

static void tidy_boxes(struct wr_recovery *recovery)
{
    struct wr_recovery_box **place = &recovery->boxes;
    while (*place) {
        struct wr_recovery_box *box = *place;
        if (!is_done(box)) {
            place = &box->next;
            continue;
        }
        *place = box->next;
        wr_journal_remove(&box->box);
        free(box);
    }
}

void wr_recovery_tidy(struct wr_recovery *recovery)
{
    wr_segment_pool_trim(&recovery->pool);
    tidy_boxes(recovery);
}

void wr_recovery_leave(struct wr_recovery *recovery)
{
    wr_recovery_tidy(recovery);
    for (struct wr_recovery_box *box = recovery->boxes; box; box = box->next)
        wr_owner_dir_leave(&box->box);
}

void wr_recovery_abandon(const struct wr_recovery *recovery)
{
    for (const struct wr_recovery_box *box = recovery->boxes; box; box = box->next)
        wr_owner_dir_abandon(&box->box);
}
