#include "text/crc.h"

#include <string.h>

#include "text/crc_table.h"

uint32_t wr_crc_add(uint32_t before, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint32_t crc = ~before;
    for (; length >= 8; at += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        word ^= crc;
        crc = crc_table[7][word & 0xff] ^ crc_table[6][word >> 8 & 0xff] ^ crc_table[5][word >> 16 & 0xff] ^
              crc_table[4][word >> 24 & 0xff] ^ crc_table[3][word >> 32 & 0xff] ^
              crc_table[2][word >> 40 & 0xff] ^ crc_table[1][word >> 48 & 0xff] ^ crc_table[0][word >> 56];
    }
    for (; length; at++, length--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *at) & 0xff];
    return ~crc;
}
