/* forker: forks repeatedly while threads add values; tests/stress/forks.py checks the results.
 *
 * usage: forker FORKS THREADS VALUES
 *
 * The parent's threads add 0, 1, 2, ... with the name "p<k>" until the last fork. Child number i adds VALUES
 * values i with the name "c" and ends in one of several ways; some of them do not use weir at all. A child
 * that does not end within a minute counts as hanging. */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../support/plain.h"

enum { MAX_THREADS = 16, HANG_S = 60 };

static _Atomic bool stop;
static _Atomic long added[MAX_THREADS];
static int values;

static void *add(void *argument)
{
    int number = *(int *)argument;
    char name[16];
    snprintf(name, sizeof name, "p%d", number);
    weir_stream *stream = weir_get_stream("my_app.parent");
    for (long i = 0; !stop; i++) {
        weir_add_value(stream, name, (double)i);
        added[number] = i + 1;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return NULL;
}

/* Writes a handler's ledger as one line, with one write(2). */
static void print_ledger(const char *who, const char *handler)
{
    weir_handler_stats stats;
    char line[256];
    if (weir_get_handler_stats(handler, &stats, sizeof stats))
        return;
    uint64_t dropped = 0;
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        dropped += stats.dropped[i];
    int length = snprintf(
        line, sizeof line, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", who, handler,
        stats.offered, stats.delivered, dropped, stats.dropped[WEIR_DROPPED_FORK_UNSAFE], stats.queued);
    if (write(STDOUT_FILENO, line, (size_t)length) < 0)
        _exit(9);
}

static void add_values(int number)
{
    weir_stream *stream = weir_get_stream("my_app.child");
    for (int i = 0; i < values; i++)
        weir_add_value(stream, "c", number);
}

static void *add_in_thread(void *argument)
{
    add_values(*(int *)argument);
    return NULL;
}

static void run_child(int number)
{
    pthread_t thread;
    plain_hang_no_longer_than(HANG_S);
    switch (number % 5) {
    case 0: execl("/bin/true", "true", NULL); _exit(8);
    case 1: _exit(0);
    case 2:
        add_values(number);
        weir_shutdown(-1);
        break;
    case 3:
        add_values(number);
        weir_flush(-1);
        break;
    default:
        pthread_create(&thread, NULL, add_in_thread, &number);
        pthread_join(thread, NULL);
        weir_flush(-1);
    }
    print_ledger("child", "disk");
    print_ledger("child", "tls");
    exit(0);
}

static int count_children(int wait_for_all, int *failed)
{
    int status, ended = 0;
    while (waitpid(-1, &status, wait_for_all ? 0 : WNOHANG) > 0) {
        ended++;
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            fprintf(stderr, "forker: a child ended with %#x%s\n", (unsigned)status,
                    WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
            ++*failed;
        }
    }
    return ended;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int forks = atoi(argv[1]), threads = atoi(argv[2]), failed = 0, running = 0;
    values = atoi(argv[3]);
    pthread_t ids[MAX_THREADS];
    int numbers[MAX_THREADS];
    for (int i = 0; i < threads; i++) {
        numbers[i] = i;
        pthread_create(&ids[i], NULL, add, &numbers[i]);
    }
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0)
            run_child(i);
        running += child > 0;
        if (child < 0) {
            perror("forker: fork");
            failed++;
        }
        running -= count_children(0, &failed);
        while (running > 20) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            running -= count_children(0, &failed);
        }
    }
    count_children(1, &failed);
    stop = true;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        printf("added p%d %ld\n", i, added[i]);
        fflush(stdout);
    }
    weir_flush(-1);
    print_ledger("parent", "disk");
    print_ledger("parent", "tls");
    return failed != 0;
}
