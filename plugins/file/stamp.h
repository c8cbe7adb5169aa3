/* stamp: the timestamp in an old file's name: "20261121T104019.123456Z". */
#ifndef FILE_STAMP_H
#define FILE_STAMP_H

#include <stdint.h>

enum { STAMP_LENGTH = 23, STAMP_US_PER_S = 1000000 };

int64_t wr_stamp_now_us(void);

/* Writes a stamp, NUL-terminated. */
void wr_stamp_format(char out[STAMP_LENGTH + 1], int64_t time_us);

/* Parses a stamp at the beginning of the text. Returns -1 if there is none. */
int64_t wr_stamp_parse(const char *text);

#endif
