/* fuzz: what the fuzzers share. Each is a function of some bytes that aborts when something is not as it must
 * be; libFuzzer calls it with bytes of its own making, replay with those of a folder. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))

static inline void fuzz_fail(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: %s: not so\n", file, line, condition);
    abort();
}

/* A part of the input as text, up to a newline; answers where the next one begins. The caller frees it. */
static inline const uint8_t *fuzz_take_line(const uint8_t *at, const uint8_t *end, char **line)
{
    const uint8_t *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    size_t length = (size_t)((newline ? newline : end) - at);
    *line = malloc(length + 1);
    FUZZ_CHECK(*line);
    if (length)
        memcpy(*line, at, length);
    (*line)[length] = '\0';
    return newline ? newline + 1 : end;
}

#endif
