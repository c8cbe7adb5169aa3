/* Which numbers of an origin were taken: ranges, and the table of origins. */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/temp_folder.h"
#include "journal/fronts.h"
#include "journal/journal.h"

static void assert_missing(const struct wr_front *front, uint64_t first, uint64_t end, uint64_t missing,
                           uint64_t missing_end)
{
    uint64_t from = 0, to = 0;
    cr_assert(wr_front_missing(front, first, end, &from, &to));
    cr_assert(from == missing && to == missing_end);
}

Test(fronts, ranges_merge_and_leave_gaps)
{
    struct wr_front front = {0};
    uint64_t from, to;
    assert_missing(&front, 5, 9, 5, 9);
    wr_front_add(&front, 10, 20);
    wr_front_add(&front, 20, 30);
    cr_assert_eq(front.count, 1);
    cr_assert_not(wr_front_missing(&front, 10, 30, &from, &to));
    wr_front_add(&front, 40, 50);
    assert_missing(&front, 15, 60, 30, 40);
    assert_missing(&front, 45, 60, 50, 60);
    assert_missing(&front, 0, 60, 0, 10);
    wr_front_add(&front, 5, 45);
    cr_assert_eq(front.count, 1);
    cr_assert_not(wr_front_missing(&front, 5, 50, &from, &to));
}

Test(fronts, the_range_not_extended_for_longest_is_forgotten)
{
    struct wr_front front = {0};
    for (uint64_t i = 0; i < WR_FRONT_RANGES; i++)
        wr_front_add(&front, i * 10, i * 10 + 5);
    wr_front_add(&front, 5, 6); /* the first is used again, so the second is the oldest */
    wr_front_add(&front, 100, 101);
    assert_missing(&front, 0, 12, 6, 12);
    assert_missing(&front, 10, 15, 10, 15);
}

/* Against a plain set: what is said to be taken was taken. */
Test(fronts, nothing_is_taken_that_was_not_added)
{
    enum { NUMBERS = 200, TURNS = 20000 };
    bool taken[NUMBERS] = {false};
    struct wr_front front = {0};
    unsigned seed = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t at = (uint64_t)rand_r(&seed) % (NUMBERS - 8), from, to;
        uint64_t end = at + 1 + (uint64_t)rand_r(&seed) % 8;
        if (turn % 400 == 0) {
            front = (struct wr_front){0};
            memset(taken, 0, sizeof taken);
        }
        wr_front_add(&front, at, end);
        memset(taken + at, 1, end - at);
        cr_assert_not(wr_front_missing(&front, at, end, &from, &to));
        for (uint64_t i = 0; i < NUMBERS; i++)
            cr_assert(taken[i] || wr_front_missing(&front, i, i + 1, &from, &to));
    }
}

Test(fronts, origins_are_32_lowercase_digits)
{
    struct wr_front_origin origin;
    cr_assert(wr_front_read("0123456789abcdef00000000000000ff", &origin));
    cr_assert(origin.words[0] == 0x0123456789abcdef && origin.words[1] == 0xff);
    cr_assert_not(wr_front_read("0123456789ABCDEF00000000000000ff", &origin));
    cr_assert_not(wr_front_read("0123456789abcdef00000000000000f", &origin));
    cr_assert_not(wr_front_read("0123456789abcdef00000000000000ff0", &origin));
    cr_assert_not(wr_front_read("", &origin));
    cr_assert_not(wr_front_read(NULL, &origin));
}

static bool is_taken(struct wr_fronts *fronts, uint64_t id, int64_t now_ns)
{
    uint64_t from, to;
    return !wr_fronts_missing(fronts, (struct wr_front_origin){{id, 0}}, now_ns, 0, 1, &from, &to);
}

static bool is_taken_of(struct wr_fronts *fronts, uint64_t id, uint64_t number)
{
    uint64_t from, to;
    return !wr_fronts_missing(fronts, (struct wr_front_origin){{id, ~id}}, 6, number, number + 1, &from, &to);
}

