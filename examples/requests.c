/* requests: a minute of requests, about ten a second, some of which fail.
 *
 *     requests [COUNT] */

#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>

static weir_stream *stream;

static void handle(int number)
{
    /* adds request.duration.ms, and request.success or request.failure */
    WEIR_PROF(measured, stream, "request");
    struct timespec work = {.tv_nsec = (20 + number * 37 % 80) * 1000000L};
    nanosleep(&work, NULL);
    if (number % 20 == 0)
        weir_prof_fail(&measured);
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 600;
    stream = weir_get_stream("my_app");
    for (int number = 1; number <= count; number++) {
        handle(number);
        weir_add_value(stream, "sessions", 50 + number % 40);
        struct timespec pause = {.tv_nsec = 40000000};
        nanosleep(&pause, NULL);
    }
    return 0;
}
