#include "source/source_senders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wr_source_senders_fini(struct wr_source_senders *senders)
{
    free(senders->senders);
}

static void add_to(struct wr_status_sender *to, const weir_sender *from)
{
    to->processes += from->processes ? from->processes : 1;
    to->added += from->added;
    to->recovered += from->recovered;
    to->delivered += from->delivered;
    to->lost += from->lost;
    to->received += from->received;
    to->repeats += from->repeats;
    to->missing += from->missing;
}

void wr_source_senders_show(struct wr_source_senders *senders, const weir_sender *given, size_t count)
{
    struct wr_status_sender *made = count ? calloc(WR_SOURCE_SENDERS, sizeof *made) : NULL;
    if (count && !made)
        return;
    for (size_t i = 0; i < count; i++) {
        struct wr_status_sender *to = &made[i < WR_SOURCE_SENDERS ? i : WR_SOURCE_SENDERS - 1];
        add_to(to, &given[i]);
        to->state = given[i].state;
        snprintf(to->name, sizeof to->name, "%s", i < WR_SOURCE_SENDERS - 1 ? given[i].name : "others");
    }
    wr_lock_enter(&senders->lock);
    struct wr_status_sender *before = senders->senders;
    senders->senders = made;
    senders->count = count < WR_SOURCE_SENDERS ? count : WR_SOURCE_SENDERS;
    wr_lock_leave(&senders->lock);
    free(before);
}

size_t wr_source_senders_read(struct wr_source_senders *senders, struct wr_status_sender *out, size_t room)
{
    wr_lock_enter(&senders->lock);
    size_t count = senders->count;
    if (count && room)
        memcpy(out, senders->senders, (count < room ? count : room) * sizeof *out);
    wr_lock_leave(&senders->lock);
    return count;
}
