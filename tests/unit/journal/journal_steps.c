/* A process is followed instruction by instruction while it keeps a journal, and another one while it recovers
 * what is there: whenever it were killed, whoever came next would find what it should. */

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
#include "survivor.h"

/* What the process that is followed says of itself: low before it does something, high once it may have been
 * done. */
struct told {
    _Atomic uint64_t added, adding;
    _Atomic uint64_t settled[2], settling[2];
    char dir[300];
};

static struct told *told;
static const char *const lanes[] = {"A", "B"};
static const char routes[] = "{\"a\": [\"A\"], \"b\": [\"A\", \"B\"]}"; /* two feeds */

static struct told *make_told(void)
{
    void *memory = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    return memory;
}

/* ---- What is looked at ----------------------------------------------------------------------- */

/* All that a change in the journal can be seen by, as far as these tests use it. */
struct view {
    struct wr_journal_map maps[16];
    size_t count;
    char *seen[16];
};

enum { LOOKED_AT = 16384 };

static size_t look_size(const struct wr_journal_map *map)
{
    return map->size < LOOKED_AT ? map->size : LOOKED_AT;
}

static void add_kind(struct view *view, const char *kind)
{
    size_t count = 0;
    uint32_t *numbers = wr_mapped_file_list(told->dir, kind, &count);
    for (size_t i = 0; numbers && i < count && view->count < 16; i++) {
        struct wr_journal_map *map = &view->maps[view->count];
        if (wr_mapped_file_open(map, told->dir, kind, numbers[i], false) != 0)
            continue;
        view->seen[view->count++] = calloc(1, look_size(map));
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
        size_t size = look_size(&view->maps[i]);
        if (memcmp(view->seen[i], view->maps[i].memory, size) == 0)
            continue;
        memcpy(view->seen[i], view->maps[i].memory, size);
        changed = true;
    }
    return changed;
}

/* ---- Following ------------------------------------------------------------------------------- */

/* If the process were killed now. */
static void assert_survival(uint64_t step)
{
    for (int i = 0; i < 2; i++) {
        struct survivor_row row;
        cr_assert(survivor_read(told->dir, lanes[i], &row), "step %" PRIu64, step);
        cr_assert_not(row.torn, "step %" PRIu64 ": %s would be given a torn row", step, lanes[i]);
        uint64_t first = row.first == UINT64_MAX ? told->added : row.first;
        uint64_t end = row.first == UINT64_MAX ? told->added : row.end;
        cr_assert(first >= told->settled[i] && first <= told->settling[i] && end >= told->added &&
                      end <= told->adding,
                  "step %" PRIu64 ": %s would be given %" PRIu64 " to %" PRIu64 ", settled %" PRIu64
                  " to %" PRIu64 ", added %" PRIu64 " to %" PRIu64,
                  step, lanes[i], first, end, told->settled[i], told->settling[i], told->added, told->adding);
    }
}

/* Runs `scenario` in a process of its own, which stops once it has got ready, and looks at the journal whenever
 * an instruction has changed it. Answers at how many instructions that was. */
static uint64_t follow(void (*scenario)(void))
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

static bool cannot_follow(void)
{
    const char *sanitizers = getenv("WEIR_TEST_SANITIZED"); /* empty: none */
    return sanitizers && *sanitizers;
}

/* ---- Those that are followed ----------------------------------------------------------------- */

static struct dispatch_fixture *open_yard(const char *place)
{
    struct dispatch_fixture *fixture = fixture_open();
    fixture_route(fixture, routes);
    if (!fixture_start_journal(fixture, place, 8))
        _exit(1);
    return fixture;
}

static void add_one(struct dispatch_fixture *fixture, struct weir_metric *metric)
{
    uint64_t number = told->added;
    fixture_write(fixture, metric, 0, (double)number);
    told->adding = number + 1;
    fixture_publish(fixture);
    told->added = number + 1;
}

static void add_event(struct dispatch_fixture *fixture, struct weir_metric *metric)
{
    static const char text[] = "metadata that takes more than one slot";
    uint64_t number = told->added;
    fixture_write(fixture, metric, WEIR_SAMPLE_MORE, (double)number);
    weir_sample *sample = fixture_write(fixture, metric, WR_RING_TEXT, (double)(number + 1));
    sample->note = sizeof text - 1;
    fixture_write_text(fixture, text);
    told->adding = number + 2;
    fixture_publish(fixture);
    told->added = number + 2;
}

/* The lane's handler takes up to so many values, and answers. */
static void settle(struct dispatch_fixture *fixture, int number, uint32_t most)
{
    struct wr_lane *lane = fixture_lane(fixture, lanes[number]);
    if (wr_queue_is_empty(&lane->queue))
        return;
    struct wr_range range = wr_queue_take(&lane->queue, most, UINT64_MAX);
    told->settling[number] += range.count;
    wr_range_settle(&range, range.count);
    told->settled[number] += range.count;
    wr_segment_drop(range.segment);
}

static void keep(void)
{
    struct dispatch_fixture *fixture = open_yard(path_in_folder("journal"));
    struct weir_metric *metric = fixture_metric(fixture, "b", "number");
    snprintf(told->dir, sizeof told->dir, "%s", fixture->dispatcher.taking.pool.journal->dir.path);
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

Test(journal_steps, whenever_a_process_dies_what_it_had_not_delivered_is_there_once_and_whole,
     .fini = remove_folder)
{
    if (cannot_follow())
        cr_skip_test("the sanitizers' own instructions are too many");
    path_in_folder("");
    told = make_told();
    uint64_t looks = follow(keep);
    cr_assert_gt(looks, 200);
    cr_assert_eq(told->added, 6 * 4);
}

/* ---- Recovery -------------------------------------------------------------------------------- */

/* Leaves something in rings, and in segments of which some is settled. */
static void leave(void)
{
    struct dispatch_fixture *fixture = open_yard(path_in_folder("journal"));
    struct weir_metric *metric = fixture_metric(fixture, "b", "number");
    snprintf(told->dir, sizeof told->dir, "%s", fixture->dispatcher.taking.pool.journal->dir.path);
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
    fixture->dispatcher.running = true; /* no thread is to be started */
    raise(SIGSTOP);
    wr_recovery_run(&recovery, path_in_folder("journal"), &fixture->dispatcher, 1);
    for (uint32_t i = 0; i < 8; i++) {
        settle(fixture, 0, 2);
        settle(fixture, 1, 3);
    }
}

/* As recover, until so many looks were taken; then it is killed. */
static void run_to_end(void (*scenario)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0)
        scenario();
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(journal_steps, whenever_a_recovery_dies_the_next_one_finds_the_same, .fini = remove_folder)
{
    if (cannot_follow())
        cr_skip_test("the sanitizers' own instructions are too many");
    path_in_folder("");
    told = make_told();
    run_to_end(leave);
    assert_survival(0);
    cr_assert_gt(follow(recover), 50);
    cr_assert_eq(told->settled[0], told->added);
    cr_assert_eq(told->settled[1], told->added);
}
