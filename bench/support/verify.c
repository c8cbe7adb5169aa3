/* verify: checks that a file written by a measured program contains each value the expected number of times, in
 * lines of the expected form, and, if written by one thread, in the order in which they were added.
 *
 *     verify FILE text|json plain|random THREADS VALUES
 *
 * Exit status: 0 success, 1 failure with a message on stderr, 2 usage error. */

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "values.h"

struct shape {
    const char *name;
    const char *before; /* text before the time */
    const char *after;  /* text between the time and the value */
    const char *end;    /* text after the value */
    int decimals;       /* of the time */
};

static const struct shape shapes[] = {
    {"text", "[", "][my_app]: latency=", "\n", 6},
    {"json", "{\"timestamp\":", ",\"group\":\"my_app\",\"name\":\"latency\",\"value\":", "}\n", 9},
};

struct entry {
    double value;
    int index; /* in the order of adding */
    long count;
};

static const char *path;
static long line_number;
static struct entry entries[VALUES]; /* sorted by value */

static _Noreturn void fail(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%ld: ", path, line_number);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static int compare_entries(const void *a, const void *b)
{
    double left = ((const struct entry *)a)->value, right = ((const struct entry *)b)->value;
    return (left > right) - (left < right);
}

static void fill_entries(bool random)
{
    static double table[VALUES];
    values_fill(table, random);
    for (int i = 0; i < VALUES; i++)
        entries[i] = (struct entry){.value = table[i], .index = i};
    qsort(entries, VALUES, sizeof entries[0], compare_entries);
}

/* ---- One line -------------------------------------------------------------------------------- */

static const char *expect(const char *at, const char *text)
{
    if (strncmp(at, text, strlen(text)) != 0)
        fail("\"%.20s\" must be \"%s\"", at, text);
    return at + strlen(text);
}

/* Expects a time within a day of now, in seconds with the given number of decimals. */
static const char *expect_time(const char *at, int decimals, time_t now)
{
    char *end;
    long seconds = strtol(at, &end, 10);
    if (labs(seconds - (long)now) > 86400)
        fail("%ld is not a time within a day of now", seconds);
    const char *fraction = expect(end, ".");
    if (strspn(fraction, "0123456789") != (size_t)decimals)
        fail("\"%.20s\": must have %d decimals", fraction, decimals);
    return fraction + decimals;
}

static struct entry *find_value(double value)
{
    struct entry key = {.value = value};
    struct entry *found = bsearch(&key, entries, VALUES, sizeof entries[0], compare_entries);
    if (!found)
        fail("%.17g has never been added", value);
    return found;
}

/* Returns the beginning of the next line. */
static const char *check_line(const char *at, const struct shape *shape, time_t now, long expected_index)
{
    char *end;
    at = expect_time(expect(at, shape->before), shape->decimals, now);
    at = expect(at, shape->after);
    double value = strtod(at, &end);
    if (end == at)
        fail("\"%.20s\" is not a number", at);
    struct entry *entry = find_value(value);
    if (expected_index >= 0 && entry->index != expected_index)
        fail("%.17g is out of order", entry->value);
    entry->count++;
    return expect(end, shape->end);
}

/* ---- The whole file -------------------------------------------------------------------------- */

/* Maps the file so that a NUL follows its end: the rest of the last page is zero, or an extra page. */
static const char *map_file(size_t *size)
{
    struct stat status;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0)
        fail("cannot be read");
    *size = (size_t)status.st_size;
    char *text = mmap(NULL, *size + 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED ||
        (*size && mmap(text, *size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED))
        fail("cannot be mapped");
    close(fd);
    return text;
}

static void check_file(const struct shape *shape, long threads, long values)
{
    size_t size;
    const char *text = map_file(&size), *at = text;
    time_t now = time(NULL);
    for (; at < text + size; line_number++)
        at = check_line(at, shape, now, threads == 1 ? line_number % VALUES : -1);
    if (line_number != values)
        fail("%ld lines, not %ld", line_number, values);
    long each = values / threads;
    for (int i = 0; i < VALUES; i++) {
        long expected = threads * (each / VALUES + (entries[i].index < each % VALUES));
        if (entries[i].count != expected)
            fail("%.17g occurs %ld times, not %ld times", entries[i].value, entries[i].count, expected);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fputs("usage: verify FILE text|json plain|random THREADS VALUES\n", stderr);
        return 2;
    }
    path = argv[1];
    fill_entries(strcmp(argv[3], "random") == 0);
    check_file(&shapes[strcmp(argv[2], "json") == 0], atol(argv[4]), atol(argv[5]));
    return 0;
}
