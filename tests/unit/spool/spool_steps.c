/* A process is stopped at each of its system calls while it puts samples on disk, fetches and settles them, and
 * another one while it takes over what the first has left: whenever it were killed, whoever came next would
 * find what it should. Files change by system calls alone; a write that a dying process leaves half done is
 * tried as well. */
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

/* What the process that is followed says of itself: low before it does something, high once it may have been
 * done.
 */
struct told {
    _Atomic uint64_t put, putting;
    _Atomic uint64_t settled, settling;
};

static struct told *told;
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
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(told, MAP_FAILED);
}

static void teardown(void)
{
    wr_segment_drop(segment);
    remove_folder();
}

TestSuite(spool_steps, .init = setup, .fini = teardown);

/* ---- What the next process would find -------------------------------------------------------- */

/* The numbers first, first + 1, ... before end. */
struct found {
    uint64_t first, end, lost;
    bool torn; /* they are no such row */
};

static void see(struct found *found, const struct wr_range *range)
{
    for (uint32_t i = 0; i < range->count; i++) {
        uint64_t number = (uint64_t)range->segment->samples[range->first + i].value.f64;
        if (found->first == UINT64_MAX)
            found->first = found->end = number;
        found->torn |= number != found->end;
        found->end++;
    }
}

/* Adopts a place and takes everything that is there. */
static struct found read_place(const char *place)
{
    struct found found = {.first = UINT64_MAX, .end = UINT64_MAX};
    struct wr_spool_want want = {.samples = ROOM, .bytes = BIG};
    struct wr_spool *spool = wr_spool_new("push", &registry);
    struct wr_spool_found adopted;
    struct wr_spool_batch batch;
    cr_assert(wr_spool_adopt(spool, place, &adopted, &error), "%s", error.text);
    do {
        cr_assert_eq(wr_spool_fetch(spool, &want, &batch, &error), WR_SPOOL_OK, "%s", error.text);
        found.lost += batch.lost.samples;
        if (!batch.range.segment)
            break;
        see(&found, &batch.range);
        wr_spool_settle(spool, batch.range.count);
        wr_segment_drop(batch.range.segment);
        wr_labels_drop(batch.labels);
    } while (true);
    wr_spool_free(spool);
    return found;
}

/* The longest file in a folder, and how long it is. */
static long find_last_file(const char *dir, char *path, size_t size)
{
    long longest = -1;
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
        longest = status.st_size;
    return longest;
}

/* The only dir of the place; "": there is none. */
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

/* If the process were killed now; torn: its last write has come out half. */
static void assert_survival(const char *place, uint64_t step, bool torn)
{
    struct found found = read_place(place);
    uint64_t put = told->put, settled = told->settled;
    uint64_t first = found.first == UINT64_MAX ? put : found.first;
    uint64_t end = found.first == UINT64_MAX ? put : found.end;
    cr_assert_not(found.torn, "step %" PRIu64 ": a torn row", step);
    cr_assert(first >= settled && first <= told->settling && end >= put && end <= told->putting,
              "step %" PRIu64 "%s: %" PRIu64 " to %" PRIu64 " would come, settled %" PRIu64 " to %" PRIu64
              ", put %" PRIu64 " to %" PRIu64,
              step, torn ? ", torn" : "", first, end, settled, told->settling, put, told->putting);
    cr_assert(!found.lost || torn, "step %" PRIu64 ": %" PRIu64 " are taken for damaged", step, found.lost);
}

/* ---- Following ------------------------------------------------------------------------------- */

/* The last file of the only dir, and how long it is. */
struct last {
    char path[1000];
    long length; /* -1: there is none */
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

/* What the last write added to a file comes out half, at several lengths. Only what is being put may be
 * missing. */
static void tear(const struct last *before, uint64_t step)
{
    enum { CUTS = 6 };
    const struct last after = measure(terms.place);
    long start = strcmp(before->path, after.path) == 0 ? before->length : 0;
    for (int i = 1; after.length > start && told->put < told->putting && i < CUTS; i++) {
        const char *copy = copy_place();
        const struct last torn = measure(copy);
        cr_assert_eq(truncate(torn.path, start + (after.length - start) * i / CUTS), 0);
        assert_survival(copy, step, true);
        torn_writes++;
    }
}

/* Runs `scenario` in a process of its own, which stops once it has got ready, and looks at the disk before and
 * after each of its system calls. Answers at how many that was. */
static uint64_t follow(void (*scenario)(void))
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
        tear(&before, step);
        before = measure(terms.place);
    }
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return step;
}

/* ---- Those that are followed ----------------------------------------------------------------- */

static void put(struct wr_spool *spool, uint32_t count)
{
    uint32_t first = (uint32_t)told->put;
    struct wr_spool_count dropped;
    struct wr_range range = {.segment = segment,
                             .first = first,
                             .count = count,
                             .bytes = count * sizeof(weir_sample),
                             .position = first,
                             .id.sequence = first};
    told->putting = first + count;
    if (wr_spool_put(spool, &terms, &range, NULL, &dropped, &error) != WR_SPOOL_OK)
        _exit(1);
    told->put = first + count;
}

static void take(struct wr_spool *spool, uint32_t samples)
{
    struct wr_spool_want want = {.samples = samples, .bytes = BIG};
    struct wr_spool_batch batch;
    if (wr_spool_fetch(spool, &want, &batch, &error) != WR_SPOOL_OK || !batch.range.segment ||
        (uint64_t)batch.range.segment->samples[batch.range.first].value.f64 != told->settled)
        _exit(1);
    uint32_t count = batch.range.count < samples ? batch.range.count : samples;
    told->settling = told->settled + count;
    wr_spool_settle(spool, count);
    told->settled = told->settling;
    wr_segment_drop(batch.range.segment);
    wr_labels_drop(batch.labels);
}

/* Several files, of which the oldest are settled in parts and deleted. */
static void keep(void)
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
    while (told->settled < told->put)
        take(spool, 700);
    wr_spool_leave(spool);
}

Test(spool_steps, whenever_a_process_dies_what_it_put_and_has_not_settled_is_there_once, .timeout = 300)
{
    cr_assert_gt(follow(keep), 100);
    cr_assert_gt(torn_writes, 20);
    cr_assert_eq(told->settled, told->put);
}

static void leave(void)
{
    struct wr_spool *spool = wr_spool_new("push", &registry);
    terms.limit = 400 * 1024;
    put(spool, 500);
    put(spool, 600);
    put(spool, 100);
    take(spool, 200);
    _exit(0);
}

/* Takes over, and adds to it; what is left goes by deletions alone. */
static void take_over(void)
{
    struct wr_spool *spool = wr_spool_new("push", &registry);
    struct wr_spool_found found;
    raise(SIGSTOP);
    if (!wr_spool_adopt(spool, terms.place, &found, &error) || found.samples != told->put - told->settled)
        _exit(1);
    while (told->settled < told->put)
        take(spool, 150);
    wr_spool_leave(spool);
}

Test(spool_steps, whenever_one_that_takes_over_dies_the_next_one_finds_the_same, .timeout = 300)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        leave();
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_survival(copy_place(), 0, false);
    cr_assert_gt(follow(take_over), 30);
    cr_assert_eq(told->settled, told->put);
}
