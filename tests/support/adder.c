/* adder: a program that adds values as it is told, for judges to look at.
 *
 * Thread number k adds the values 0, 1, 2, ... under the name "t<k>", so that a reader can tell whether each
 * came once and in order; with -s all add under one name, "t", each of them values of its own; with -a all have
 * one time. */

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

enum { MOST_THREADS = 64, MOST_HANDLERS = 16, MOST_FILES = 8 };

static struct {
    const char *group;
    int threads;
    long values;
    int event;      /* values an event; 1: weir_add_value */
    long pause_ns;  /* between two values */
    const char *by; /* name, handle */
    const char *end;
    const char *files[MOST_FILES]; /* configurations, put in force in turn */
    int file_count;
    int reloads;
    int flush_ms;                        /* -2: no flush */
    const char *handlers[MOST_HANDLERS]; /* whose ledgers are printed */
    int handler_count;
    bool shared;     /* the name */
    int64_t time_ns; /* of all values; 0: each has its own */
    bool quiet;
    bool prints_threads;
} told = {
    .group = "my_app", .threads = 1, .values = 1, .event = 1, .by = "name", .end = "return", .flush_ms = -2};

static void pause_for(long ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    if (ns)
        nanosleep(&time, NULL);
}

static void add_events(weir_stream *stream, const char *name, long start)
{
    weir_value values[1000];
    for (long i = 0; i < told.values; i += told.event) {
        int count = 0;
        for (; count < told.event && i + count < told.values; count++)
            values[count] = (weir_value){name, (double)(start + i + count)};
        weir_emit(stream, values, (size_t)count);
        pause_for(told.pause_ns);
    }
}

static void add_at_time(weir_stream *stream, const char *name, double value)
{
    weir_sample_spec spec = {.size = sizeof spec, .name = name, .value = value, .time_ns = told.time_ns};
    weir_add_sample(stream, &spec);
}

static void *add(void *argument)
{
    char name[16] = "t";
    int number = *(int *)argument;
    long start = told.shared ? number * told.values : 0;
    if (!told.shared)
        snprintf(name, sizeof name, "t%d", number);
    weir_stream *stream = weir_get_stream(told.group);
    weir_metric *metric = weir_get_metric(stream, name);
    if (told.event > 1) {
        add_events(stream, name, start);
        return NULL;
    }
    bool by_handle = strcmp(told.by, "handle") == 0;
    for (long i = 0; i < told.values; i++) {
        if (told.time_ns)
            add_at_time(stream, name, (double)(start + i));
        else if (by_handle)
            weir_metric_add(metric, (double)(start + i));
        else
            weir_add_value(stream, name, (double)(start + i));
        pause_for(told.pause_ns);
    }
    return NULL;
}

static void *reload(void *argument)
{
    (void)argument;
    for (int i = 0; i < told.reloads; i++) {
        if (weir_configure_file(told.files[i % told.file_count])) {
            fprintf(stderr, "adder: %s\n", weir_last_error());
            exit(3);
        }
        pause_for(5000000);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[MOST_THREADS], reloader;
    int numbers[MOST_THREADS];
    if (told.reloads)
        pthread_create(&reloader, NULL, reload, NULL);
    for (int i = 0; i < told.threads; i++) {
        numbers[i] = i;
        if (told.threads == 1)
            add(&numbers[i]);
        else
            pthread_create(&threads[i], NULL, add, &numbers[i]);
    }
    for (int i = 0; told.threads > 1 && i < told.threads; i++)
        pthread_join(threads[i], NULL);
    if (told.reloads)
        pthread_join(reloader, NULL);
}

/* ---- Reports --------------------------------------------------------------------------------- */

static void print_counts(const char *key, const uint64_t *counts, int count)
{
    printf("\"%s\":[", key);
    for (int i = 0; i < count; i++)
        printf("%s%" PRIu64, i ? "," : "", counts[i]);
    printf("]");
}

static void print_handler(const char *name)
{
    weir_handler_stats stats;
    if (weir_get_handler_stats(name, &stats, sizeof stats)) {
        printf("\"%s\":null", name);
        return;
    }
    printf("\"%s\":{\"offered\":%" PRIu64 ",\"recovered\":%" PRIu64 ",\"delivered\":%" PRIu64
           ",\"queued\":%" PRIu64 ",\"spooled\":%" PRIu64 ",\"queue_bytes\":%" PRIu64 ",\"retries\":%" PRIu64
           ",\"faults\":%" PRIu64 ",\"failing\":%d,\"open\":%d,",
           name, stats.offered, stats.recovered, stats.delivered, stats.queued, stats.spooled,
           stats.queue_bytes, stats.retries, stats.faults, stats.failing, stats.open);
    print_counts("dropped", stats.dropped, WEIR_DROPPED_MAX);
    printf("}");
}

static void print_report(int flushed)
{
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    printf("{\"flush\":%d,\"process\":{\"added\":%" PRIu64 ",\"taken\":%" PRIu64 ",\"in_rings\":%" PRIu64
           ",\"unrouted\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"series\":%" PRIu64 ",",
           flushed, stats.added, stats.taken, stats.in_rings, stats.unrouted, stats.threads, stats.series);
    print_counts("refused", stats.refused, WEIR_REFUSED_MAX);
    printf("},\"handlers\":{");
    for (int i = 0; i < told.handler_count; i++) {
        printf("%s", i ? "," : "");
        print_handler(told.handlers[i]);
    }
    printf("}}\n");
    fflush(stdout);
}

static void print_thread_count(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "Threads:", 8) == 0)
            fputs(line, stdout);
    if (status)
        fclose(status);
    fflush(stdout);
}

/* ---- Being told ------------------------------------------------------------------------------ */

static void listen_to(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "g:t:n:e:p:b:x:c:r:f:H:a:sqT")) != -1;) {
        switch (option) {
        case 'g': told.group = optarg; break;
        case 't': told.threads = atoi(optarg); break;
        case 'n': told.values = atol(optarg); break;
        case 'e': told.event = atoi(optarg); break;
        case 'p': told.pause_ns = atol(optarg); break;
        case 'b': told.by = optarg; break;
        case 'x': told.end = optarg; break;
        case 'c': told.files[told.file_count++] = optarg; break;
        case 'r': told.reloads = atoi(optarg); break;
        case 'f': told.flush_ms = atoi(optarg); break;
        case 'H': told.handlers[told.handler_count++] = optarg; break;
        case 'a': told.time_ns = atoll(optarg); break;
        case 's': told.shared = true; break;
        case 'q': told.quiet = true; break;
        case 'T': told.prints_threads = true; break;
        default: exit(2);
        }
    }
}

static int leave(void)
{
    if (strcmp(told.end, "exit") == 0)
        exit(0);
    if (strcmp(told.end, "_exit") == 0)
        _exit(0);
    if (strcmp(told.end, "abort") == 0)
        abort();
    if (strcmp(told.end, "shutdown") == 0)
        weir_shutdown(-1);
    if (strcmp(told.end, "sleep") == 0)
        for (;;)
            pause();
    return 0;
}

int main(int argc, char **argv)
{
    listen_to(argc, argv);
    if (told.file_count && !told.reloads && weir_configure_file(told.files[0])) {
        fprintf(stderr, "adder: %s\n", weir_last_error());
        return 3;
    }
    run_threads();
    int flushed = told.flush_ms > -2 ? weir_flush(told.flush_ms) : 0;
    if (told.prints_threads)
        print_thread_count();
    if (!told.quiet)
        print_report(flushed);
    return leave();
}
