/* curl: sends values to a server without a metrics library: clock_gettime and snprintf into a buffer, and a
 * request with libcurl for every 5,000 values, over one connection.
 *
 * file is the URL; format: influx, a line for each value; or elastic, two lines of a bulk request for each. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../support/measure.h"
#include "../support/posting.h"

enum { MAX_TEXT = 300 };

static struct client {
    int (*put)(char *text, const struct timespec *now, double value);
    char *text;
    size_t length;
    long values, all;
} client;

static int put_influx(char *text, const struct timespec *now, double value)
{
    return snprintf(text, MAX_TEXT, "%s %s=%.3f %lld%09ld\n", "my_app", "latency", value,
                    (long long)now->tv_sec, now->tv_nsec);
}

/* An id by which the server recognises a document that comes again, as weir's. */
static int put_elastic(char *text, const struct timespec *now, double value)
{
    static const char origin[] = "0123456789abcdef0123456789abcdef";
    struct tm date;
    gmtime_r(&now->tv_sec, &date);
    return snprintf(
        text, MAX_TEXT,
        "{\"create\":{\"_index\":\"%s\",\"_id\":\"%s-%ld\"}}\n{\"@timestamp\":\"%04d-%02d-%02dT%02d:%02d:%"
        "02d.%09ldZ\",\"group\":\"%s\",\"metrics\":{\"%s\":%.3f}}\n",
        "weir", origin, client.all, date.tm_year + 1900, date.tm_mon + 1, date.tm_mday, date.tm_hour,
        date.tm_min, date.tm_sec, now->tv_nsec, "my_app", "latency", value);
}

static void open_client(const struct task *task)
{
    bool is_elastic = strcmp(task->format, "elastic") == 0;
    if (task->threads != 1)
        measure_fail("threads must be 1");
    client.put = is_elastic ? put_elastic : put_influx;
    client.text = malloc((size_t)POSTING_BATCH * MAX_TEXT);
    if (!client.text)
        measure_fail("out of memory");
    posting_open(task->file, is_elastic ? "application/x-ndjson" : "text/plain; charset=utf-8");
}

static void *begin(const struct task *task)
{
    (void)task;
    return &client;
}

static void send_text(struct client *from)
{
    posting_send(from->text, from->length);
    from->length = 0;
    from->values = 0;
}

static void add(void *state, const double *values, size_t count)
{
    struct client *to = state;
    for (size_t i = 0; i < count; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        to->length += (size_t)to->put(to->text + to->length, &now, values[i]);
        to->all++;
        if (++to->values == POSTING_BATCH)
            send_text(to);
    }
}

static void close_client(const struct task *task)
{
    (void)task;
    if (client.values)
        send_text(&client);
    posting_close();
    free(client.text);
}

int main(int argc, char **argv)
{
    static const struct subject subject = {
        .open = open_client, .begin = begin, .add = add, .close = close_client};
    return measure(argc, argv, &subject);
}
