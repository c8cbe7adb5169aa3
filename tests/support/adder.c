/* adder: adds values as its options say, and prints its ledgers.
 *
 * Thread number k adds the values 0, 1, 2, ... under the name "t<k>", so that a reader can check that each
 * arrived once and in order. With -s all threads add under one name, "t", and no two add the same value; with
 * -a all values have the same time. With -i N it reads a line from standard input after every N values of a
 * thread, until the end of that file, so that a test can do something in between. With -d N and -e M it adds
 * events of M values for N seconds. */

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "ledger_json.h"

enum { MOST_THREADS = 64, MOST_HANDLERS = 16, MOST_FILES = 8 };

static struct {
    const char *group;
    int threads;
    long values;
    int event;      /* values per event; 1: weir_add_value */
    long pause_ns;  /* between two values */
    long seconds;   /* no event is added later than this after the first; 0: any time */
    const char *by; /* name, handle */
    const char *end;
    const char *files[MOST_FILES]; /* configurations, applied in turn */
    int file_count;
    int reloads;
    long each;                           /* number of values after which a line is read; 0: never */
    long added_before;                   /* values that are added before the second configuration is applied */
    int flush_ms;                        /* -2: no flush; -3: for ever, until nothing is on disk only */
    const char *handlers[MOST_HANDLERS]; /* whose ledgers are printed */
    int handler_count;
    bool shared;     /* all threads use one name */
    int64_t time_ns; /* of all values; 0: the current time */
    bool quiet;
    bool prints_threads;
} options = {
    .group = "my_app", .threads = 1, .values = 1, .event = 1, .by = "name", .end = "return", .flush_ms = -2};

static void pause_for(long ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    if (ns)
        nanosleep(&time, NULL);
}

static void wait_for_line(long added)
{
    int character = 0;
    while (options.each && added % options.each == 0 && character != '\n' && character != EOF)
        character = getchar();
}

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void add_events(weir_stream *stream, const char *name, long start)
{
    weir_value values[1000];
    time_t end = options.seconds ? now_s() + options.seconds : 0;
    for (long i = 0; i < options.values && (!end || now_s() < end); i += options.event) {
        int count = 0;
        for (; count < options.event && i + count < options.values; count++)
            values[count] = (weir_value){name, (double)(start + i + count)};
        weir_emit(stream, values, (size_t)count);
        pause_for(options.pause_ns);
    }
}

static void add_at_time(weir_stream *stream, const char *name, double value)
{
    weir_sample_spec spec = {.size = sizeof spec, .name = name, .value = value, .time_ns = options.time_ns};
    weir_add(stream, &spec);
}

static void *add(void *argument)
{
    char name[16] = "t";
    int number = *(int *)argument;
    long start = options.shared ? number * options.values : 0;
    if (!options.shared)
        snprintf(name, sizeof name, "t%d", number);
    weir_stream *stream = weir_get_stream(options.group);
    weir_metric *metric = weir_get_metric(stream, name);
    if (options.event > 1) {
        add_events(stream, name, start);
        return NULL;
    }
    bool by_handle = strcmp(options.by, "handle") == 0;
    for (long i = 0; i < options.values; i++) {
        if (options.time_ns)
            add_at_time(stream, name, (double)(start + i));
        else if (by_handle)
            weir_metric_add(metric, (double)(start + i));
        else
            weir_add_value(stream, name, (double)(start + i));
        pause_for(options.pause_ns);
        wait_for_line(i + 1);
    }
    return NULL;
}

static void wait_for_values(void)
{
    weir_stats stats = {0};
    while (stats.added < (uint64_t)options.added_before) {
        pause_for(1000000);
        weir_get_stats(&stats, sizeof stats);
    }
}

static void *reload(void *argument)
{
    (void)argument;
    for (int i = 0; i < options.reloads; i++) {
        if (i == 1)
            wait_for_values();
        if (weir_configure_file(options.files[i % options.file_count])) {
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
    if (options.reloads)
        pthread_create(&reloader, NULL, reload, NULL);
    for (int i = 0; i < options.threads; i++) {
        numbers[i] = i;
        if (options.threads == 1)
            add(&numbers[i]);
        else
            pthread_create(&threads[i], NULL, add, &numbers[i]);
    }
    for (int i = 0; options.threads > 1 && i < options.threads; i++)
        pthread_join(threads[i], NULL);
    if (options.reloads)
        pthread_join(reloader, NULL);
}

/* ---- Reports --------------------------------------------------------------------------------- */

static void print_report(int flushed)
{
    printf("{\"flush\":%d,", flushed);
    ledger_json_process();
    printf(",\"handlers\":{");
    for (int i = 0; i < options.handler_count; i++) {
        printf("%s", i ? "," : "");
        ledger_json_handler(options.handlers[i]);
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

static void log_as_weir(void *context, int level, const char *text)
{
    static const char *const names[] = {"off", "error", "warning", "info", "debug"};
    (void)context;
    fprintf(stderr, "weir: %s: %s\n", names[level], text);
}

/* ---- Options --------------------------------------------------------------------------------- */

static void read_options(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "g:t:n:e:p:d:i:b:x:c:r:w:f:H:a:sqTl")) != -1;) {
        switch (option) {
        case 'g': options.group = optarg; break;
        case 't': options.threads = atoi(optarg); break;
        case 'n': options.values = atol(optarg); break;
        case 'e': options.event = atoi(optarg); break;
        case 'p': options.pause_ns = atol(optarg); break;
        case 'd': options.seconds = atol(optarg); break;
        case 'i': options.each = atol(optarg); break;
        case 'b': options.by = optarg; break;
        case 'x': options.end = optarg; break;
        case 'c': options.files[options.file_count++] = optarg; break;
        case 'r': options.reloads = atoi(optarg); break;
        case 'w': options.added_before = atol(optarg); break;
        case 'f': options.flush_ms = atoi(optarg); break;
        case 'H': options.handlers[options.handler_count++] = optarg; break;
        case 'a': options.time_ns = atoll(optarg); break;
        case 's': options.shared = true; break;
        case 'q': options.quiet = true; break;
        case 'T': options.prints_threads = true; break;
        case 'l': weir_set_log(log_as_weir, NULL); break;
        default: exit(2);
        }
    }
}

static void add_late(void)
{
    for (int i = 0; i < 3; i++)
        weir_add_int(weir_get_stream(options.group), "late", i);
}

static int leave(void)
{
    if (strcmp(options.end, "late") == 0)
        atexit(add_late);
    if (strcmp(options.end, "exit") == 0)
        exit(0);
    if (strcmp(options.end, "_exit") == 0)
        _exit(0);
    if (strcmp(options.end, "abort") == 0)
        abort();
    if (strcmp(options.end, "shutdown") == 0)
        weir_shutdown(-1);
    if (strcmp(options.end, "sleep") == 0)
        for (;;)
            pause();
    return 0;
}

static int flush(void)
{
    int result = options.flush_ms == -2 ? 0 : weir_flush(options.flush_ms < 0 ? -1 : options.flush_ms);
    while (options.flush_ms == -3 && result == WEIR_ERR_SPOOLED) {
        pause_for(10000000);
        result = weir_flush(-1);
    }
    return result;
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    if (options.file_count && !options.reloads && weir_configure_file(options.files[0])) {
        fprintf(stderr, "adder: %s\n", weir_last_error());
        return 3;
    }
    run_threads();
    int flushed = flush();
    if (options.prints_threads)
        print_thread_count();
    if (!options.quiet)
        print_report(flushed);
    return leave();
}
