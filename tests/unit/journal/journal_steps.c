/* A process is single-stepped while it writes a journal, and another one while it recovers it: wherever it is
 * killed, the next process must find the expected values. */

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../support/dispatch_fixture.h"
#include "../../support/temp_folder.h"
#include "journal/journal.h"
#include "engine/recovery.h"
#include "next_process.h"

/* What the traced process reports in shared memory, before and after each operation: `added` is certainly in
 * the journal, `adding` may be; `settled` likewise. */
struct progress {
    _Atomic uint64_t added, adding;
    _Atomic uint64_t settled[2], settling[2];
    char dir[300];
};

static struct progress *progress;
static const char *const lanes[] = {"A", "B"};
static const char plain_routes[] = "{\"a\": [\"A\"], \"b\": [\"A\", \"B\"]}"; /* two feeds */
/* Two for each value of "b", the second of which "c" can fill. */
static const char mapped_routes[] = "{\"b\": [\"A\", {\"to\": \"B\", \"only\": [\"*\"]}], \"c\": [\"B\"]}";
static const char *routes = plain_routes;

enum { SEGMENT_ROOM = 8 };

static struct progress *map_progress(void)
{
    void *memory = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    return memory;
}

/* ---- Changes of the journal ------------------------------------------------------------------ */

/* The parts of the journal in which each change made by these tests is visible. */
struct view {
    struct wr_journal_map maps[16];
    size_t count;
    char *seen[16];
};

enum {
    BYTES_COMPARED = 16384,
    KEPT_AT = sizeof(struct wr_cells_block) + WR_CELLS_FIRST_CHUNK * sizeof(struct wr_cell), /* of cells */
};

/* Updates the copy. */
static bool part_has_changed(const struct wr_journal_map *map, char *seen, size_t at)
{
    size_t size = map->size > at ? map->size - at : 0;
    size = size < BYTES_COMPARED ? size : BYTES_COMPARED;
    if (memcmp(seen + at, map->memory + at, size) == 0)
        return false;
    memcpy(seen + at, map->memory + at, size);
    return true;
}

static void add_kind(struct view *view, const char *kind)
{
    size_t count = 0;
    uint64_t *numbers = wr_mapped_file_list(progress->dir, kind, &count);
    for (size_t i = 0; numbers && i < count && view->count < 16; i++) {
        struct wr_journal_map *map = &view->maps[view->count];
        if (wr_mapped_file_open(map, progress->dir, kind, (uint32_t)numbers[i], false) != 0)
            continue;
        view->seen[view->count++] = calloc(1, map->size);
    }
    free(numbers);
}

static void close_view(struct view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        wr_mapped_file_close(&view->maps[i]);
        free(view->seen[i]);
    }
    view->count = 0;
}

static void open_view(struct view *view)
{
    close_view(view);
    add_kind(view, WR_JOURNAL_META_KIND);
    add_kind(view, WR_JOURNAL_RING_KIND);
    add_kind(view, WR_JOURNAL_CELLS_KIND);
    add_kind(view, WR_SEGMENT_FILE_KIND);
}

static bool has_changed(struct view *view)
{
    bool changed = false;
    for (size_t i = 0; i < view->count; i++) {
        changed |= part_has_changed(&view->maps[i], view->seen[i], 0);
        changed |= part_has_changed(&view->maps[i], view->seen[i], KEPT_AT);
    }
    return changed;
}

/* ---- Single-stepping ------------------------------------------------------------------------- */

