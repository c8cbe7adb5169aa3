#include "measure.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ticks.h"
#include "values.h"

enum {
    BURST = 2000,
    WARM_UP = 10, /* bursts that are not measured: first use of every page and every name */
    PAUSE_NS = 1000000,
};

struct worker {
    pthread_t thread;
    long number;
    void *state;
    double *burst_ns; /* bursts: time per value, one for each burst */
    uint32_t *ticks;  /* tails: one for each call */
    double seconds;   /* lines: until the last call has returned */
    long waits;       /* voluntary context switches during calls */
};

static const struct subject *subject;
static struct task task = {.mode = "bursts",
                           .way = "",
                           .file = "",
                           .config = "",
                           .format = "text",
                           .threads = 1,
                           .bursts = 200,
                           .values = 1000000,
                           .names = 1,
                           .event = 1,
                           .handlers = 1};
static double values[VALUES];
static struct worker *workers;
static pthread_barrier_t barrier;
static _Atomic long arrived; /* threads that are ready to start the burst; never reset */
static double ticks_per_ns;

void measure_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(1);
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

static double read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double now_ns(void)
{
    return read_ns(task.cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
}

static long count_waits(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* ---- Synchronization ------------------------------------------------------------------------- */

static void sleep_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Between bursts: the same pause for all subjects; those with a queue also wait until it is empty. */
static void settle(void)
{
    do
        sleep_pause();
    while (subject->settled && !subject->settled());
}

/* Waits for the other threads, then for the pause, and then starts all threads at the same time. The wake-up
 * from a barrier takes longer than a burst, so the last step spins, unless there are more threads than
 * processors. */
static void synchronize(const struct worker *worker, long burst)
{
    if (task.threads > 1)
        pthread_barrier_wait(&barrier);
    if (worker->number == 0)
        settle();
    if (task.threads == 1)
        return;
    pthread_barrier_wait(&barrier);
    if (task.cpu_time)
        return;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < (burst + 1) * task.threads)
        ;
}

static void run_threads(void *(*run)(void *))
{
    workers = calloc((size_t)task.threads, sizeof *workers);
    if (!workers)
        measure_fail("out of memory");
    pthread_barrier_init(&barrier, NULL, (unsigned)task.threads);
    for (long i = 0; i < task.threads; i++)
        workers[i].number = i;
    if (task.threads == 1) { /* no additional thread, except those of the library */
        run(&workers[0]);
        return;
    }
    for (long i = 0; i < task.threads; i++)
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
            measure_fail("cannot create a thread");
    for (long i = 0; i < task.threads; i++)
        pthread_join(workers[i].thread, NULL);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = malloc(count * size);
    if (!memory)
        measure_fail("out of memory");
    memset(memory, 1, count * size); /* touches all pages */
    return memory;
}

/* ---- Bursts ---------------------------------------------------------------------------------- */

static const double *values_of(long burst)
{
    return values + burst * BURST % VALUES;
}

static void *run_bursts(void *argument)
{
    struct worker *worker = argument;
    worker->state = subject->begin(&task);
    worker->burst_ns = allocate((size_t)task.bursts, sizeof *worker->burst_ns);
    for (long burst = 0; burst < WARM_UP + task.bursts; burst++) {
        synchronize(worker, burst);
        long waits = count_waits();
        double start = now_ns();
        subject->add(worker->state, values_of(burst), BURST);
        double end = now_ns();
        if (burst < WARM_UP)
            continue;
        worker->waits += count_waits() - waits;
        worker->burst_ns[burst - WARM_UP] = (end - start) / BURST;
    }
    return NULL;
}

static void *run_tails(void *argument)
{
    struct worker *worker = argument;
    worker->state = subject->begin(&task);
    worker->ticks = allocate((size_t)task.bursts * BURST, sizeof *worker->ticks);
    uint32_t *next = worker->ticks;
    for (long burst = 0; burst < WARM_UP + task.bursts; burst++) {
        synchronize(worker, burst);
        if (burst == WARM_UP)
            next = worker->ticks;
        const double *from = values_of(burst);
        uint64_t before = ticks_read();
        for (long i = 0; i < BURST; i++) {
            subject->add(worker->state, from + i, 1);
            uint64_t after = ticks_read();
            uint64_t elapsed = after - before;
            before = after;
            if (burst >= WARM_UP)
                *next++ = elapsed < UINT32_MAX ? (uint32_t)elapsed : UINT32_MAX;
        }
    }
    return NULL;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static double lines_start_ns, lines_start_cpu_ns;

static void *run_lines(void *argument)
{
    struct worker *worker = argument;
    worker->state = subject->begin(&task);
    if (task.threads > 1)
        pthread_barrier_wait(&barrier);
    if (worker->number == 0) {
        lines_start_ns = now_ns();
        lines_start_cpu_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID);
    }
    if (task.threads > 1)
        pthread_barrier_wait(&barrier);
    double start = now_ns();
    for (long done = 0; done < task.values / task.threads; done += BURST)
        subject->add(worker->state, values + done % VALUES, BURST);
    worker->seconds = (now_ns() - start) / 1e9;
    return NULL;
}

/* ---- The report ------------------------------------------------------------------------------ */

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static int compare_ticks(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void report_bursts(void)
{
    size_t count = (size_t)(task.bursts * task.threads);
    double *all = allocate(count, sizeof *all);
    long waits = 0;
    for (long i = 0; i < task.threads; i++) {
        memcpy(all + i * task.bursts, workers[i].burst_ns, (size_t)task.bursts * sizeof *all);
        waits += workers[i].waits;
    }
    qsort(all, count, sizeof *all, compare_doubles);
    printf("\"call_ns\":%.3f,\"call_ns_min\":%.3f,\"waits\":%ld,", all[count / 2], all[0], waits);
}

static void report_tails(void)
{
    size_t each = (size_t)task.bursts * BURST, count = each * (size_t)task.threads;
    uint32_t *all = allocate(count, sizeof *all);
    for (size_t i = 0; i < (size_t)task.threads; i++)
        memcpy(all + i * each, workers[i].ticks, each * sizeof *all);
    qsort(all, count, sizeof *all, compare_ticks);
    uint32_t p50 = all[count / 2], p99 = all[count * 99 / 100], p999 = all[count / 1000 * 999],
             max = all[count - 1];
    printf("\"p50_ns\":%.1f,\"p99_ns\":%.1f,\"p999_ns\":%.1f,\"max_ns\":%.1f,", p50 / ticks_per_ns,
           p99 / ticks_per_ns, p999 / ticks_per_ns, max / ticks_per_ns);
}

static void report_lines(double end_ns)
{
    double longest = 0;
    for (long i = 0; i < task.threads; i++)
        longest = workers[i].seconds > longest ? workers[i].seconds : longest;
    double seconds = (end_ns - lines_start_ns) / 1e9, values_each = (double)task.values / (double)task.threads;
    double cpu_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID) - lines_start_cpu_ns;
    printf("\"seconds\":%.6f,\"rate\":%.0f,\"call_ns\":%.3f,\"cpu_ns\":%.3f,", seconds,
           (double)task.values / seconds, longest * 1e9 / values_each, cpu_ns / (double)task.values);
}

long measure_peak_kb(void)
{
    char line[256];
    long peak = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld kB", &peak) == 1)
            break;
    if (status)
        fclose(status);
    return peak;
}

static void check_count(long expected)
{
    long counted = subject->count ? subject->count(&task) : expected;
    if (counted != expected)
        measure_fail("%ld of %ld values arrived", counted, expected);
}

/* ---- The task -------------------------------------------------------------------------------- */

static const struct key {
    const char *name;
    const char **text;
    long *number;
    bool *flag;
} keys[] = {
    {"mode", &task.mode, NULL, NULL},     {"way", &task.way, NULL, NULL},
    {"file", &task.file, NULL, NULL},     {"config", &task.config, NULL, NULL},
    {"format", &task.format, NULL, NULL}, {"threads", NULL, &task.threads, NULL},
    {"bursts", NULL, &task.bursts, NULL}, {"values", NULL, &task.values, NULL},
    {"names", NULL, &task.names, NULL},   {"name_length", NULL, &task.name_length, NULL},
    {"event", NULL, &task.event, NULL},   {"handlers", NULL, &task.handlers, NULL},
    {"random", NULL, NULL, &task.random}, {"cpu_time", NULL, NULL, &task.cpu_time},
};

static bool is_mode(const char *mode)
{
    return strcmp(task.mode, mode) == 0;
}

static void read_argument(const char *argument)
{
    size_t length = strcspn(argument, "=");
    const char *value = argument[length] ? argument + length + 1 : "1";
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct key *key = &keys[i];
        if (strlen(key->name) != length || memcmp(key->name, argument, length) != 0)
            continue;
        if (key->text)
            *key->text = value;
        else if (key->number)
            *key->number = atol(value);
        else
            *key->flag = atol(value) != 0;
        return;
    }
    measure_fail("unknown argument: %s", argument);
}

