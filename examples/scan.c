/* scan: walks a folder, hashes every file in several threads, and measures it.
 *
 *     scan [-j THREADS] [-c CONFIG] FOLDER
 *
 * Group scan.io: bytes and read.ms for each file, errors; group scan.cpu: hash.ms and mb_per_s for each file,
 * and how long the whole walk took. Without a configuration it just prints its result. */

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

enum { WAITING_MOST = 256, BLOCK = 64 * 1024 };

/* Paths on their way from the walk to the threads that hash. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    char *paths[WAITING_MOST];
    int first, count;
    bool over;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* What all threads found together. */
static struct {
    pthread_mutex_t lock;
    uint64_t files, bytes, errors, hash;
} total = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void put_path(const char *path)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == WAITING_MOST)
        pthread_cond_wait(&queue.change, &queue.lock);
    queue.paths[(queue.first + queue.count++) % WAITING_MOST] = strdup(path);
    pthread_cond_broadcast(&queue.change);
    pthread_mutex_unlock(&queue.lock);
}

/* NULL: there will be no more. */
static char *take_path(void)
{
    char *path = NULL;
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0 && !queue.over)
        pthread_cond_wait(&queue.change, &queue.lock);
    if (queue.count) {
        path = queue.paths[queue.first];
        queue.first = (queue.first + 1) % WAITING_MOST;
        queue.count--;
        pthread_cond_broadcast(&queue.change);
    }
    pthread_mutex_unlock(&queue.lock);
    return path;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

/* FNV-1a */
static uint64_t hash_block(uint64_t hash, const unsigned char *block, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ block[i]) * UINT64_C(1099511628211);
    return hash;
}

struct result {
    uint64_t bytes, hash;
    int64_t read_ns, hash_ns;
};

static bool hash_file(const char *path, struct result *result)
{
    unsigned char block[BLOCK];
    ssize_t got;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    *result = (struct result){.hash = UINT64_C(14695981039346656037)};
    for (;;) {
        int64_t start = now_ns();
        got = read(fd, block, sizeof block);
        int64_t read_end = now_ns();
        result->read_ns += read_end - start;
        if (got <= 0)
            break;
        result->hash = hash_block(result->hash, block, (size_t)got);
        result->hash_ns += now_ns() - read_end;
        result->bytes += (uint64_t)got;
    }
    close(fd);
    return got == 0;
}

static void add_to_total(const struct result *result)
{
    pthread_mutex_lock(&total.lock);
    total.files++;
    total.bytes += result->bytes;
    total.hash ^= result->hash;
    pthread_mutex_unlock(&total.lock);
}

static void count_error(weir_stream *io)
{
    weir_add_int(io, "errors", 1);
    pthread_mutex_lock(&total.lock);
    total.errors++;
    pthread_mutex_unlock(&total.lock);
}

static void *work(void *argument)
{
    const weir_label labels[] = {{"thread", argument}};
    weir_stream *io = weir_get_stream_labeled("scan.io", labels, 1);
    weir_stream *cpu = weir_get_stream_labeled("scan.cpu", labels, 1);
    struct result result;
    for (char *path; (path = take_path()); free(path)) {
        if (!hash_file(path, &result)) {
            count_error(io);
            continue;
        }
        WEIR_EMIT(io, {"bytes", (double)result.bytes}, {"read.ms", ms(result.read_ns)});
        WEIR_EMIT(cpu, {"hash.ms", ms(result.hash_ns)},
                  {"mb_per_s", result.hash_ns ? 1e3 * (double)result.bytes / (double)result.hash_ns : 0});
        add_to_total(&result);
    }
    return NULL;
}

static bool walk(const char *folder)
{
    char *roots[] = {(char *)folder, NULL};
    WEIR_PROF(prof, weir_get_stream("scan.cpu"), "walk");
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!tree) {
        weir_prof_fail(&prof);
        return false;
    }
    for (FTSENT *entry; (entry = fts_read(tree));) {
        if (entry->fts_info == FTS_F)
            put_path(entry->fts_accpath);
        else if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS)
            count_error(weir_get_stream("scan.io"));
    }
    fts_close(tree);
    return true;
}

static void describe(void)
{
    weir_stream *io = weir_get_stream("scan.io"), *cpu = weir_get_stream("scan.cpu");
    weir_describe(io, "bytes", "bytes", "size of a file");
    weir_describe(io, "read.ms", "ms", "time spent in read(2) for a file");
    weir_describe(cpu, "hash.ms", "ms", "time spent hashing a file");
}

int main(int argc, char **argv)
{
    enum { MOST_THREADS = 64 };
    pthread_t threads[MOST_THREADS];
    char names[MOST_THREADS][12];
    int count = 4;
    for (int option; (option = getopt(argc, argv, "j:c:")) != -1;) {
        if (option == 'j')
            count = atoi(optarg);
        else if (option != 'c')
            return 2;
        else if (weir_configure_file(optarg)) {
            fprintf(stderr, "scan: %s\n", weir_last_error());
            return 1;
        }
    }
    if (optind + 1 != argc || count < 1 || count > MOST_THREADS) {
        fprintf(stderr, "usage: scan [-j THREADS] [-c CONFIG] FOLDER\n");
        return 2;
    }
    describe();
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        pthread_create(&threads[i], NULL, work, names[i]);
    }
    bool walked = walk(argv[optind]);
    pthread_mutex_lock(&queue.lock);
    queue.over = true;
    pthread_cond_broadcast(&queue.change);
    pthread_mutex_unlock(&queue.lock);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    if (!walked) {
        fprintf(stderr, "scan: %s: %s\n", argv[optind], strerror(errno));
        return 1;
    }
    weir_flush(-1);
    printf("%" PRIu64 " files, %" PRIu64 " bytes, %" PRIu64 " errors, hash %016" PRIx64 "\n", total.files,
           total.bytes, total.errors, total.hash);
    return 0;
}
