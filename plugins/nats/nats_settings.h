/* nats_settings: the options of the handler type nats. */
#ifndef NATS_SETTINGS_H
#define NATS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

enum nats_storage { NATS_STORAGE_FILE, NATS_STORAGE_MEMORY };

/* Filled by the core from the table. */
struct nats_options {
    weir_list servers;
    const char *subject;
    bool jetstream;
    const char *stream;
    bool create;
    weir_list subjects;
    int64_t duplicate_window_ns, storage, replicas;
    const char *user, *password, *token, *credentials_file;
    const char *ca_file, *cert_file, *key_file;
    bool verify;
    int64_t connect_timeout_ns, ack_timeout_ns, max_pending;
    const char *inbox_prefix;
};

extern const weir_option wr_nats_settings_table[];

/* [create] Checks what the table cannot. Returns false after host->refuse. */
bool wr_nats_settings_check(const weir_host *host, const struct nats_options *options);

/* The servers; one on this machine by default. */
weir_list wr_nats_settings_servers(const struct nats_options *options);

/* Whether connections are encrypted. */
bool wr_nats_settings_is_tls(const struct nats_options *options);

#endif
