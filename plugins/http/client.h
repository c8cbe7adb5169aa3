/* client: one server, one connection that is kept, one request at a time, by libcurl. Used by the handler's
 * worker alone.
 *
 * libcurl reads no environment here, follows no redirects, raises and touches no signals, and is never left
 * waiting without the program being able to fork meanwhile. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "sockets.h"

enum { CLIENT_TEXT = 4096 };

/* What requests look like. All borrowed; NULL: none. */
struct client_settings {
    const char *url, *method, *proxy;
    const char *username, *password;
    const char *ca_file, *cert_file, *key_file;
    struct curl_slist *headers;
    bool verify;
    int64_t timeout_ms, connect_timeout_ms;
};

/* What became of a request. */
enum client_end {
    CLIENT_ANSWERED,  /* with a status, and all of the headers */
    CLIENT_BROKEN,    /* result tells how */
    CLIENT_ENDLESS,   /* headers without an end */
    CLIENT_STOPPED,   /* the time that the core had for it was over */
    CLIENT_NO_MEMORY, /* it was not even begun */
};

struct client_reply {
    enum client_end end;
    CURLcode result;
    int system_error; /* errno of a broken connection; 0: not known */
    bool resolved, connected;
    long status;
    int64_t retry_after_s; /* 0: not said, or nothing sensible */
    char redirect[256];    /* where it would have led: without what may be secret; empty: nowhere */
    char error[CURL_ERROR_SIZE];
    char text[CLIENT_TEXT]; /* how the body begins; ends with a NUL */
    size_t text_length;
};

struct client {
    const weir_host *host;
    const weir_blocking_call *waiting; /* NULL: this core has none */
    CURLM *multi;
    CURL *easy;
    struct sockets sockets;
    struct client_reply *reply; /* of the request under way */
    size_t reply_bytes, header_bytes;
    bool answered; /* the headers of a final status are complete */
};

/* All zeros but these: not open. */
void client_init(struct client *client, const weir_host *host);

/* Makes ready; connects with the first request. false without memory, or descriptors. */
bool client_open(struct client *client, const struct client_settings *settings);

/* Says goodbye to the server. May be called when not open. */
void client_close(struct client *client);

bool client_is_open(const struct client *client);

/* Whether the descriptors are still the client's own. If not, only client_forget may follow. */
bool client_is_whole(const struct client *client);

/* Leaves everything as it is, for good: closing would mean to write to, or to close, what is somebody else's by
 * now. Not open afterwards. */
void client_forget(struct client *client);

/* Sends a body, and waits for the answer. */
void client_send(struct client *client, const char *body, size_t length, struct client_reply *reply);

/* Connects, with all that TLS and a proxy ask for, and disconnects, without sending a request. timeout_ms: how
 * long that may take, unless the settings allow less. Answers whether it came to that; if not, reply tells why.
 * Only client_close may follow. */
bool client_connect(struct client *client, const struct client_settings *settings, int64_t timeout_ms,
                    struct client_reply *reply);

/* [fork] Closes the descriptors that are known, by close(2). */
void client_abandon(const struct client *client);

#endif