/* Checks what the next process would find if this one were killed now. */
static void assert_survival(uint64_t step)
{
    for (int i = 0; i < 2; i++) {
        struct next_process_range range;
        cr_assert(next_process_read(progress->dir, lanes[i], &range), "step %" PRIu64, step);
        cr_assert_not(range.torn, "step %" PRIu64 ": %s would receive a torn range", step, lanes[i]);
        uint64_t first = range.first == UINT64_MAX ? progress->added : range.first;
        uint64_t end = range.first == UINT64_MAX ? progress->added : range.end;
        cr_assert(first >= progress->settled[i] && first <= progress->settling[i] && end >= progress->added &&
                      end <= progress->adding,
                  "step %" PRIu64 ": %s would be given %" PRIu64 " to %" PRIu64 ", settled %" PRIu64
                  " to %" PRIu64 ", added %" PRIu64 " to %" PRIu64,
                  step, lanes[i], first, end, progress->settled[i], progress->settling[i], progress->added,
                  progress->adding);
    }
}

/* Each value that is added to a cell is this, so that the sum shows that none is taken twice. */
enum { VALUE = 3 };

/* The same for values of cells. A call that was killed may have added to the sum alone. */
static void assert_sums_survive(uint64_t step)
{
    for (int i = 0; i < 2; i++) {
        struct next_process_sums sums;
        cr_assert(next_process_sum(progress->dir, lanes[i], &sums), "step %" PRIu64, step);
        uint64_t least = sums.values + progress->settled[i], most = sums.values + progress->settling[i];
        cr_assert(most >= progress->added && least <= progress->adding,
                  "step %" PRIu64 ": %s would be given %" PRIu64 ", settled %" PRIu64 " to %" PRIu64
                  ", added %" PRIu64 " to %" PRIu64,
                  step, lanes[i], sums.values, progress->settled[i], progress->settling[i], progress->added,
                  progress->adding);
        double in_progress = progress->added != progress->adding ? VALUE : 0;
        cr_assert(sums.sum >= VALUE * (double)sums.values &&
                      sums.sum <= VALUE * (double)sums.values + in_progress,
                  "step %" PRIu64 ": the sum of %" PRIu64 " is %g", step, sums.values, sums.sum);
    }
}

/* Runs `scenario` in a child process, which stops itself when it is ready, and checks the journal after each
 * instruction that changed it. Returns the number of these instructions. */
static uint64_t trace(void (*scenario)(void), void (*check)(uint64_t step))
{
    enum { LOOK_FOR_FILES = 512 };
    struct view view = {0};
    uint64_t looks = 0;
    int status;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        scenario();
        _exit(0);
    }
    cr_assert(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    open_view(&view);
    for (uint64_t step = 0;; step++) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child ||
            !WIFSTOPPED(status))
            break;
        if (step % LOOK_FOR_FILES == 0)
            open_view(&view);
        if (!has_changed(&view) && step % LOOK_FOR_FILES)
            continue;
        check(step);
        looks++;
    }
    close_view(&view);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return looks;
}

static bool is_tracing_unavailable(void)
{
    const char *sanitizers = getenv("WEIR_TEST_SANITIZED"); /* empty: none */
    return sanitizers && *sanitizers;
}

/* ---- The traced process ---------------------------------------------------------------------- */

static struct dispatch_fixture *open_fixture(const char *place)
{
    struct dispatch_fixture *fixture = fixture_open();
    fixture_route(fixture, routes);
    if (!fixture_start_journal(fixture, place, SEGMENT_ROOM))
        _exit(1);
    return fixture;
}

static void add_one(struct dispatch_fixture *fixture, struct weir_metric *metric)
{
    uint64_t number = progress->added;
    fixture_write(fixture, metric, 0, (double)number);
    progress->adding = number + 1;
    fixture_publish(fixture);
    progress->added = number + 1;
}

static void add_event(struct dispatch_fixture *fixture, struct weir_metric *metric)
{
    static const char text[] = "metadata that takes more than one slot";
    uint64_t number = progress->added;
    fixture_write(fixture, metric, WEIR_SAMPLE_MORE, (double)number);
    weir_sample *sample = fixture_write(fixture, metric, WR_RING_TEXT, (double)(number + 1));
    sample->note = sizeof text - 1;
    fixture_write_text(fixture, text);
    progress->adding = number + 2;
    fixture_publish(fixture);
    progress->added = number + 2;
}

