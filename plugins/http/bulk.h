/* bulk: what is known of the events of a batch whose documents have results of their own.
 *
 * Settled samples are counted from the front of a batch only, but a server may store a later event and postpone
 * an earlier one. So the results of later events are remembered by origin and sequence, and when the core
 * offers them again only the others are sent. If that memory is lost (the handler was replaced, the process
 * ended), they are sent again, and the server recognises them by their ids. */
#ifndef HTTP_BULK_H
#define HTTP_BULK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/buffer.h"

#include "response.h"

struct bulk {
    /* For each sample from `sequence` of `origin` on: what is known of its event, see bulk.c. */
    char origin[33];
    uint64_t sequence;
    uint16_t *states;
    uint32_t count, room;

    /* The documents of a request. */
    uint32_t *samples; /* the first sample of the document's event, as an index in `states` */
    uint16_t *verdicts;
    uint32_t sample_room, verdict_room;
    struct wr_buffer text; /* the lines of those that are sent, if not all are */

    char refusal[256];    /* why events were refused, of the last request with such ones; "": none */
    struct response held; /* returned by the emit of the sample held_at, in place of sending */
    uint64_t held_at;     /* its sequence */
    bool is_held;
};

void wr_bulk_fini(struct bulk *bulk);

#endif
