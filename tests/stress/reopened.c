/* reopened: two threads write lines to a named pipe that a source reads, while another thread changes the
 * configuration all the time, so that the source is stopped and replaced, and a third one reads statistics. A
 * stopped source leaves no line half read and nothing behind: each line is added once. */

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

enum { WRITERS = 2, LINES = 20000, CHANGES = 40, HANG_S = 120 };

static int pipe_fd;
static char path[64];
static long lines;
static _Atomic bool done;

static void configure(int turn)
{
    char text[512];
    int length =
        snprintf(text, sizeof text,
                 "{\"sources\":{\"in\":{\"type\":\"fifo\",\"path\":\"%s\",\"labels\":{\"turn\":\"%d\"}}},"
                 "\"handlers\":{\"*\":{\"queue\":\"16KiB\",\"block_timeout\":\"1h\"}},"
                 "\"groups\":{\"*\":\"null\"}}",
                 path, turn % 2);
    PLAIN_CHECK(weir_configure_text(text, (size_t)length) == 0);
}

static void *write_lines(void *unused)
{
    static const char line[] = "{\"m\":1}\n";
    (void)unused;
    for (long i = 0; i < lines; i++)
        PLAIN_CHECK(write(pipe_fd, line, sizeof line - 1) == sizeof line - 1);
    return NULL;
}

static void *change(void *unused)
{
    (void)unused;
    for (int i = 0; i < plain_rounds(CHANGES); i++)
        configure(i);
    return NULL;
}

static void *read_stats(void *unused)
{
    (void)unused;
    while (!atomic_load(&done)) {
        weir_source_stats source;
        weir_stats process;
        const char *name;
        for (size_t i = 0;
             (name = weir_get_source_name(i)) && weir_get_source_stats(name, &source, sizeof source) == 0; i++)
            PLAIN_CHECK(source.bad_lines == 0 && source.refused == 0 && source.added <= source.lines);
        PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0 && ledger_is_taken(&process));
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

static uint64_t count_added(void)
{
    weir_stats process;
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    return process.added;
}

int main(void)
{
    weir_handler_stats handler;
    pthread_t writers[WRITERS], changer, reader;
    char folder[] = "/tmp/weir-reopened-XXXXXX";
    plain_hang_no_longer_than(plain_limit(HANG_S));
    lines = plain_rounds(LINES);
    PLAIN_CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pipe", folder);
    PLAIN_CHECK(mkfifo(path, 0600) == 0 && (pipe_fd = open(path, O_RDWR | O_CLOEXEC)) >= 0);
    configure(0);
    PLAIN_CHECK(weir_start_sources() == 0);
    for (int i = 0; i < WRITERS; i++)
        PLAIN_CHECK(pthread_create(&writers[i], NULL, write_lines, NULL) == 0);
    PLAIN_CHECK(pthread_create(&changer, NULL, change, NULL) == 0);
    PLAIN_CHECK(pthread_create(&reader, NULL, read_stats, NULL) == 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    pthread_join(changer, NULL);
    uint64_t total = (uint64_t)lines * WRITERS;
    while (count_added() < total) /* the alarm ends a wait for ever */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&done, true);
    pthread_join(reader, NULL);
    PLAIN_CHECK(weir_flush(-1) == 0); /* a shutdown ends after settings.shutdown_timeout */
    PLAIN_CHECK(weir_shutdown(-1) == 0);
    PLAIN_CHECK(count_added() == total);
    PLAIN_CHECK(weir_get_handler_stats("null", &handler, sizeof handler) == 0);
    PLAIN_CHECK(handler.delivered == total && ledger_is_balanced(&handler));
    unlink(path);
    rmdir(folder);
    return 0;
}
