/* client: an HTTP client for one server on libcurl: one persistent connection, one request at a time. Used
 * only by the handler's worker.
 *
 * libcurl is configured to take no proxy from the environment, follow no redirects and neither raise nor change
 * signals. What it and its libraries read of the environment nevertheless is listed in README.md. The program
 * can fork while a request waits. */
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

/* Takes the body of a 2xx response as it arrives, however long it is. */
struct client_sink {
    bool (*take)(void *ctx, const char *data, size_t length); /* returns false to read no more */
    void *ctx;
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
    long connect_status; /* of the proxy to CONNECT; 0: none */
    bool is_retry_after_huge;
    int64_t retry_after_s; /* 0: absent or invalid */
    char redirect[256];    /* the redirect's target, without secrets; "": none */
    char error[CURL_ERROR_SIZE];
    char text[CLIENT_TEXT + 4]; /* the beginning of the body, NUL-terminated, and room for "..." behind it */
    size_t text_length;
    bool text_is_cut; /* the body has more, or did not arrive completely */
};

struct client {
    const weir_host *host;
    const weir_blocking_call *waiting; /* NULL: not provided by this core */
    CURLM *multi;
    CURL *easy;
    struct sockets sockets;
    struct client_reply *reply; /* of the current request */
    const struct client_sink *sink;
    size_t reply_bytes, header_bytes;
    bool responded; /* the headers of a final status are complete */
};

/* Initializes a client that is not open. */
void wr_client_init(struct client *client, const weir_host *host);

/* Creates the handles; the first request connects. Returns false if out of memory or descriptors. */
bool wr_client_open(struct client *client, const struct client_settings *settings);

/* Closes the connection. Allowed if not open. */
void wr_client_close(struct client *client);

bool wr_client_is_open(const struct client *client);

/* Whether the descriptors are still the client's own: the program may have closed them. If not, only
 * wr_client_forget may be called. */
bool wr_client_owns_descriptors(struct client *client);

/* Leaks the handles: closing them would write to or close descriptors that now belong to other code. Not
 * open afterwards. */
void wr_client_forget(struct client *client);

/* Sends a body and waits for the response. sink: NULL if the beginning of the response is enough. */
void wr_client_send(struct client *client, const char *body, size_t length, const struct client_sink *sink,
                    struct client_reply *reply);

/* Sends a GET to the same URL, without a body. Returns the status; 0: no response. */
long wr_client_get(struct client *client, const struct client_settings *settings);

/* Connects, including TLS and the proxy, and disconnects without sending a request. timeout_ms limits this
 * further than the settings. Returns whether it succeeded; if not, `reply` has the reason. Only wr_client_close
 * may follow. */
bool wr_client_connect(struct client *client, const struct client_settings *settings, int64_t timeout_ms,
                       struct client_reply *reply);

/* [fork] Closes the known descriptors with close(2). */
void wr_client_abandon(const struct client *client);

#endif
