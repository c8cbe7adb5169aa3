/* unrouted_app: adds values to groups that may have no route, and at its end prints the counts of weir as
 * {"added": ..., "unrouted": ..., "refused": ...}.
 *
 *     unrouted_app [-t THREADS] [-n ROUNDS] [-g GROUPS] [-e EARLY] [-s SERIES] [-f] [-l] [-w] [-q]
 *                  [GROUP ...]
 *
 * Each thread adds one value to each GROUP in turn, ROUNDS times; then g0 gets 1 value, g1 gets 2, and so on,
 * up to -g. -e: a configuration file applied only after that; then each GROUP gets one value more. -f: a
 * forked child adds one more value to the first GROUP and exits first. -l: messages go to standard output, each
 * after its level's number and a colon. -w: waits for the end of standard input before it ends. -s: the first
 * GROUP gets SERIES values with different names. -q: prints nothing. */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

static int threads = 1, groups, rounds = 1, series;
static const char *early;
static bool forks, waits, quiet;
static char **names;

static void *add_rounds(void *unused)
{
    (void)unused;
    for (int i = 0; i < rounds; i++)
        for (char **name = names; *name; name++)
            weir_add_int(weir_get_stream(*name), "v", i);
    return NULL;
}

static void add_groups(void)
{
    for (int i = 0; i < groups; i++) {
        char name[16];
        snprintf(name, sizeof name, "g%d", i);
        for (int k = 0; k <= i; k++)
            weir_add_int(weir_get_stream(name), "v", k);
    }
}

static void add_series(void)
{
    for (int i = 0; i < series; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        weir_add_int(weir_get_stream(names[0]), name, i);
    }
}

static void add_in_child(void)
{
    pid_t child = forks ? fork() : -1;
    if (child == 0) {
        weir_add_int(weir_get_stream(names[0]), "v", 0);
        exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void print(void *ctx, int level, const char *text)
{
    (void)ctx;
    printf("%d: %s\n", level, text);
}

static void print_stats(void)
{
    weir_stats stats;
    uint64_t refused = 0;
    weir_get_stats(&stats, sizeof stats);
    for (int i = 0; i < WEIR_REFUSED_MAX; i++)
        refused += stats.refused[i];
    printf("{\"added\": %" PRIu64 ", \"unrouted\": %" PRIu64 ", \"refused\": %" PRIu64 "}\n", stats.added,
           stats.unrouted, refused);
    fflush(stdout);
}

static void read_options(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "t:n:g:e:s:flwq")) != -1;) {
        switch (option) {
        case 't': threads = atoi(optarg); break;
        case 'n': rounds = atoi(optarg); break;
        case 'g': groups = atoi(optarg); break;
        case 'e': early = optarg; break;
        case 's': series = atoi(optarg); break;
        case 'q': quiet = true; break;
        case 'f': forks = true; break;
        case 'l': weir_set_log(print, NULL); break;
        case 'w': waits = true; break;
        default: exit(2);
        }
    }
    names = argv + optind;
}

int main(int argc, char **argv)
{
    pthread_t running[16];
    read_options(argc, argv);
    for (int i = 0; i < threads && i < 16; i++)
        pthread_create(&running[i], NULL, add_rounds, NULL);
    for (int i = 0; i < threads && i < 16; i++)
        pthread_join(running[i], NULL);
    add_groups();
    add_series();
    if (early && weir_configure_file(early)) {
        fprintf(stderr, "unrouted_app: %s\n", weir_last_error());
        return 1;
    }
    for (char **name = names; early && *name; name++)
        weir_add_int(weir_get_stream(*name), "v", 1);
    add_in_child();
    if (!quiet)
        print_stats();
    while (waits && getchar() != EOF)
        ;
    return 0;
}
