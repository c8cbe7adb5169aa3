/* waitlist: the calls that wait for a lane to settle samples (delivery "sync"), in the order of these. Under
 * the lane's lock. */
#ifndef WR_WAITLIST_H
#define WR_WAITLIST_H

#include <stdint.h>

#include "ticket.h"

struct wr_waitlist_entry {
    uint64_t sequence; /* one behind the last sample that it waits for */
    struct wr_ticket ticket;
};

/* All zeros: nobody waits. */
struct wr_waitlist {
    struct wr_waitlist_entry *entries;
    uint32_t count, room;
};

void wr_waitlist_fini(struct wr_waitlist *list);

/* Puts a call at the end; without memory it is answered at once. */
void wr_waitlist_add(struct wr_waitlist *list, uint64_t sequence, struct wr_ticket ticket);

/* Answers the calls that wait for samples from position `first` to before `end`, and no others. */
void wr_waitlist_answer(struct wr_waitlist *list, uint64_t first, uint64_t end, int answer);

#endif