static uint64_t take(struct wr_fronts *fronts, uint64_t id, int64_t now_ns)
{
    struct wr_fronts_step step = {.origin = {{id, 0}}, .range = {0, 1}, .now = {now_ns, now_ns}};
    uint64_t forgotten = 0;
    cr_assert(wr_fronts_reserve(fronts, &step, &forgotten));
    wr_fronts_begin(fronts, &step, NULL, 0);
    wr_fronts_end(fronts, &step);
    return forgotten;
}

Test(fronts, the_origin_not_used_for_longest_is_forgotten)
{
    enum { LIMIT = 1000 };
    struct wr_fronts fronts = {.limit = LIMIT};
    for (uint64_t id = 0; id < LIMIT; id++)
        cr_assert_eq(take(&fronts, id, 1), 0);
    cr_assert(is_taken(&fronts, 0, 2));
    cr_assert_eq(take(&fronts, LIMIT, 3), 1);
    cr_assert(is_taken(&fronts, 0, 4) && is_taken(&fronts, LIMIT, 4) && !is_taken(&fronts, 1, 4));
    cr_assert_eq(fronts.count, LIMIT);
    wr_fronts_fini(&fronts);
}

Test(fronts, origins_are_forgotten_when_told_and_in_time)
{
    struct wr_fronts fronts = {.remember_ns = 10};
    take(&fronts, 1, 1);
    take(&fronts, 2, 5);
    wr_fronts_forget(&fronts, (struct wr_front_origin){{2, 0}});
    wr_fronts_forget(&fronts, (struct wr_front_origin){{3, 0}});
    cr_assert(!is_taken(&fronts, 2, 5));
    cr_assert(is_taken(&fronts, 1, 11));
    cr_assert(is_taken(&fronts, 1, 21));
    cr_assert(!is_taken(&fronts, 1, 32));
    cr_assert_eq(fronts.count, 0);
    take(&fronts, 4, 33);
    cr_assert_eq(fronts.used, 2); /* entries are used again */
    wr_fronts_fini(&fronts);
}

/* ---- In the folder of a journal -------------------------------------------------------------- */

TestSuite(kept_fronts, .fini = remove_folder);

/* Makes the folder of a process. */
static char *make_process(const char *name)
{
    char *path = strdup(path_in_folder(name));
    cr_assert_eq(mkdir(path, 0700), 0);
    return path;
}

/* A ring in a file of a folder, published up to 0. */
static struct wr_ring make_ring(const char *path, uint32_t number)
{
    enum { SLOTS = 64 };
    struct wr_journal_map map;
    cr_assert_eq(wr_mapped_file_make(&map, path, WR_JOURNAL_RING_KIND, number, WR_RING_BLOCK_BYTES(SLOTS)), 0);
    struct wr_ring_block *block = (struct wr_ring_block *)map.memory;
    block->magic = WR_JOURNAL_RING;
    block->version = WR_JOURNAL_VERSION;
    block->size = SLOTS;
    block->number = number;
    return (struct wr_ring){.slots = block->slots, .size = SLOTS};
}

static void publish(const struct wr_ring *ring, uint64_t position)
{
    atomic_store(&wr_ring_block(ring)->tail, position);
}

static struct wr_fronts_step step_of(uint64_t id, uint64_t from, uint64_t to, int64_t now_ns)
{
    return (struct wr_fronts_step){.origin = {{id, ~id}}, .range = {from, to}, .now = {now_ns, now_ns}};
}

static void begin(struct wr_fronts *fronts, struct wr_fronts_step *step, const struct wr_ring *ring,
                  uint64_t position)
{
    uint64_t forgotten = 0;
    cr_assert(wr_fronts_reserve(fronts, step, &forgotten));
    wr_fronts_begin(fronts, step, ring, position);
}

static void take_block(struct wr_fronts *fronts, struct wr_fronts_step step, const struct wr_ring *ring,
                       uint64_t position)
{
    begin(fronts, &step, ring, position);
    if (ring)
        publish(ring, position);
    wr_fronts_end(fronts, &step);
}

