/* nats_link: the connection to a server, over libnats with an event loop: the worker itself reads and writes
 * the socket, so libnats needs no threads for a connection, and waits are those of the core.
 *
 * All of it runs on the handler's worker. */
#ifndef NATS_LINK_H
#define NATS_LINK_H

#include <nats/nats.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "../system.h"
#include "nats_settings.h"

enum { NATS_LINK_INBOX = 320 };

enum nats_link_state {
    NATS_LINK_READY,   /* something was sent or received, or there is nothing to wait for */
    NATS_LINK_BUSY,    /* the time is over */
    NATS_LINK_STOPPED, /* the handler must stop, and no time is left */
    NATS_LINK_LOST,    /* the connection is closed */
};

struct nats_link {
    const weir_host *host;
    const struct nats_options *options;
    const weir_waiting *waiting;
    natsConnection *connection;  /* what is published on it is sent by wr_nats_link_wait */
    natsSubscription *replies;   /* to the subjects below the inbox */
    char inbox[NATS_LINK_INBOX]; /* ends with a dot */
    bool is_probing;             /* the core's wait does not wait in `probe` */
    int64_t max_payload;
    bool has_no_responder; /* nobody takes a subject that was published to; libnats does not tell which */
    struct wr_own_fd own;  /* the socket, which libnats closes */
};

/* Returns false after host->refuse. */
bool wr_nats_link_init(struct nats_link *link, const weir_host *host, const struct nats_options *options);

/* Connects to one of the servers, each within timeout_ms. Returns false with RETRY and the reason. */
bool wr_nats_link_open(struct nats_link *link, int64_t timeout_ms, weir_outcome *outcome);
void wr_nats_link_close(struct nats_link *link);

/* Whether the connection is there, and its socket still its own. */
bool wr_nats_link_is_open(const struct nats_link *link);

/* Whether so much waits to be sent that nothing should be added. */
bool wr_nats_link_is_full(const struct nats_link *link);

/* Sends, and receives what has arrived or arrives within timeout_ms. */
enum nats_link_state wr_nats_link_wait(struct nats_link *link, int64_t timeout_ms);

/* Returns the next message that was received, to be destroyed by the caller, or NULL. */
natsMsg *wr_nats_link_take(struct nats_link *link);

/* Sends a request to JetStream and waits for the reply, while nothing else is under way. Returns it, to be
 * destroyed by the caller, or NULL with RETRY and the reason. */
natsMsg *wr_nats_link_request(struct nats_link *link, const char *subject, const char *text, int64_t timeout_ms,
                              weir_outcome *outcome);

/* Sets the code, and as the reason what the server or libnats said last of the connection, or the fallback. */
void wr_nats_link_fail(const struct nats_link *link, const char *operation, const char *fallback, int code,
                       weir_outcome *outcome);

/* Returns whether the server has refused a publication because the user is not permitted to, with the reason.
 */
bool wr_nats_link_is_forbidden(const struct nats_link *link, char *reason, size_t room);

#endif
