#include "statistics.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* All brokers together. */
struct figures {
    struct statistics totals;
    int64_t queued_messages, queued_bytes;
    int64_t rtt_us, rtt_max_us, waiting; /* the mean of brokers that answered, the largest, open requests */
    int64_t brokers, answered;
};

static int64_t number_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return object && json_object_object_get_ex(object, name, &value) ? json_object_get_int64(value) : 0;
}

static struct json_object *member_of(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;
    return object && json_object_object_get_ex(object, name, &value) ? value : NULL;
}

static void add_broker(struct figures *figures, struct json_object *broker)
{
    struct json_object *rtt = member_of(broker, "rtt");
    figures->totals.retries += number_of(broker, "txretries");
    figures->totals.timeouts += number_of(broker, "req_timeouts");
    figures->totals.disconnects += number_of(broker, "disconnects");
    figures->waiting += number_of(broker, "waitresp_cnt");
    figures->brokers += number_of(broker, "nodeid") >= 0;
    if (!number_of(rtt, "cnt"))
        return;
    figures->answered++;
    figures->rtt_us += number_of(rtt, "avg");
    if (number_of(rtt, "max") > figures->rtt_max_us)
        figures->rtt_max_us = number_of(rtt, "max");
}

static void gather(struct figures *figures, struct json_object *root)
{
    figures->totals.requests = number_of(root, "tx");
    figures->totals.bytes = number_of(root, "tx_bytes");
    figures->totals.messages = number_of(root, "txmsgs");
    figures->queued_messages = number_of(root, "msg_cnt");
    figures->queued_bytes = number_of(root, "msg_size");
    struct json_object *brokers = member_of(root, "brokers");
    if (brokers && json_object_is_type(brokers, json_type_object)) {
        json_object_object_foreach(brokers, name, broker)
        {
            (void)name;
            add_broker(figures, broker);
        }
    }
    if (figures->answered)
        figures->rtt_us /= figures->answered;
}

static void count(const weir_host *host, const char *name, int64_t n)
{
    if (n > 0)
        host->count(host, name, (uint64_t)n);
}

static void count_all(const struct statistics *before, const weir_host *host, const struct figures *now)
{
    const struct statistics *totals = &now->totals;
    count(host, "requests", totals->requests - before->requests);
    count(host, "bytes", totals->bytes - before->bytes);
    count(host, "messages", totals->messages - before->messages);
    count(host, "retried", totals->retries - before->retries);
    count(host, "timeouts", totals->timeouts - before->timeouts);
    count(host, "disconnects", totals->disconnects - before->disconnects);
    count(host, "reports", 1);
    count(host, "rtt.us", now->rtt_us);
    count(host, "queued.messages", now->queued_messages);
    count(host, "queued.bytes", now->queued_bytes);
}

void wr_statistics_read(struct statistics *statistics, const weir_host *host, const char *json, size_t length)
{
    struct json_tokener *tokener = length <= INT32_MAX ? json_tokener_new() : NULL;
    struct json_object *root = tokener ? json_tokener_parse_ex(tokener, json, (int)length) : NULL;
    if (root) {
        struct figures figures = {0};
        gather(&figures, root);
        count_all(statistics, host, &figures);
        *statistics = figures.totals;
        host->log(host, WEIR_LOG_INFO,
                  "statistics: brokers: %lld, round trip: mean %lld us, most %lld us, requests without a "
                  "response: %lld, queued: %lld messages, %lld bytes",
                  (long long)figures.brokers, (long long)figures.rtt_us, (long long)figures.rtt_max_us,
                  (long long)figures.waiting, (long long)figures.queued_messages,
                  (long long)figures.queued_bytes);
        json_object_put(root);
    }
    if (tokener)
        json_tokener_free(tokener);
}
