#include "engine/recovery.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/tee.h"
#include "text/buffer.h"
#include "engine/recovery_rings.h"
#include "text/error.h"
#include "journal/journal.h"
#include "journal/journal_reader.h"
#include "os/dir_list.h"
#include "segment/queue.h"
#include "segment/segment_file.h"
#include "segment/series_codec.h"
#include "summary/summary.h"
#include "text/utf8.h"

/* ---- A journal that is being read ------------------------------------------------------------ */

/* An adopted journal. */
struct find {
    struct wr_recovery *recovery;
    struct wr_dispatcher *dispatcher;
    struct wr_recovery_journal *journal;
    struct wr_journal_reader reader;
    uint32_t *ids; /* series ids of this process plus 1, by those of the journal; 0: invalid */
    int64_t now_ns;
    uint64_t given, corrupt, tee_samples; /* samples */
};

/* Returns false if out of memory. */
static bool intern_all(struct find *find)
{
    const struct wr_journal_views *views = &find->reader.views;
    struct wr_series_codec_room room;
    weir_series view;
    bool no_memory = false;
    find->ids = calloc(views->count + 1, sizeof *find->ids);
    for (uint32_t i = 0; find->ids && i < views->count; i++)
        if (wr_journal_views_get(views, i, &view, &room))
            find->ids[i] = wr_series_codec_intern(find->dispatcher->drain.registry, &view, &no_memory).number;
    return find->ids && !no_memory;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Numbers the texts in the file, as many as samples refer to. */
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

/* Metadata is valid UTF-8 when it is added, so anything else was damaged. */
static bool is_note_valid(const struct wr_segment *segment, uint32_t note)
{
    const struct wr_segment_notes *notes = atomic_load(&segment->notes);
    return notes && note < notes->count &&
           wr_utf8_is_valid(notes->texts[note], strlen(notes->texts[note]), NULL);
}

static bool is_summary_valid(const struct wr_segment *segment, const weir_sample *sample)
{
    struct wr_summary summary;
    struct wr_summary_room *room = malloc(sizeof *room);
    struct wr_error error = {0};
    bool is_read = room && wr_summary_read(&summary, room, wr_segment_texts(segment)[sample->note], &error);
    bool is_valid =
        is_read && summary.count && summary.count == wr_sample_values(sample) && isfinite(summary.sum);
    if (is_read)
        wr_sketch_fini(&summary.sketch);
    free(room);
    return is_valid;
}

static bool is_valid(const struct find *find, const struct wr_segment *segment, const weir_sample *sample)
{
    if (sample->series >= find->reader.views.count || !find->ids[sample->series] ||
        (sample->note && !is_note_valid(segment, sample->note)))
        return false;
    if (sample->kind == WEIR_KIND_SUMMARY)
        return sample->note && is_summary_valid(segment, sample);
    return sample->kind <= WEIR_KIND_INT;
}

/* Returns the lane of this name that is in a route, or NULL. */
static struct wr_feed_lane *find_lane(const struct find *find, const char *name)
{
    struct wr_router *router = find->dispatcher->drain.router;
    for (size_t i = 0; i < router->lane_count; i++)
        if (strcmp(wr_lane_name(router->lanes[i].lane), name) == 0)
            return &router->lanes[i];
    return NULL;
}

/* What the route to a lane makes of a series. All lanes of a segment get the same. */
static uint32_t map_series(const struct find *find, const struct wr_feed_lane *lane, uint32_t series)
{
    const struct wr_drain *drain = &find->dispatcher->drain;
    const struct wr_route *route = wr_router_series_route(drain->router, drain->registry, series);
    const struct wr_branch *branch = lane ? wr_router_branch(route, lane) : NULL;
    if (branch && branch->mapper)
        wr_mapper_series(branch->mapper, series, &series);
    return series;
}

/* Sets the series of this process, and the cumulative flag from that, as for a sample that is added. */
static void translate(const struct find *find, const struct wr_feed_lane *lane, weir_sample *sample)
{
    sample->series = find->ids[sample->series] - 1;
    if (sample->flags & WR_RECOVERY_TO_MAP)
        sample->series = map_series(find, lane, sample->series);
    sample->flags &= WEIR_SAMPLE_MORE;
    sample->flags |= wr_registry_series(find->dispatcher->drain.registry, sample->series)->flags;
}

/* The kind of samples that are invalid. */
enum { INVALID = UINT16_MAX };

static void copy_samples(const struct find *find, struct wr_segment *segment, uint32_t count)
{
    const struct wr_feed_lane *lane = find_lane(find, wr_segment_file_lane(segment->file, 0));
    uint32_t notes = 0;
    memcpy(segment->samples, segment->file->samples, count * sizeof *segment->samples);
    for (uint32_t i = 0; i < count; i++)
        notes += segment->samples[i].note != 0;
    point_to_notes(segment, notes);
    for (uint32_t i = 0; i < count; i++) {
        weir_sample *sample = &segment->samples[i];
        segment->summaries |= sample->kind == WEIR_KIND_SUMMARY;
        if (is_valid(find, segment, sample))
            translate(find, lane, sample);
        else
            *sample = (weir_sample){.kind = INVALID, .flags = sample->flags & WEIR_SAMPLE_MORE};
    }
    segment->other_kinds = segment->summaries;
    segment->count = count;
}

/* ---- Queueing for the lanes ------------------------------------------------------------------ */

/* The open interval gets them. */
static void sum(struct find *find, struct wr_feed_lane *entry, const struct wr_range *range)
{
    uint64_t values = wr_range_values(range);
    entry->arrivals.recovered += values;
    wr_feed_sum_range(entry, range->segment, range->slot, range->first, range->count);
    wr_summer_has_recovered(entry->summer);
    find->given += values;
}

/* Returns false if the lane has ended, or out of memory. */
static bool give(struct find *find, struct wr_feed_lane *entry, struct wr_range range)
{
    if (entry->summer) {
        sum(find, entry, &range);
        return true;
    }
    range.id = wr_sample_id_behind(&range.segment->file->ids[range.slot], range.first);
    bool given = wr_lane_recover(entry->lane, &range, find->now_ns, &entry->waiting);
    entry->wanted |= given;
    find->given += given ? wr_range_values(&range) : 0;
    return given;
}

static void drop_corrupt(struct find *find, struct wr_lane *lane, const struct wr_range *range)
{
    wr_lane_drop_corrupt(lane, range);
    find->corrupt += range->count;
}

/* Whether all samples of the event that begins here are valid. */
static bool is_event_valid(const struct wr_segment *segment, uint32_t first)
{
    for (uint32_t end = wr_segment_event_end(segment, first); first < end; first++)
        if (segment->samples[first].kind == INVALID)
            return false;
    return true;
}

/* Queues the valid events and drops the others. Returns false if some have to stay in the journal. */
static bool give_all(struct find *find, struct wr_feed_lane *entry, struct wr_range range)
{
    bool given = true;
    while (range.count) {
        struct wr_range part = range;
        bool valid = is_event_valid(range.segment, range.first);
        for (part.count = 0; part.count < range.count;) {
            uint32_t next = range.first + part.count;
            if (is_event_valid(range.segment, next) != valid)
                break;
            part.count = wr_segment_event_end(range.segment, next) - range.first;
        }
        if (valid)
            given &= give(find, entry, part);
        else
            drop_corrupt(find, entry->lane, &part);
        range.first += part.count;
        range.count -= part.count;
    }
    return given;
}

/* The handlers of a tee end with their process, and nobody configures them again: what was left for them would
 * keep the journal for ever. */
static bool is_of_tee(const struct wr_segment *segment, uint32_t slot)
{
    const char *lane = wr_segment_file_lane(segment->file, slot);
    return strncmp(lane, WR_TEE_PREFIX, strlen(WR_TEE_PREFIX)) == 0;
}

/* Queues what the lane of a slot has not settled. Returns how many samples have to stay in the journal. */
static uint64_t give_slot(struct find *find, struct wr_segment *segment, uint32_t slot)
{
    struct wr_feed_lane *entry = find_lane(find, wr_segment_file_lane(segment->file, slot));
    struct wr_range range = {.segment = segment, .slot = slot};
    bool is_left = !entry && is_of_tee(segment, slot);
    uint64_t kept = 0;
    uint32_t next = 0;
    while ((range.count = wr_journal_reader_unsettled(segment->file, slot, &next, segment->count))) {
        range.first = next;
        if (is_left) {
            wr_segment_file_settle(segment->file, slot, range.first, range.count);
            find->tee_samples += range.count;
        } else if (!entry || !give_all(find, entry, range)) {
            kept += wr_range_values(&range);
        }
        next += range.count;
    }
    return kept;
}

static void report_kept(const struct find *find, const char *lane, uint64_t kept)
{
    const char *why =
        find_lane(find, lane) ? "which cannot take them now;" : "which no route uses; configure it and";
    wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_WARNING,
                        "%" PRIu64
                        " values are kept for handler \"%s\", %s restart, or delete %s to discard them",
                        kept, lane, why, find->journal->dir.path);
}

