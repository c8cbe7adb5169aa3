/* requests: counts requests in four threads or in four forked processes, for tests that look at the total.
 *
 *     requests threads|processes COUNT [PORT...]
 *
 * The processes are forked after weir_start, as those of a server are. The first one has the variable PORT in
 * its environment; each forked one sets it to a PORT of its own, if there are any, and has the configuration
 * read again. It prints "ready", counts when it reads a line, prints the ledgers of those that have counted,
 * and ends when its standard input does. */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "ledger_json.h"

enum { PARTS = 4 };

/* ---- Counting -------------------------------------------------------------------------------- */

static void *count(void *number)
{
    weir_metric *requests = weir_get_counter(weir_get_stream("my_app"), "requests");
    for (long i = *(long *)number; i > 0; i--)
        weir_metric_add(requests, 1);
    return NULL;
}

static long part_of(long number, int part)
{
    return number / PARTS + (part < number % PARTS);
}

static void count_in_threads(long number)
{
    pthread_t threads[PARTS];
    long parts[PARTS];
    for (int i = 0; i < PARTS; i++) {
        parts[i] = part_of(number, i);
        if (pthread_create(&threads[i], NULL, count, &parts[i]))
            abort();
    }
    for (int i = 0; i < PARTS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void start(void)
{
    weir_get_counter(weir_get_stream("my_app"), "requests");
    if (weir_start()) {
        fprintf(stderr, "requests: %s\n", weir_last_error());
        exit(1);
    }
}

/* Returns when the first process has closed its end. */
static void await(int fd)
{
    char byte;
    while (read(fd, &byte, 1) > 0) {
    }
}

static void run_child(long number, const char *port, int go, int end)
{
    if (port && (setenv("PORT", port, 1) != 0 || weir_reload() != 0)) {
        fprintf(stderr, "requests: %s\n", weir_last_error());
        exit(1);
    }
    start();
    await(go);
    count(&number);
    weir_flush(-1);
    ledger_json_all();
    await(end);
    exit(0);
}

static void await_line(void)
{
    char line[16];
    if (!fgets(line, sizeof line, stdin))
        exit(1);
}

static int count_in_processes(long number, char **ports)
{
    int go[2], end[2], failed = 0, status;
    if (pipe(go) != 0 || pipe(end) != 0)
        abort();
    for (int i = 0; i < PARTS; i++) {
        pid_t child = fork();
        if (child < 0)
            abort();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails kills the first process only */
            close(go[1]);
            close(end[1]);
            run_child(part_of(number, i), *ports, go[0], end[0]);
        }
        ports += *ports ? 1 : 0;
    }
    puts("ready");
    fflush(stdout);
    await_line();
    close(go[1]);
    await(STDIN_FILENO);
    close(end[1]);
    for (int i = 0; i < PARTS; i++)
        failed |= wait(&status) < 0 || status != 0;
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    long number = atol(argv[2]);
    start();
    if (strcmp(argv[1], "processes") == 0)
        return count_in_processes(number, argv + 3);
    puts("ready");
    fflush(stdout);
    await_line();
    count_in_threads(number);
    weir_flush(-1);
    ledger_json_all();
    await(STDIN_FILENO);
    return 0;
}
