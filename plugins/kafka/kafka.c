/* kafka: sends values to topics of a Kafka cluster, one message for each line of the format.
 *
 * settings.c checks the options, producer.c wraps librdkafka, targets.c finds topic and key of a series,
 * messages.c divides what the format wrote, flight.c remembers what is on its way. This file sends batches and
 * reports what was delivered: a sample is settled by the delivery report of its message, and by nothing else.
 *
 * librdkafka resends what a broker has not acknowledged, in order and, with acks "all", without repeating it.
 * So what it has taken stays there during an outage: emit returns RETRY, and finds its messages again when the
 * same samples are offered. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <weir/handler.h>

#include "../system.h"
#include "failures.h"
#include "flight.h"
#include "messages.h"
#include "producer.h"
#include "settings.h"
#include "targets.h"

enum {
    CHUNK = 64 * 1024, /* bytes that are encoded at once */
    DOWN_MS = 1000,    /* how long an attempt lasts while no broker is connected */
    PROGRESS_MS = 250, /* what is delivered of a slow batch is reported after that time */
    NS_PER_MS = 1000000,
    NEVER_MS = 24 * 3600 * 1000, /* as a delay: retry_max */
};

static const weir_default kafka_defaults[] = {
    {"overflow", "drop_oldest"}, {"queue", "16MiB"}, {"batch", "50000"}, {"batch_bytes", "4MiB"},
    {"linger", "200ms"},         {"format", "json"}, {NULL, NULL}};

struct kafka {
    const weir_host *host;
    const weir_encoder *encoder;
    const struct settings_options *options;
    rd_kafka_conf_t *conf;
    struct producer producer;
    struct targets targets;
    struct flight flight;
    int64_t timeout_ms;
};

/* One call of emit. */
struct delivery {
    struct kafka *kafka;
    const weir_batch *batch;
    weir_outcome *outcome;
    uint32_t passed;  /* samples before this are encoded, and their messages sent */
    uint64_t reports; /* of the producer, when it last made progress */
    int64_t begin_ms, progress_ms;
    rd_kafka_resp_err_t refusal; /* why outcome->rejected samples are refused */
};

/* ---- Creating -------------------------------------------------------------------------------- */

/* As for http: in a program with the privileges of another user than its caller, the caller could have OpenSSL
 * or SASL load any library. Initializes librdkafka and with it OpenSSL, before weir registers its exit handler.
 */
static bool kafka_prepare(const weir_host *host)
{
    if (getauxval(AT_SECURE)) {
        host->refuse(
            host, "",
            "not available in a program with raised privileges (setuid, setgid, capabilities): librdkafka's "
            "libraries read the environment of the user who starts it");
        return false;
    }
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (!conf)
        host->refuse(host, "", "out of memory");
    else
        rd_kafka_conf_destroy(conf);
    return conf;
}

/* [worker, in rd_kafka_poll] */
static void take_report(void *context, const rd_kafka_message_t *message)
{
    struct kafka *kafka = context;
    struct flight_slot *slot = wr_flight_reported(&kafka->flight, message->_private);
    if (!slot)
        return;
    switch (wr_failures_classify(message->err)) {
    case FAILURE_NONE: break;
    case FAILURE_REFUSED: slot->error = message->err; break;
    case FAILURE_SUSPECT:
        if (slot->alone)
            slot->error = message->err;
        else
            wr_flight_fail(&kafka->flight, slot);
        slot->alone = true;
        break;
    case FAILURE_RESEND: wr_flight_fail(&kafka->flight, slot); break;
    }
}

static void *kafka_create(const weir_host *host, const void *given)
{
    const struct settings_options *options = given;
    struct kafka *kafka = wr_system_allocate(host, sizeof *kafka);
    if (!kafka)
        return NULL;
    kafka->host = host;
    kafka->encoder = host->service(host, WEIR_SERVICE_ENCODER);
    kafka->options = options;
    kafka->timeout_ms = options->timeout_ns / NS_PER_MS;
    kafka->targets.rules = (struct targets_rules){options->topic, options->key, &options->headers};
    wr_producer_init(&kafka->producer, host);
    kafka->producer.report = take_report;
    kafka->producer.context = kafka;
    kafka->conf = wr_settings_make(host, options);
    const weir_try_timeout *try_timeout = host->service(host, WEIR_SERVICE_TRY_TIMEOUT);
    if (try_timeout)
        try_timeout->set(host, kafka->timeout_ms);
    if (kafka->conf)
        return kafka;
    free(kafka);
    return NULL;
}

