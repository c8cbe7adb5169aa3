#include "text/crc.h"

#include <string.h>

/* For each byte value, followed by 0 to 7 zero bytes, its checksum: eight bytes are looked up at once. */
static uint32_t table[8][256];

/* Not at first use, which may be in a signal handler; and before the constructors of programs, which may use
 * the library. */
__attribute__((constructor(101))) static void fill_table(void)
{
    const uint32_t polynomial = 0x82f63b78; /* its bits are reflected */
    for (uint32_t i = 0; i < 256; i++) {
        table[0][i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[0][i] = table[0][i] >> 1 ^ (table[0][i] & 1 ? polynomial : 0);
    }
    for (int zeros = 1; zeros < 8; zeros++)
        for (int i = 0; i < 256; i++)
            table[zeros][i] = table[0][table[zeros - 1][i] & 0xff] ^ table[zeros - 1][i] >> 8;
}

uint32_t wr_crc_add(uint32_t before, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint32_t crc = ~before;
    for (; length >= 8; at += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        word ^= crc;
        crc = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^ table[5][word >> 16 & 0xff] ^
              table[4][word >> 24 & 0xff] ^ table[3][word >> 32 & 0xff] ^ table[2][word >> 40 & 0xff] ^
              table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
    }
    for (; length; at++, length--)
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
    return ~crc;
}
