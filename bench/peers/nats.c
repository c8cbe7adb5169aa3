/* nats: publishes values to NATS JetStream without a metrics library: clock_gettime, snprintf and libnats'
 * asynchronous publication with message ids, 4,096 messages ahead of their acknowledgements.
 *
 * file is the URL of the server. The stream PEER is created if it does not exist. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <nats/nats.h>

#include "../support/measure.h"

enum { PENDING = 4096, WAIT_MS = 60000 };

struct publisher {
    natsConnection *connection;
    jsCtx *stream;
    long run, number;
};

static struct publisher publisher;

static void check(natsStatus status)
{
    if (status != NATS_OK)
        measure_fail("%s", natsStatus_GetText(status));
}

static void create_stream(void)
{
    static const char *subjects[] = {"peer.>"};
    jsStreamConfig config;
    jsStreamInfo *info = NULL;
    jsStreamConfig_Init(&config);
    config.Name = "PEER";
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Duplicates = (int64_t)600 * 1000000000;
    if (js_GetStreamInfo(&info, publisher.stream, "PEER", NULL, NULL) != NATS_OK)
        check(js_AddStream(&info, publisher.stream, &config, NULL, NULL));
    jsStreamInfo_Destroy(info);
}

static void open_publisher(const struct task *task)
{
    jsOptions options;
    if (task->threads != 1)
        measure_fail("threads must be 1");
    check(natsConnection_ConnectTo(&publisher.connection, task->file));
    jsOptions_Init(&options);
    options.PublishAsync.MaxPending = PENDING;
    options.PublishAsync.StallWait = WAIT_MS;
    check(natsConnection_JetStream(&publisher.stream, publisher.connection, &options));
    create_stream();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    publisher.run = now.tv_sec * 1000000000L + now.tv_nsec;
}

static void *begin(const struct task *task)
{
    (void)task;
    return &publisher;
}

static void publish(struct publisher *to, double value)
{
    char id[64], text[128];
    struct timespec now;
    jsPubOptions options;
    clock_gettime(CLOCK_REALTIME, &now);
    int length = snprintf(text, sizeof text,
                          "{\"timestamp\":%lld.%09ld,\"group\":\"my_app\",\"name\":\"latency\",\"value\":%.3f}",
                          (long long)now.tv_sec, now.tv_nsec, value);
    snprintf(id, sizeof id, "%032lx-%ld", (unsigned long)to->run, to->number++);
    jsPubOptions_Init(&options);
    options.MsgId = id;
    check(js_PublishAsync(to->stream, "peer.my_app", text, length, &options));
}

static void add(void *state, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        publish(state, values[i]);
}

static void close_publisher(const struct task *task)
{
    jsPubOptions options;
    (void)task;
    jsPubOptions_Init(&options);
    options.MaxWait = WAIT_MS;
    check(js_PublishAsyncComplete(publisher.stream, &options));
    jsCtx_Destroy(publisher.stream);
    natsConnection_Destroy(publisher.connection);
}

int main(int argc, char **argv)
{
    static const struct subject subject = {
        .open = open_publisher, .begin = begin, .add = add, .close = close_publisher};
    return measure(argc, argv, &subject);
}
