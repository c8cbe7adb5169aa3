/* A process is stopped at each of its system calls while it puts, fetches and settles samples, and another one
 * while it adopts them: wherever it is killed, the next process must find the expected samples. Files change
 * only by system calls; partial writes of a killed process are tested as well. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text/error.h"
#include "../../support/temp_folder.h"
#include "registry/series.h"
#include "spool/spool.h"
#include "registry/stream.h"

enum { ROOM = 20000, BIG = 1 << 30 };

/* What the traced process reports in shared memory, before and after each operation: `put` is certainly on
 * disk, `putting` may be; `settled` likewise. */
struct progress {
    _Atomic uint64_t put, putting;
    _Atomic uint64_t settled, settling;
};

static struct progress *progress;
static struct wr_registry registry;
static struct wr_segment_pool pool;
static struct wr_segment *segment; /* the value of a sample is its number */
static struct wr_error error;
static struct wr_spool_terms terms;
static uint64_t torn_writes;

static void setup(void)
{
    cr_assert(wr_registry_init(&registry));
    struct weir_stream *stream = wr_stream_get(&registry, "my_app", NULL, 0, &error);
    uint32_t series = wr_series_get(&registry, stream, "value", 0, &error)->series;
    segment = wr_segment_new(&pool, ROOM);
    for (uint32_t i = 0; i < ROOM; i++)
        segment->samples[i] = (weir_sample){.series = series, .time_ns = i, .value.f64 = i};
    segment->count = ROOM;
    terms = (struct wr_spool_terms){.place = strdup(path_in_folder("spool")), .limit = BIG};
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(progress, MAP_FAILED);
}

static void teardown(void)
{
    wr_segment_drop(segment);
    remove_folder();
}

TestSuite(spool_steps, .init = setup, .fini = teardown);

/* ---- What the next process would find -------------------------------------------------------- */

/* The consecutive numbers first <= n < end. */
struct found {
    uint64_t first, end, lost;
    bool torn; /* they are not consecutive */
    bool kept_bad;
};

static void add_range(struct found *found, const struct wr_range *range)
{
    for (uint32_t i = 0; i < range->count; i++) {
        uint64_t number = (uint64_t)range->segment->samples[range->first + i].value.f64;
        if (found->first == UINT64_MAX)
            found->first = found->end = number;
        found->torn |= number != found->end;
        found->end++;
    }
}

/* Adopts the spools of a folder and reads all samples. */
static struct found read_place(const char *place)
{
    struct found found = {.first = UINT64_MAX, .end = UINT64_MAX};
    struct wr_spool_want want = {.samples = ROOM, .bytes = BIG};
    struct wr_spool *spool = wr_spool_new("push", &registry);
    struct wr_spool_found adopted;
    struct wr_spool_batch batch;
    cr_assert(wr_spool_adopt(spool, place, &adopted, &error), "%s", error.text);
    found.kept_bad = adopted.kept_bad;
    do {
        cr_assert_eq(wr_spool_fetch(spool, &want, &batch, &error), WR_SPOOL_OK, "%s", error.text);
        found.lost += batch.lost.samples;
        found.kept_bad |= batch.kept_bad;
        if (!batch.range.segment)
            break;
        add_range(&found, &batch.range);
        found.kept_bad |= wr_spool_settle(spool, batch.range.count, wr_range_values(&batch.range));
        wr_segment_drop(batch.range.segment);
        wr_labels_drop(batch.labels);
    } while (true);
    wr_spool_free(spool);
    return found;
}

/* Finds the last file in a folder. Returns its length. */
static long find_last_file(const char *dir, char *path, size_t size)
{
    long length = -1;
    char last[300] = "";
    const struct dirent *entry;
    DIR *entries = opendir(dir);
    while (entries && (entry = readdir(entries)))
        if (strstr(entry->d_name, ".seg") && strcmp(entry->d_name, last) > 0)
            snprintf(last, sizeof last, "%s", entry->d_name);
    if (entries)
        closedir(entries);
    snprintf(path, size, "%s/%s", dir, last);
    struct stat status;
    if (*last && stat(path, &status) == 0)
        length = status.st_size;
    return length;
}

/* The only spool in the folder; "": none. */
static void find_dir(const char *place, char *dir, size_t size)
{
    const struct dirent *entry;
    DIR *entries = opendir(place);
    *dir = '\0';
    while (entries && (entry = readdir(entries)))
        if (entry->d_name[0] == 'p')
            snprintf(dir, size, "%s/%s", place, entry->d_name);
    if (entries)
        closedir(entries);
}

static const char *copy_place(void)
{
    char command[1000];
    const char *copy = path_in_folder("copy");
    snprintf(command, sizeof command, "rm -rf %s; [ ! -e %s ] || cp -a %s %s", copy, terms.place, terms.place,
             copy);
    cr_assert_eq(system(command), 0);
    return copy;
}

