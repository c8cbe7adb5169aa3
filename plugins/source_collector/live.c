#include "live.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../output.h"
#include "api_call.h"
#include "json_text.h"
#include "text/buffer.h"

enum {
    EVERY_MS = 200,
    HEARTBEAT_MS = 15000,
    STUCK_MS = 60000,         /* a client that takes nothing is given up */
    QUEUE_BYTES = 256 << 10,  /* of a client */
    MESSAGE_BYTES = 32 << 10, /* about: what is lost is lost in these */
    BLOCK_BYTES = 16 << 10,
};

/* Some bytes to send, one or more whole messages. */
struct message {
    struct message *next;
    uint64_t values;
    bool is_event; /* one that is told once: of a series, or of what is wrong */
    size_t length;
    char text[];
};

struct listener {
    struct listener *next;
    struct live *live;
    struct MHD_Connection *connection;
    bool is_asleep, is_ended;
    uint8_t *wanted; /* a bit for each id of a series */
    size_t wanted_bytes;
    char *group; /* NULL: it wants certain series only */
    bool is_inside;
    int64_t known_series; /* those with larger ids are new to it */
    int64_t after;        /* the id of the last row that it was given */
    struct message *first, **end;
    size_t queued, sent; /* bytes: of all messages; of the first one */
    uint64_t lost;       /* values; it has not been told yet */
    uint64_t lost_events;
    int64_t taken_ms; /* when it took something last */
};

/* ---- What a client wants --------------------------------------------------------------------- */

static bool want(struct listener *listener, int64_t id)
{
    enum { LEAST_BYTES = 64 };
    size_t byte = (size_t)id / 8;
    if (byte >= listener->wanted_bytes) {
        size_t bytes = (byte > listener->wanted_bytes ? byte : listener->wanted_bytes) * 2 + LEAST_BYTES;
        uint8_t *wanted = realloc(listener->wanted, bytes);
        if (!wanted)
            return false;
        memset(wanted + listener->wanted_bytes, 0, bytes - listener->wanted_bytes);
        listener->wanted = wanted;
        listener->wanted_bytes = bytes;
    }
    listener->wanted[byte] |= (uint8_t)(1u << id % 8);
    return true;
}

static bool wants(const struct listener *listener, int64_t id)
{
    size_t byte = (size_t)id / 8;
    return byte < listener->wanted_bytes && listener->wanted[byte] >> id % 8 & 1;
}

