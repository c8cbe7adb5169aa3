/* scan: walks a folder, hashes every file in several threads, and measures this work.
 *
 *     scan [-j THREADS] [-c CONFIG] FOLDER
 *
 * Group scan.io: bytes and read.ms for each file, errors; group scan.cpu: hash.ms and mb_per_s for each file,
 * and the duration of the whole walk. Without a configuration it only prints its result. The exit status is 1
 * if the folder cannot be walked; an unreadable file only counts as an error. */

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

enum { MAX_THREADS = 64, MAX_QUEUED = 256, BLOCK_BYTES = 64 * 1024 };

/* Paths found by the walk, to be hashed by the threads. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    char *paths[MAX_QUEUED];
    int first, count;
    bool closed;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* The results of all threads. */
static struct {
    pthread_mutex_t lock;
    uint64_t files, bytes, errors, hash;
} total = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes ownership of the path. Waits while the queue is full. */
static void put_path(char *path)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == MAX_QUEUED)
        pthread_cond_wait(&queue.change, &queue.lock);
    queue.paths[(queue.first + queue.count++) % MAX_QUEUED] = path;
    pthread_cond_broadcast(&queue.change);
    pthread_mutex_unlock(&queue.lock);
}

/* Caller frees the path. Returns NULL when the queue is closed and empty. */
static char *take_path(void)
{
    char *path = NULL;
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0 && !queue.closed)
        pthread_cond_wait(&queue.change, &queue.lock);
    if (queue.count) {
        path = queue.paths[queue.first];
        queue.first = (queue.first + 1) % MAX_QUEUED;
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
    unsigned char block[BLOCK_BYTES];
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
    weir_count(io, "errors", 1);
    pthread_mutex_lock(&total.lock);
    total.errors++;
    pthread_mutex_unlock(&total.lock);
}

/* Units and help belong to a series. Each thread has its own series because of its label. */
static void describe(weir_stream *io, weir_stream *cpu)
{
    weir_describe(io, "bytes", "bytes", "size of a file");
    weir_describe(io, "read.ms", "ms", "time spent in read(2) for a file");
    weir_describe(cpu, "hash.ms", "ms", "time spent hashing a file");
    weir_describe(cpu, "mb_per_s", "MB/s", "speed of hashing a file");
}

static void *work(void *argument)
{
    const weir_label labels[] = {{"thread", argument}};
    weir_stream *io = weir_get_stream_labeled("scan.io", labels, 1);
    weir_stream *cpu = weir_get_stream_labeled("scan.cpu", labels, 1);
    struct result result;
    describe(io, cpu);
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

/* Returns 0, or errno if the root folder cannot be walked. */
static int visit(FTSENT *entry)
{
    bool is_bad = entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS;
    char *path = entry->fts_info == FTS_F ? strdup(entry->fts_accpath) : NULL;
    if (is_bad && entry->fts_level == FTS_ROOTLEVEL)
        return entry->fts_errno;
    if (path)
        put_path(path);
    else if (is_bad || entry->fts_info == FTS_F)
        count_error(weir_get_stream("scan.io"));
    return 0;
}

/* Returns 0 or errno. */
static int walk(char *folder)
{
    char *roots[] = {folder, NULL};
    int error = 0;
    WEIR_PROF(prof, weir_get_stream("scan.cpu"), "walk");
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!tree)
        error = errno;
    for (FTSENT *entry; !error && (entry = fts_read(tree));)
        error = visit(entry);
    if (tree)
        fts_close(tree);
    if (error)
        weir_prof_fail(&prof);
    return error;
}

static void close_queue(void)
{
    pthread_mutex_lock(&queue.lock);
    queue.closed = true;
    pthread_cond_broadcast(&queue.change);
    pthread_mutex_unlock(&queue.lock);
}

struct request {
    int threads;
    char *folder;
};

static int show_usage(void)
{
    fprintf(stderr, "usage: scan [-j THREADS] [-c CONFIG] FOLDER\n");
    return 2;
}

/* Returns 0, or the exit status. */
static int parse(int argc, char **argv, struct request *request)
{
    for (int option; (option = getopt(argc, argv, "j:c:")) != -1;) {
        if (option == 'j') {
            request->threads = atoi(optarg);
        } else if (option != 'c') {
            return show_usage();
        } else if (weir_configure_file(optarg)) {
            fprintf(stderr, "scan: %s\n", weir_last_error());
            return 1;
        }
    }
    if (optind + 1 != argc || request->threads < 1 || request->threads > MAX_THREADS)
        return show_usage();
    request->folder = argv[optind];
    return 0;
}

/* Returns how many threads were started. */
static int start(int wanted, pthread_t *threads)
{
    static char names[MAX_THREADS][12];
    int started = 0;
    for (int i = 0; i < wanted; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        started += pthread_create(&threads[started], NULL, work, names[i]) == 0;
    }
    return started;
}

int main(int argc, char **argv)
{
    struct request request = {.threads = 4};
    pthread_t threads[MAX_THREADS];
    int status = parse(argc, argv, &request);
    if (status)
        return status;
    int started = start(request.threads, threads);
    int error = started ? walk(request.folder) : EAGAIN;
    close_queue();
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (error) {
        fprintf(stderr, "scan: %s: %s\n", request.folder, strerror(error));
        return 1;
    }
    weir_flush(-1);
    printf("%" PRIu64 " files, %" PRIu64 " bytes, %" PRIu64 " errors, hash %016" PRIx64 "\n", total.files,
           total.bytes, total.errors, total.hash);
    return 0;
}
