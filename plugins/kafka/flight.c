#include "flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wr_flight_fini(struct flight *flight)
{
    free(flight->slots);
    *flight = (struct flight){0};
}

/* ---- The batch ------------------------------------------------------------------------------- */

/* Whether the batch begins with a sample that has a slot, or right behind the last one. */
static bool continues(const struct flight *flight, const weir_batch *batch)
{
    return batch->sequence >= flight->sequence && batch->sequence - flight->sequence <= flight->count &&
           strcmp(batch->origin, flight->origin) == 0;
}

/* Gives up the first slots: reports of their messages are ignored. */
static void give_up(struct flight *flight, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        flight->pending -= flight->slots[flight->head + i].pending;
    flight->head += count;
    flight->count -= count;
    flight->number += count;
    flight->sequence += count;
    flight->plain = flight->plain > count ? flight->plain - count : 0;
}

/* Makes room for `count` slots; the new ones are zero. */
static bool extend(struct flight *flight, uint32_t count)
{
    if (count <= flight->count)
        return true;
    if (flight->head + count > flight->room) {
        if (flight->count)
            memmove(flight->slots, flight->slots + flight->head, flight->count * sizeof *flight->slots);
        flight->head = 0;
    }
    if (count > flight->room) {
        struct flight_slot *slots = realloc(flight->slots, count * sizeof *slots);
        if (!slots)
            return false;
        flight->slots = slots;
        flight->room = count;
    }
    memset(flight->slots + flight->head + flight->count, 0, (count - flight->count) * sizeof *flight->slots);
    flight->count = count;
    return true;
}

bool wr_flight_begin(struct flight *flight, const weir_batch *batch)
{
    if (continues(flight, batch)) {
        give_up(flight, (uint32_t)(batch->sequence - flight->sequence));
    } else {
        give_up(flight, flight->count);
        snprintf(flight->origin, sizeof flight->origin, "%s", batch->origin);
        flight->sequence = batch->sequence;
    }
    return extend(flight, batch->count);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

struct flight_slot *wr_flight_slot(const struct flight *flight, uint32_t index)
{
    return &flight->slots[flight->head + index];
}

/* Numbers begin at 1. They may wrap on machines with pointers of 32 bits, where differences are still right. */
void *wr_flight_opaque(const struct flight *flight, uint32_t index)
{
    return (void *)(flight->number + index + 1); // NOLINT(performance-no-int-to-ptr)
}

void wr_flight_sent(struct flight *flight, struct flight_slot *slot)
{
    slot->sent++;
    slot->pending++;
    flight->pending++;
}

struct flight_slot *wr_flight_reported(struct flight *flight, const void *opaque)
{
    uintptr_t index = (uintptr_t)opaque - 1 - flight->number;
    if (index >= flight->count)
        return NULL;
    struct flight_slot *slot = wr_flight_slot(flight, (uint32_t)index);
    if (!slot->pending)
        return NULL;
    slot->pending--;
    flight->pending--;
    return slot;
}

void wr_flight_fail(struct flight *flight, struct flight_slot *slot)
{
    uint32_t index = (uint32_t)(slot - flight->slots) - flight->head;
    slot->resend = true;
    if (flight->plain > index)
        flight->plain = index;
}

void wr_flight_forget(struct flight *flight)
{
    for (uint32_t i = 0; i < flight->count; i++) {
        struct flight_slot *slot = wr_flight_slot(flight, i);
        slot->resend |= slot->pending > 0;
        slot->pending = 0;
    }
    flight->pending = 0;
    flight->plain = 0;
}

void wr_flight_restart(struct flight_slot *slot)
{
    slot->sent = 0;
    slot->resend = false;
}