static void kafka_destroy(void *self)
{
    struct kafka *kafka = self;
    wr_targets_clear(&kafka->targets);
    wr_flight_fini(&kafka->flight);
    rd_kafka_conf_destroy(kafka->conf);
    free(kafka);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The producer connects by itself. */
static void kafka_open(void *self, weir_outcome *outcome)
{
    struct kafka *kafka = self;
    if (!wr_producer_open(&kafka->producer, kafka->conf))
        wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "%s", kafka->producer.problem);
}

static void kafka_close(void *self)
{
    struct kafka *kafka = self;
    wr_targets_clear(&kafka->targets); /* before the producer that its topics are of */
    wr_producer_close(&kafka->producer);
    wr_flight_forget(&kafka->flight);
}

static void kafka_abandon(void *self)
{
    const struct kafka *kafka = self;
    wr_producer_abandon(&kafka->producer);
}

static void kafka_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct kafka *kafka = self;
    int brokers;
    kafka_open(kafka, outcome);
    if (outcome->code != WEIR_OUTCOME_OK)
        return;
    if (wr_producer_probe(&kafka->producer, timeout_ms, &brokers)) {
        snprintf(outcome->reason, sizeof outcome->reason, "a cluster with %d %s", brokers,
                 brokers == 1 ? "broker" : "brokers");
    } else {
        wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "%s", kafka->producer.problem);
    }
    kafka_close(kafka);
}

/* ---- Settling -------------------------------------------------------------------------------- */

static void count_refused(const struct kafka *kafka, rd_kafka_resp_err_t error, uint32_t samples)
{
    char counter[48];
    snprintf(counter, sizeof counter, "refused.%s", rd_kafka_err2name(error));
    kafka->host->count(kafka->host, counter, samples);
}

static void describe_refusal(const struct delivery *d, uint32_t sample)
{
    const weir_series *series = weir_batch_series(d->batch, &d->batch->samples[sample]);
    char topic[64];
    wr_targets_put_topic(&d->kafka->targets, d->batch, series, topic, sizeof topic);
    snprintf(d->outcome->reason, sizeof d->outcome->reason, "topic \"%s\", \"%.40s\" of group \"%.40s\": %s",
             topic, series->name, series->group, rd_kafka_err2str(d->refusal));
}

/* Settles what is reported, up to the first message that is not. Refused samples must be the last ones, and
 * refused for one reason. Returns false if they are, so that emit must return. */
static bool settle(struct delivery *d)
{
    weir_outcome *outcome = d->outcome;
    while (outcome->done < d->passed) {
        const struct flight_slot *slot = wr_flight_slot(&d->kafka->flight, outcome->done);
        if (slot->pending || slot->resend)
            break;
        if (outcome->rejected && (rd_kafka_resp_err_t)slot->error != d->refusal)
            return false;
        uint32_t end = wr_messages_event_end(d->batch, outcome->done);
        if (slot->error && !outcome->rejected) {
            d->refusal = (rd_kafka_resp_err_t)slot->error;
            describe_refusal(d, outcome->done);
        }
        if (slot->error) {
            outcome->rejected += end - outcome->done;
            count_refused(d->kafka, d->refusal, end - outcome->done);
        }
        outcome->done = end;
    }
    return true;
}

/* Ends emit with what is settled. If some of that is refused, the reason is that, and the failure is found
 * again by the next call. Returns false. */
static bool fail(struct delivery *d, int32_t code, int64_t retry_after_ms, const char *reason)
{
    settle(d);
    if (d->outcome->rejected)
        return false;
    d->outcome->retry_after_ms = retry_after_ms;
    return wr_system_fail(d->outcome, code, "%s", reason);
}

/* ---- Waiting for reports --------------------------------------------------------------------- */

