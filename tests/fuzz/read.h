/* read: helpers for readers of formats: walking through a text, and comparing numbers. All abort on a mismatch.
 */
#ifndef READ_H
#define READ_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

/* Size of read texts, with NUL: every byte of the longest label may be escaped by six bytes. */
enum { READ_ROOM = 8192 };

/* Checks that `word` is at this position. Returns the position after it. */
const char *read_skip(const char *at, const char *word);

/* Copies the text before the character `stop`, which must occur. Returns its position. */
const char *read_copy_to(const char *at, char stop, char *out);

/* Whether a sample is NaN or infinite. */
bool read_is_special(const weir_sample *sample);

/* Whether a double holds a sample's value exactly. */
bool read_is_double(const weir_sample *sample);

/* Checks that the number equals the sample bit for bit. Non-finite values may have any spelling of C. */
void read_check_number(const char *text, const weir_sample *sample);

/* The same for formats that do not distinguish integers. */
void read_check_double(const char *text, const weir_sample *sample);

/* Writes a time as seconds, truncated to this number of decimals. */
void read_put_time(char out[READ_ROOM], int64_t time_ns, int decimals);

/* Whether a text consists of letters, digits and the characters in `others`. */
bool read_is_made_of(const char *text, const char *others);

#endif
