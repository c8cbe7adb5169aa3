/* once: 500,000 values through processes that are killed, end with values on disk, fork and reload, each taking
 * over from those before. A destination that keeps each (origin, sequence) once has every value exactly once.
 *
 * The program is its own worker: once.p work PLACE RUN KIND END QUOTA. KIND: "journal", "spool" (with a handler
 * that takes hardly anything), "both", "oldest" and "newest" (no disk, a slow handler, an overflow policy).
 * END: "kill" (until killed), "exit", "fork" (children add too, then exit), "reload" (as kill, reconfiguring
 * all the time), "drain" (delivers everything). Handlers append what they receive to PLACE/NAME.out, as a
 * destination would that keeps repeats; `check_handler` verifies them. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/plain.h"

enum { THREADS = 3, CHILDREN = 2, SOURCES = THREADS + CHILDREN, RUNS = 64, EVENT = 3, REFUSE_EACH = 997 };
enum { LONG_MS = 3600000 };

/* One received sample. 64 bytes, so that a page holds whole records and a kill tears none. */
struct record {
    char origin[32];
    uint64_t sequence, value, refused, unused;
};

/* In a mapped file, so that it survives the worker. */
struct progress {
    _Atomic uint64_t added[SOURCES]; /* values of this run whose calls returned 0 */
    weir_handler_stats stats[2];     /* at the worker's end */
};

static const char *place, *kind, *end;
static unsigned run;
static struct progress *progress;

static const char *path_of(const char *name)
{
    static _Thread_local char path[300];
    snprintf(path, sizeof path, "%s/%s", place, name);
    return path;
}

