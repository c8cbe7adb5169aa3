#include "base64.h"

#include <stdint.h>

static int find_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t wr_base64_decode(const char *text, size_t length, char *bytes)
{
    uint32_t bits = 0;
    size_t padding = length && text[length - 1] == '=';
    padding += padding && length > 1 && text[length - 2] == '=';
    char *out = bytes;
    if (length % 4)
        return SIZE_MAX;
    for (size_t i = 0; i < length - padding; i++) {
        int digit = find_digit(text[i]);
        if (digit < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4) /* 6, 12, 18, 24 bits are held: 1, 2, 3 bytes are complete */
            *out++ = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return (size_t)(out - bytes);
}