/* Whether a process that was killed now would have left the number as taken. */
static bool is_left(const char *path, uint64_t id, uint64_t number)
{
    struct wr_fronts_state *states;
    size_t count;
    uint64_t from, to;
    bool left = false;
    cr_assert(wr_fronts_file_read(path, &states, &count));
    for (size_t i = 0; i < count; i++)
        left |= states[i].origin.words[0] == id && states[i].origin.words[1] == ~id &&
                !wr_front_missing(&states[i].front, number, number + 1, &from, &to);
    free(states);
    return left;
}

static size_t count_files(const char *path)
{
    size_t count = 0;
    free(wr_mapped_file_list(path, WR_FRONTS_KIND, &count));
    return count;
}

Test(kept_fronts, numbers_are_taken_exactly_when_their_samples_are_published)
{
    char *path = make_process("one");
    struct wr_ring ring = make_ring(path, 7);
    struct wr_fronts fronts = {0};
    wr_fronts_keep(&fronts, path);
    cr_assert(wr_fronts_are_kept(&fronts));
    struct wr_fronts_step step = step_of(1, 10, 20, 5);
    begin(&fronts, &step, &ring, 10);
    cr_assert(step.is_kept);
    cr_assert_not(is_left(path, 1, 10));
    publish(&ring, 9);
    cr_assert_not(is_left(path, 1, 10));
    publish(&ring, 10);
    cr_assert(is_left(path, 1, 10) && is_left(path, 1, 19));
    cr_assert(!is_left(path, 1, 9) && !is_left(path, 1, 20));
    wr_fronts_end(&fronts, &step);
    publish(&ring, 0); /* no longer looked at */
    cr_assert(is_left(path, 1, 10) && is_left(path, 1, 19));
    step = step_of(1, 20, 30, 6);
    begin(&fronts, &step, &ring, 25);
    cr_assert(is_left(path, 1, 19) && !is_left(path, 1, 20));
    wr_fronts_fini(&fronts);
    free(path);
}

Test(kept_fronts, without_its_ring_nothing_pending_is_taken)
{
    char *path = make_process("one");
    struct wr_ring ring = make_ring(path, 7);
    struct wr_fronts fronts = {0};
    wr_fronts_keep(&fronts, path);
    struct wr_fronts_step step = step_of(1, 0, 5, 5);
    begin(&fronts, &step, &ring, 5);
    publish(&ring, 5);
    cr_assert(is_left(path, 1, 0));
    cr_assert(wr_mapped_file_remove(path, WR_JOURNAL_RING_KIND, 7));
    cr_assert_not(is_left(path, 1, 0));
    wr_fronts_fini(&fronts);
    free(path);
}

Test(kept_fronts, samples_in_memory_are_not_kept)
{
    char *path = make_process("one");
    struct wr_ring ring = make_ring(path, 7);
    struct wr_fronts fronts = {0};
    uint64_t from, to;
    wr_ring_block(&ring)->number = 0;
    wr_fronts_keep(&fronts, path);
    take_block(&fronts, step_of(1, 0, 5, 5), &ring, 5);
    cr_assert_not(is_left(path, 1, 0));
    cr_assert_not(wr_fronts_missing(&fronts, (struct wr_front_origin){{1, ~UINT64_C(1)}}, 5, 0, 5, &from, &to));
    take_block(&fronts, step_of(1, 5, 9, 5), NULL, 0); /* none of these had to be written */
    cr_assert(!is_left(path, 1, 4) && is_left(path, 1, 5));
    wr_fronts_fini(&fronts);
    free(path);
}

Test(kept_fronts, two_sources_that_take_numbers_of_one_origin_keep_true_ones)
{
    char *path = make_process("one");
    struct wr_ring first_ring = make_ring(path, 7), second_ring = make_ring(path, 8);
    struct wr_fronts fronts = {0};
    wr_fronts_keep(&fronts, path);
    struct wr_fronts_step first = step_of(1, 0, 5, 5), second = step_of(1, 5, 9, 5);
    begin(&fronts, &first, &first_ring, 5);
    begin(&fronts, &second, &second_ring, 4);
    cr_assert(first.is_kept && !second.is_kept);
    publish(&second_ring, 4);
    wr_fronts_end(&fronts, &second);
    cr_assert(!is_left(path, 1, 0) && !is_left(path, 1, 5));
    publish(&first_ring, 5);
    wr_fronts_end(&fronts, &first);
    cr_assert(is_left(path, 1, 4) && !is_left(path, 1, 5));
    wr_fronts_fini(&fronts);
    free(path);
}

