#include "lane/backoff.h"

void wr_backoff_init(struct wr_backoff *retry, int64_t min_ns, int64_t max_ns, uint64_t seed)
{
    *retry =
        (struct wr_backoff){.min_ns = min_ns, .max_ns = max_ns < min_ns ? min_ns : max_ns, .random = seed | 1};
}

/* xorshift64*: weir draws its own lots, so that the program's random() is left alone. */
static uint64_t draw(struct wr_backoff *retry)
{
    retry->random ^= retry->random >> 12;
    retry->random ^= retry->random << 25;
    retry->random ^= retry->random >> 27;
    return retry->random * UINT64_C(2685821657736338717);
}

/* From 0 to most. */
static int64_t draw_up_to(struct wr_backoff *retry, int64_t most)
{
    return (int64_t)(draw(retry) % ((uint64_t)most + 1));
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t back_off(struct wr_backoff *retry)
{
    int64_t pause = retry->min_ns;
    for (unsigned i = 0; i < retry->failures && pause < retry->max_ns; i++)
        pause = pause > retry->max_ns / 2 ? retry->max_ns : pause * 2;
    retry->failures++;
    int64_t half = pause / 2;
    return pause - half + draw_up_to(retry, half);
}

int64_t wr_backoff_fail(struct wr_backoff *retry, int64_t asked_ns)
{
    int64_t pause = back_off(retry), max = retry->max_ns;
    if (asked_ns > max)
        return max - draw_up_to(retry, max / 8);
    if (asked_ns > pause)
        return asked_ns + draw_up_to(retry, smaller(asked_ns / 8, max - asked_ns));
    return pause;
}

void wr_backoff_succeed(struct wr_backoff *retry)
{
    retry->failures = 0;
}
