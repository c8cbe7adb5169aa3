/* prefork: a server that forks its workers after it has added values. Each process delivers its own values
 * without further code; with examples/config/forward.json, to a relay, so that a worker ends in a moment and
 * the relay keeps the connections to elsewhere.
 *
 *     prefork [WORKERS] */

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

static void serve(int worker)
{
    char number[16];
    snprintf(number, sizeof number, "%d", worker);
    const weir_label labels[] = {{"worker", number}};
    weir_stream *stream = weir_get_stream_labeled("server.worker", labels, 1);
    for (int request = 0; request < 100; request++) {
        WEIR_PROF(prof, stream, "request");
        weir_add_int(stream, "request.number", request);
    }
}

int main(int argc, char **argv)
{
    int workers = argc > 1 ? atoi(argv[1]) : 4;
    weir_stream *stream = weir_get_stream("server");
    weir_add_int(stream, "workers", workers);
    for (int i = 0; i < workers; i++) {
        pid_t child = fork();
        if (child < 0) {
            perror("prefork");
            return 1;
        }
        if (child == 0) {
            serve(i);
            exit(0); /* delivers the values of this worker */
        }
    }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed += status != 0;
    weir_add_int(stream, "workers.failed", failed);
    return failed != 0;
}
