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
static const char routes[] = "{\"a\": [\"A\"], \"b\": [\"A\", \"B\"]}"; /* two feeds */

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

enum { BYTES_COMPARED = 16384 };

static size_t compared_size(const struct wr_journal_map *map)
{
    return map->size < BYTES_COMPARED ? map->size : BYTES_COMPARED;
}

static void add_kind(struct view *view, const char *kind)
{
    size_t count = 0;
    uint32_t *numbers = wr_mapped_file_list(progress->dir, kind, &count);
    for (size_t i = 0; numbers && i < count && view->count < 16; i++) {
        struct wr_journal_map *map = &view->maps[view->count];
        if (wr_mapped_file_open(map, progress->dir, kind, numbers[i], false) != 0)
            continue;
        view->seen[view->count++] = calloc(1, compared_size(map));
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
    add_kind(view, WR_SEGMENT_FILE_KIND);
}

static bool has_changed(struct view *view)
{
    bool changed = false;
    for (size_t i = 0; i < view->count; i++) {
        size_t size = compared_size(&view->maps[i]);
        if (memcmp(view->seen[i], view->maps[i].memory, size) == 0)
            continue;
        memcpy(view->seen[i], view->maps[i].memory, size);
        changed = true;
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

/* Runs `scenario` in a child process, which stops itself when it is ready, and checks the journal after each
 * instruction that changed it. Returns the number of these instructions. */
static uint64_t trace(void (*scenario)(void))
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
        assert_survival(step);
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
    if (!fixture_start_journal(fixture, place, 8))
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
    uint64_t looks = trace(write_journal);
    cr_assert_gt(looks, 200);
    cr_assert_eq(progress->added, 6 * 4);
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
    cr_assert_gt(trace(recover), 50);
    cr_assert_eq(progress->settled[0], progress->added);
    cr_assert_eq(progress->settled[1], progress->added);
}
