/* fuzz: what the fuzzers share. Each is a function of some bytes that aborts when something is not as it must
 * be; libFuzzer calls it with bytes of its own making, replay with those of a folder. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))

static inline void fuzz_fail(const char *file, int line, const char *condition)
{
    dprintf(2, "%s:%d: %s: not so\n", file, line, condition); /* stderr may be caught */
    abort();
}

/* A part of the input as text, up to a separator; answers where the next one begins. The caller frees it. */
static inline const uint8_t *fuzz_take_text(const uint8_t *at, const uint8_t *end, char separator, char **text)
{
    const uint8_t *stop = at < end ? memchr(at, separator, (size_t)(end - at)) : NULL;
    size_t length = (size_t)((stop ? stop : end) - at);
    *text = malloc(length + 1);
    FUZZ_CHECK(*text);
    if (length)
        memcpy(*text, at, length);
    (*text)[length] = '\0';
    return stop ? stop + 1 : end;
}

static inline const uint8_t *fuzz_take_line(const uint8_t *at, const uint8_t *end, char **line)
{
    return fuzz_take_text(at, end, '\n', line);
}

#endif
