#include "journal/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/fronts_file.h"
#include "journal/journal_cells.h"
#include "os/clock.h"
#include "text/error.h"

enum { TRY_AGAIN_S = 1 };

/* ---- Failures -------------------------------------------------------------------------------- */

static void fail(struct wr_journal *journal, int problem, int64_t now_ns)
{
    journal->retry_at_ns = now_ns + TRY_AGAIN_S * WR_NS_PER_S;
    if (!journal->failing)
        wr_deferred_log_add(journal->deferred_log, "journal", WEIR_LOG_WARNING,
                            "%s: %s; values go on without it", journal->dir.path,
                            wr_error_system_text(problem));
    journal->failing = true;
}

static void succeed(struct wr_journal *journal)
{
    if (!journal->failing || atomic_load(&journal->series_problem))
        return;
    journal->failing = false;
    journal->has_space_again = true;
    wr_deferred_log_add(journal->deferred_log, "journal", WEIR_LOG_WARNING, "%s: values are kept there again",
                        journal->dir.path);
}

static bool may_retry(const struct wr_journal *journal, int64_t now_ns)
{
    return !journal->failing || now_ns >= journal->retry_at_ns;
}

/* ---- Series ---------------------------------------------------------------------------------- */

/* [registry lock] */
static int put_series(struct wr_journal *journal, const struct weir_metric *metric)
{
    return wr_journal_series_put(&journal->series, atomic_load(&metric->view), metric->flags & WR_METRIC_PART);
}

/* [registry lock] Defines the series that have no definition yet. Returns 0 or errno. */
static int define_missing(struct wr_journal *journal)
{
    uint32_t count = atomic_load(&journal->registry->series);
    while (journal->series.known < count) {
        const struct weir_metric *metric = wr_registry_series(journal->registry, journal->series.known);
        int problem = put_series(journal, metric);
        if (problem)
            return problem;
    }
    return 0;
}

/* [registry lock] Called for each series that is made or gets another description. A definition that could not
 * be written is written again with those that are missing; what was defined behind it comes once more. */
static void define(void *ctx, const struct weir_metric *metric)
{
    struct wr_journal *journal = ctx;
    int problem = define_missing(journal);
    if (!problem && metric->series <= journal->series.known)
        problem = put_series(journal, metric);
    if (!problem)
        return;
    if (metric->series < journal->series.known)
        journal->series.known = metric->series;
    atomic_store(&journal->series_problem, problem);
}

/* From here on `define` is called, under the same lock: no change of a series is missed. */
static int define_all(struct wr_journal *journal)
{
    sigset_t signals;
    wr_registry_lock(journal->registry, &signals);
    journal->registry->on_series = define;
    journal->registry->on_series_ctx = journal;
    int problem = define_missing(journal);
    atomic_store(&journal->series_problem, problem);
    wr_registry_unlock(journal->registry, &signals);
    return problem;
}

static void end_definitions(const struct wr_journal *journal)
{
    sigset_t signals;
    wr_registry_lock(journal->registry, &signals);
    journal->registry->on_series = NULL;
    wr_registry_unlock(journal->registry, &signals);
}

/* ---- Start and stop -------------------------------------------------------------------------- */

static int make_meta(struct wr_journal *journal)
{
    int problem = wr_mapped_file_make(&journal->meta, journal->dir.path, WR_JOURNAL_META_KIND, 0,
                                      sizeof(struct wr_journal_head));
    if (problem)
        return problem;
    struct wr_journal_head *head = (struct wr_journal_head *)journal->meta.memory;
    head->version = WR_JOURNAL_VERSION;
    head->pid = (uint32_t)getpid();
    head->created_ns = wr_clock_wall_ns();
    wr_timeline_start(&head->lines[0]);
    atomic_signal_fence(memory_order_seq_cst);
    head->magic = WR_JOURNAL_META;
    journal->head = head;
    return 0;
}