/* Returns false: emit must return. */
static bool fail_by_state(struct delivery *d)
{
    const struct producer *producer = &d->kafka->producer;
    char reason[PRODUCER_TEXT + 64];
    bool is_denied = producer->state == PRODUCER_REFUSED ||
                     producer->error == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
    snprintf(reason, sizeof reason, "no delivery report%s%s", *producer->problem ? ": " : " in time",
             producer->problem);
    return fail(d, producer->state == PRODUCER_FATAL ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_RETRY,
                is_denied ? NEVER_MS : 0, reason);
}

/* After a failure since the last report an attempt is short, so that the failure is reported: what was sent is
 * awaited by the next one, too. */
static int64_t find_limit(const struct delivery *d)
{
    const struct kafka *kafka = d->kafka;
    bool works = kafka->producer.state == PRODUCER_WORKS && !*kafka->producer.problem;
    return d->progress_ms + (works || kafka->timeout_ms < DOWN_MS ? kafka->timeout_ms : DOWN_MS);
}

/* Waits for a delivery report. Returns false if emit must return. */
static bool await_report(struct delivery *d)
{
    struct producer *producer = &d->kafka->producer;
    while (producer->reports == d->reports) {
        int64_t left_ms = find_limit(d) - wr_producer_now_ms(producer);
        if (producer->state == PRODUCER_FATAL || left_ms <= 0)
            return fail_by_state(d);
        if (!wr_producer_wait(producer, left_ms) && producer->reports == d->reports)
            return fail(d, WEIR_OUTCOME_RETRY, 0, "no time was left to wait for delivery reports");
    }
    d->reports = producer->reports;
    d->progress_ms = wr_producer_now_ms(producer);
    return true;
}

/* Waits until no message is on its way. Returns false if emit must return. */
static bool drain(struct delivery *d)
{
    while (d->kafka->flight.pending)
        if (!await_report(d))
            return false;
    return true;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static int64_t to_timestamp(int64_t time_ns)
{
    return time_ns >= NS_PER_MS ? time_ns / NS_PER_MS : 1; /* 0: now */
}

static rd_kafka_resp_err_t produce(struct kafka *kafka, const struct target *target, const weir_sample *sample,
                                   const char *line, size_t length, void *opaque)
{
    rd_kafka_headers_t *headers = target->headers ? rd_kafka_headers_copy(target->headers) : NULL;
    rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = target->topic},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)line, length}},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {target->key, target->key_length}},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = to_timestamp(sample->time_ns)},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = opaque},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
    };
    size_t count = sizeof parts / sizeof *parts - !headers;
    rd_kafka_error_t *error = rd_kafka_produceva(kafka->producer.client, parts, count);
    if (!error)
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    if (headers)
        rd_kafka_headers_destroy(headers);
    return code;
}

/* Returns false if emit must return. */
static bool send_line(struct delivery *d, struct flight_slot *slot, uint32_t event, uint32_t at,
                      const char *line, size_t length)
{
    struct kafka *kafka = d->kafka;
    const weir_sample *sample = &d->batch->samples[at];
    const struct target *target =
        wr_targets_find(&kafka->targets, kafka->producer.client, d->batch, weir_batch_series(d->batch, sample));
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION;
    if (!target)
        return fail(d, WEIR_OUTCOME_RETRY, 0, "out of memory");
    while (target->topic &&
           (error = produce(kafka, target, sample, line, length, wr_flight_opaque(&kafka->flight, event))) ==
               RD_KAFKA_RESP_ERR__QUEUE_FULL)
        if (!await_report(d))
            return false;
    enum failure failure = wr_failures_classify(error);
    if (failure == FAILURE_NONE) {
        wr_flight_sent(&kafka->flight, slot);
    } else if (failure != FAILURE_RESEND) {
        slot->sent++;
        slot->error = error;
    } else if (wr_producer_check_fatal(&kafka->producer)) {
        return fail_by_state(d);
    } else {
        return fail(d, WEIR_OUTCOME_RETRY, 0, rd_kafka_err2str(error));
    }
    return true;
}

/* Sends the lines of an event that are not sent yet. Returns false if emit must return. */
static bool send_lines(struct delivery *d, struct flight_slot *slot, const struct messages_event *event)
{
    const char *line = event->lines, *end = event->lines + event->length;
    bool is_plain = wr_messages_is_plain(event);
    for (uint32_t i = 0; i < event->count; i++) {
        size_t size = (size_t)(end - line);
        const char *next = memchr(line, '\n', size);
        size_t length = next ? (size_t)(next - line) : size;
        if (i >= slot->sent &&
            !send_line(d, slot, event->first, is_plain ? event->first + i : event->first, line, length))
            return false;
        line += length + (next != NULL);
    }
    return true;
}

