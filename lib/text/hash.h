/* hash: a fast keyed hash for short texts. */
#ifndef WR_HASH_H
#define WR_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/common.h"

static inline uint64_t wr_hash_mix(uint64_t a, uint64_t b)
{
    wr_uint128 product = (wr_uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Hashes eight bytes at a time: multiplies by odd constants and folds the 128-bit product. */
static inline uint64_t wr_hash_bytes(uint64_t seed, const char *bytes, size_t length)
{
    uint64_t hash = seed ^ (length * UINT64_C(0x9e3779b97f4a7c15)), word = 0;
    for (; length > 8; length -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        hash = wr_hash_mix(hash ^ word, UINT64_C(0xa0761d6478bd642f));
    }
    /* two halves that may overlap; as the length is mixed in, different texts still differ */
    if (length >= 4) {
        uint32_t low, high;
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + length - 4, 4);
        word = (uint64_t)high << 32 | low;
    } else {
        word = 0;
        for (size_t i = 0; i < length; i++)
            word = word << 8 | (unsigned char)bytes[i];
    }
    return wr_hash_mix(hash ^ word, UINT64_C(0xe7037ed1a0b428db));
}

/* Compares two texts of equal length, eight bytes at a time. For short names this is faster than memcmp. */
static inline bool wr_hash_is_same(const char *a, const char *b, size_t length)
{
    uint64_t word_a, word_b;
    for (; length >= 8; length -= 8, a += 8, b += 8) {
        memcpy(&word_a, a, 8);
        memcpy(&word_b, b, 8);
        if (word_a != word_b)
            return false;
    }
    if (length >= 4) { /* two halves that may overlap */
        uint32_t low_a, low_b, high_a, high_b;
        memcpy(&low_a, a, 4);
        memcpy(&low_b, b, 4);
        memcpy(&high_a, a + length - 4, 4);
        memcpy(&high_b, b + length - 4, 4);
        return low_a == low_b && high_a == high_b;
    }
    for (; length; length--)
        if (*a++ != *b++)
            return false;
    return true;
}

#endif