/* Takes ownership of the file. */
static void give_segment(struct find *find, struct wr_segment_file *file)
{
    uint32_t count = wr_journal_reader_count(&find->reader, file);
    struct wr_segment *segment = wr_segment_adopt_file(&find->recovery->pool, file, false);
    if (!segment)
        return; /* out of memory; the file stays for the next process */
    copy_samples(find, segment, count);
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        uint64_t kept = give_slot(find, segment, slot);
        if (!kept)
            continue;
        wr_segment_leave(segment, kept);
        report_kept(find, wr_segment_file_lane(file, slot), kept);
    }
    wr_segment_drop(segment);
}

/* ---- One journal ----------------------------------------------------------------------------- */

static void report(const struct find *find, const struct wr_recovery_rings_result *recovery_rings)
{
    const char *path = find->journal->dir.path;
    if (find->given)
        wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_INFO,
                            "%s: %" PRIu64 " values of an earlier process recovered", path, find->given);
    if (find->tee_samples)
        wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_INFO,
                            "%s: %" PRIu64 " values for the WEIR_TEE of an earlier process are dropped", path,
                            find->tee_samples);
    if (recovery_rings->unrouted)
        wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_WARNING,
                            "%s: %" PRIu64 " values of groups without a route are dropped", path,
                            recovery_rings->unrouted);
    if (find->corrupt || recovery_rings->corrupt || find->reader.damaged)
        wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_ERROR,
                            "%s: damaged; %" PRIu64 " values and %" PRIu32 " files are invalid and lost", path,
                            find->corrupt + recovery_rings->corrupt, find->reader.damaged);
}