/* Returns false if emit must return. */
static bool send_event(struct delivery *d, const struct messages_event *event)
{
    struct flight *flight = &d->kafka->flight;
    struct flight_slot *slot = wr_flight_slot(flight, event->first);
    if (slot->resend && slot->pending) /* sent again once all of it is reported */
        return true;
    if (slot->resend)
        wr_flight_restart(slot);
    bool alone = slot->alone && slot->sent < event->count;
    if ((alone && !drain(d)) || !send_lines(d, slot, event) || (alone && !drain(d)))
        return false;
    if (flight->plain == event->first && wr_messages_is_plain(event))
        flight->plain = event->end;
    return true;
}

/* Encodes and sends the next events. Returns false if emit must return. */
static bool pass(struct delivery *d)
{
    struct kafka *kafka = d->kafka;
    weir_encoded encoded;
    struct messages_event event;
    if (!kafka->encoder->encode(kafka->host, d->batch, d->passed, CHUNK, &encoded))
        return fail(d, WEIR_OUTCOME_RETRY, 0, "out of memory");
    uint32_t end = d->passed + encoded.count;
    struct messages messages = {.host = kafka->host,
                                .encoder = kafka->encoder,
                                .batch = d->batch,
                                .encoded = &encoded,
                                .start = d->passed};
    while (wr_messages_next_event(&messages, &event)) {
        if (!send_event(d, &event))
            return false;
        d->passed = event.end;
    }
    d->passed = end;
    return true;
}

/* ---- Delivering ------------------------------------------------------------------------------ */

/* Nothing is on its way, and the first sample that is not settled is to be sent again. Returns false if emit
 * must return. */
static bool send_again(struct delivery *d)
{
    const struct flight_slot *slot = wr_flight_slot(&d->kafka->flight, d->outcome->done);
    if (!slot->alone)
        return fail_by_state(d);
    d->passed = d->outcome->done;
    return true;
}

/* Returns false if emit must return. */
static bool advance(struct delivery *d)
{
    struct producer *producer = &d->kafka->producer;
    if (d->passed < d->batch->count) {
        if (!pass(d))
            return false;
        wr_producer_wait(producer, 0); /* lets the program fork */
        return settle(d);
    }
    if (!settle(d) || d->outcome->done == d->batch->count)
        return false;
    if (!d->kafka->flight.pending)
        return send_again(d);
    bool is_slow = d->outcome->done && wr_producer_now_ms(producer) - d->begin_ms > PROGRESS_MS;
    return !is_slow && await_report(d);
}

static void kafka_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct kafka *kafka = self;
    struct delivery d = {.kafka = kafka, .batch = batch, .outcome = outcome};
    outcome->done = 0;
    wr_targets_begin(&kafka->targets, batch);
    if (!wr_flight_begin(&kafka->flight, batch)) {
        fail(&d, WEIR_OUTCOME_RETRY, 0, "out of memory");
        return;
    }
    wr_producer_tend(&kafka->producer);
    wr_producer_poll(&kafka->producer);
    d.passed = kafka->flight.plain < batch->count ? kafka->flight.plain : batch->count;
    d.reports = kafka->producer.reports;
    d.begin_ms = d.progress_ms = wr_producer_now_ms(&kafka->producer);
    while (advance(&d))
        ;
}

/* ---- The type -------------------------------------------------------------------------------- */

static const weir_handler_type kafka_type = {
    .size = sizeof kafka_type,
    .abi = WEIR_ABI,
    .name = "kafka",
    .summary = "sends values to topics of a Kafka cluster",
    .formats = WEIR_FORMAT_LINES,
    .options = wr_settings_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct settings_options),
    .defaults = kafka_defaults,
    .prepare = kafka_prepare,
    .create = kafka_create,
    .open = kafka_open,
    .emit = kafka_emit,
    .close = kafka_close,
    .destroy = kafka_destroy,
    .abandon = kafka_abandon,
    .probe = kafka_probe,
    .flags = WEIR_TYPE_WORKS_AT_EXIT,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &kafka_type : NULL;
}
