#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "properties.h"
#include "targets.h"
#include "format/series_template.h"

const weir_option wr_settings_table[] = {
    WEIR_OPTION_ROW("brokers", LIST, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL,
                    "some brokers of the cluster: HOST or HOST:PORT; an item may be several with commas",
                    struct settings_options, brokers),
    WEIR_OPTION_ROW("topic", STRING, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the topic; {group}, {name} and {label.KEY} are replaced by those of the value",
                    struct settings_options, topic),
    WEIR_OPTION_ROW(
        "key", STRING, 0, "series", NULL,
        "the messages' key: series (group, name and labels), none, or a text with fields like those of topic",
        struct settings_options, key),
    WEIR_OPTION_ROW("headers", MAP, 0, NULL, NULL, "headers of each message; values may have fields like topic",
                    struct settings_options, headers),
    WEIR_OPTION_ROW("compression", ENUM, 0, "none", "none|gzip|snappy|lz4|zstd",
                    "how batches of messages are compressed", struct settings_options, compression),
    WEIR_OPTION_ROW("acks", ENUM, 0, "all", "all|leader|none",
                    "who must have stored a message; with leader or none values can be lost or repeated",
                    struct settings_options, acks),
    WEIR_OPTION_ROW("message_bytes", SIZE, 0, "1000000B", "1000B..100MiB",
                    "the largest message, and the largest request", struct settings_options, message_bytes),
    WEIR_OPTION_ROW(
        "timeout", DURATION, 0, "30s", "100ms..1h",
        "how long to wait for a delivery report before the failure is reported; what was sent is still awaited",
        struct settings_options, timeout_ns),
    WEIR_OPTION_ROW("statistics", DURATION, 0, "0s", "0s..1d",
                    "interval of counters and log messages on brokers and queues; 0s: none",
                    struct settings_options, statistics_ns),
    WEIR_OPTION_ROW("tls", BOOL, 0, "false", NULL, "connect with TLS", struct settings_options, tls),
    WEIR_OPTION_ROW("ca_file", PATH, 0, NULL, NULL, "trusted CA certificates, instead of the system's",
                    struct settings_options, ca_file),
    WEIR_OPTION_ROW("cert_file", PATH, 0, NULL, NULL, "a client certificate", struct settings_options,
                    cert_file),
    WEIR_OPTION_ROW("key_file", PATH, 0, NULL, NULL, "the private key of cert_file", struct settings_options,
                    key_file),
    WEIR_OPTION_ROW("sasl", ENUM, 0, "none", "none|plain|scram-sha-256|scram-sha-512",
                    "how to authenticate with username and password", struct settings_options, sasl),
    WEIR_OPTION_ROW("username", STRING, 0, NULL, NULL, "user name for sasl", struct settings_options, username),
    WEIR_OPTION_ROW("password", STRING, WEIR_OPTION_SECRET, NULL, NULL, "password for sasl",
                    struct settings_options, password),
    WEIR_OPTION_ROW("properties", MAP, WEIR_OPTION_SECRET, NULL, NULL,
                    "further settings of librdkafka, such as \"linger.ms\": \"20\"", struct settings_options,
                    properties),
    {0},
};

enum { ACKS_ALL, NS_PER_MS = 1000000, BROKER_ROOM = 300, VALUE_ROOM = 64, ERROR_ROOM = 512 };

/* ---- Checking -------------------------------------------------------------------------------- */

static bool is_port(const char *text)
{
    char *end;
    long port = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && port >= 1 && port <= 65535;
}

/* HOST, HOST:PORT, [ADDRESS]:PORT */
static bool is_broker(const char *text, size_t length)
{
    char broker[BROKER_ROOM];
    if (length >= sizeof broker)
        return false;
    *(char *)mempcpy(broker, text, length) = '\0';
    size_t host = *broker == '[' ? strcspn(broker, "]") + 1 : strcspn(broker, ":");
    bool is_host = *broker && *broker != ':' && !strpbrk(broker, " \t/@") && host <= length;
    return is_host && (!broker[host] || (broker[host] == ':' && is_port(broker + host + 1)));
}

/* One, or several with commas between them, as a variable may have them. What looks like a password is not
 * shown. */
static bool check_broker(const weir_host *host, const char *text)
{
    for (const char *at = text, *end;; at = end + 1) {
        end = at + strcspn(at, ",");
        if (!is_broker(at, (size_t)(end - at))) {
            if (strchr(text, '@'))
                host->refuse(host, "brokers",
                             "a broker has no user and no password; they are options of their own");
            else
                host->refuse(host, "brokers",
                             "\"%s\" is not a broker; allowed: HOST or HOST:PORT, as 127.0.0.1:9092", text);
            return false;
        }
        if (!*end)
            return true;
    }
}