static bool is_of_group(const struct listener *listener, const char *group)
{
    size_t length = strlen(listener->group);
    return strncmp(group, listener->group, length) == 0 &&
           (!group[length] || (listener->is_inside && group[length] == '.'));
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void drop(struct listener *listener, struct message **at)
{
    struct message *message = *at;
    *at = message->next;
    if (!message->next)
        listener->end = at;
    listener->queued -= message->length;
    listener->lost += message->values;
    listener->lost_events += message->is_event;
    free(message);
}

/* Drops the oldest messages of which nothing was sent, until there is room. */
static void drop_oldest(struct listener *listener, size_t length, bool drops_events)
{
    struct message **at = listener->first && listener->sent ? &listener->first->next : &listener->first;
    while (*at && listener->queued + length > QUEUE_BYTES)
        if (drops_events || (*at)->values)
            drop(listener, at);
        else
            at = &(*at)->next;
}

/* Of values others follow; what an event tells is told once. */
static void make_room(struct listener *listener, size_t length)
{
    drop_oldest(listener, length, false);
    drop_oldest(listener, length, true);
}

/* Returns NULL if out of memory. */
static struct message *new_message(const struct wr_buffer *text)
{
    struct message *message = text->failed ? NULL : malloc(sizeof *message + text->length);
    if (!message)
        return NULL;
    *message = (struct message){.length = text->length};
    memcpy(message->text, text->data, text->length);
    return message;
}

static void put_message(struct listener *listener, const struct wr_buffer *text, uint64_t values, bool is_event)
{
    struct message *message = new_message(text);
    if (!message) {
        listener->lost += values;
        listener->lost_events += is_event;
        return;
    }
    make_room(listener, text->length);
    if (!listener->first)
        listener->taken_ms = wr_output_now_ms();
    message->values = values;
    message->is_event = is_event;
    listener->queued += text->length;
    *listener->end = message;
    listener->end = &message->next;
}

static void put_event(struct listener *listener, const char *name, const char *json)
{
    struct wr_buffer text = {0};
    wr_buffer_put_format(&text, "event: %s\ndata: %s\n\n", name, json);
    put_message(listener, &text, 0, true);
    wr_buffer_fini(&text);
}

static bool has_lost(const struct listener *listener)
{
    return listener->lost || listener->lost_events;
}

/* What was lost comes before what was not: the oldest is dropped first. */
static void put_lost(struct listener *listener)
{
    struct wr_buffer text = {0};
    if (!has_lost(listener) || listener->sent)
        return;
    wr_buffer_put_format(&text, "event: lost\ndata: {\"values\":%" PRIu64 ",\"events\":%" PRIu64 "}\n\n",
                         listener->lost, listener->lost_events);
    struct message *message = new_message(&text);
    if (message) {
        message->next = listener->first;
        if (!listener->first)
            listener->end = &message->next;
        listener->first = message;
        listener->queued += text.length;
        listener->lost = listener->lost_events = 0;
    }
    wr_buffer_fini(&text);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static size_t take(struct listener *listener, char *out, size_t room)
{
    size_t length = 0;
    while (length < room) {
        put_lost(listener);
        struct message *message = listener->first;
        if (!message)
            break;
        size_t rest = message->length - listener->sent, part = rest < room - length ? rest : room - length;
        memcpy(out + length, message->text + listener->sent, part);
        length += part;
        listener->sent += part;
        if (part < rest)
            break;
        listener->queued -= message->length;
        listener->sent = 0;
        listener->first = message->next;
        if (!message->next)
            listener->end = &listener->first;
        free(message);
    }
    return length;
}

/* Called by the server when the connection can take more. */
static ssize_t on_send(void *ctx, uint64_t position, char *out, size_t room)
{
    struct listener *listener = ctx;
    (void)position;
    if (listener->is_ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    size_t length = take(listener, out, room);
    if (length) {
        listener->taken_ms = wr_output_now_ms();
        return (ssize_t)length;
    }
    listener->is_asleep = true;
    MHD_suspend_connection(listener->connection);
    return 0;
}

static void wake(struct listener *listener)
{
    if (!listener->is_asleep || (!listener->is_ended && !listener->first && !has_lost(listener)))
        return;
    listener->is_asleep = false;
    MHD_resume_connection(listener->connection);
}

static void free_listener(struct listener *listener)
{
    for (struct message *next; listener->first; listener->first = next) {
        next = listener->first->next;
        free(listener->first);
    }
    free(listener->wanted);
    free(listener->group);
    free(listener);
}

/* Called by the server when the response is over. */
static void on_end(void *ctx)
{
    struct listener *listener = ctx;
    for (struct listener **at = &listener->live->first; *at; at = &(*at)->next)
        if (*at == listener) {
            *at = listener->next;
            listener->live->count--;
            break;
        }
    free_listener(listener);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static struct listener *new_listener(struct live *live, struct request *request, const struct live_wish *wish)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return NULL;
    listener->live = live;
    listener->connection = request->connection;
    listener->is_inside = wish->is_inside;
    listener->end = &listener->first;
    bool is_good = true;
    if (wish->group)
        is_good = (listener->group = strdup(wish->group)) != NULL;
    for (size_t i = 0; is_good && i < wish->count; i++)
        is_good = want(listener, wish->ids[i]);
    if (is_good)
        return listener;
    free_listener(listener);
    return NULL;
}

/* Where it goes on: from the row that the client had last, if that and all later ones are still there. */
static void set_start(struct listener *listener, const struct tail *tail, int64_t after)
{
    int64_t begins = tail_memory_begins(tail);
    listener->after = after && after <= tail->last_id ? after : tail->last_id;
    if (listener->after < begins - 1) {
        listener->lost = (uint64_t)(begins - 1 - listener->after);
        listener->after = begins - 1;
    }
}

static struct MHD_Response *new_response(struct listener *listener)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_send, listener, on_end);
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    return response;
}

bool live_listen(struct live *live, struct reader *reader, struct request *request,
                 const struct live_wish *wish)
{
    static const char hello[] = "retry: 2000\n\n"; /* the browser's pause before it connects again */
    struct listener *listener = live->count < LIVE_MOST ? new_listener(live, request, wish) : NULL;
    struct MHD_Response *response = listener ? new_response(listener) : NULL;
    if (!response) {
        if (listener)
            free_listener(listener);
        return false;
    }
    const struct wr_buffer text = {.data = (char *)(uintptr_t)hello, .length = sizeof hello - 1};
    put_message(listener, &text, 0, false);
    set_start(listener, &reader->tail, wish->after);
    listener->known_series = wish->known_series;
    if (!live->count)
        live->series_id = wish->known_series;
    listener->next = live->first;
    live->first = listener;
    live->count++;
    request->is_endless = true;
    request_reply_response(request, MHD_HTTP_OK, response); /* may have ended it */
    return true;
}

/* ---- What is new ----------------------------------------------------------------------------- */

static void put_rows(struct listener *listener, const struct tail *tail, const struct tail_row *row)
{
    const struct tail_row *end = tail->rows + tail->end;
    struct wr_buffer text = {0};
    while (row < end) {
        uint64_t values = 0;
        int64_t last = 0;
        struct wr_buffer list = {0};
        for (; row < end && list.length < MESSAGE_BYTES; row++) {
            struct chunk_point point = tail_point(row);
            if (!wants(listener, tail_series(tail, row)))
                continue;
            wr_buffer_put_text(&list, values++ ? ",[" : "[");
            json_text_put_int(&list, tail_series(tail, row));
            wr_buffer_put_char(&list, ',');
            json_text_put_time(&list, point.time_ns);
            wr_buffer_put_char(&list, ',');
            json_text_put_point(&list, &point);
            wr_buffer_put_char(&list, ']');
            last = row->id;
        }
        if (values) {
            wr_buffer_clear(&text);
            wr_buffer_put_format(&text, "event: values\nid: %" PRId64 "\ndata: [", last);
            wr_buffer_put(&text, list.data, list.failed ? 0 : list.length);
            wr_buffer_put_text(&text, "]\n\n");
            text.failed |= list.failed;
            put_message(listener, &text, values, false);
        }
        wr_buffer_fini(&list);
    }
    wr_buffer_fini(&text);
}

static void give_rows(struct live *live, const struct tail *tail)
{
    for (struct listener *listener = live->first; listener; listener = listener->next) {
        int64_t begins = tail_memory_begins(tail);
        if (listener->after > tail->last_id) /* another file */
            listener->after = tail->last_id;
        if (listener->after < begins - 1)
            listener->lost += (uint64_t)(begins - 1 - listener->after);
        put_rows(listener, tail, tail_after(tail, listener->after));
        listener->after = tail->last_id;
    }
}

static void put_series(struct live *live, const struct series_info *info)
{
    struct wr_buffer text = {0};
    api_put_info(&text, info);
    wr_buffer_put_char(&text, '}');
    const char *json = wr_buffer_text(&text);
    for (struct listener *listener = live->first; listener; listener = listener->next) {
        if (!listener->group || info->id <= listener->known_series || !is_of_group(listener, info->group))
            continue;
        if (want(listener, info->id) && json)
            put_event(listener, "series", json);
        else
            listener->lost_events++;
    }
    wr_buffer_fini(&text);
}

static void give_series(struct live *live, sqlite3 *db)
{
    sqlite3_stmt *statement;
    struct series_info info;
    if (sqlite3_prepare_v2(db, "SELECT " API_SERIES_COLUMNS " FROM series WHERE id > ? ORDER BY id", -1,
                           &statement, NULL) != SQLITE_OK)
        return;
    sqlite3_bind_int64(statement, 1, live->series_id);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        if (api_read_info(statement, &info))
            put_series(live, &info);
        live->series_id = info.id;
        api_free_info(&info);
    }
    sqlite3_finalize(statement);
}

