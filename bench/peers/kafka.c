/* kafka: sends values to a topic without a metrics library: clock_gettime and snprintf, a message of
 * librdkafka's idempotent producer for each, and a count of delivery reports.
 *
 * file is a broker, HOST:PORT. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <librdkafka/rdkafka.h>

#include "../support/measure.h"

enum { MAX_LINE = 100, POLL_EACH = 1000 };

static const char key[] = "my_app|latency";

static struct {
    rd_kafka_t *producer;
    rd_kafka_topic_t *topic;
    long added, delivered;
} client;

static void take_report(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque)
{
    (void)producer, (void)opaque;
    if (message->err)
        measure_fail("%s", rd_kafka_err2str(message->err));
    client.delivered++;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
        measure_fail("%s", error);
}

static void open_client(const struct task *task)
{
    char error[256];
    if (task->threads != 1)
        measure_fail("threads must be 1");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", task->file);
    set(conf, "enable.idempotence", "true");
    set(conf, "linger.ms", "2");
    set(conf, "queue.buffering.max.messages", "1000000");
    rd_kafka_conf_set_dr_msg_cb(conf, take_report);
    client.producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    if (!client.producer)
        measure_fail("%s", error);
    client.topic = rd_kafka_topic_new(client.producer, "bench", NULL);
}

static void *begin(const struct task *task)
{
    (void)task;
    return &client;
}

static rd_kafka_resp_err_t produce(const char *line, size_t length, const struct timespec *now)
{
    return rd_kafka_producev(
        client.producer, RD_KAFKA_V_RKT(client.topic), RD_KAFKA_V_VALUE((void *)(size_t)line, length),
        RD_KAFKA_V_KEY(key, sizeof key - 1), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_TIMESTAMP((int64_t)now->tv_sec * 1000 + now->tv_nsec / 1000000), RD_KAFKA_V_END);
}

static void add(void *state, const double *values, size_t count)
{
    (void)state;
    for (size_t i = 0; i < count; i++) {
        struct timespec now;
        char line[MAX_LINE];
        clock_gettime(CLOCK_REALTIME, &now);
        size_t length = (size_t)snprintf(line, sizeof line, "[%lld.%06ld][%s]: %s=%.3f", (long long)now.tv_sec,
                                         now.tv_nsec / 1000, "my_app", "latency", values[i]);
        while (produce(line, length, &now) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(client.producer, 10);
        if (++client.added % POLL_EACH == 0)
            rd_kafka_poll(client.producer, 0);
    }
}

static void close_client(const struct task *task)
{
    (void)task;
    if (rd_kafka_flush(client.producer, 60000) != RD_KAFKA_RESP_ERR_NO_ERROR)
        measure_fail("messages are left");
    rd_kafka_topic_destroy(client.topic);
    rd_kafka_destroy(client.producer);
}

static long count_delivered(const struct task *task)
{
    (void)task;
    return client.delivered;
}

int main(int argc, char **argv)
{
    static const struct subject subject = {
        .open = open_client, .begin = begin, .add = add, .close = close_client, .count = count_delivered};
    return measure(argc, argv, &subject);
}