static bool check_brokers(const weir_host *host, const weir_list *brokers)
{
    for (size_t i = 0; i < brokers->count; i++)
        if (!check_broker(host, brokers->items[i]))
            return false;
    if (!brokers->count)
        host->refuse(host, "brokers", "the list is empty; allowed: at least one HOST or HOST:PORT");
    return brokers->count;
}

/* The constant parts of a topic. */
static bool check_topic(const weir_host *host, const char *topic)
{
    struct series_template_part part;
    const char *pos = topic;
    if (!wr_series_template_check(host, "topic", topic))
        return false;
    size_t length = 0;
    while ((part = wr_series_template_next(&pos)).kind != SERIES_TEMPLATE_END) {
        for (size_t i = 0; part.kind == SERIES_TEMPLATE_TEXT && i < part.length; i++)
            if (!wr_targets_is_topic_byte(part.text[i])) {
                host->refuse(host, "topic",
                             "\"%s\" is not a topic; allowed: letters, digits, \".\", \"_\", \"-\", and the "
                             "fields {group}, {name}, {label.KEY}",
                             topic);
                return false;
            }
        length += part.kind == SERIES_TEMPLATE_TEXT ? part.length : 1;
    }
    if (length && length <= TARGETS_TOPIC_MAX && strcmp(topic, ".") != 0 && strcmp(topic, "..") != 0)
        return true;
    host->refuse(host, "topic", "\"%s\" is not a topic; allowed: 1 to %d bytes, not \".\" or \"..\"", topic,
                 TARGETS_TOPIC_MAX);
    return false;
}

static bool check_key(const weir_host *host, const char *key)
{
    if (*key)
        return wr_series_template_check(host, "key", key);
    host->refuse(host, "key", "the value is empty; allowed: series, none, or a text with fields");
    return false;
}

static bool check_headers(const weir_host *host, const weir_map *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (!*headers->items[i].key) {
            host->refuse(host, "headers", "a header has no name");
            return false;
        }
        if (!wr_series_template_check(host, "headers", headers->items[i].value))
            return false;
    }
    return true;
}

static bool check_tls(const weir_host *host, const struct settings_options *options)
{
    const char *set = options->ca_file     ? "ca_file"
                      : options->cert_file ? "cert_file"
                      : options->key_file  ? "key_file"
                                           : NULL;
    if (set && !options->tls)
        host->refuse(host, set, "it requires \"tls\": true");
    else if (options->key_file && !options->cert_file)
        host->refuse(host, "key_file", "it requires \"cert_file\"");
    else if (options->cert_file && !options->key_file)
        host->refuse(host, "cert_file", "it requires \"key_file\"");
    else
        return true;
    return false;
}

static bool check_sasl(const weir_host *host, const struct settings_options *options)
{
    if (!options->sasl && options->username)
        host->refuse(host, "username", "it requires \"sasl\": plain, scram-sha-256 or scram-sha-512");
    else if (!options->sasl && options->password)
        host->refuse(host, "password", "it requires \"sasl\": plain, scram-sha-256 or scram-sha-512");
    else if (options->sasl && (!options->username || !options->password))
        host->refuse(host, "sasl", "it requires \"username\" and \"password\"");
    else
        return true;
    return false;
}

static bool check_properties(const weir_host *host, const weir_map *properties)
{
    for (size_t i = 0; i < properties->count; i++) {
        const char *name = properties->items[i].key, *why = wr_properties_find_refusal(name);
        if (!why)
            continue;
        host->refuse(host, "properties", "\"%s\" cannot be set here: %s", name, why);
        return false;
    }
    return true;
}

static bool check_options(const weir_host *host, const struct settings_options *options)
{
    return check_brokers(host, &options->brokers) && check_topic(host, options->topic) &&
           check_key(host, options->key) && check_headers(host, &options->headers) &&
           check_tls(host, options) && check_sasl(host, options) &&
           check_properties(host, &options->properties);
}

/* ---- The configuration of the producer ------------------------------------------------------- */

struct maker {
    const weir_host *host;
    rd_kafka_conf_t *conf;
    bool failed;
};

/* Refuses the option if librdkafka does not accept its value. The message does not contain the value, which may
 * be a secret. */