/* ---- Connections ----------------------------------------------------------------------------- */

static int descriptor_of(const struct listener *listener)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(listener->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/* The server does not look at a connection that sleeps. */
static bool has_left(const struct listener *listener)
{
    char byte;
    return listener->is_asleep && recv(descriptor_of(listener), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void tend(struct listener *listener, int64_t now_ms)
{
    static const char heartbeat[] = ":\n\n";
    const struct wr_buffer text = {.data = (char *)(uintptr_t)heartbeat, .length = sizeof heartbeat - 1};
    if (has_left(listener))
        listener->is_ended = true;
    else if (!listener->first && now_ms - listener->taken_ms >= HEARTBEAT_MS)
        put_message(listener, &text, 0, false);
    else if (listener->first && !listener->is_asleep && now_ms - listener->taken_ms >= STUCK_MS)
        shutdown(descriptor_of(listener), SHUT_RDWR);
}

/* ---- Running --------------------------------------------------------------------------------- */

int64_t live_wait_ms(const struct live *live, int64_t most_ms)
{
    if (!live->count)
        return most_ms;
    int64_t passed_ms = wr_output_now_ms() - live->run_ms;
    return passed_ms < EVERY_MS ? EVERY_MS - passed_ms : 0;
}

void live_run(struct live *live, struct reader *reader, int64_t limit_ns)
{
    if (!live->count || wr_output_now_ms() - live->run_ms < EVERY_MS)
        return;
    live->run_ms = wr_output_now_ms();
    if (reader->db && reader_begin(reader, limit_ns) == SQLITE_OK) {
        give_series(live, reader->db);
        give_rows(live, &reader->tail);
    }
    reader_end(reader);
    for (struct listener *listener = live->first; listener; listener = listener->next) {
        tend(listener, live->run_ms);
        wake(listener);
    }
}

void live_forget(struct live *live)
{
    live->series_id = 0;
    for (struct listener *listener = live->first; listener; listener = listener->next) {
        listener->after = listener->known_series = 0;
        if (listener->group && listener->wanted)
            memset(listener->wanted, 0, listener->wanted_bytes);
    }
}

void live_tell_problems(struct live *live, const char *json)
{
    if (live->problems && strcmp(live->problems, json) == 0)
        return;
    bool is_first = !live->problems;
    free(live->problems);
    live->problems = strdup(json);
    for (struct listener *listener = live->first; !is_first && listener; listener = listener->next)
        put_event(listener, "status", json);
}

void live_stop(struct live *live)
{
    for (struct listener *listener = live->first; listener; listener = listener->next) {
        listener->is_ended = true;
        wake(listener);
    }
}

void live_fini(struct live *live)
{
    free(live->problems);
    live->problems = NULL;
}
