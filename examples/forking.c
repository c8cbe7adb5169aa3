/* forking: a server that forks a process for each request, or has workers that each serve many. Shows what both
 * deliver by a relay, and what it costs a request: see doc/forking.md.
 *
 *     forking each|workers [REQUESTS [WORKERS]] */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

static void serve(int first, int requests)
{
    weir_stream *stream = weir_get_stream("server");
    weir_metric *served = weir_get_counter(stream, "requests");
    weir_metric *bytes = weir_get_histogram(stream, "request.bytes", NULL, 0);
    weir_metric *open = weir_get_gauge(stream, "open");       /* "merge": "sum" */
    weir_metric *largest = weir_get_gauge(stream, "largest"); /* "merge": "max" */
    for (int request = first; request < first + requests; request++) {
        weir_metric_add(open, 1); /* set, not changed: a child's level goes on from that of its parent */
        weir_metric_add(served, 1);
        weir_metric_add(bytes, request);
        weir_metric_add(largest, request);
        weir_metric_add(open, 0);
    }
}

/* Returns how many children have failed: those that had to end before there are fewer than so many. */
static int await_children(int *running, int most)
{
    int status, failed = 0;
    while (*running >= most && wait(&status) > 0) {
        --*running;
        failed += status != 0;
    }
    return failed;
}

static double seconds(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* Processor time of this process and its children. */
static double used_seconds(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return seconds(&self.ru_utime) + seconds(&self.ru_stime) + seconds(&children.ru_utime) +
           seconds(&children.ru_stime);
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Forks a child for each share of the requests, at most `workers` of them at once. Returns how many failed. */
static int run(int requests, int share, int workers)
{
    int running = 0, failed = 0;
    for (int first = 0; first < requests; first += share) {
        failed += await_children(&running, workers);
        pid_t child = fork();
        if (child < 0) {
            perror("forking");
            return failed + 1;
        }
        if (child == 0) {
            serve(first, share < requests - first ? share : requests - first);
            exit(0); /* delivers the values of this child */
        }
        running++;
    }
    return failed + await_children(&running, 1);
}

int main(int argc, char **argv)
{
    int requests = argc > 2 ? atoi(argv[2]) : 2000, workers = argc > 3 ? atoi(argv[3]) : 8;
    int is_each = argc > 1 && strcmp(argv[1], "each") == 0;
    if (requests < 1 || workers < 1 || argc < 2 || (!is_each && strcmp(argv[1], "workers") != 0)) {
        fprintf(stderr, "usage: forking each|workers [REQUESTS [WORKERS]]\n");
        return 2;
    }
    weir_start(); /* the configuration is read once, and not by each child */
    double begin = now_seconds();
    int failed = run(requests, is_each ? 1 : (requests + workers - 1) / workers, workers);
    printf("%d requests, %.1f us each, %.1f us of processor time\n", requests,
           (now_seconds() - begin) * 1e6 / requests, used_seconds() * 1e6 / requests);
    return failed != 0;
}
