/* source_senders: what a source shows of the processes that send to it. */
#ifndef WR_SOURCE_SENDERS_H
#define WR_SOURCE_SENDERS_H

#include <stddef.h>

#include <weir/source.h>

#include "os/lock.h"
#include "status/status_page.h"

enum { WR_SOURCE_SENDERS = 64 };

/* All zeros: none. */
struct wr_source_senders {
    struct wr_lock lock; /* protects the rest */
    struct wr_status_sender *senders;
    size_t count;
};

void wr_source_senders_fini(struct wr_source_senders *senders);

/* weir_senders.show. Out of memory: shows what was shown before. */
void wr_source_senders_show(struct wr_source_senders *senders, const weir_sender *given, size_t count);

/* [any thread] Copies at most room of them. Returns how many there are. */
size_t wr_source_senders_read(struct wr_source_senders *senders, struct wr_status_sender *out, size_t room);

#endif