/* Checks what the next process would find if this one were killed now; torn: its last write was partial. */
static void assert_survival(const char *place, uint64_t step, bool torn)
{
    struct found found = read_place(place);
    uint64_t put = progress->put, settled = progress->settled;
    uint64_t first = found.first == UINT64_MAX ? put : found.first;
    uint64_t end = found.first == UINT64_MAX ? put : found.end;
    cr_assert_not(found.torn, "step %" PRIu64 ": a torn row", step);
    cr_assert(first >= settled && first <= progress->settling && end >= put && end <= progress->putting,
              "step %" PRIu64 "%s: %" PRIu64 " to %" PRIu64 " would come, settled %" PRIu64 " to %" PRIu64
              ", put %" PRIu64 " to %" PRIu64,
              step, torn ? ", torn" : "", first, end, settled, progress->settling, put, progress->putting);
    cr_assert(!found.lost && !found.kept_bad, "step %" PRIu64 "%s: %" PRIu64 " are taken for damaged", step,
              torn ? ", torn" : "", found.lost);
}

/* ---- Tracing --------------------------------------------------------------------------------- */

/* The last file of the only spool, and its length. */
struct last {
    char path[1000];
    long length; /* -1: none */
};

static struct last measure(const char *place)
{
    char dir[600];
    struct last last = {.length = -1};
    find_dir(place, dir, sizeof dir);
    if (*dir)
        last.length = find_last_file(dir, last.path, sizeof last.path);
    return last;
}

/* Truncates the last write to a file at several lengths. Only samples being put may be missing. */
static void truncate_last_write(const struct last *before, uint64_t step)
{
    enum { CUTS = 6 };
    const struct last after = measure(terms.place);
    long start = strcmp(before->path, after.path) == 0 ? before->length : 0;
    for (int i = 1; after.length > start && progress->put < progress->putting && i < CUTS; i++) {
        const char *copy = copy_place();
        const struct last torn = measure(copy);
        cr_assert_eq(truncate(torn.path, start + (after.length - start) * i / CUTS), 0);
        assert_survival(copy, step, true);
        torn_writes++;
    }
}

/* Runs `scenario` in a child process, which stops itself when it is ready, and checks the disk before and after
 * each of its system calls. Returns the number of checks. */
static uint64_t trace(void (*scenario)(void))
{
    int status;
    uint64_t step = 0;
    struct last before = {.length = -1};
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        scenario();
        _exit(0);
    }
    cr_assert(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    for (;; step++) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child ||
            !WIFSTOPPED(status))
            break;
        if (step % 2 == 0) {
            assert_survival(copy_place(), step, false);
            continue;
        }
        truncate_last_write(&before, step);
        before = measure(terms.place);
    }
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return step;
}

/* ---- The traced process ---------------------------------------------------------------------- */

static void put(struct wr_spool *spool, uint32_t count)
{
    uint32_t first = (uint32_t)progress->put;
    struct wr_spool_count dropped;
    struct wr_range range = {.segment = segment,
                             .first = first,
                             .count = count,
                             .bytes = count * sizeof(weir_sample),
                             .position = first,
                             .id.sequence = first};
    progress->putting = first + count;
    if (wr_spool_put(spool, &terms, &range, NULL, &dropped, &error) != WR_SPOOL_OK)
        _exit(1);
    progress->put = first + count;
}

static void take(struct wr_spool *spool, uint32_t samples)
{
    struct wr_spool_want want = {.samples = samples, .bytes = BIG};
    struct wr_spool_batch batch;
    if (wr_spool_fetch(spool, &want, &batch, &error) != WR_SPOOL_OK || !batch.range.segment ||
        (uint64_t)batch.range.segment->samples[batch.range.first].value.f64 != progress->settled)
        _exit(1);
    uint32_t count = batch.range.count < samples ? batch.range.count : samples;
    progress->settling = progress->settled + count;
    wr_spool_settle(spool, count, count);
    progress->settled = progress->settling;
    wr_segment_drop(batch.range.segment);
    wr_labels_drop(batch.labels);
}

/* Several files; the oldest are settled in parts and deleted. */
static void write_spool(void)
{
    struct wr_spool *spool = wr_spool_new("push", &registry);
    terms.limit = 400 * 1024; /* files of 25 KiB */
    raise(SIGSTOP);
    for (uint32_t i = 0; i < 5; i++) {
        put(spool, 300);
        put(spool, 400 + i);
        take(spool, 50);
        take(spool, 500);
    }
    while (progress->settled < progress->put)
        take(spool, 700);
    wr_spool_leave(spool);
}

Test(spool_steps, after_a_kill_at_any_step_unsettled_samples_are_found_once, .timeout = 300)
{
    cr_assert_gt(trace(write_spool), 100);
    cr_assert_gt(torn_writes, 20);
    cr_assert_eq(progress->settled, progress->put);
}

static void leave_samples(void)
{
    struct wr_spool *spool = wr_spool_new("push", &registry);
    terms.limit = 400 * 1024;
    put(spool, 500);
    put(spool, 600);
    put(spool, 100);
    take(spool, 200);
    _exit(0);
}

/* Adopts a spool and adds to it; later steps only delete files. */
static void adopt(void)
{
    struct wr_spool *spool = wr_spool_new("push", &registry);
    struct wr_spool_found found;
    raise(SIGSTOP);
    if (!wr_spool_adopt(spool, terms.place, &found, &error) ||
        found.samples != progress->put - progress->settled)
        _exit(1);
    while (progress->settled < progress->put)
        take(spool, 150);
    wr_spool_leave(spool);
}

Test(spool_steps, after_a_kill_during_adoption_the_next_process_finds_the_same, .timeout = 300)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        leave_samples();
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_survival(copy_place(), 0, false);
    cr_assert_gt(trace(adopt), 30);
    cr_assert_eq(progress->settled, progress->put);
}
