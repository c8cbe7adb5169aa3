#include "lane/backoff.h"

void wr_backoff_init(struct wr_backoff *backoff, int64_t min_ns, int64_t max_ns, uint64_t seed)
{
    *backoff = (struct wr_backoff){.min_ns = min_ns,
                                   .max_ns = max_ns < min_ns ? min_ns : max_ns,
                                   .limit_ns = INT64_MAX,
                                   .random = seed | 1};
}

void wr_backoff_limit(struct wr_backoff *backoff, int64_t limit_ns)
{
    backoff->limit_ns = limit_ns < 0 ? 0 : limit_ns;
}

/* xorshift64*: the program's random() keeps its sequence. */
static uint64_t next_random(struct wr_backoff *backoff)
{
    backoff->random ^= backoff->random >> 12;
    backoff->random ^= backoff->random << 25;
    backoff->random ^= backoff->random >> 27;
    return backoff->random * UINT64_C(2685821657736338717);
}

/* From 0 to most, inclusive. */
static int64_t random_up_to(struct wr_backoff *backoff, int64_t most)
{
    return (int64_t)(next_random(backoff) % ((uint64_t)most + 1));
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_delay(struct wr_backoff *backoff)
{
    int64_t delay = backoff->min_ns;
    for (unsigned i = 0; i < backoff->failures && delay < backoff->max_ns; i++)
        delay = delay > backoff->max_ns / 2 ? backoff->max_ns : delay * 2;
    backoff->failures++;
    delay = min_of(delay, backoff->limit_ns);
    int64_t half = delay / 2;
    return delay - half + random_up_to(backoff, half);
}

int64_t wr_backoff_fail(struct wr_backoff *backoff, int64_t requested_ns)
{
    int64_t delay = next_delay(backoff), max = backoff->max_ns;
    if (requested_ns > max)
        return max - random_up_to(backoff, max / 8);
    if (requested_ns > delay)
        return requested_ns + random_up_to(backoff, min_of(requested_ns / 8, max - requested_ns));
    return delay;
}

void wr_backoff_succeed(struct wr_backoff *backoff)
{
    backoff->failures = 0;
}
