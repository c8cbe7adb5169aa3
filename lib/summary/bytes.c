#include "summary/bytes.h"

#include <string.h>

#include "text/buffer.h"

enum { HIGH_BIT = 0x80, DIGIT_BITS = 7, NUMBER_BITS = 64 };

void wr_bytes_put_number(struct wr_buffer *out, uint64_t number)
{
    for (; number >= HIGH_BIT; number >>= DIGIT_BITS)
        wr_buffer_put_char(out, (char)(number | HIGH_BIT));
    wr_buffer_put_char(out, (char)number);
}

void wr_bytes_put_double(struct wr_buffer *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < NUMBER_BITS; i += 8)
        wr_buffer_put_char(out, (char)(bits >> i));
}

uint64_t wr_bytes_refuse(struct wr_bytes *input, const char *wrong)
{
    if (!input->wrong)
        input->wrong = wrong;
    return 0;
}

uint64_t wr_bytes_get_number(struct wr_bytes *input)
{
    uint64_t number = 0;
    for (int shift = 0; shift < NUMBER_BITS && input->at < input->end; shift += DIGIT_BITS) {
        uint64_t digit = *input->at & (HIGH_BIT - 1);
        bool last = !(*input->at++ & HIGH_BIT);
        if (digit << shift >> shift != digit)
            return wr_bytes_refuse(input, "a number beyond 64 bits");
        number |= digit << shift;
        if (last)
            return digit || !shift ? number : wr_bytes_refuse(input, "a number with more bytes than it needs");
    }
    return wr_bytes_refuse(input, input->at < input->end ? "a number beyond 64 bits" : "it ends too early");
}

double wr_bytes_get_double(struct wr_bytes *input)
{
    uint64_t bits = 0;
    double value;
    if (input->end - input->at < (ptrdiff_t)sizeof bits) {
        input->at = input->end;
        return (double)wr_bytes_refuse(input, "it ends too early");
    }
    for (int i = 0; i < NUMBER_BITS; i += 8)
        bits |= (uint64_t)*input->at++ << i;
    memcpy(&value, &bits, sizeof value);
    return value;
}
