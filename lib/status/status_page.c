#include "status/status_page.h"

#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "text/crc.h"
#include "text/error.h"

static const char magic[8] = "weirstat";

enum { CHECKED_FROM = offsetof(struct wr_status_head, length) };

/* The structs are written as they are in memory, so they must not contain uninitialised padding. */
_Static_assert(sizeof(struct wr_status_head) == 56, "the head has no padding");
_Static_assert(sizeof(struct wr_status_source) == 9 * 8 + 2 * WR_STATUS_NAME_ROOM + 64,
               "a source has no padding");
_Static_assert(sizeof(struct wr_status_sender) == 10 * 8 + 128, "a sender has no padding");
_Static_assert(sizeof(struct wr_status_process) == (22 + WEIR_REFUSED_MAX) * 8 + 2 * WR_STATUS_NAME_ROOM + 32 +
                                                       WR_STATUS_ENTRIES_MOST * sizeof(struct wr_status_entry),
               "the process's part has no padding");
_Static_assert(sizeof(struct wr_status_handler) == (20 + WEIR_DROPPED_MAX) * 8 + 2 * WR_STATUS_NAME_ROOM + 64,
               "a handler's part has no padding");
_Static_assert(sizeof(struct wr_status_group) == 8 + WR_STATUS_NAME_ROOM, "a group's part has no padding");

/* ---- Writing --------------------------------------------------------------------------------- */

