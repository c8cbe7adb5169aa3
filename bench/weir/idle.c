/* idle: adds values from several threads, flushes, prints "idle" on stdout, and then adds nothing until its
 * stdin ends. The caller inspects its threads in the meantime.
 *
 *     idle CONFIG */

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../support/measure.h"

enum { THREADS = 3, VALUES_EACH = 10000 };

static pthread_barrier_t added, end;

static void *add(void *argument)
{
    (void)argument;
    weir_stream *stream = weir_get_stream("my_app");
    for (int i = 0; i < VALUES_EACH; i++)
        weir_add_value(stream, "latency", i);
    pthread_barrier_wait(&added);
    pthread_barrier_wait(&end);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    char byte;
    if (argc != 2 || weir_configure_file(argv[1]) != 0)
        measure_fail("usage: idle CONFIG; %s", weir_last_error());
    pthread_barrier_init(&added, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, add, NULL) != 0)
            measure_fail("cannot create a thread");
    pthread_barrier_wait(&added);
    if (weir_flush(-1) != 0)
        measure_fail("not everything was delivered");
    puts("idle");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    pthread_barrier_wait(&end);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
