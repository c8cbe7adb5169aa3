/* signals: delivering everything when the program is told to end by SIGTERM or SIGINT.
 *
 * A process that a signal kills loses what was on its way. The recipe: let the signal handler take note, leave
 * the main loop, and return from main: weir delivers at exit. Counting in the handler itself is allowed with
 * weir_metric_add and weir_metric_add_int, on a thread that has added before.
 *
 * At its end it prints how many values "turn" it has added. */

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <weir/weir.h>

static volatile sig_atomic_t term;
static weir_metric *signals;

static void take_note(int signal)
{
    (void)signal;
    term = 1;
    weir_metric_add_int(signals, 1);
}

int main(void)
{
    weir_stream *stream = weir_get_stream("my_app");
    signals = weir_get_metric(stream, "signals");
    weir_metric_add_int(signals, 0); /* this thread has added now */

    struct sigaction action = {.sa_handler = take_note};
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
