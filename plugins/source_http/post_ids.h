/* post_ids: the ids of the requests that were taken last, so that one that is sent again is added once. */
#ifndef SOURCE_HTTP_POST_IDS_H
#define SOURCE_HTTP_POST_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POST_ID_ROOM = 129 };

struct post_ids {
    size_t room, count, next;
    struct post_id *items;
};

/* room: how many are remembered. Returns false if out of memory. */
bool post_ids_init(struct post_ids *ids, size_t room);
void post_ids_fini(struct post_ids *ids);

/* sender: ids of different senders are different. */
bool post_ids_has(const struct post_ids *ids, const void *sender, const char *id);
void post_ids_add(struct post_ids *ids, const void *sender, const char *id);

#endif
