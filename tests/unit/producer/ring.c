#include <criterion/criterion.h>
#include <stdint.h>

#include "text/common.h"
#include "producer/ring.h"

enum { SIZE = 64, QUARTER = SIZE / WR_RING_QUARTERS };

static char memory[2][WR_RING_BLOCK_BYTES(SIZE)] __attribute__((aligned(WR_LINE)));
static struct wr_ring_block *const block = (struct wr_ring_block *)memory[0];
static struct wr_ring ring;

static void setup(void)
{
    wr_ring_init(&ring, block, SIZE);
}

TestSuite(ring, .init = setup);

/* Writes events of one sample each while there is space. Returns how many. */
static uint32_t write_some(uint32_t count)
{
    uint32_t written = 0;
    while (written < count && wr_ring_find_room(&ring, 1)) {
        uint64_t position = wr_ring_position(&ring);
        *wr_ring_slot(&ring, position) = (weir_sample){.value.i64 = (int64_t)position};
        wr_ring_publish(&ring, position + 1);
        written++;
    }
    return written;
}

static void take_some(uint64_t count)
{
    wr_ring_give_back(&ring, wr_ring_taken(&ring) + count);
}

Test(ring, starts_empty_and_parked)
{
    cr_assert_eq(wr_ring_position(&ring), 0);
    cr_assert_eq(wr_ring_published(&ring), 0);
    cr_assert_eq(wr_ring_taken(&ring), 0);
    cr_assert_eq(wr_ring_fill(&ring), 0);
    cr_assert_eq(ring.parked, 1);
}

Test(ring, the_first_quarter_is_writable_without_reading_the_tail)
{
    cr_assert(wr_ring_has_room(&ring, 0, QUARTER));
    cr_assert_not(wr_ring_has_room(&ring, 0, QUARTER + 1));
}

Test(ring, all_slots_can_be_filled)
{
    cr_assert_eq(write_some(SIZE + 1), SIZE);
    cr_assert_eq(wr_ring_fill(&ring), SIZE);
    cr_assert_not(wr_ring_find_room(&ring, 1));
}

Test(ring, a_released_slot_can_be_written_again)
{
    write_some(SIZE);
    take_some(1);
    cr_assert(wr_ring_find_room(&ring, 1));
    cr_assert_not(wr_ring_find_room(&ring, 2));
    cr_assert_eq(write_some(2), 1);
}

Test(ring, slots_are_read_in_the_order_written_over_many_rounds)
{
    uint64_t taken = 0;
    for (int round = 0; round < 20; round++) {
        write_some(37);
        for (uint64_t tail = wr_ring_published(&ring); taken < tail; taken++)
            cr_assert_eq(wr_ring_slot(&ring, taken)->value.i64, (int64_t)taken);
        wr_ring_give_back(&ring, taken);
    }
    cr_assert_eq(taken, 20 * 37);
    cr_assert_eq(wr_ring_position(&ring), 20 * 37);
}

Test(ring, positions_beyond_32_bits_map_to_their_slots)
{
    const uint64_t far = (UINT64_C(1) << 40) - 3;
    ring.tail = far;
    ring.head = far;
    cr_assert(wr_ring_find_room(&ring, QUARTER));
    cr_assert_eq(write_some(SIZE), SIZE);
    for (uint64_t i = 0; i < SIZE; i++)
        cr_assert_eq(wr_ring_slot(&ring, far + i)->value.i64, (int64_t)(far + i));
}

Test(ring, the_last_slot_is_followed_by_the_first)
{
    cr_assert_eq(wr_ring_slot(&ring, SIZE - 1), &block->slots[SIZE - 1]);
    cr_assert_eq(wr_ring_slot(&ring, SIZE), &block->slots[0]);
}

Test(ring, the_largest_event_fits_an_empty_ring_at_every_position)
{
    for (uint64_t start = 0; start < 2 * SIZE; start++) {
        wr_ring_init(&ring, block, SIZE);
        ring.tail = ring.head = start;
        cr_assert(wr_ring_find_room(&ring, QUARTER), "at %d", (int)start);
    }
}

Test(ring, the_writer_rereads_the_tail_at_each_quarter)
{
    for (uint64_t start = 0; start < SIZE; start++) {
        wr_ring_init(&ring, block, SIZE);
        ring.tail = ring.head = start;
        wr_ring_find_room(&ring, 1);
        cr_assert_gt(ring.limit, start);
        cr_assert_leq(ring.limit - start, QUARTER + 1);
        cr_assert_eq(ring.limit % QUARTER, 0);
    }
}

Test(ring, free_space_never_includes_unread_slots)
{
    for (uint64_t fill = 0; fill <= SIZE; fill++) {
        for (uint64_t count = 1; count <= QUARTER; count++) {
            wr_ring_init(&ring, block, SIZE);
            ring.head = 1000;
            ring.tail = 1000 + fill;
            cr_assert_eq(wr_ring_find_room(&ring, count), fill + count <= SIZE);
            cr_assert_leq(ring.limit, 1000 + SIZE);
        }
    }
}

Test(ring, a_text_occupies_whole_slots)
{
    cr_assert_eq(wr_ring_text_slots(0), 0);
    cr_assert_eq(wr_ring_text_slots(1), 1);
    cr_assert_eq(wr_ring_text_slots(32), 1);
    cr_assert_eq(wr_ring_text_slots(33), 2);
    cr_assert_eq(wr_ring_text_slots(32736), 1023);
}

Test(ring, slots_of_text_are_not_counted_as_samples)
{
    block->slots[0] = (weir_sample){.flags = WEIR_SAMPLE_MORE};
    block->slots[1] = (weir_sample){0};
    block->slots[2] = (weir_sample){.flags = WR_RING_TEXT, .note = 70};
    for (int i = 3; i < 6; i++) /* bytes of text that equal flags of samples */
        block->slots[i] = (weir_sample){.flags = 0xffff, .note = UINT32_MAX};
    block->slots[6] = (weir_sample){0};
    cr_assert_eq(wr_ring_count_samples(&ring, 0, 7), 4);
    cr_assert_eq(wr_ring_count_samples(&ring, 2, 6), 1);
    cr_assert_eq(wr_ring_count_samples(&ring, 6, 6), 0);
}

Test(ring, samples_are_counted_across_the_wrap_around)
{
    block->slots[SIZE - 1] = (weir_sample){.flags = WR_RING_TEXT, .note = 33};
    block->slots[0].flags = block->slots[1].flags = WR_RING_TEXT; /* text */
    block->slots[2] = (weir_sample){0};
    cr_assert_eq(wr_ring_count_samples(&ring, SIZE - 1, SIZE + 3), 2);
}

Test(ring, the_block_counts_published_slots_only)
{
    write_some(5);
    wr_ring_slot(&ring, wr_ring_position(&ring))->value.i64 = 77;
    cr_assert_eq(block->tail, 5);
    cr_assert_eq(wr_ring_published(&ring), 5);
}

Test(ring, it_continues_in_another_block_at_the_same_position)
{
    struct wr_ring_block *other = (struct wr_ring_block *)memory[1];
    write_some(40);
    take_some(40);
    wr_ring_move(&ring, other);
    cr_assert_eq(other->tail, 40);
    cr_assert_eq(wr_versioned_get(&other->taken, 9), 40);
    cr_assert_eq(write_some(SIZE + 1), SIZE);
    cr_assert_eq(other->tail, 40 + SIZE);
    cr_assert_eq(block->tail, 40);
    cr_assert_eq(wr_ring_slot(&ring, 41)->value.i64, 41);
}
