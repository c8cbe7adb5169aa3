/* http: a handler, as the files of this folder share it.
 *
 * settings.c checks the options, client.c wraps libcurl, response.c classifies responses. sending.c makes
 * requests of samples; whole_requests.c, records.c and bulk.c divide batches into requests and report what was
 * delivered, each for some formats: see protocol.h. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "text/buffer.h"

#include "bulk.h"
#include "client.h"
#include "protocol.h"
#include "response.h"
#include "settings.h"

/* A record that the server responds to with 500. */
struct failing_record {
    char origin[33];
    uint64_t sequence;
    unsigned tries;          /* 0: there is none */
    bool refused_before;     /* and no record of refused_series was delivered since */
    uint64_t refused_series; /* the serial of that of the last record refused for this */
};

/* For the event that makes a server refuse a request of many. */
struct search {
    uint32_t max_samples; /* limit of samples per request; UINT32_MAX: no search */
    unsigned refusals;    /* in a row */
};

struct http {
    const weir_host *host;
    const weir_encoder *encoder;
    const struct protocol *protocol;
    const char *header; /* prepended to each request body */
    bool gzip;
    struct settings settings;
    struct response_request request;
    struct client client;
    struct wr_buffer body; /* the last one, unless it was sent as it was encoded */
    uint32_t max_samples;  /* limit of samples per request: lowered when a server returns 413 */
    struct search search;
    char warning[256]; /* the last one of the server that was logged */

    /* Formats of records send one sample per request. State of an interrupted event: the sequence number of
     * the next sample to send, and how many of the samples before it were refused. */
    uint64_t next;
    char origin[33]; /* that `next` is a number of */
    uint32_t refused;
    char refusal[256]; /* the reason of the last refusal */
    struct failing_record failing;

    struct bulk bulk;
};

/* ---- Emitting a batch: see protocol.h -------------------------------------------------------- */

/* They return as soon as anything is settled, and get the rest at once: what a request has delivered is not
 * lost, or sent again by the next process, because there was no time for all of the batch. */

/* Lines and documents: a request is delivered, refused or sent again as a whole. */
void wr_events_emit(struct http *http, const weir_batch *batch, weir_outcome *outcome);

/* Records: a request for each sample. */
void wr_records_emit(struct http *http, const weir_batch *batch, weir_outcome *outcome);

/* Elasticsearch's _bulk: each document of a request has a result of its own. */
void wr_bulk_emit(struct http *http, const weir_batch *batch, weir_outcome *outcome);

/* ---- Sending --------------------------------------------------------------------------------- */

/* Returns the end of the events that begin at sample `start`: as many events as have at most `max_samples`
 * samples together, but at least one. */
uint32_t wr_sending_find_end(const weir_batch *batch, uint32_t start, uint32_t max_samples);

/* Returns the batch up to the end of the next request, which begins at sample `start`. */
weir_batch wr_sending_next_part(const struct http *http, const weir_batch *batch, uint32_t start);

/* Encodes samples from `start` on. Returns false with the response set if out of memory. */
bool wr_sending_encode(struct http *http, const weir_batch *batch, uint32_t start, weir_encoded *encoded,
                       struct response *response);

/* Sends a text and classifies the response. sink: takes the body of a 2xx response; NULL: none. Nothing is sent
 * for an empty text, which counts as delivered. */
void wr_sending_send(struct http *http, const char *data, size_t length, const struct client_sink *sink,
                     struct response *response);

/* A request of so many samples was taken. */
void wr_sending_note_taken(struct http *http, uint32_t samples);

/* A request for `count` samples from `start` on was refused as a whole. Returns whether a smaller one is to be
 * sent. */
bool wr_sending_divide(struct http *http, const weir_batch *batch, uint32_t start, uint32_t count,
                       const struct response *response);

void wr_sending_set_retry(const struct response *response, weir_outcome *outcome);

/* Counts refused samples by status. */
void wr_sending_count_refused(const struct http *http, long status, uint32_t count);

#endif
