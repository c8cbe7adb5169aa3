/* scraped: adds values of each instrument as its standard input says, for tests that scrape it. One line is one
 * command, after which it prints one line:
 *
 *     count N          adds N to a counter in steps of 1, by four threads
 *     add GROUP NAME VALUE [KEY]      KEY: with a label of this key, whose value is "v"
 *     remove GROUP NAME [KEY]         ends that series
 *     level VALUE, observe VALUE      sets a gauge; adds a duration in ms to a histogram
 *     handle N FAILURES               times "handle" N times, of which the last ones fail
 *     flush            ends the interval and delivers it; prints the result
 *     fork             forks a child, which adds 1 to the counter, flushes and ends; prints its result
 *     spawn            forks a child, which adds 1 to the counter, flushes and stays; prints its process id
 *     ledger           prints the ledgers of the process and its handlers
 *     replace PATH N   closes N descriptors from 3 on, and opens PATH 20 times
 *     mute             closes standard error; what is logged from then on is lost
 *     complain         prints a line on standard error
 *
 * An argument changes the beginning:
 *
 *     bare             declares nothing
 *     lazy             declares nothing, and does not call weir_start
 *     daemon           forks after weir_start; the child does the rest, and the first process ends */

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "ledger_json.h"

enum { THREADS = 4 };

static weir_stream *stream;
static weir_metric *requests, *level, *duration;

static void *count(void *number)
{
    for (long i = *(long *)number; i > 0; i--)
        weir_metric_add(requests, 1);
    return NULL;
}

static int count_all(long number)
{
    pthread_t threads[THREADS];
    long parts[THREADS];
    for (int i = 0; i < THREADS; i++) {
        parts[i] = number / THREADS + (i < number % THREADS);
        pthread_create(&threads[i], NULL, count, &parts[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int handle(long number, long failures)
{
    for (long i = 0; i < number; i++) {
        WEIR_PROF(p, stream, "handle");
        if (i >= number - failures)
            weir_prof_fail(&p);
    }
    return 0;
}

static int run_child(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        weir_metric_add(requests, 1);
        int result = weir_flush(-1);
        weir_shutdown(-1);
        _exit(result == WEIR_ERR_DROPPED ? 1 : 2);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int spawn_child(void)
{
    int ready[2];
    char byte;
    if (pipe(ready) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        weir_metric_add(requests, 1);
        weir_flush(-1);
        close(ready[0]);
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    while (read(ready[0], &byte, 1) > 0) {
    }
    close(ready[0]);
    return (int)child;
}

/* The files get numbers that weir's descriptors had. */
static int replace_descriptors(const char *path, int number)
{
    enum { FIRST = 3, FILES = 20 };
    for (int fd = FIRST; fd < FIRST + number; fd++)
        close(fd);
    for (int i = 0; i < FILES; i++)
        if (open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) < 0)
            return -1;
    return 0;
}

static int run_on_descriptors(const char *line)
{
    char path[200];
    int number;
    if (sscanf(line, "replace %199s %d", path, &number) == 2)
        return replace_descriptors(path, number);
    if (strcmp(line, "mute\n") == 0)
        return close(STDERR_FILENO);
    if (strcmp(line, "complain\n") == 0)
        return fprintf(stderr, "not for scrapers\n") > 0 ? 0 : -1;
    return -100;
}

static int run(const char *line)
{
    char group[64], name[64], key[64];
    double value;
    long number, failures;
    if (sscanf(line, "handle %ld %ld", &number, &failures) == 2)
        return handle(number, failures);
    if (sscanf(line, "count %ld", &number) == 1)
        return count_all(number);
    if (sscanf(line, "add %63s %63s %lf %63s", group, name, &value, key) == 4)
        return weir_add_value(weir_get_stream_labeled(group, &(weir_label){key, "v"}, 1), name, value);
    if (sscanf(line, "add %63s %63s %lf", group, name, &value) == 3)
        return weir_add_value(weir_get_stream(group), name, value);
    int words = sscanf(line, "remove %63s %63s %63s", group, name, key);
    if (words >= 2)
        return weir_metric_remove(
            weir_get_metric(weir_get_stream_labeled(group, &(weir_label){key, "v"}, words == 3), name));
    if (sscanf(line, "level %lf", &value) == 1)
        return weir_metric_add(level, value);
    if (sscanf(line, "observe %lf", &value) == 1)
        return weir_metric_add(duration, value);
    if (strcmp(line, "flush\n") == 0)
        return weir_flush(-1);
    if (strcmp(line, "fork\n") == 0)
        return run_child();
    if (strcmp(line, "spawn\n") == 0)
        return spawn_child();
    return run_on_descriptors(line);
}

static void declare(void)
{
    static const double bounds[] = {5, 75, 1000};
    const weir_metric_spec spec = {.size = sizeof spec,
                                   .instrument = WEIR_HISTOGRAM,
                                   .unit = "ms",
                                   .help = "how long \"it\" takes\\",
                                   .buckets = bounds,
                                   .bucket_count = 3};
    stream = weir_get_stream("my_app");
    weir_declare(stream, "handle.duration.ms", &spec);
    requests = weir_get_counter(stream, "requests");
    level = weir_get_gauge(stream, "open_connections");
    duration = weir_get_metric(stream, "handle.duration.ms");
    weir_get_counter(stream, "handle.success");
    weir_get_counter(stream, "handle.failure");
}

static int start(const char *how)
{
    if (strcmp(how, "bare") != 0 && strcmp(how, "lazy") != 0)
        declare();
    int result = strcmp(how, "lazy") == 0 ? 0 : weir_start();
    if (result)
        fprintf(stderr, "scraped: %s\n", weir_last_error());
    if (strcmp(how, "daemon") == 0 && fork() != 0)
        exit(0);
    return result;
}

int main(int argc, char **argv)
{
    char line[256];
    int result = start(argc > 1 ? argv[1] : "");
    printf("%d\n", result);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "ledger\n") == 0)
            ledger_json_all();
        else
            printf("%d\n", run(line));
        fflush(stdout);
    }
    return 0;
}
