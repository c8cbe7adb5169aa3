#include "text/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t wr_base64_encode(const void *bytes, size_t length, bool is_padded, char *text)
{
    const unsigned char *in = bytes;
    char *out = text;
    while (length) {
        size_t count = length < 3 ? length : 3;
        uint32_t bits =
            (uint32_t)in[0] << 16 | (count > 1 ? (uint32_t)in[1] << 8 : 0) | (count > 2 ? in[2] : 0);
        for (size_t i = 0; i <= count; i++)
            *out++ = digits[bits >> (18 - 6 * i) & 63];
        for (size_t i = count; is_padded && i < 3; i++)
            *out++ = '=';
        in += count;
        length -= count;
    }
    *out = '\0';
    return (size_t)(out - text);
}

/* Returns -1 if it is no digit. */
static int value_of(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

size_t wr_base64_decode(const char *text, size_t length, bool is_padded, void *bytes, size_t room)
{
    unsigned char *out = bytes;
    uint32_t bits = 0;
    size_t count = 0;
    if (is_padded && length % 4)
        return SIZE_MAX;
    for (int i = 0; is_padded && i < 2 && length && text[length - 1] == '='; i++)
        length--;
    for (size_t i = 0; i < length; i++) {
        int digit = value_of(text[i]);
        if (digit < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 == 0) /* 6, 12, 18, 24 bits are held: 1, 2, 3 bytes are complete */
            continue;
        if (count == room)
            return SIZE_MAX;
        out[count++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    return count;
}
