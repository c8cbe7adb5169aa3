/* signals: delivers everything when the program receives SIGTERM or SIGINT.
 *
 * A process that is killed by a signal loses the values that are not delivered yet. Instead, set a flag in the
 * signal handler, leave the main loop, and return from main: weir delivers at exit. The signal handler itself
 * may call weir_metric_try_add and weir_metric_try_add_int, which refuse a value instead of waiting.
 *
 * At the end the program prints how many values "turn" it has added. */

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <weir/weir.h>

static volatile sig_atomic_t term;
static weir_metric *signals;

static void set_flag(int signal)
{
    (void)signal;
    term = 1;
    weir_metric_try_add_int(signals, 1);
}

int main(void)
{
    weir_stream *stream = weir_get_stream("my_app");
    signals = weir_get_counter(stream, "signals");
    weir_metric_add_int(signals, 0); /* from now on this thread can add in a signal handler */

    struct sigaction action = {.sa_handler = set_flag};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    int turn = 0;
    while (!term) {
        weir_add_int(stream, "turn", turn++);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    printf("%d turns\n", turn);
    return 0;
}
