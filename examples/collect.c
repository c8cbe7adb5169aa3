/* collect: figures that have to be asked for: a queue's length and the allocator's memory, once a second.
 *
 *     collect [JOBS] */

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>

struct queue {
    pthread_mutex_t lock;
    int length;
    weir_metric *level;
};

/* Both are called on a thread of weir's. */
static void measure_queue(weir_stream *stream, void *context)
{
    struct queue *queue = context;
    (void)stream;
    pthread_mutex_lock(&queue->lock);
    int length = queue->length;
    pthread_mutex_unlock(&queue->lock);
    weir_metric_add(queue->level, length);
}

static void measure_memory(weir_stream *stream, void *unused)
{
    (void)unused;
    weir_add_int(stream, "heap.used", (int64_t)mallinfo2().uordblks);
}

static void work(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->length--;
    pthread_mutex_unlock(&queue->lock);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

int main(int argc, char **argv)
{
    int jobs = argc > 1 ? atoi(argv[1]) : 400;
    weir_stream *stream = weir_get_stream("pool");
    struct queue queue = {PTHREAD_MUTEX_INITIALIZER, jobs, weir_get_gauge(stream, "queue.length")};
    weir_get_gauge(stream, "heap.used");
    weir_describe(stream, "heap.used", "By", "memory that malloc has given out");
    weir_collector *of_queue = weir_add_collector(stream, measure_queue, &queue, 1000);
    weir_collector *of_memory = weir_add_collector(stream, measure_memory, NULL, 1000);
    if (!of_queue || !of_memory || weir_start()) {
        fprintf(stderr, "collect: %s\n", weir_last_error());
        return 1;
    }
    while (jobs-- > 0)
        work(&queue);
    weir_remove_collector(of_queue); /* from here on nobody uses the queue */
    weir_remove_collector(of_memory);
    return 0;
}