/* Settles up to `most` values as the lane's handler would. */
static void settle(struct dispatch_fixture *fixture, int number, uint32_t most)
{
    struct wr_lane *lane = fixture_lane(fixture, lanes[number]);
    if (wr_queue_is_empty(&lane->ledger.queue))
        return;
    struct wr_range range = wr_queue_take(&lane->ledger.queue, most, UINT64_MAX);
    progress->settling[number] += range.count;
    wr_range_settle(&range, range.count);
    progress->settled[number] += range.count;
    wr_segment_drop(range.segment);
}

static void write_journal(void)
{
    struct dispatch_fixture *fixture = open_fixture(path_in_folder("journal"));
    struct weir_metric *metric = fixture_metric(fixture, "b", "number");
    snprintf(progress->dir, sizeof progress->dir, "%s", fixture->dispatcher.drain.pool.journal->dir.path);
    raise(SIGSTOP);
    for (uint32_t i = 0; i < 6; i++) {
        add_one(fixture, metric);
        add_event(fixture, metric);
        fixture_round(fixture);
        settle(fixture, 0, 1 + i);
        add_one(fixture, metric);
        settle(fixture, 1, 2 + i % 2);
        fixture_round(fixture);
    }
}

Test(journal_steps, after_a_kill_at_any_step_undelivered_values_are_found_once_and_whole, .fini = remove_folder)
{
    if (is_tracing_unavailable())
        cr_skip_test("the sanitizers' own instructions are too many");
    path_in_folder("");
    progress = map_progress();
    uint64_t looks = trace(write_journal, assert_survival);
    cr_assert_gt(looks, 200);
    cr_assert_eq(progress->added, 6 * 4);
}

/* That a lane's next samples are written to. */
static const struct wr_segment *segment_of(struct dispatch_fixture *fixture, const char *name)
{
    const struct wr_router *router = fixture->dispatcher.drain.router;
    for (size_t i = 0; i < router->lane_count; i++)
        if (router->lanes[i].lane == fixture_lane(fixture, name))
            return router->lanes[i].feed->segment;
    return NULL;
}

/* Leaves room for 3 values in B's segment, and makes none for A. */
static const struct wr_segment *fill_segment_of_b(struct dispatch_fixture *fixture)
{
    struct weir_metric *metric = fixture_metric(fixture, "c", "filler");
    for (uint32_t i = 0; i < SEGMENT_ROOM - 3; i++)
        fixture_write(fixture, metric, 0, 0);
    fixture_publish(fixture);
    fixture_round(fixture);
    settle(fixture, 1, SEGMENT_ROOM);
    progress->settling[1] = progress->settled[1] = 0;
    return segment_of(fixture, "B");
}

static void write_to_mapped(void)
{
    struct dispatch_fixture *fixture = open_fixture(path_in_folder("journal"));
    struct weir_metric *metric = fixture_metric(fixture, "b", "number");
    snprintf(progress->dir, sizeof progress->dir, "%s", fixture->dispatcher.drain.pool.journal->dir.path);
    const struct wr_segment *full = fill_segment_of_b(fixture);
    raise(SIGSTOP);
    for (uint32_t i = 0; i < 3; i++) {
        add_one(fixture, metric);
        add_event(fixture, metric);
        fixture_round(fixture);
    }
    if (!full || segment_of(fixture, "B") == full)
        _exit(1);
}

Test(journal_steps, an_event_that_one_of_its_routes_has_no_room_for_is_found_once, .fini = remove_folder)
{
    if (is_tracing_unavailable())
        cr_skip_test("the sanitizers' own instructions are too many");
    path_in_folder("");
    progress = map_progress();
    routes = mapped_routes;
    cr_assert_gt(trace(write_to_mapped, assert_survival), 50);
    cr_assert_eq(progress->added, 3 * 3);
}

