/* curl: sends values to a database without a metrics library: clock_gettime and snprintf into a buffer, and a
 * request with libcurl for every 5,000 lines, over one connection.
 *
 * file is the URL. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <curl/curl.h>

#include "../support/measure.h"

enum { BATCH = 5000, MAX_LINE = 100 };

struct client {
    CURL *handle;
    struct curl_slist *headers;
    char *text;
    size_t length;
    long lines;
};

static struct client client;

/* Discards the body of the response. */
static size_t ignore(char *data, size_t size, size_t count, void *unused)
{
    (void)data, (void)unused;
    return size * count;
}

static void open_client(const struct task *task)
{
    if (task->threads != 1)
        measure_fail("threads must be 1");
    curl_global_init(CURL_GLOBAL_DEFAULT);
    client.handle = curl_easy_init();
    client.headers = curl_slist_append(NULL, "Content-Type: text/plain; charset=utf-8");
    client.text = malloc((size_t)BATCH * MAX_LINE);
    if (!client.handle || !client.headers || !client.text)
        measure_fail("out of memory");
    curl_easy_setopt(client.handle, CURLOPT_URL, task->file);
    curl_easy_setopt(client.handle, CURLOPT_HTTPHEADER, client.headers);
    curl_easy_setopt(client.handle, CURLOPT_POST, 1L);
    curl_easy_setopt(client.handle, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(client.handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(client.handle, CURLOPT_NOSIGNAL, 1L);
}

static void *begin(const struct task *task)
{
    (void)task;
    return &client;
}

static void send_lines(struct client *from)
{
    curl_easy_setopt(from->handle, CURLOPT_POSTFIELDS, from->text);
    curl_easy_setopt(from->handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)from->length);
    CURLcode code = curl_easy_perform(from->handle);
    if (code != CURLE_OK)
        measure_fail("%s", curl_easy_strerror(code));
    from->length = 0;
    from->lines = 0;
}

static void add(void *state, const double *values, size_t count)
{
    struct client *to = state;
    for (size_t i = 0; i < count; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        to->length += (size_t)snprintf(to->text + to->length, MAX_LINE, "%s %s=%.3f %lld%09ld\n", "my_app",
                                       "latency", values[i], (long long)now.tv_sec, now.tv_nsec);
        if (++to->lines == BATCH)
            send_lines(to);
    }
}

static void close_client(const struct task *task)
{
    (void)task;
    if (client.lines)
        send_lines(&client);
    curl_easy_cleanup(client.handle);
    curl_slist_free_all(client.headers);
    free(client.text);
}

int main(int argc, char **argv)
{
    static const struct subject subject = {
        .open = open_client, .begin = begin, .add = add, .close = close_client};
    return measure(argc, argv, &subject);
}
