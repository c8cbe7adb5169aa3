#include "growth.h"

#include <malloc.h>
#include <stdint.h>

#include "vet.h"

struct repetition {
    void (*run)(void *ctx);
    void *ctx;
    int count; /* between two measurements */
};

static size_t used_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

bool vet_growth_is_known(void)
{
    return used_bytes();
}

static void repeat(const struct repetition *repetition)
{
    for (int i = 0; i < repetition->count; i++)
        repetition->run(repetition->ctx);
}

/* Returns the smallest growth of memory in several runs. Memory that is allocated once and kept does not count;
 * a leak in each run does. What still grows, such as a cache or what malloc keeps of freed memory, is filled by
 * further runs. */
static size_t find_growth(const struct repetition *repetition)
{
    enum { RUNS = 20, LEAST_RUNS = 2 };
    size_t least = SIZE_MAX;
    int64_t end_ms = vet_page->began_ms + 2 * vet_page->deadline_ms;
    for (int i = 0; i < RUNS && least && (i < LEAST_RUNS || vet_now_ms() < end_ms); i++) {
        size_t before = used_bytes();
        repeat(repetition);
        size_t after = used_bytes();
        size_t grown = after > before ? after - before : 0;
        least = grown < least ? grown : least;
    }
    return least;
}

/* Sets how often something slow may run between two measurements. Before, runs it so often that what it
 * allocates once and keeps, such as a cache, is there. */
static void calibrate(struct repetition *repetition, int most)
{
    enum { LEAST = 1, WARM_UPS = 2 };
    repetition->count = 1;
    repeat(repetition);
    int64_t begin_ms = vet_now_ms();
    repeat(repetition);
    int64_t affordable = vet_page->deadline_ms / (20 * (vet_now_ms() - begin_ms + 1));
    repetition->count = affordable > most ? most : affordable < LEAST ? LEAST : (int)affordable;
    for (int i = 0; i < WARM_UPS && vet_has_time(); i++)
        repeat(repetition);
}

size_t vet_growth_measure(void (*run)(void *ctx), void *ctx, int most)
{
    struct repetition repetition = {run, ctx, 1};
    calibrate(&repetition, most);
    return find_growth(&repetition) / (size_t)repetition.count;
}