/* ---- Recovery -------------------------------------------------------------------------------- */

/* Leaves values in rings, and in segments that are partly settled. */
static void leave_values(void)
{
    struct dispatch_fixture *fixture = open_fixture(path_in_folder("journal"));
    struct weir_metric *metric = fixture_metric(fixture, "b", "number");
    snprintf(progress->dir, sizeof progress->dir, "%s", fixture->dispatcher.drain.pool.journal->dir.path);
    for (uint32_t i = 0; i < 4; i++) {
        add_event(fixture, metric);
        fixture_round(fixture);
        add_one(fixture, metric);
    }
    settle(fixture, 0, 5);
    settle(fixture, 1, 2);
    add_event(fixture, metric);
    _exit(0);
}

static void recover(void)
{
    static struct wr_recovery recovery;
    struct dispatch_fixture *fixture = fixture_open();
    fixture_metric(fixture, "c", "shifts all ids by one");
    fixture_route(fixture, routes);
    fixture->dispatcher.running = true; /* prevents starting a thread */
    raise(SIGSTOP);
    wr_recovery_run(&recovery, path_in_folder("journal"), &fixture->dispatcher, 1);
    for (uint32_t i = 0; i < 8; i++) {
        settle(fixture, 0, 2);
        settle(fixture, 1, 3);
    }
}

