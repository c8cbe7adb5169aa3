/* Formats and parsers: what each format writes of any allowed names, labels and numbers is read back unchanged
 * by the parser of the same name.
 *
 * The input: a double's 8 bytes, an integer's 8 bytes, then texts, each ending with a NUL: group, name, label
 * key, label value, metadata, and optionally a time in nanoseconds. */

#include "../support/read_back.h"
#include "fuzz.h"

enum { TEXTS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct read_back written;
    char *texts[TEXTS];
    const uint8_t *at = data + sizeof written.number + sizeof written.integer;
    if (size < sizeof written.number + sizeof written.integer)
        return 0;
    for (int i = 0; i < TEXTS; i++)
        at = fuzz_take_text(at, data + size, '\0', &texts[i]);
    written = (struct read_back){
        .group = texts[0], .name = texts[1], .key = texts[2], .value = texts[3], .note = texts[4]};
    written.time_ns = *texts[5] ? strtoll(texts[5], NULL, 10) : INT64_C(1795219607576198123);
    memcpy(&written.number, data, sizeof written.number);
    memcpy(&written.integer, data + sizeof written.number, sizeof written.integer);
    written.instrument = (int)(written.integer & 3);
    if (read_back_is_allowed(&written))
        read_back_check(&written);
    for (int i = 0; i < TEXTS; i++)
        free(texts[i]);
    return 0;
}
