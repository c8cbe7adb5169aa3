/* settings: the options of the handler type kafka, and the librdkafka configuration that they make. */
#ifndef KAFKA_SETTINGS_H
#define KAFKA_SETTINGS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

struct settings_options {
    weir_list brokers;
    const char *topic;
    const char *key;
    weir_map headers;
    int64_t compression;
    int64_t acks;
    int64_t message_bytes;
    int64_t timeout_ns;
    int64_t statistics_ns;
    bool tls;
    const char *ca_file, *cert_file, *key_file;
    int64_t sasl;
    const char *username, *password;
    weir_map properties;
};

extern const weir_option wr_settings_table[];

/* [create] Checks the options and makes the configuration of a producer, which the caller destroys. Returns
 * NULL after a refusal. */
rd_kafka_conf_t *wr_settings_make(const weir_host *host, const struct settings_options *options);

#endif