/* Like recover, but killed after a number of checks. */
static void run_to_end(void (*scenario)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0)
        scenario();
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(journal_steps, after_a_kill_during_recovery_the_next_recovery_finds_the_same, .fini = remove_folder)
{
    if (is_tracing_unavailable())
        cr_skip_test("the sanitizers' own instructions are too many");
    path_in_folder("");
    progress = map_progress();
    run_to_end(leave_values);
    assert_survival(0);
    cr_assert_gt(trace(recover, assert_survival), 50);
    cr_assert_eq(progress->settled[0], progress->added);
    cr_assert_eq(progress->settled[1], progress->added);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static struct dispatch_fixture *open_summing_fixture(void)
{
    struct dispatch_fixture *fixture = fixture_open();
    fixture->dispatcher.producers = &fixture->producers;
    fixture->has_journal = true;
    fixture->settings.aggregate_ns = 3600 * WR_NS_PER_S;
    fixture->settings.aggregate_series = 1000;
    return fixture;
}

/* A counter, or a histogram. */
static void add_to_cell(struct dispatch_fixture *fixture, const struct weir_metric *metric, bool to_buckets)
{
    struct wr_cells *cells = &fixture->producer->cells;
    const weir_series *view = atomic_load(&metric->view);
    while (to_buckets ? !wr_cells_open_buckets(cells, metric->series, view)
                      : !wr_cells_open(cells, metric->series)) {
        if (!wr_cells_want(cells))
            _exit(2);
        wr_drain_make_cells(&fixture->dispatcher.drain, fixture->producer);
    }
    progress->adding++;
    if (to_buckets ? !wr_cells_add_to_buckets(cells, metric->series, view, VALUE)
                   : !wr_cells_add(cells, metric->series, VALUE))
        _exit(3);
    progress->added++;
}

/* Settles up to `most` summaries. What these are of is settled with the last one of their interval. */
static void settle_summaries(struct dispatch_fixture *fixture, int number, uint32_t most)
{
    struct wr_lane *lane = fixture_lane(fixture, lanes[number]);
    if (wr_queue_is_empty(&lane->ledger.queue))
        return;
    struct wr_range range = wr_queue_take(&lane->ledger.queue, most, UINT64_MAX);
    bool is_last = range.first + range.count == range.segment->count;
    uint64_t values = is_last ? wr_segment_values(range.segment, 0, range.segment->count) : 0;
    progress->settling[number] += values;
    wr_range_settle(&range, range.count);
    progress->settled[number] += values;
    wr_segment_drop(range.segment);
}

static void take_cells(struct dispatch_fixture *fixture, uint32_t turn)
{
    wr_dispatcher_take_cells(&fixture->dispatcher);
    if (turn % 2)
        wr_dispatcher_end_intervals(&fixture->dispatcher, true);
    settle_summaries(fixture, 0, 1 + turn % 2);
    settle_summaries(fixture, 1, 2);
}

static struct dispatch_fixture *open_cells(void)
{
    struct dispatch_fixture *fixture = open_summing_fixture();
    if (!fixture_start_journal(fixture, path_in_folder("journal"), 0))
        _exit(1);
    fixture_route(fixture, routes);
    for (size_t i = 0; i < fixture->dispatcher.drain.router->feed_count; i++)
        fixture->dispatcher.drain.router->feeds[i].segment_room = 3;
    snprintf(progress->dir, sizeof progress->dir, "%s", fixture->dispatcher.drain.pool.journal->dir.path);
    return fixture;
}

static void write_cells(void)
{
    struct dispatch_fixture *fixture = open_cells();
    const struct weir_metric *counter = fixture_metric(fixture, "b", "counter");
    const struct weir_metric *histogram = fixture_metric(fixture, "b", "histogram");
    raise(SIGSTOP);
    for (uint32_t i = 0; i < 5; i++) {
        add_to_cell(fixture, counter, false);
        add_to_cell(fixture, histogram, true);
        add_to_cell(fixture, histogram, true);
        take_cells(fixture, i);
    }
    add_to_cell(fixture, counter, false);
}

Test(journal_steps, after_a_kill_at_any_step_what_cells_had_is_found_once, .fini = remove_folder)
{
    if (is_tracing_unavailable())
        cr_skip_test("the sanitizers' own instructions are too many");
    path_in_folder("");
    progress = map_progress();
    cr_assert_gt(trace(write_cells, assert_sums_survive), 200);
    cr_assert_eq(progress->added, 16);
    cr_assert_eq(progress->settled[0], 12);
}

/* Leaves values in cells, and in segments. */
static void leave_cells(void)
{
    struct dispatch_fixture *fixture = open_cells();
    const struct weir_metric *counter = fixture_metric(fixture, "b", "counter");
    const struct weir_metric *histogram = fixture_metric(fixture, "b", "histogram");
    for (uint32_t i = 0; i < 2; i++) {
        add_to_cell(fixture, counter, false);
        add_to_cell(fixture, histogram, true);
        wr_dispatcher_take_cells(&fixture->dispatcher);
    }
    add_to_cell(fixture, histogram, true);
    add_to_cell(fixture, counter, false);
    _exit(0);
}

static void recover_cells(void)
{
    static struct wr_recovery recovery;
    struct dispatch_fixture *fixture = open_summing_fixture();
    fixture_metric(fixture, "c", "shifts all ids by one");
    fixture_route(fixture, routes);
    fixture->dispatcher.running = true; /* prevents starting a thread */
    raise(SIGSTOP);
    wr_recovery_run(&recovery, path_in_folder("journal"), &fixture->dispatcher, 1);
    wr_dispatcher_end_intervals(&fixture->dispatcher, true);
    for (int i = 0; i < 2; i++) {
        settle_summaries(fixture, 0, 1);
        settle_summaries(fixture, 1, 2);
    }
}

Test(journal_steps, after_a_kill_during_recovery_what_cells_had_is_found_again, .fini = remove_folder)
{
    if (is_tracing_unavailable())
        cr_skip_test("the sanitizers' own instructions are too many");
    path_in_folder("");
    progress = map_progress();
    run_to_end(leave_cells);
    assert_sums_survive(0);
    cr_assert_eq(progress->added, 6);
    cr_assert_gt(trace(recover_cells, assert_sums_survive), 50);
    cr_assert_eq(progress->settled[0], 6);
    cr_assert_eq(progress->settled[1], 6);
}
