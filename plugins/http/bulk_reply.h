/* bulk_reply: reads the response of Elasticsearch's _bulk as it arrives: an item for each document of the
 * request, in its order. Whatever a server sends, no verdict is given that it has not sent. */
#ifndef HTTP_BULK_REPLY_H
#define HTTP_BULK_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json_scan.h"

/* What became of a document: BULK_NONE, or its status, as 201; 409 to a `create` is BULK_STORED. */
enum { BULK_NONE = 0, BULK_STORED = 200, BULK_STATUS_MAX = 599 };

enum bulk_end {
    BULK_COMPLETE,    /* each document has a verdict */
    BULK_CUT,         /* the documents up to a place have one */
    BULK_WRONG_COUNT, /* there are more or fewer items than documents: none has one */
    BULK_INVALID,     /* it is not a response of _bulk: none has one */
};

/* A group of items with a failure in common, for messages. */
struct bulk_failure {
    uint32_t count;
    uint16_t status;                     /* of the first */
    char error[JSON_SCAN_TEXT * 2 + 16]; /* of the first: type: reason */
};

struct bulk_reply {
    struct bulk_failure refused, again;

    /* Private. */
    struct json_scan scan;
    uint16_t *verdicts;
    uint32_t count, read; /* documents, items */
    bool has_items, in_items, has_errors, errors, too_many;
    enum { BULK_FIELD_OTHER, BULK_FIELD_ITEMS, BULK_FIELD_ERRORS, BULK_FIELD_STATUS, BULK_FIELD_ERROR } field;
    enum { BULK_DETAIL_OTHER, BULK_DETAIL_TYPE, BULK_DETAIL_REASON } detail;
    bool is_create, in_error; /* of the present item */
    uint16_t status;
    char type[JSON_SCAN_TEXT + 4], reason[JSON_SCAN_TEXT + 4];
};

/* verdicts: for each of `count` documents; set to BULK_NONE. */
void wr_bulk_reply_begin(struct bulk_reply *reply, uint16_t *verdicts, uint32_t count);

/* Takes a part of the body. ctx: the reply. Returns false if no more is needed. */
bool wr_bulk_reply_take(void *ctx, const char *data, size_t length);

/* The body has ended. */
enum bulk_end wr_bulk_reply_end(struct bulk_reply *reply);

/* Whether a document with this status was not stored, and never will be. */
bool wr_bulk_is_refused(uint16_t status);

#endif
