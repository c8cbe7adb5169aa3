#include "parse/repeats.h"

/* xorshift64 */
static double draw(uint64_t *random)
{
    uint64_t x = *random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *random = x;
    return (double)(x >> 11) * 0x1p-53;
}

/* Of timers with a sample rate of 0.1, one of ten was sent, in place of ten. Values have no weight, neither
 * in a journal, a spool and a link nor in a file; so it is added ten times, which is right for counts, sums,
 * rates and buckets everywhere, and leaves quantiles as they are. Rounding what is no whole number would be
 * wrong by the same amount each time, so chance decides. */
uint32_t wr_repeats_choose(const struct wr_parse_record *record, uint32_t most, uint64_t *random,
                           uint64_t *left_out)
{
    *left_out = 0;
    if (record->instrument != WEIR_HISTOGRAM || !(record->sample_rate > 0 && record->sample_rate < 1))
        return 1;
    double exact = 1 / record->sample_rate;
    if (exact > most + 1e-6) {
        *left_out = exact < 0x1p62 ? (uint64_t)(exact - most) : UINT64_C(1) << 62;
        return most;
    }
    uint32_t whole = (uint32_t)(exact + 1e-6);
    double rest = exact - whole;
    return whole + (rest > 1e-6 && draw(random) < rest);
}
