#include "retry.h"

void wr_retry_init(struct wr_retry *retry, int64_t min_ns, int64_t max_ns, uint64_t seed)
{
    *retry =
        (struct wr_retry){.min_ns = min_ns, .max_ns = max_ns < min_ns ? min_ns : max_ns, .random = seed | 1};
}

/* xorshift64*: weir draws its own lots, so that the program's random() is left alone. */
static uint64_t draw(struct wr_retry *retry)
{
    retry->random ^= retry->random >> 12;
    retry->random ^= retry->random << 25;
    retry->random ^= retry->random >> 27;
    return retry->random * UINT64_C(2685821657736338717);
}

int64_t wr_retry_fail(struct wr_retry *retry, int64_t asked_ns)
{
    int64_t pause = retry->min_ns;
    for (unsigned i = 0; i < retry->failures && pause < retry->max_ns; i++)
        pause = pause > retry->max_ns / 2 ? retry->max_ns : pause * 2;
    retry->failures++;
    int64_t half = pause / 2;
    pause = pause - half + (int64_t)(draw(retry) % ((uint64_t)half + 1));
    if (asked_ns > retry->max_ns)
        asked_ns = retry->max_ns;
    return asked_ns > pause ? asked_ns : pause;
}

void wr_retry_succeed(struct wr_retry *retry)
{
    retry->failures = 0;
}
