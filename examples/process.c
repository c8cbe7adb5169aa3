/* process: what the process itself uses, beside its own metrics, on one page.
 *
 *     WEIR_CONFIG=config/process.json process [ROUNDS] &
 *     curl http://127.0.0.1:9464/metrics
 *
 * Each round computes for a moment, keeps 8 MiB of memory and lasts a second. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

enum { MAX_ROUNDS = 100, KEPT = 8 << 20 };

static char *kept[MAX_ROUNDS];

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    if (rounds < 0 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: process [ROUNDS], at most %d\n", MAX_ROUNDS);
        return 2;
    }
    /* The sources of the configuration belong to programs that ask for them: other programs may share the file.
     */
    if (weir_start() || weir_start_sources()) {
        fprintf(stderr, "process: %s\n", weir_last_error());
        return 1;
    }
    weir_metric *done = weir_get_counter(weir_get_stream("my_app"), "rounds");
    for (int i = 0; i < rounds; i++) {
        kept[i] = malloc(KEPT);
        if (!kept[i])
            return 1;
        memset(kept[i], i, KEPT);
        weir_metric_add(done, 1);
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
    return 0;
}