static struct progress *map_progress(void)
{
    int file = open(path_of("progress"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    PLAIN_CHECK(file >= 0 && ftruncate(file, sizeof *progress) == 0);
    void *memory = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    PLAIN_CHECK(memory != MAP_FAILED);
    close(file);
    return memory;
}

/* A value of its own for each added sample. */
static uint64_t value_of(unsigned of_run, unsigned source, uint64_t number)
{
    return ((uint64_t)of_run * SOURCES + source) << 24 | number;
}

static bool is_refused(uint64_t value)
{
    return value % REFUSE_EACH == 3;
}

/* ---- The handler ----------------------------------------------------------------------------- */

struct once {
    const weir_host *host;
    int file;
    uint64_t random;
    struct record *records;
    uint32_t room;
    bool has_repeated; /* a batch was taken without saying so */
};

struct once_options {
    int64_t revision;
};

static const weir_option once_rows[] = {
    {"revision", WEIR_OPTION_INT, 0, "0", NULL, "makes it another handler",
     offsetof(struct once_options, revision)},
    {0},
};

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    struct once *once = calloc(1, sizeof *once);
    PLAIN_CHECK(once);
    *once = (struct once){.host = host, .file = -1, .random = (uint64_t)getpid() * 7919 + run + 1};
    return once;
}

static void open_file(void *self, weir_outcome *outcome)
{
    struct once *once = self;
    char name[40];
    snprintf(name, sizeof name, "%s.out", once->host->name);
    if (plain_draw(&once->random, 10) == 0) {
        outcome->code = WEIR_OUTCOME_RETRY;
        return;
    }
    once->file = open(path_of(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    PLAIN_CHECK(once->file >= 0);
}

static void close_file(void *self)
{
    struct once *once = self;
    close(once->file);
    once->file = -1;
}

static void destroy(void *self)
{
    free(((struct once *)self)->records);
    free(self);
}

static void write_records(struct once *once, const weir_batch *batch, uint32_t count)
{
    if (once->room < batch->count) {
        once->room = batch->count;
        once->records = realloc(once->records, once->room * sizeof *once->records);
        PLAIN_CHECK(once->records);
    }
    PLAIN_CHECK(strlen(batch->origin) == 32 && strspn(batch->origin, "0123456789abcdef") == 32);
    for (uint32_t i = 0; i < count; i++) {
        struct record *record = &once->records[i];
        const weir_sample *sample = &batch->samples[i];
        uint64_t value =
            sample->kind == WEIR_KIND_INT ? (uint64_t)sample->value.i64 : (uint64_t)sample->value.f64;
        *record =
            (struct record){.sequence = batch->sequence + i, .value = value, .refused = is_refused(value)};
        memcpy(record->origin, batch->origin, sizeof record->origin);
    }
    ssize_t length = (ssize_t)(count * sizeof *once->records);
    PLAIN_CHECK(write(once->file, once->records, (size_t)length) == length);
}

static uint32_t count_refused(const struct once *once, uint32_t count)
{
    uint32_t refused = 0;
    for (uint32_t i = 0; i < count; i++)
        refused += once->records[i].refused != 0;
    return refused;
}

/* Takes the batch, and now and then does not say so, or says it of a part only; of the first batch it never
 * does, so something comes twice however few batches there are. */
static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct once *once = self;
    uint32_t draw = once->has_repeated ? plain_draw(&once->random, 100) : 99;
    bool drains = strcmp(end, "drain") == 0;
    if (strcmp(kind, "oldest") == 0 || strcmp(kind, "newest") == 0)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (draw < 3 || (strcmp(kind, "spool") == 0 && !drains && draw < 90)) {
        outcome->code = WEIR_OUTCOME_RETRY;
        outcome->done = 0;
        return;
    }
    write_records(once, batch, batch->count);
    outcome->done = batch->count;
    once->has_repeated = true;
    if (draw >= 97) {
        outcome->code = draw == 99 ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_RETRY;
        outcome->done = draw == 99 ? 0 : batch->count / 2;
        while (outcome->done && batch->samples[outcome->done - 1].flags & WEIR_SAMPLE_MORE)
            outcome->done--;
    }
    outcome->rejected = count_refused(once, outcome->done);
}

static const weir_handler_type once_type = {
    .size = sizeof once_type,
    .abi = WEIR_ABI,
    .name = "once",
    .summary = "appends what it receives to a file",
    .options = once_rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct once_options),
    .create = create,
    .open = open_file,
    .emit = emit,
    .close = close_file,
    .destroy = destroy,
    .abandon = close_file,
};

/* ---- The worker ------------------------------------------------------------------------------ */

/* NULL: values are never dropped. */
static const char *find_policy(void)
{
    return strcmp(kind, "oldest") == 0 ? "drop_oldest" : strcmp(kind, "newest") == 0 ? "drop_newest" : NULL;
}

/* Whether a worker that ends delivers what it has. */
static bool is_patient(void)
{
    return find_policy() || strcmp(end, "drain") == 0;
}

/* Every second revision has other handlers, and other sets of lanes with the same records. */
static void configure(unsigned revision)
{
    char journal[400] = "", more[400] = "", text[2000];
    const char *policy = find_policy();
    if (strcmp(kind, "journal") == 0 || strcmp(kind, "both") == 0)
        snprintf(journal, sizeof journal, ", \"journal\": \"%s/journal\"", place);
    if (strcmp(kind, "spool") == 0 || strcmp(kind, "both") == 0)
        snprintf(more, sizeof more, ", \"queue\": \"64KiB\", \"spool\": \"%s/spool\"", place);
    if (policy)
        snprintf(more, sizeof more, ", \"queue\": \"64KiB\", \"overflow\": \"%s\", \"linger\": \"0s\"", policy);
    int length = snprintf(
        text, sizeof text,
        "{\"settings\": {\"shutdown_timeout\": \"%s\"%s}, \"handlers\": {"
        "\"*\": {\"batch\": 700, \"retry_min\": \"10ms\", \"retry_max\": \"10ms\", \"block_timeout\": "
        "\"1h\"%s},"
        "\"A\": {\"type\": \"once\", \"revision\": %u}, \"B\": {\"type\": \"once\"}},"
        "\"groups\": {\"*\": \"A\", \"t1\": [\"A\", \"B\"], \"t2\": [%s], \"drain\": [\"A\", \"B\"]}}",
        is_patient() ? "1h" : "500ms", journal, more, revision % 2, revision % 2 ? "\"A\", \"B\"" : "\"A\"");
    if (weir_configure_text(text, (size_t)length) != 0) {
        fprintf(stderr, "%s\n", weir_last_error());
        _exit(5);
    }
}

struct source {
    unsigned number;
    uint64_t quota;
};

/* Adds values one by one, and some as events. */
static void *add_all(void *argument)
{
    const struct source *source = argument;
    char group[8];
    snprintf(group, sizeof group, "t%u", source->number % THREADS);
    weir_stream *stream = weir_get_stream(group);
    for (uint64_t number = 0; number < source->quota;) {
        double value[EVENT];
        for (unsigned i = 0; i < EVENT; i++)
            value[i] = (double)value_of(run, source->number, number + i);
        const weir_value values[EVENT] = {{"value", value[0]}, {"value", value[1]}, {"value", value[2]}};
        uint64_t count = number % 16 == 5 ? EVENT : 1;
        int result = count > 1 ? weir_emit(stream, values, EVENT) : weir_add_value(stream, "value", value[0]);
        PLAIN_CHECK(result == 0);
        number += count;
        atomic_store(&progress->added[source->number], number);
    }
    return NULL;
}

static void add_in_children(uint64_t quota)
{
    for (unsigned i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        PLAIN_CHECK(child >= 0);
        if (child == 0) {
            add_all(&(struct source){THREADS + i, quota});
            exit(0);
        }
    }
}

static void wait_for_children(void)
{
    int status;
    while (wait(&status) > 0)
        PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void keep_stats(void)
{
    PLAIN_CHECK(weir_get_handler_stats("A", &progress->stats[0], sizeof(weir_handler_stats)) == 0);
    PLAIN_CHECK(weir_get_handler_stats("B", &progress->stats[1], sizeof(weir_handler_stats)) == 0);
}

static bool has_undelivered(void)
{
    weir_handler_stats stats;
    uint64_t count = 0;
    for (int i = 0; i < 2; i++)
        if (weir_get_handler_stats(i ? "B" : "A", &stats, sizeof stats) == 0)
            count += stats.queued + stats.spooled;
    weir_stats process;
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    return count || process.in_rings;
}

static int work(uint64_t quota)
{
    pthread_t threads[THREADS];
    struct source sources[THREADS];
    bool reloads = strcmp(end, "reload") == 0, forks = strcmp(end, "fork") == 0;
    PLAIN_CHECK(weir_register_handler_type(&once_type, NULL) == 0);
    configure(0);
    weir_add_int(weir_get_stream("drain"), "value", -1);
    if (forks)
        add_in_children(quota / SOURCES);
    for (unsigned i = 0; i < THREADS; i++) {
        sources[i] = (struct source){i, strcmp(end, "drain") == 0 ? 0 : quota / (forks ? SOURCES : THREADS)};
        PLAIN_CHECK(pthread_create(&threads[i], NULL, add_all, &sources[i]) == 0);
    }
    for (unsigned revision = 1; reloads; revision++) {
        configure(revision);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    wait_for_children();
    if (strcmp(end, "kill") == 0)
        pause();
    while (strcmp(end, "drain") == 0 && has_undelivered())
        PLAIN_CHECK(weir_flush(LONG_MS) != WEIR_ERR_TIMEOUT);
    /* with -1 a handler that fails just then would get no other try */
    weir_shutdown(is_patient() ? LONG_MS : 500);
    keep_stats();
    return 0;
}

/* ---- The one that starts workers, and kills them --------------------------------------------- */

static uint64_t promised[RUNS][SOURCES];
static unsigned killed;

static uint64_t sum_added(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < SOURCES; i++)
        sum += atomic_load(&progress->added[i]);
    return sum;
}

static pid_t start(uint64_t quota)
{
    char run_text[16], quota_text[24];
    memset(progress, 0, sizeof *progress);
    snprintf(run_text, sizeof run_text, "%u", run);
    snprintf(quota_text, sizeof quota_text, "%" PRIu64, quota);
    pid_t child = fork();
    PLAIN_CHECK(child >= 0);
    if (child == 0) {
        setpgid(0, 0);
        execl("/proc/self/exe", "once", "work", place, run_text, kind, end, quota_text, (char *)NULL);
        _exit(6);
    }
    return child;
}

static void check_ledgers(bool nothing_left)
{
    for (int i = 0; i < 2; i++) {
        const weir_handler_stats *stats = &progress->stats[i];
        uint64_t dropped = 0;
        for (int j = 0; j < WEIR_DROPPED_MAX; j++)
            dropped += stats->dropped[j];
        PLAIN_CHECK(stats->offered + stats->recovered ==
                    stats->delivered + dropped + stats->queued + stats->spooled);
        PLAIN_CHECK(!nothing_left || (!stats->queued && !stats->spooled));
        dropped -= stats->dropped[WEIR_DROPPED_REJECTED];
        /* a block that was torn by a kill; the journal has its values */
        dropped -= strcmp(kind, "both") == 0 ? stats->dropped[WEIR_DROPPED_CORRUPT] : 0;
        PLAIN_CHECK(find_policy() || !dropped);
    }
}

/* Runs a worker with so many values at most; one that is to be killed dies after a random part of them. */
static void run_worker(const char *how, uint64_t quota, uint64_t *random)
{
    int status;
    end = how;
    PLAIN_CHECK(run < RUNS);
    pid_t worker = start(quota);
    bool kills = strcmp(how, "kill") == 0 || strcmp(how, "reload") == 0;
    uint64_t until = quota / 2 + plain_draw(random, (uint32_t)(quota / 2) + 1);
    while (kills && sum_added() < until && waitpid(worker, &status, WNOHANG) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    if (kills) {
        kill(-worker, SIGKILL);
        killed++;
    }
    PLAIN_CHECK(waitpid(worker, &status, 0) == worker);
    PLAIN_CHECK(kills ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!kills)
        check_ledgers(strcmp(how, "drain") == 0);
    for (unsigned i = 0; i < SOURCES; i++)
        promised[run][i] = atomic_load(&progress->added[i]);
    run++;
}

/* ---- Verification ---------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const struct record *first = a, *second = b;
    int order = memcmp(first->origin, second->origin, sizeof first->origin);
    if (order)
        return order;
    return first->sequence < second->sequence ? -1 : first->sequence > second->sequence;
}

static int compare_values(const void *a, const void *b)
{
    const struct record *first = a, *second = b;
    return first->value < second->value ? -1 : first->value > second->value;
}

static struct record *read_records(const char *handler, size_t *count)
{
    char name[40];
    struct stat status;
    snprintf(name, sizeof name, "%s.out", handler);
    int file = open(path_of(name), O_RDONLY | O_CLOEXEC);
    PLAIN_CHECK(file >= 0 && fstat(file, &status) == 0 && status.st_size % (off_t)sizeof(struct record) == 0);
    *count = (size_t)status.st_size / sizeof(struct record);
    struct record *records = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    PLAIN_CHECK(records != MAP_FAILED);
    close(file);
    return records;
}

/* Leaves one record of each identity. All that share one must be the same sample. */
static size_t leave_out_repeats(struct record *records, size_t count)
{
    size_t kept = 0;
    qsort(records, count, sizeof *records, compare_ids);
    for (size_t i = 0; i < count; i++) {
        if (kept && compare_ids(&records[kept - 1], &records[i]) == 0)
            PLAIN_CHECK(records[kept - 1].value == records[i].value, "one identity, two samples");
        else
            records[kept++] = records[i];
    }
    return kept;
}

/* Of each source the values came from 0 on, without a gap, up to at least what was promised. One more may have
 * been added by a call that was killed before it could say so. */
static void check_values(const struct record *records, size_t count, unsigned sources)
{
    uint64_t next[RUNS][SOURCES] = {{0}};
    for (size_t i = 0; i < count; i++) {
        uint64_t value = records[i].value, of_run = (value >> 24) / SOURCES, source = (value >> 24) % SOURCES;
        if ((int64_t)value == -1)
            continue;
        PLAIN_CHECK(!i || records[i - 1].value != value, "one sample, two identities");
        PLAIN_CHECK(of_run < RUNS &&
                        (sources >> source & 1 ? (value & 0xffffff) == next[of_run][source] : true),
                    "a value is missing");
        next[of_run][source]++;
    }
    for (unsigned i = 0; i < run; i++)
        for (unsigned j = 0; j < SOURCES; j++)
            PLAIN_CHECK(!(sources >> j & 1) ||
                        (next[i][j] >= promised[i][j] && next[i][j] <= promised[i][j] + EVENT));
}

/* sources: bits of those of which the handler has to have received everything. Returns how many values there
 * are. */
static size_t check_handler(const char *handler, unsigned sources)
{
    size_t count, kept;
    struct record *records = read_records(handler, &count);
    kept = leave_out_repeats(records, count);
    printf("%s: %zu received, %zu values\n", handler, count, kept);
    PLAIN_CHECK(count > kept, "nothing came twice");
    qsort(records, kept, sizeof *records, compare_values);
    check_values(records, kept, sources);
    munmap(records, count * sizeof *records);
    return kept;
}

/* Under a policy that drops, with one process: as many identities are missing as values were dropped. */
static void check_gaps(const char *handler, const weir_handler_stats *stats)
{
    size_t count, kept;
    struct record *records = read_records(handler, &count);
    kept = leave_out_repeats(records, count);
    PLAIN_CHECK(kept == stats->offered - stats->dropped[WEIR_DROPPED_FULL]);
    for (size_t i = 0; i < kept; i++) {
        PLAIN_CHECK(records[i].sequence < stats->offered);
        PLAIN_CHECK(memcmp(records[i].origin, records[0].origin, sizeof records->origin) == 0);
    }
    PLAIN_CHECK(stats->delivered + stats->dropped[WEIR_DROPPED_REJECTED] == kept);
    printf("%s: %zu received, %" PRIu64 " offered, %" PRIu64 " dropped\n", handler, count, stats->offered,
           stats->dropped[WEIR_DROPPED_FULL]);
    munmap(records, count * sizeof *records);
}

/* ---- The phases ------------------------------------------------------------------------------ */

static void begin(const char *what)
{
    static char path[64];
    char command[160];
    kind = what;
    run = 0;
    memset(promised, 0, sizeof promised);
    snprintf(path, sizeof path, "/tmp/weir-once-%ld", (long)getpid());
    place = path;
    snprintf(command, sizeof command, "rm -rf %s && mkdir -m 700 %s", path, path);
    PLAIN_CHECK(system(command) == 0);
    progress = map_progress();
}

static void finish(void)
{
    char command[160];
    munmap(progress, sizeof *progress);
    snprintf(command, sizeof command, "rm -rf %s", place);
    PLAIN_CHECK(system(command) == 0);
}

/* But for damaged files that were set aside. */
static bool is_empty(const char *name)
{
    char command[400];
    snprintf(command, sizeof command, "test -z \"$(ls -A %s 2>/dev/null | grep -v 'bad$')\"", path_of(name));
    return system(command) == 0;
}

/* Delivers what is left of all processes. Blocks that were torn by a kill are kept, as .bad. */
static void drain(uint64_t *random)
{
    run_worker("drain", 0, random);
    PLAIN_CHECK(is_empty("journal"));
    PLAIN_CHECK(is_empty("spool"));
}

/* Workers that are killed, or end, one after the other. Returns how many values arrived. */
static size_t take_turns(const char *what, const char *const ends[], unsigned rounds, uint64_t quota,
                         uint64_t *random)
{
    begin(what);
    for (unsigned i = 0; i < rounds; i++)
        for (const char *const *how = ends; *how; how++)
            run_worker(*how, quota, random);
    drain(random);
    size_t values = check_handler("A", (1u << SOURCES) - 1);
    check_handler("B", 1u << 1 | 1u << 4);
    finish();
    return values;
}

static void drop(const char *policy, uint64_t quota, uint64_t *random)
{
    begin(policy);
    run_worker("exit", quota, random);
    check_gaps("A", &progress->stats[0]);
    check_gaps("B", &progress->stats[1]);
    PLAIN_CHECK(progress->stats[0].dropped[WEIR_DROPPED_FULL] > 0, "nothing was dropped");
    finish();
}

int main(int argc, char **argv)
{
    static const char *const dying[] = {"fork", "kill", "reload", NULL}, *const ending[] = {"fork", "exit",
                                                                                            NULL};
    /* the sanitizers' allocators do not support a fork of a threaded program */
    const size_t first = plain_is_sanitized("") ? 1 : 0;
    uint64_t random = 4711;
    if (argc == 7) {
        place = argv[2];
        run = (unsigned)atoi(argv[3]);
        kind = argv[4];
        end = argv[5];
        progress = map_progress();
        return work(strtoull(argv[6], NULL, 10));
    }
    setenv("WEIR_LOG", "error", 1);
    unsetenv("WEIR_CONFIG");
    const char *wanted = getenv("WEIR_TEST_VALUES");
    uint64_t values = wanted ? strtoull(wanted, NULL, 10) : 500000;
    size_t arrived = take_turns("journal", dying + first, 4, values / 24, &random);
    arrived += take_turns("spool", ending + first, 4, values / 32, &random);
    arrived += take_turns("both", dying + first, 4, values / 24, &random);
    drop("oldest", values / 5, &random);
    drop("newest", values / 5, &random);
    printf("%zu values, %u workers killed\n", arrived, killed);
    return 0;
}
