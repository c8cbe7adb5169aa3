#include "bulk_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {"errors": true, "items": [{"create": {"status": 400, "error": {"type": "...", "reason": "..."}}}, ...]}
 * Depths: 1 of "items", 2 of an item, 3 of "create", 4 of "status", 5 of "type". */
enum { OF_WHOLE = 1, OF_ITEM = 2, OF_ACTION = 3, OF_RESULT = 4, OF_ERROR = 5 };

/* ---- Items ----------------------------------------------------------------------------------- */

/* 401 and 403: the credentials are wrong, not the document. */
bool wr_bulk_is_refused(uint16_t status)
{
    return status >= 400 && status < 500 && status != 401 && status != 403 && status != 408 && status != 429;
}

static void note_failure(struct bulk_failure *failure, const struct bulk_reply *reply)
{
    if (failure->count++)
        return;
    failure->status = reply->status;
    snprintf(failure->error, sizeof failure->error, "%s%s%s", reply->type,
             *reply->type && *reply->reason ? ": " : "", reply->reason);
}

static void begin_item(struct bulk_reply *reply)
{
    reply->status = 0;
    reply->in_error = reply->is_create = false;
    *reply->type = *reply->reason = '\0';
}

static bool end_item(struct bulk_reply *reply)
{
    if (reply->read == reply->count) {
        reply->too_many = true;
        return false;
    }
    bool is_there = reply->status == 409 && reply->is_create; /* from an earlier attempt */
    if ((reply->status >= 200 && reply->status < 300) || is_there)
        reply->status = BULK_STORED;
    else if (wr_bulk_is_refused(reply->status))
        note_failure(&reply->refused, reply);
    else
        note_failure(&reply->again, reply);
    reply->verdicts[reply->read++] = reply->status;
    return true;
}

static void set_status(struct bulk_reply *reply, const char *text)
{
    long status = strtol(text, NULL, 10);
    reply->status = status >= 100 && status <= BULK_STATUS_MAX ? (uint16_t)status : BULK_NONE;
}

static void set_detail(struct bulk_reply *reply, const char *text)
{
    if (reply->detail == BULK_DETAIL_TYPE)
        snprintf(reply->type, sizeof reply->type, "%s", text);
    else if (reply->detail == BULK_DETAIL_REASON)
        snprintf(reply->reason, sizeof reply->reason, "%s", text);
}

/* ---- What is found --------------------------------------------------------------------------- */

static void find_key(struct bulk_reply *reply, unsigned depth, const char *key)
{
    if (depth == OF_WHOLE)
        reply->field = strcmp(key, "items") == 0    ? BULK_FIELD_ITEMS
                       : strcmp(key, "errors") == 0 ? BULK_FIELD_ERRORS
                                                    : BULK_FIELD_OTHER;
    else if (depth == OF_ACTION)
        reply->is_create = strcmp(key, "create") == 0;
    else if (depth == OF_RESULT)
        reply->field = strcmp(key, "status") == 0  ? BULK_FIELD_STATUS
                       : strcmp(key, "error") == 0 ? BULK_FIELD_ERROR
                                                   : BULK_FIELD_OTHER;
    else if (depth == OF_ERROR)
        reply->detail = strcmp(key, "type") == 0     ? BULK_DETAIL_TYPE
                        : strcmp(key, "reason") == 0 ? BULK_DETAIL_REASON
                                                     : BULK_DETAIL_OTHER;
}

static void find_text(struct bulk_reply *reply, unsigned depth, const char *text)
{
    if (depth == OF_WHOLE && reply->field == BULK_FIELD_ERRORS) {
        reply->has_errors = true;
        reply->errors = strcmp(text, "false") != 0;
    }
    if (!reply->in_items)
        return;
    if (depth == OF_RESULT && reply->field == BULK_FIELD_STATUS)
        set_status(reply, text);
    else if (depth == OF_RESULT && reply->field == BULK_FIELD_ERROR)
        snprintf(reply->reason, sizeof reply->reason, "%s", text); /* older servers */
    else if (depth == OF_ERROR && reply->in_error)
        set_detail(reply, text);
}

static void find_open(struct bulk_reply *reply, unsigned depth)
{
    if (depth == OF_WHOLE && reply->field == BULK_FIELD_ITEMS)
        reply->in_items = reply->has_items = true;
    else if (depth == OF_ITEM && reply->in_items)
        begin_item(reply);
    else if (depth == OF_RESULT)
        reply->in_error = reply->field == BULK_FIELD_ERROR;
}

static bool find_close(struct bulk_reply *reply, unsigned depth)
{
    if (depth == OF_ITEM && reply->in_items)
        return end_item(reply);
    if (depth == OF_WHOLE)
        reply->in_items = false;
    if (depth == OF_RESULT)
        reply->in_error = false;
    return true;
}

static bool found(void *ctx, enum json_scan_kind kind, unsigned depth, const char *text)
{
    struct bulk_reply *reply = ctx;
    switch (kind) {
    case JSON_SCAN_KEY: find_key(reply, depth, text); return true;
    case JSON_SCAN_OPEN: find_open(reply, depth); return true;
    case JSON_SCAN_CLOSE: return find_close(reply, depth);
    default: find_text(reply, depth, text); return true;
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

void wr_bulk_reply_begin(struct bulk_reply *reply, uint16_t *verdicts, uint32_t count)
{
    *reply = (struct bulk_reply){.verdicts = verdicts, .count = count, .scan = {.found = found, .ctx = reply}};
    memset(verdicts, 0, count * sizeof *verdicts);
}

bool wr_bulk_reply_take(void *ctx, const char *data, size_t length)
{
    struct bulk_reply *reply = ctx;
    return wr_json_scan_read(&reply->scan, data, length);
}

static enum bulk_end forget(struct bulk_reply *reply, enum bulk_end end)
{
    memset(reply->verdicts, 0, reply->count * sizeof *reply->verdicts);
    reply->refused = reply->again = (struct bulk_failure){0};
    return end;
}

static enum bulk_end set_all_stored(struct bulk_reply *reply)
{
    for (uint32_t i = 0; i < reply->count; i++)
        reply->verdicts[i] = BULK_STORED;
    return BULK_COMPLETE;
}

/* A response may be reduced to "errors" by the parameter filter_path of the URL. */
enum bulk_end wr_bulk_reply_end(struct bulk_reply *reply)
{
    if (reply->too_many)
        return forget(reply, BULK_WRONG_COUNT);
    if (!wr_json_scan_is_complete(&reply->scan))
        return reply->read ? BULK_CUT : forget(reply, BULK_INVALID);
    if (reply->has_items)
        return reply->read == reply->count ? BULK_COMPLETE : forget(reply, BULK_WRONG_COUNT);
    return reply->has_errors && !reply->errors ? set_all_stored(reply) : forget(reply, BULK_INVALID);
}
