/* counter: counts requests with a counter, in threads (-t) of processes (-p) that it forks, -n each, and ends.
 * With -b it adds to the counter before it forks. -g: the group, "app". Each process prints its
 * ledgers. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "ledger_json.h"

enum { MOST_THREADS = 64 };

static long values = 1;
static const char *group = "app";

static void *count(void *argument)
{
    weir_metric *requests = argument;
    for (long i = 0; i < values; i++)
        weir_metric_add(requests, 1);
    return NULL;
}

static void count_in_threads(int threads)
{
    pthread_t ids[MOST_THREADS];
    weir_metric *requests = weir_get_counter(weir_get_stream(group), "requests");
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, count, requests))
            abort();
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
    int threads = 1, processes = 0, before = 0, failed = 0, status;
    for (int option; (option = getopt(argc, argv, "n:t:p:b:g:")) != -1;) {
        switch (option) {
        case 'n': values = atol(optarg); break;
        case 't': threads = atoi(optarg); break;
        case 'p': processes = atoi(optarg); break;
        case 'b': before = atoi(optarg); break;
        case 'g': group = optarg; break;
        default: return 2;
        }
    }
    for (int i = 0; i < before; i++)
        weir_count(weir_get_stream(group), "requests", 1);
    if (!processes)
        count_in_threads(threads);
    for (int i = 0; i < processes; i++) {
        pid_t pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0) {
            count_in_threads(threads);
            ledger_json_all();
            exit(0);
        }
    }
    while (wait(&status) > 0)
        failed |= status;
    ledger_json_all();
    return failed != 0;
}
