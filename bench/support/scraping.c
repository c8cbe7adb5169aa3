#include "scraping.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"

enum { WARM_UP = 2, MOST_SCRAPES = 1000, PAGE_ROOM = 16 << 20, TRIES = 1000 };

static char page[PAGE_ROOM];

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Tries for a while: the server starts in the background. */
static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        close(fd);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    measure_fail("nobody listens on port %d", port);
}

/* Reads a page, and returns its length. */
static size_t scrape(int port)
{
    static const char request[] =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: text/plain\r\n\r\n";
    int fd = connect_to(port);
    size_t length = 0;
    ssize_t got = write(fd, request, sizeof request - 1);
    while (got > 0 && length < sizeof page && (got = read(fd, page + length, sizeof page - length)) > 0)
        length += (size_t)got;
    close(fd);
    return length;
}

/* How many lines have the counters' value. */
static long count_lines(size_t length, long value)
{
    char expected[32];
    long found = 0;
    snprintf(expected, sizeof expected, " %ld", value);
    size_t size = strlen(expected);
    for (char *at = page, *end; (end = memchr(at, '\n', length - (size_t)(at - page))); at = end + 1) {
        char *stop = end > at && end[-1] == '\r' ? end - 1 : end;
        found += *at != '#' && (size_t)(stop - at) > size && memcmp(stop - size, expected, size) == 0;
    }
    return found;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static long read_argument(int argc, char **argv, const char *name, long otherwise)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return atol(argv[i] + length + 1);
    return otherwise;
}

int scraping(int argc, char **argv, const struct scraping_subject *subject)
{
    static double times[MOST_SCRAPES];
    int port = (int)read_argument(argc, argv, "port", 0);
    long series = read_argument(argc, argv, "series", 10000),
         scrapes = read_argument(argc, argv, "scrapes", 20);
    size_t length = 0;
    if (scrapes < 1 || scrapes > MOST_SCRAPES || series % SCRAPING_NAMES)
        measure_fail("series must be a multiple of %d, and scrapes at most %d", SCRAPING_NAMES, MOST_SCRAPES);
    subject->open(port, series);
    close(connect_to(port));
    for (long i = 0; i < WARM_UP + scrapes; i++) {
        subject->change();
        double start = now_ms();
        length = scrape(port);
        if (i >= WARM_UP)
            times[i - WARM_UP] = now_ms() - start;
        long found = count_lines(length, i + 1);
        if (found < series)
            measure_fail("%ld of %ld series have the value %ld", found, series, i + 1);
    }
    qsort(times, (size_t)scrapes, sizeof *times, compare);
    printf("{\"scrape_ms\":%.3f,\"bytes\":%zu,\"peak_kb\":%ld}\n", times[scrapes / 2], length,
           measure_peak_kb());
    return 0;
}
