/* sourced: starts the sources of a configuration, and prints its ledgers and the sources' counts as a line of
 * JSON for each line that it reads, and, after the sources have stopped, at the end of its input. */

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "ledger_json.h"

static void print_sources(void)
{
    weir_source_stats stats;
    const char *name;
    for (size_t i = 0; (name = weir_get_source_name(i)) && !weir_get_source_stats(name, &stats, sizeof stats);
         i++)
        printf("%s\"%s\":{\"state\":%d,\"lines\":%" PRIu64 ",\"bad_lines\":%" PRIu64 ",\"records\":%" PRIu64
               ",\"added\":%" PRIu64 ",\"refused\":%" PRIu64 "}",
               i ? "," : "", stats.name, stats.state, stats.lines, stats.bad_lines, stats.records, stats.added,
               stats.refused);
}

static void print_all(void)
{
    printf("{\"sources\":{");
    print_sources();
    printf("},");
    ledger_json_members();
    printf("}\n");
    fflush(stdout);
}

/* Whether it is a socket, an eventfd, or in the folder of the configuration. */
static bool is_of_weir(const char *target, ssize_t length, const char *config)
{
    size_t folder = (size_t)(strrchr(config, '/') + 1 - config);
    return length > 7 && (strncmp(target, "socket:", 7) == 0 || strncmp(target, "anon_inode:[event", 17) == 0 ||
                          ((size_t)length > folder && strncmp(target, config, folder) == 0));
}

/* How many descriptors of weir a child has that is forked now. */
static void print_childs_descriptors(const char *config)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char path[32], to[512];
        int count = 0;
        for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            count += is_of_weir(to, readlink(path, to, sizeof to), config);
        }
        printf("%d\n", count);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* A child that has all descriptors until this program ends, as one between vfork and exec has for a moment: no
 * handler of fork runs in it. */
static void hold_descriptors(void)
{
    pid_t child = _Fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    printf("%d\n", (int)child);
    fflush(stdout);
}

/* As daemons do; then it opens files, pipes and sockets of its own, which get the numbers of weir's. */
enum { STRANGERS = 60, STRANGER_BYTES = 9 };
static int strangers[STRANGERS];

static void close_descriptors(const char *config)
{
    char path[512];
    snprintf(path, sizeof path, "%.*sstrangers", (int)(strrchr(config, '/') + 1 - config), config);
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
        close(fd);
    for (int i = 0; i < STRANGERS; i++) {
        int ends[2];
        bool is_file = i % 3 == 0;
        int made = is_file ? 0 : i % 3 == 1 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
        strangers[i] = is_file ? open(path, O_RDWR | O_CREAT | O_APPEND, 0600) : ends[0];
        if (made || write(is_file ? strangers[i] : ends[1], "strange=1", STRANGER_BYTES) != STRANGER_BYTES ||
            (is_file && lseek(strangers[i], 0, SEEK_SET) != 0))
            abort();
    }
}

/* How many of them are as they were made: open, with their bytes unread, and no others. */
static void print_strangers(void)
{
    int same = 0;
    for (int i = 0; i < STRANGERS; i++) {
        struct stat status;
        int left = 0;
        bool is_file = i % 3 == 0;
        if (fstat(strangers[i], &status) == 0 && S_ISREG(status.st_mode) == is_file &&
            ioctl(strangers[i], FIONREAD, &left) == 0)
            same += left == (is_file ? STRANGERS / 3 * STRANGER_BYTES : STRANGER_BYTES);
    }
    printf("%d\n", same);
    fflush(stdout);
}

static int fail(void)
{
    fprintf(stderr, "%s\n", weir_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    char line[64];
    if (argc != 2 || weir_configure_file(argv[1]) || weir_start_sources())
        return fail();
    while (fgets(line, sizeof line, stdin))
        if (strcmp(line, "fork\n") == 0)
            print_childs_descriptors(argv[1]);
        else if (strcmp(line, "hold\n") == 0)
            hold_descriptors();
        else if (strcmp(line, "close\n") == 0)
            close_descriptors(argv[1]);
        else if (strcmp(line, "strangers\n") == 0)
            print_strangers();
        else
            print_all();
    int stopped = weir_stop_sources(60000);
    if (stopped)
        return fail();
    weir_flush(60000);
    print_all();
    return 0;
}