/* Fronts may name values that were in memory when the process was killed: then they are not used, since a value
 * that is sent again must not be treated as a repeat. */
static void adopt_fronts(struct find *find)
{
    const char *path = find->journal->dir.path;
    if (!find->recovery->fronts)
        return;
    if (!atomic_load(&find->reader.head->has_left)) {
        wr_fronts_adopt(find->recovery->fronts, path, wr_fronts_now());
    } else if (wr_mapped_file_count(path, WR_FRONTS_KIND) != 0 &&
               wr_mapped_file_remove_all(path, WR_FRONTS_KIND)) {
        wr_deferred_log_add(
            &find->dispatcher->deferred_log, "journal", WEIR_LOG_WARNING,
            "%s: its process had values in memory because the journal had no space; what was sent "
            "to it, and is sent again, may be added twice",
            path);
    }
}

static void give_journal(struct find *find)
{
    struct wr_recovery_rings_result recovery_rings = {0};
    struct wr_drain *drain = &find->dispatcher->drain;
    if (!intern_all(find)) {
        wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_ERROR,
                            "%s: no memory; it is left as it is", find->journal->dir.path);
        free(find->ids);
        return;
    }
    const struct wr_recovery_rings_ids ids = {find->ids, find->reader.views.count};
    int problem = wr_recovery_rings_make(&find->reader, drain->router, drain->registry, &ids, &recovery_rings);
    if (problem)
        wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_ERROR,
                            "%s: values in rings cannot be recovered now, and stay there: %s",
                            find->journal->dir.path, wr_error_system_text(problem));
    for (size_t i = 0; i < find->reader.segment_count; i++)
        give_segment(find, find->reader.segments[i]);
    find->reader.segment_count = 0;
    report(find, &recovery_rings);
    free(find->ids);
}

/* ---- All journals ---------------------------------------------------------------------------- */

/* Releases an adopted directory, for another process to adopt. */
static void leave(struct wr_owner_dir *dir)
{
    wr_owner_dir_leave(dir);
    free(dir->path);
}

/* Adopts a directory, unless its process lives, and opens its files. Returns false if there is nothing to
 * recover. */
