/* reload: a program that reads its configuration again on SIGHUP, as daemons do.
 *
 *     reload [CONFIG]
 *
 * The signal handler only sets a flag; weir_reload is called from the main loop. SIGTERM and SIGINT end the
 * program, which then prints how many values it has added. */

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <weir/weir.h>

static volatile sig_atomic_t hup, term;

static void set_flag(int signal)
{
    if (signal == SIGHUP)
        hup = 1;
    else
        term = 1;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = set_flag};
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    if (argc > 1 && weir_configure_file(argv[1])) {
        fprintf(stderr, "reload: %s\n", weir_last_error());
        return 1;
    }
    weir_stream *stream = weir_get_stream("my_app");
    int turn = 0;
    while (!term) {
        weir_add_int(stream, "turn", turn++);
        if (hup) {
            hup = 0;
            if (weir_reload()) /* the active configuration stays */
                fprintf(stderr, "reload: %s\n", weir_last_error());
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    printf("%d turns\n", turn);
    return 0;
}
