/* bytes: numbers as bytes, the same on each machine: unsigned LEB128 in its shortest form, and doubles as 8
 * bytes, little-endian. */
#ifndef WR_BYTES_H
#define WR_BYTES_H

#include <stdint.h>

struct wr_buffer;

void wr_bytes_put_number(struct wr_buffer *out, uint64_t number);
void wr_bytes_put_double(struct wr_buffer *out, double value);

struct wr_bytes {
    const unsigned char *at, *end;
    const char *wrong; /* what is wrong with them; NULL: nothing so far */
};

/* Sets `wrong` unless it is set. Returns 0. */
uint64_t wr_bytes_refuse(struct wr_bytes *bytes, const char *wrong);

/* Each returns 0 if it refuses. */
uint64_t wr_bytes_get_number(struct wr_bytes *bytes);
double wr_bytes_get_double(struct wr_bytes *bytes);

#endif