static bool adopt(struct find *find, const char *place, const char *name)
{
    struct wr_owner_dir *dir = &find->journal->dir;
    if (!wr_owner_dir_adopt(dir, place, name))
        return false;
    switch (wr_journal_reader_open(&find->reader, dir->path, true)) {
    case WR_JOURNAL_READ: return true;
    case WR_JOURNAL_NOTHING: wr_journal_remove(dir); return false;
    case WR_JOURNAL_OTHER_VERSION:
        wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_ERROR,
                            "%s: written by another version of weir (format %" PRIu32
                            ", this one reads %d); it is left as it is",
                            dir->path, find->reader.version, WR_JOURNAL_VERSION);
        leave(dir);
        return false;
    default:
        wr_deferred_log_add(&find->dispatcher->deferred_log, "journal", WEIR_LOG_ERROR,
                            "%s: %s; it is left as it is", dir->path, wr_error_system_text(errno));
        leave(dir);
        return false;
    }
}

static int compare(const void *a, const void *b)
{
    int64_t first = ((const struct find *)a)->reader.head->created_ns;
    int64_t second = ((const struct find *)b)->reader.head->created_ns;
    return first < second ? -1 : first > second;
}

/* Adopts and adds to the list. Returns false if out of memory. */
static bool add(struct wr_buffer *finds, struct find find, const char *place, const char *name)
{
    find.journal = calloc(1, sizeof *find.journal);
    if (!find.journal)
        return false;
    if (!adopt(&find, place, name)) {
        free(find.journal);
        return true;
    }
    wr_buffer_put(finds, &find, sizeof find);
    if (finds->failed) {
        wr_journal_reader_close(&find.reader);
        leave(&find.journal->dir);
        free(find.journal);
        return false;
    }
    find.journal->next = find.recovery->journals;
    find.recovery->journals = find.journal;
    return true;
}

static void adopt_all(struct wr_buffer *finds, const struct find *pattern, const char *place)
{
    const struct dirent *entry;
    DIR *folder = opendir(place);
    int problem = folder ? 0 : errno;
    while (folder && !problem && (entry = wr_dir_list_next(folder, &problem)))
        if (wr_owner_dir_is_name(entry->d_name, WR_JOURNAL_DIR) && !add(finds, *pattern, place, entry->d_name))
            problem = ENOMEM;
    if (folder)
        closedir(folder);
    if (problem)
        wr_deferred_log_add(&pattern->dispatcher->deferred_log, "journal", WEIR_LOG_ERROR,
                            "%s: %s; values of earlier processes may be left there", place,
                            wr_error_system_text(problem));
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
        adopt_fronts(&finds[i]);
        give_journal(&finds[i]);
        given += finds[i].given;
        wr_journal_reader_close(&finds[i].reader);
    }
    wr_buffer_fini(&list);
    if (given)
        wr_dispatcher_start(dispatcher);
    wr_recovery_tidy(recovery);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Whether nothing is left in it: no segments, rings, cells, or fronts that could not be adopted. */
static bool is_done(const struct wr_recovery_journal *dir)
{
    struct wr_journal_reader reader;
    const char *path = dir->dir.path;
    if (wr_mapped_file_count(path, WR_SEGMENT_FILE_KIND) != 0 ||
        wr_journal_reader_open(&reader, path, false) != WR_JOURNAL_READ)
        return false;
    bool done = !reader.ring_count && !reader.cells_count;
    wr_journal_reader_close(&reader);
    return done && wr_mapped_file_count(path, WR_FRONTS_KIND) == 0;
}

static void tidy_dirs(struct wr_recovery *recovery)
{
    struct wr_recovery_journal **place = &recovery->journals;
    while (*place) {
        struct wr_recovery_journal *dir = *place;
        if (!is_done(dir)) {
            place = &dir->next;
            continue;
        }
        *place = dir->next;
        wr_journal_remove(&dir->dir);
        free(dir);
    }
}

void wr_recovery_tidy(struct wr_recovery *recovery)
{
    wr_segment_pool_trim(&recovery->pool);
    tidy_dirs(recovery);
}

void wr_recovery_leave(struct wr_recovery *recovery)
{
    wr_recovery_tidy(recovery);
    for (struct wr_recovery_journal *dir = recovery->journals; dir; dir = dir->next)
        wr_owner_dir_leave(&dir->dir);
}

void wr_recovery_abandon(const struct wr_recovery *recovery)
{
    for (const struct wr_recovery_journal *dir = recovery->journals; dir; dir = dir->next)
        wr_owner_dir_abandon(&dir->dir);
}
