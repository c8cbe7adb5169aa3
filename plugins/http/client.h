/* client: an HTTP client for one server on libcurl: one persistent connection, one request at a time. Used
 * only by the handler's worker.
 *
 * libcurl is configured to read no environment variables, follow no redirects and neither raise nor change
 * signals. The program can fork while a request waits. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "sockets.h"

enum { CLIENT_TEXT = 4096 };

/* The parameters of all requests. All pointers are borrowed; NULL: unset. */
struct client_settings {
    const char *url, *method, *proxy;
    const char *username, *password;
    const char *ca_file, *cert_file, *key_file;
    struct curl_slist *headers;
    bool verify;
    int64_t timeout_ms, connect_timeout_ms;
};

/* How a request ended. */
enum client_end {
    CLIENT_RESPONDED,         /* a status and complete headers were received */
    CLIENT_FAILED,            /* see `result` */
    CLIENT_HEADERS_TOO_LARGE, /* more than 64 KiB of headers */
    CLIENT_STOPPED,           /* the core's time limit for stopping expired */
    CLIENT_NO_MEMORY,         /* the request was not started */
};

struct client_reply {
    enum client_end end;
    CURLcode result;
    int system_error; /* errno of a failed connection; 0: unknown */
    bool resolved, connected;
    long status;
    int64_t retry_after_s; /* 0: absent or invalid */
    char redirect[256];    /* the redirect's target, without secrets; "": none */
    char error[CURL_ERROR_SIZE];
    char text[CLIENT_TEXT]; /* the beginning of the body, NUL-terminated */
    size_t text_length;
};

struct client {
    const weir_host *host;
    const weir_blocking_call *waiting; /* NULL: not provided by this core */
    CURLM *multi;
    CURL *easy;
    struct sockets sockets;
    struct client_reply *reply; /* of the current request */
    size_t reply_bytes, header_bytes;
    bool responded; /* the headers of a final status are complete */
};

/* Initializes a client that is not open. */
void client_init(struct client *client, const weir_host *host);

/* Creates the handles; the first request connects. Returns false if out of memory or descriptors. */
bool client_open(struct client *client, const struct client_settings *settings);

/* Closes the connection. Allowed if not open. */
void client_close(struct client *client);

bool client_is_open(const struct client *client);

/* Whether the descriptors are still the client's own: the program may have closed them. If not, only
 * client_forget may be called. */
bool client_owns_descriptors(const struct client *client);

/* Leaks the handles: closing them would write to or close descriptors that now belong to other code. Not
 * open afterwards. */
void client_forget(struct client *client);

/* Sends a body and waits for the response. */
void client_send(struct client *client, const char *body, size_t length, struct client_reply *reply);

/* Connects, including TLS and the proxy, and disconnects without sending a request. timeout_ms limits this
 * further than the settings. Returns whether it succeeded; if not, `reply` has the reason. Only client_close
 * may follow. */
bool client_connect(struct client *client, const struct client_settings *settings, int64_t timeout_ms,
                    struct client_reply *reply);

/* [fork] Closes the known descriptors with close(2). */
void client_abandon(const struct client *client);

#endif
