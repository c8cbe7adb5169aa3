#include "properties.h"

#include <stddef.h>
#include <string.h>

#define USE(option) "use the option \"" option "\""

static const char exactly_once[] = "the handler sets it: no value is lost or stored twice because of it";
static const char waits[] = "the handler sets it: the core decides how long values are kept";
static const char callback[] = "the handler has no use for a callback or an object of a program";
static const char order[] = "the handler sets it: the order of values depends on it";
static const char code[] = "it loads code or runs commands";

static const struct {
    const char *name, *why;
} refused[] = {
    {"bootstrap.servers", USE("brokers")},
    {"metadata.broker.list", USE("brokers")},
    {"acks", USE("acks")},
    {"request.required.acks", USE("acks")},
    {"compression.codec", USE("compression")},
    {"compression.type", USE("compression")},
    {"message.max.bytes", USE("message_bytes")},
    {"statistics.interval.ms", USE("statistics")},
    {"security.protocol", USE("tls") " or " USE("sasl")},
    {"ssl.ca.location", USE("ca_file")},
    {"ssl.certificate.location", USE("cert_file")},
    {"ssl.key.location", USE("key_file")},
    {"sasl.mechanism", USE("sasl")},
    {"sasl.mechanisms", USE("sasl")},
    {"sasl.username", USE("username")},
    {"sasl.password", USE("password")},
    {"enable.idempotence", exactly_once},
    {"enable.gapless.guarantee", exactly_once},
    {"transactional.id", exactly_once},
    {"transaction.timeout.ms", exactly_once},
    {"message.send.max.retries", exactly_once},
    {"retries", exactly_once},
    {"delivery.report.only.error", exactly_once},
    {"message.timeout.ms", waits},
    {"delivery.timeout.ms", waits},
    {"max.in.flight", order},
    {"max.in.flight.requests.per.connection", order},
    {"queuing.strategy", order},
    {"msg_order_cmp", order},
    {"plugin.library.paths", code},
    {"sasl.kerberos.kinit.cmd", code},
    {"internal.termination.signal", "the handler sends no signals to the program"},
    {"log.queue", "the handler writes librdkafka's messages to weir's log"},
    {"enabled_events", callback},
    {"interceptors", callback},
    {"opaque", callback},
    {"default_topic_conf", callback},
    {"partitioner_cb", callback},
};

/* dr_cb, log_cb and so on. */
static int is_callback(const char *name)
{
    size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, "_cb") == 0;
}

const char *wr_properties_find_refusal(const char *name)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(name, refused[i].name) == 0)
            return refused[i].why;
    return is_callback(name) ? callback : NULL;
}