static int fill(struct wr_journal *journal)
{
    int problem = make_meta(journal);
    if (problem)
        return problem;
    journal->series.folder = journal->dir.path;
    return define_all(journal);
}

struct wr_journal *wr_journal_start(const char *place, struct wr_registry *registry,
                                    struct wr_deferred_log *deferred_log, struct wr_error *error)
{
    struct wr_journal *journal = calloc(1, sizeof *journal);
    if (!journal) {
        wr_error_no_memory(error, place);
        return NULL;
    }
    journal->registry = registry;
    journal->deferred_log = deferred_log;
    if (!wr_owner_dir_check_place(place, true, error) ||
        !wr_owner_dir_make(&journal->dir, place, WR_JOURNAL_DIR, error)) {
        free(journal);
        return NULL;
    }
    int problem = fill(journal);
    if (!problem)
        return journal;
    wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", place, wr_error_system_text(problem));
    end_definitions(journal);
    wr_mapped_file_close(&journal->series.map);
    wr_mapped_file_close(&journal->meta);
    wr_journal_remove(&journal->dir);
    free(journal);
    return NULL;
}

/* `meta` is deleted last, and only if the rest could be deleted: without it the next process could not read the
 * others. */
void wr_journal_remove(struct wr_owner_dir *dir)
{
    if (wr_mapped_file_remove_all(dir->path, WR_JOURNAL_RING_KIND) &&
        wr_mapped_file_remove_all(dir->path, WR_JOURNAL_CELLS_KIND) &&
        wr_mapped_file_remove_all(dir->path, WR_JOURNAL_SERIES_KIND) &&
        wr_mapped_file_remove_all(dir->path, WR_FRONTS_KIND) &&
        wr_mapped_file_remove_all(dir->path, WR_JOURNAL_META_KIND))
        wr_owner_dir_remove(dir);
    else
        wr_owner_dir_leave(dir);
    free(dir->path);
    *dir = (struct wr_owner_dir){0};
}

static bool is_empty(const struct wr_journal *journal)
{
    size_t count = 0;
    for (uint32_t i = 0; i < journal->ring_count; i++) {
        const struct wr_ring_block *ring = journal->rings[i];
        count += atomic_load(&ring->tail) != wr_versioned_get(&ring->taken, wr_journal_round(journal));
    }
    bool is_damaged;
    for (const struct wr_cells_block *block = journal->cells; block; block = block->next)
        count += wr_journal_cells_have_values(block, wr_journal_round(journal), &is_damaged);
    return !count && wr_mapped_file_count(journal->dir.path, WR_SEGMENT_FILE_KIND) == 0;
}

/* The mappings stay, as late threads may still read them. Whatever was in memory only is delivered, or dropped
 * and counted. */
void wr_journal_stop(struct wr_journal *journal)
{
    end_definitions(journal);
    atomic_store(&journal->head->has_left, 0);
    if (!is_empty(journal)) {
        wr_owner_dir_leave(&journal->dir);
    } else if (wr_mapped_file_count(journal->dir.path, WR_FRONTS_KIND) != 0) {
        wr_mapped_file_remove_all(journal->dir.path, WR_JOURNAL_RING_KIND);
        wr_mapped_file_remove_all(journal->dir.path, WR_JOURNAL_CELLS_KIND);
        wr_mapped_file_remove_all(journal->dir.path, WR_JOURNAL_SERIES_KIND);
        wr_owner_dir_leave(&journal->dir);
    } else {
        wr_journal_remove(&journal->dir);
    }
}

void wr_journal_abandon(const struct wr_journal *journal)
{
    wr_owner_dir_abandon(&journal->dir);
}

/* ---- Rings and segments ---------------------------------------------------------------------- */

