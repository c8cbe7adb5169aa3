/* level: worker threads take jobs from a list. Shows how many jobs wait and how many workers are busy.
 *
 *     level [WORKERS [JOBS]] */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>

enum { MAX_WORKERS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int waiting;
static weir_metric *jobs_waiting, *workers_busy;

/* Returns whether there was a job. */
static int take_job(void)
{
    pthread_mutex_lock(&lock);
    int taken = waiting > 0;
    if (taken)
        weir_metric_add(jobs_waiting, --waiting); /* the level is known: it is set */
    pthread_mutex_unlock(&lock);
    return taken;
}

static void *work(void *unused)
{
    (void)unused;
    while (take_job()) {
        /* nobody knows the level: it is moved; changes of all threads count */
        weir_metric_change(workers_busy, 1);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        weir_metric_change(workers_busy, -1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[MAX_WORKERS];
    int workers = argc > 1 ? atoi(argv[1]) : 4, started = 0;
    waiting = argc > 2 ? atoi(argv[2]) : 20;
    if (workers < 1 || workers > MAX_WORKERS || waiting < 0) {
        fprintf(stderr, "usage: level [WORKERS [JOBS]], 1 to %d workers\n", MAX_WORKERS);
        return 2;
    }
    weir_stream *stream = weir_get_stream("pool");
    jobs_waiting = weir_get_gauge(stream, "jobs.waiting");
    workers_busy = weir_get_gauge(stream, "workers.busy");
    weir_metric_add(jobs_waiting, waiting);
    while (started < workers && pthread_create(&threads[started], NULL, work, NULL) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return waiting > 0; /* no thread could be started */
}