static void read_task(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        read_argument(argv[i]);
    if (task.threads < 1 || task.bursts < 1 || task.names < 1 || task.event < 1)
        measure_fail("threads, bursts, names and event must be at least 1");
    if (is_mode("lines") && task.values % (task.threads * BURST))
        measure_fail("values=%ld: must be a multiple of %d times threads", task.values, BURST);
}

/* Returns how many values were added. */
static long run(void)
{
    if (is_mode("lines")) {
        run_threads(run_lines);
        return task.values;
    }
    run_threads(is_mode("tails") ? run_tails : run_bursts);
    return (WARM_UP + task.bursts) * BURST * task.threads;
}

int measure(int argc, char **argv, const struct subject *measured)
{
    subject = measured;
    read_task(argc, argv);
    values_fill(values, task.random);
    subject->open(&task);
    double start_ns = read_ns(CLOCK_MONOTONIC);
    uint64_t start_ticks = ticks_read();
    long added = run();
    subject->close(&task);
    double end_ns = read_ns(CLOCK_MONOTONIC);
    ticks_per_ns = (double)(ticks_read() - start_ticks) / (end_ns - start_ns);
    long peak_kb = measure_peak_kb();
    check_count(added);
    printf("{");
    if (is_mode("lines"))
        report_lines(end_ns);
    else if (is_mode("tails"))
        report_tails();
    else
        report_bursts();
    printf("\"values\":%ld,\"peak_kb\":%ld}\n", added, peak_kb);
    return 0;
}
