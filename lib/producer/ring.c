#include "producer/ring.h"

#include <string.h>

static void start_block(struct wr_ring_block *block, uint64_t position)
{
    atomic_store_explicit(&block->tail, position, memory_order_relaxed);
    wr_versioned_set(&block->taken, position);
}

void wr_ring_init(struct wr_ring *ring, struct wr_ring_block *block, uint32_t size)
{
    *ring = (struct wr_ring){.slots = block->slots, .size = size, .limit = size / WR_RING_QUARTERS};
    atomic_store_explicit(&ring->parked, 1, memory_order_relaxed);
    block->number = 0;
    start_block(block, 0);
}

void wr_ring_move(struct wr_ring *ring, struct wr_ring_block *block)
{
    start_block(block, wr_ring_position(ring));
    ring->slots = block->slots;
}

uint64_t wr_ring_fill(const struct wr_ring *ring)
{
    /* acquire: pairs with the release in wr_ring_give_back */
    return wr_ring_position(ring) - atomic_load_explicit(&ring->head, memory_order_acquire);
}

bool wr_ring_starve(struct wr_ring *ring, uint64_t count)
{
    atomic_store(&ring->hungry, 1);
    return wr_ring_position(ring) - atomic_load(&ring->head) + count > ring->size;
}

bool wr_ring_find_room(struct wr_ring *ring, uint64_t count)
{
    uint64_t position = wr_ring_position(ring);
    uint64_t end = position - wr_ring_fill(ring) + ring->size; /* behind the last slot that is free */
    uint64_t quarter = ring->size / WR_RING_QUARTERS;
    uint64_t boundary = ((position + count) / quarter + 1) * quarter;
    ring->limit = end < boundary ? end : boundary;
    return position + count <= ring->limit;
}

void wr_ring_put_text(const struct wr_ring *ring, uint64_t position, const char *text, uint32_t length)
{
    for (uint32_t done = 0; done < length; position++) {
        uint32_t part = length - done < sizeof(weir_sample) ? length - done : (uint32_t)sizeof(weir_sample);
        memcpy(wr_ring_slot(ring, position), text + done, part);
        done += part;
    }
}

uint64_t wr_ring_count_samples(const struct wr_ring *ring, uint64_t from, uint64_t to)
{
    uint64_t samples = 0;
    while (from < to) {
        const weir_sample *sample = wr_ring_slot(ring, from);
        from += 1 + (sample->flags & WR_RING_TEXT ? wr_ring_text_slots(sample->note) : 0);
        samples++;
    }
    return samples;
}
