#include <criterion/criterion.h>
#include <string.h>

#include "text/crc.h"

/* From RFC 3720, appendix B.4, and the standard check value of the polynomial. */
Test(crc, known_texts_have_their_known_checksums)
{
    unsigned char bytes[32];
    cr_assert_eq(wr_crc_add(0, "123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    cr_assert_eq(wr_crc_add(0, bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    cr_assert_eq(wr_crc_add(0, bytes, sizeof bytes), 0x62a8ab43);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    cr_assert_eq(wr_crc_add(0, bytes, sizeof bytes), 0x46dd794e);
    cr_assert_eq(wr_crc_add(0, "", 0), 0);
}

Test(crc, a_checksum_can_be_computed_in_parts)
{
    const char *text = "The quick brown fox jumps over the lazy dog.";
    size_t length = strlen(text);
    uint32_t whole = wr_crc_add(0, text, length);
    for (size_t cut = 0; cut <= length; cut++)
        cr_assert_eq(wr_crc_add(wr_crc_add(0, text, cut), text + cut, length - cut), whole, "cut at %zu", cut);
}

Test(crc, each_single_bit_changes_the_checksum)
{
    unsigned char bytes[100] = {0};
    uint32_t before = wr_crc_add(0, bytes, sizeof bytes);
    for (unsigned bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        cr_assert_neq(wr_crc_add(0, bytes, sizeof bytes), before);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
