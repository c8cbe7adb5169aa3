/* stdio: writes values without a library: clock_gettime and fprintf. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../support/measure.h"

struct output {
    FILE *file;
    const char *format;
    long ns_per_digit; /* unit of the last digit of the time */
};

static struct output output;

static void open_file(const struct task *task)
{
    output.file = fopen(task->file, "w");
    if (!output.file)
        measure_fail("%s: cannot open", task->file);
    output.ns_per_digit = 1000;
    if (strcmp(task->format, "json") == 0) {
        output.format = "{\"timestamp\":%ld.%09ld,\"group\":\"%s\",\"name\":\"%s\",\"value\":%.3f}\n";
        output.ns_per_digit = 1;
    } else {
        output.format = task->random ? "[%ld.%06ld][%s]: %s=%.17g\n" : "[%ld.%06ld][%s]: %s=%.3f\n";
    }
}

static void *begin(const struct task *task)
{
    (void)task;
    return &output;
}

static void add(void *state, const double *values, size_t count)
{
    const struct output *to = state;
    for (size_t i = 0; i < count; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        fprintf(to->file, to->format, (long)now.tv_sec, now.tv_nsec / to->ns_per_digit, "my_app", "latency",
                values[i]);
    }
}

static void close_file(const struct task *task)
{
    if (fclose(output.file) != 0)
        measure_fail("%s: write failed", task->file);
}

int main(int argc, char **argv)
{
    static const struct subject subject = {.open = open_file, .begin = begin, .add = add, .close = close_file};
    return measure(argc, argv, &subject);
}
