/* reporter: adds the values START, START + 1, ... COUNT of them, under the name "v" of group "my_app", and
 * meanwhile prints how many its handler has delivered, one number per line; for tests that kill it.
 *
 *     reporter HANDLER START COUNT */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>

static _Atomic int done;

static void report(const char *handler)
{
    weir_handler_stats stats;
    if (weir_get_handler_stats(handler, &stats, sizeof stats) == 0)
        printf("%" PRIu64 "\n", stats.delivered);
    fflush(stdout);
}

static void *report_on(void *handler)
{
    while (!atomic_load(&done)) {
        report(handler);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 4 || pthread_create(&thread, NULL, report_on, argv[1]) != 0)
        return 2;
    long start = atol(argv[2]), count = atol(argv[3]);
    weir_stream *stream = weir_get_stream("my_app");
    for (long i = start; i < start + count; i++)
        if (weir_add_int(stream, "v", i))
            return 1;
    int result = weir_flush(-1);
    atomic_store(&done, 1);
    pthread_join(thread, NULL);
    report(argv[1]);
    return result ? 1 : 0;
}