static void set(struct maker *maker, const char *option, const char *name, const char *value)
{
    char error[ERROR_ROOM];
    if (maker->failed || !value)
        return;
    rd_kafka_conf_res_t result = rd_kafka_conf_set(maker->conf, name, value, error, sizeof error);
    if (result == RD_KAFKA_CONF_OK)
        return;
    maker->failed = true;
    if (result == RD_KAFKA_CONF_UNKNOWN)
        maker->host->refuse(maker->host, option,
                            "\"%s\" is not a setting of librdkafka %s; allowed: those of a producer, as "
                            "\"linger.ms\": \"20\"",
                            name, rd_kafka_version_str());
    else
        maker->host->refuse(maker->host, option, "librdkafka does not accept the value of \"%s\": %s", name,
                            error);
}

static void set_number(struct maker *maker, const char *option, const char *name, int64_t value)
{
    char text[VALUE_ROOM];
    snprintf(text, sizeof text, "%lld", (long long)value);
    set(maker, option, name, text);
}

static void set_brokers(struct maker *maker, const weir_list *brokers)
{
    size_t size = 1;
    for (size_t i = 0; i < brokers->count; i++)
        size += strlen(brokers->items[i]) + 1;
    char *joined = malloc(size), *at = joined;
    if (!joined) {
        maker->host->refuse(maker->host, "brokers", "out of memory");
        maker->failed = true;
        return;
    }
    for (size_t i = 0; i < brokers->count; i++)
        at = stpcpy(stpcpy(at, i ? "," : ""), brokers->items[i]);
    set(maker, "brokers", "bootstrap.servers", joined);
    free(joined);
}

static const char *protocol_of(const struct settings_options *options)
{
    if (options->sasl)
        return options->tls ? "sasl_ssl" : "sasl_plaintext";
    return options->tls ? "ssl" : "plaintext";
}

static void set_security(struct maker *maker, const struct settings_options *options)
{
    static const char *const mechanisms[] = {NULL, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"};
    set(maker, "tls", "security.protocol", protocol_of(options));
    set(maker, "ca_file", "ssl.ca.location", options->ca_file);
    set(maker, "cert_file", "ssl.certificate.location", options->cert_file);
    set(maker, "key_file", "ssl.key.location", options->key_file);
    set(maker, "sasl", "sasl.mechanism", mechanisms[options->sasl]);
    set(maker, "username", "sasl.username", options->username);
    set(maker, "password", "sasl.password", options->password);
}

/* Idempotence needs the acknowledgement of all replicas. Without a limit of time a message ends only by the
 * broker's response: what the producer has, it goes on trying to send. */
static void set_promises(struct maker *maker, const struct settings_options *options)
{
    static const char *const acks[] = {"all", "1", "0"};
    set(maker, "acks", "acks", acks[options->acks]);
    set(maker, "acks", "enable.idempotence", options->acks == ACKS_ALL ? "true" : "false");
    if (options->acks != ACKS_ALL)
        set(maker, "acks", "max.in.flight.requests.per.connection", "1"); /* keeps the order */
    set(maker, "acks", "message.timeout.ms", "0");
}

/* What `properties` may change. The core has waited for the batch to fill (linger), so the producer need not.
 */
static void set_defaults(struct maker *maker)
{
    set(maker, "properties", "client.id", "weir");
    set(maker, "properties", "linger.ms", "2");
    set(maker, "properties", "queue.buffering.max.messages", "1000000");
    set(maker, "properties", "queue.buffering.max.kbytes", "262144");
    set(maker, "properties", "reconnect.backoff.max.ms", "2000");
}

static void set_all(struct maker *maker, const struct settings_options *options)
{
    static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    set_defaults(maker);
    for (size_t i = 0; i < options->properties.count; i++)
        set(maker, "properties", options->properties.items[i].key, options->properties.items[i].value);
    set_promises(maker, options);
    set_brokers(maker, &options->brokers);
    set_security(maker, options);
    set(maker, "compression", "compression.codec", codecs[options->compression]);
    set_number(maker, "message_bytes", "message.max.bytes", options->message_bytes);
    set_number(maker, "statistics", "statistics.interval.ms",
               (options->statistics_ns + NS_PER_MS - 1) / NS_PER_MS);
}

rd_kafka_conf_t *wr_settings_make(const weir_host *host, const struct settings_options *options)
{
    struct maker maker = {.host = host};
    if (!check_options(host, options))
        return NULL;
    maker.conf = rd_kafka_conf_new();
    if (!maker.conf) {
        host->refuse(host, "", "out of memory");
        return NULL;
    }
    set_all(&maker, options);
    if (!maker.failed)
        return maker.conf;
    rd_kafka_conf_destroy(maker.conf);
    return NULL;
}