Test(kept_fronts, the_next_process_keeps_what_it_adopts)
{
    enum { ORIGINS = WR_FRONTS_FILE_SLOTS + 100 };
    char *one = make_process("one"), *two = make_process("two");
    struct wr_ring ring = make_ring(one, 3);
    struct wr_fronts fronts = {0}, next = {0};
    wr_fronts_keep(&fronts, one);
    for (uint64_t id = 0; id < ORIGINS; id++)
        take_block(&fronts, step_of(id, id, id + 3, 5), &ring, id);
    cr_assert_eq(count_files(one), 2);
    wr_fronts_leave(&fronts, 5);
    cr_assert_eq(count_files(one), 2);
    cr_assert_not(wr_fronts_are_kept(&fronts));
    wr_fronts_keep(&next, two);
    cr_assert_eq(wr_fronts_adopt(&next, one, (struct wr_fronts_time){6, 6}), ORIGINS);
    cr_assert_eq(count_files(one), 0);
    for (uint64_t id = 0; id < ORIGINS; id++)
        cr_assert(is_taken_of(&next, id, id) && is_taken_of(&next, id, id + 2) &&
                  !is_taken_of(&next, id, id + 3));
    for (uint64_t id = 0; id < ORIGINS; id += 100)
        cr_assert(is_left(two, id, id));
    wr_fronts_fini(&fronts);
    wr_fronts_fini(&next);
    free(one);
    free(two);
}

Test(kept_fronts, what_is_forgotten_leaves_the_file)
{
    char *path = make_process("one");
    struct wr_ring ring = make_ring(path, 3);
    struct wr_fronts fronts = {.limit = 2, .remember_ns = 10};
    wr_fronts_keep(&fronts, path);
    for (uint64_t id = 1; id <= 3; id++)
        take_block(&fronts, step_of(id, 0, 3, 5), &ring, id);
    cr_assert(!is_left(path, 1, 0) && is_left(path, 2, 0) && is_left(path, 3, 0));
    wr_fronts_forget(&fronts, (struct wr_front_origin){{2, ~UINT64_C(2)}});
    cr_assert(!is_left(path, 2, 0) && is_left(path, 3, 0));
    wr_fronts_leave(&fronts, 16);
    cr_assert_eq(count_files(path), 0);
    wr_fronts_fini(&fronts);
    free(path);
}

Test(kept_fronts, old_and_damaged_states_are_left_out)
{
    char *path = make_process("one");
    struct wr_fronts_file file = {0};
    struct wr_fronts_state state = {.origin = {{1, ~UINT64_C(1)}}, .used_ns = 5};
    cr_assert(wr_fronts_file_start(&file, path));
    cr_assert(wr_fronts_file_reserve(&file, 0, 5));
    state.front = (struct wr_front){.ranges = {{5, 3}, {7, 7}, {8, 10}, {9, 12}}, .count = 900};
    wr_fronts_file_put(&file, 0, &state);
    state.origin = (struct wr_front_origin){{2, ~UINT64_C(2)}};
    wr_fronts_file_put(&file, 1, &state);
    wr_fronts_file_stop(&file);
    cr_assert(is_left(path, 1, 8) && is_left(path, 1, 11) && is_left(path, 2, 9));
    cr_assert(!is_left(path, 1, 3) && !is_left(path, 1, 4) && !is_left(path, 1, 7) && !is_left(path, 1, 12));
    struct wr_fronts next = {0};
    cr_assert_eq(wr_fronts_adopt(&next, path, (struct wr_fronts_time){6, WR_FRONTS_REMEMBER_NS + 6}), 0);
    free(path);
}