/* Returns zeros, or NULL. */
static void *make_file(struct wr_journal *journal, const char *kind, size_t size, int64_t now_ns)
{
    struct wr_journal_map map;
    if (!may_retry(journal, now_ns))
        return NULL;
    int problem;
    do /* the numbers begin again after 2^32 files, and old files may still have theirs */
        problem = wr_mapped_file_make(&map, journal->dir.path, kind, ++journal->files, size);
    while (problem == EEXIST);
    if (!problem)
        return map.memory;
    fail(journal, problem, now_ns);
    return NULL;
}

struct wr_ring_block *wr_journal_ring(struct wr_journal *journal, uint32_t size, int64_t now_ns)
{
    if (journal->ring_count == WR_JOURNAL_RINGS_MOST)
        return NULL;
    struct wr_ring_block *block = make_file(journal, WR_JOURNAL_RING_KIND, WR_RING_BLOCK_BYTES(size), now_ns);
    if (!block)
        return NULL;
    block->version = WR_JOURNAL_VERSION;
    block->size = size;
    block->number = journal->files;
    atomic_signal_fence(memory_order_seq_cst);
    block->magic = WR_JOURNAL_RING;
    journal->rings[journal->ring_count++] = block;
    succeed(journal);
    return block;
}

struct wr_cells_block *wr_journal_cells(struct wr_journal *journal, size_t size, int64_t now_ns)
{
    struct wr_cells_block *block = make_file(journal, WR_JOURNAL_CELLS_KIND, size, now_ns);
    if (!block)
        return NULL;
    block->version = WR_JOURNAL_VERSION;
    block->size = (uint32_t)size;
    block->next = journal->cells;
    journal->cells = block;
    atomic_signal_fence(memory_order_seq_cst);
    block->magic = WR_JOURNAL_CELLS;
    succeed(journal);
    return block;
}

struct wr_segment_file *wr_journal_segment(struct wr_journal *journal, const struct wr_segment_shape *shape,
                                           int64_t now_ns)
{
    struct wr_segment_file *file = NULL;
    if (!may_retry(journal, now_ns))
        return NULL;
    int problem;
    do /* as in make_file */
        problem = wr_segment_file_make(&file, journal->dir.path, ++journal->files, shape);
    while (problem == EEXIST);
    if (problem)
        fail(journal, problem, now_ns);
    else
        succeed(journal);
    return file;
}

void wr_journal_begin(struct wr_journal *journal, struct wr_segment_file *file, uint32_t feed)
{
    wr_segment_file_begin(file, atomic_fetch_add(&journal->head->segments, 1) + 1, feed);
}

void wr_journal_let_out(struct wr_journal *journal)
{
    atomic_store_explicit(&journal->head->has_left, 1, memory_order_relaxed);
}

uint32_t wr_journal_feed(struct wr_journal *journal)
{
    return atomic_fetch_add(&journal->head->feeds, 1) + 1;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

void wr_journal_keep_line(struct wr_journal *journal, const struct wr_timeline *timeline)
{
    struct wr_journal_head *head = journal->head;
    uint32_t line = atomic_load_explicit(&head->line, memory_order_relaxed) & 1;
    if (head->lines[line].latest.ticks == timeline->latest.ticks)
        return;
    head->lines[!line] = *timeline;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&head->line, !line, memory_order_relaxed);
}

bool wr_journal_tend(struct wr_journal *journal, int64_t now_ns, int64_t *next_ns)
{
    if (journal->has_space_again) {
        journal->has_space_again = false;
        return true;
    }
    int problem = atomic_load(&journal->series_problem);
    if (problem && !journal->failing)
        fail(journal, problem, now_ns);
    if (!journal->failing)
        return false;
    int64_t due_ns = journal->retry_at_ns > journal->renew_at_ns ? journal->retry_at_ns : journal->renew_at_ns;
    if (now_ns < due_ns) {
        *next_ns = due_ns < *next_ns ? due_ns : *next_ns;
        return false;
    }
    journal->renew_at_ns = now_ns + TRY_AGAIN_S * WR_NS_PER_S;
    problem = problem ? define_all(journal) : 0;
    if (problem)
        fail(journal, problem, now_ns);
    return !problem;
}
