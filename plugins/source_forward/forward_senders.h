/* forward_senders: who sends, and what their ledgers say, for `weir status`.
 *
 * A sender is a handler of a process. While it is connected, and after it has vanished, it has a row of its
 * own; one that vanished and comes back gets its row again. When it takes leave, its counts are added to those
 * of the senders of the same name that have ended. So what is kept is bounded, and no count is lost. */
#ifndef SOURCE_FORWARD_SENDERS_H
#define SOURCE_FORWARD_SENDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/source.h>

#include "../forwarding/forward_wire.h"

enum { SENDER_NAME_ROOM = 128, SENDER_FRONTS = 4 };

/* Up to where the numbers of an origin have come. */
struct sender_front {
    char origin[2 * WIRE_ID + 1]; /* "": none */
    uint64_t end;
};

struct sender {
    uint8_t id[WIRE_ID];   /* of the process */
    uint64_t handler_hash; /* of the handler's name, which the label may have a part of only */
    char label[SENDER_NAME_ROOM];
    char name[SENDER_NAME_ROOM]; /* the label with the process number */
    enum weir_sender_state state;
    uint64_t processes;
    struct wire_totals totals; /* the latest */
    uint64_t received, repeats, missing;
    struct sender_front fronts[SENDER_FRONTS]; /* of the latest origins, which it mostly has one of */
    size_t next_front;
    struct sender *before, *after;
};

struct sender_list {
    struct sender *first, *last;
    size_t count;
};

/* All zeros: none. */
struct senders {
    struct sender_list connected, vanished, sums;
    bool has_changed; /* since they were shown */
};

void wr_senders_fini(struct senders *senders);

/* Returns the row of a sender that is connected and says that it is the same, or NULL. */
const struct sender *wr_senders_find(const struct senders *senders, const struct wire_hello *hello);

/* Returns the row of a sender that has connected. In a new row, what was acknowledged to it before counts as
 * received: by the process in whose place this one is, if it did not take leave since. NULL if out of memory.
 * Owned by `senders`. */
struct sender *wr_senders_begin(struct senders *senders, const struct wire_hello *hello);

/* Samples of a block have come, whose numbers end there; 0: none have. Returns up to where the numbers of the
 * origin had come before. */
uint64_t wr_sender_front(struct sender *sender, const char *origin, uint64_t end);

/* Its connection has ended. has_ended: it has taken leave, and its totals are the last ones. */
void wr_senders_end(struct senders *senders, struct sender *sender, bool has_ended);

/* Shows all, first those that have lost something. service: may be NULL. */
void wr_senders_show(struct senders *senders, const weir_host *host, const weir_senders *service);

#endif
