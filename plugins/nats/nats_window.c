#include "nats_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool wr_nats_window_init(struct nats_window *window, uint32_t room)
{
    uint64_t size = 1;
    while (size < room)
        size *= 2;
    *window = (struct nats_window){.mask = size - 1, .room = room};
    window->slots = calloc(size, sizeof *window->slots);
    return window->slots;
}

void wr_nats_window_fini(struct nats_window *window)
{
    free(window->slots);
}

void wr_nats_window_clear(struct nats_window *window)
{
    window->first = window->next;
    window->origin[0] = '\0';
}

static bool continues(const struct nats_window *window, const weir_batch *batch)
{
    return window->first < window->next && strcmp(window->origin, batch->origin) == 0 &&
           window->sequence == batch->sequence && window->end_sequence <= batch->sequence + batch->count;
}

uint32_t wr_nats_window_begin(struct nats_window *window, const weir_batch *batch)
{
    if (continues(window, batch))
        return (uint32_t)(window->end_sequence - batch->sequence);
    wr_nats_window_clear(window);
    snprintf(window->origin, sizeof window->origin, "%s", batch->origin);
    window->sequence = window->end_sequence = batch->sequence;
    return 0;
}

uint32_t wr_nats_window_free(const struct nats_window *window)
{
    return window->room - (uint32_t)(window->next - window->first);
}

void wr_nats_window_add(struct nats_window *window, uint32_t samples, bool settled, bool refused)
{
    window->slots[window->next++ & window->mask] = (struct nats_slot){samples, settled, refused};
    window->end_sequence += samples;
}

bool wr_nats_window_settle(struct nats_window *window, uint64_t number, bool refused)
{
    if (number < window->first || number >= window->next)
        return false;
    struct nats_slot *slot = &window->slots[number & window->mask];
    if (slot->settled)
        return false;
    slot->settled = true;
    slot->refused = refused;
    return true;
}

void wr_nats_window_settle_before(struct nats_window *window, uint64_t number)
{
    for (uint64_t n = window->first; n < number && n < window->next; n++)
        window->slots[n & window->mask].settled = true;
}

uint32_t wr_nats_window_take(struct nats_window *window, uint32_t *refused)
{
    uint32_t samples = 0;
    for (; window->first < window->next; window->first++) {
        const struct nats_slot *slot = &window->slots[window->first & window->mask];
        if (!slot->settled || (*refused && !slot->refused))
            break;
        samples += slot->samples;
        if (slot->refused)
            *refused += slot->samples;
    }
    window->sequence += samples;
    return samples;
}