void wr_status_page_put(struct wr_buffer *out, const struct wr_status_view *view)
{
    size_t start = out->length;
    struct wr_status_head head = {
        .version = WR_STATUS_VERSION,
        .process_bytes = sizeof view->process,
        .handler_count = (uint32_t)view->handler_count,
        .handler_bytes = sizeof view->handlers[0],
        .group_count = (uint32_t)view->group_count,
        .group_bytes = sizeof view->groups[0],
        .source_count = (uint32_t)view->source_count,
        .source_bytes = sizeof view->sources[0],
        .sender_count = (uint32_t)view->sender_count,
        .sender_bytes = sizeof view->senders[0],
    };
    memcpy(head.magic, magic, sizeof magic);
    wr_buffer_put(out, &head, sizeof head);
    wr_buffer_put(out, &view->process, sizeof view->process);
    wr_buffer_put(out, view->handlers, view->handler_count * sizeof view->handlers[0]);
    wr_buffer_put(out, view->groups, view->group_count * sizeof view->groups[0]);
    wr_buffer_put(out, view->sources, view->source_count * sizeof view->sources[0]);
    wr_buffer_put(out, view->senders, view->sender_count * sizeof view->senders[0]);
    if (out->failed)
        return;
    head.length = (uint32_t)(out->length - start);
    memcpy(out->data + start, &head, sizeof head);
    head.crc = wr_crc_add(0, out->data + start + CHECKED_FROM, head.length - CHECKED_FROM);
    memcpy(out->data + start, &head, sizeof head);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static enum wr_status_verdict refuse(struct wr_error *error, enum wr_status_verdict verdict, const char *text)
{
    wr_error_set(error, WEIR_ERR_CONFIG, "%s", text);
    return verdict;
}

/* Whether the parts make up the length. Each is compared with what is left: a sum of products could wrap. */
static bool parts_fit(const struct wr_status_head *head)
{
    const uint32_t parts[][2] = {{1, head->process_bytes},
                                 {head->handler_count, head->handler_bytes},
                                 {head->group_count, head->group_bytes},
                                 {head->source_count, head->source_bytes},
                                 {head->sender_count, head->sender_bytes}};
    uint64_t left = head->length - sizeof *head;
    for (size_t i = 0; i < WR_COUNT_OF(parts); i++) {
        uint64_t part = (uint64_t)parts[i][0] * parts[i][1];
        if (part > left)
            return false;
        left -= part;
    }
    return left == 0;
}

static enum wr_status_verdict check(const char *bytes, size_t length, struct wr_status_head *head,
                                    struct wr_error *error)
{
    if (length < sizeof *head)
        return refuse(error, WR_STATUS_TORN, "it is too short");
    memcpy(head, bytes, sizeof *head);
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return refuse(error, WR_STATUS_FOREIGN, "it is not a status file");
    if (head->version != WR_STATUS_VERSION) {
        wr_error_set(error, WEIR_ERR_CONFIG, "it has version %u of the layout; this `weir` knows version %d",
                     head->version, WR_STATUS_VERSION);
        return WR_STATUS_FOREIGN;
    }
    if (head->length < sizeof *head || head->length > length ||
        head->crc != wr_crc_add(0, bytes + CHECKED_FROM, head->length - CHECKED_FROM))
        return refuse(error, WR_STATUS_TORN, "its checksum is wrong");
    if (!parts_fit(head))
        return refuse(error, WR_STATUS_FOREIGN, "its parts do not make up its length");
    return WR_STATUS_GOOD;
}

static void take_part(void *to, size_t room, const char *from, uint32_t length)
{
    memcpy(to, from, length < room ? length : room);
}

static size_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void end_texts(struct wr_status_view *view)
{
    view->process.program[sizeof view->process.program - 1] = '\0';
    view->process.weir[sizeof view->process.weir - 1] = '\0';
    view->process.config[sizeof view->process.config - 1] = '\0';
    for (size_t i = 0; i < WR_STATUS_ENTRIES_MOST; i++) {
        struct wr_status_entry *entry = &view->process.unmatched[i];
        entry->group[sizeof entry->group - 1] = entry->name[sizeof entry->name - 1] = '\0';
    }
    for (size_t i = 0; i < view->handler_count; i++) {
        struct wr_status_handler *handler = &view->handlers[i];
        handler->name[sizeof handler->name - 1] = '\0';
        handler->type[sizeof handler->type - 1] = '\0';
        handler->reason[sizeof handler->reason - 1] = '\0';
    }
    for (size_t i = 0; i < view->group_count; i++)
        view->groups[i].name[sizeof view->groups[i].name - 1] = '\0';
    for (size_t i = 0; i < view->source_count; i++) {
        struct wr_status_source *source = &view->sources[i];
        source->name[sizeof source->name - 1] = source->type[sizeof source->type - 1] = '\0';
        source->reason[sizeof source->reason - 1] = '\0';
    }
    for (size_t i = 0; i < view->sender_count; i++)
        view->senders[i].name[sizeof view->senders[i].name - 1] = '\0';
}

static void take_parts(const char *bytes, const struct wr_status_head *head, struct wr_status_view *view)
{
    const char *at = bytes + sizeof *head;
    memset(view, 0, sizeof *view);
    take_part(&view->process, sizeof view->process, at, head->process_bytes);
    at += head->process_bytes;
    view->handler_count = least(head->handler_count, WR_STATUS_HANDLERS_MOST);
    view->process.handlers_more += head->handler_count - view->handler_count;
    for (size_t i = 0; i < view->handler_count; i++)
        take_part(&view->handlers[i], sizeof view->handlers[i], at + i * head->handler_bytes,
                  head->handler_bytes);
    at += (size_t)head->handler_count * head->handler_bytes;
    view->group_count = least(head->group_count, WR_STATUS_GROUPS_MOST);
    for (size_t i = 0; i < view->group_count; i++)
        take_part(&view->groups[i], sizeof view->groups[i], at + i * head->group_bytes, head->group_bytes);
    at += (size_t)head->group_count * head->group_bytes;
    view->source_count = least(head->source_count, WR_STATUS_SOURCES_MOST);
    view->process.sources_more += head->source_count - view->source_count;
    for (size_t i = 0; i < view->source_count; i++)
        take_part(&view->sources[i], sizeof view->sources[i], at + i * head->source_bytes, head->source_bytes);
    at += (size_t)head->source_count * head->source_bytes;
    view->sender_count = least(head->sender_count, WR_STATUS_SENDERS_MOST);
    view->process.senders_more += head->sender_count - view->sender_count;
    for (size_t i = 0; i < view->sender_count; i++)
        take_part(&view->senders[i], sizeof view->senders[i], at + i * head->sender_bytes, head->sender_bytes);
    end_texts(view);
}

enum wr_status_verdict wr_status_page_read(const void *bytes, size_t length, struct wr_status_view *view,
                                           struct wr_error *error)
{
    struct wr_status_head head;
    enum wr_status_verdict verdict = check(bytes, length, &head, error);
    if (verdict == WR_STATUS_GOOD)
        take_parts(bytes, &head, view);
    return verdict;
}
