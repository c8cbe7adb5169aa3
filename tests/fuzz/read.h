/* read: what readers of formats need: going through a text, and comparing numbers. All abort where something is
 * not as it must be. */
#ifndef READ_H
#define READ_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

/* Of what is read, with a NUL: the longest label may be escaped, six bytes for each. */
enum { READ_ROOM = 8192 };

/* A word that has to stand here; answers what is behind it. */
const char *read_skip(const char *at, const char *word);

/* Copies up to a character, which has to come; answers where it is. */
const char *read_copy_to(const char *at, char stop, char *out);

/* Whether a sample is a NaN or infinite. */
bool read_is_special(const weir_sample *sample);

/* Whether a double holds a sample's value exactly. */
bool read_is_double(const weir_sample *sample);

/* A number that has to be a sample's, bit for bit; of what is not finite all spellings are read that C knows.
 */
void read_check_number(const char *text, const weir_sample *sample);

/* The same for numbers that have lost their kind. */
void read_check_double(const char *text, const weir_sample *sample);

/* A time as seconds with decimals; those that do not fit are cut off. */
void read_put_time(char out[READ_ROOM], int64_t time_ns, int decimals);

/* Whether a text holds nothing but letters, digits and these. */
bool read_is_made_of(const char *text, const char *others);

#endif
