/* plain: for plain test programs: exit status 0, or a message on stderr and 1. */
#ifndef PLAIN_H
#define PLAIN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PLAIN_CHECK(condition, ...)                                                                            \
    ((condition) ? (void)0 : plain_fail(__FILE__, __LINE__, #condition, "" __VA_ARGS__))

static inline void plain_fail(const char *file, int line, const char *condition, const char *text)
{
    fprintf(stderr, "%s:%d: %s: failed%s%s\n", file, line, condition, *text ? ": " : "", text);
    _exit(1);
}

/* A program that hangs is killed by SIGALRM, which is a failure. */
static inline void plain_hang_no_longer_than(unsigned seconds)
{
    alarm(seconds);
}

/* Returns a pseudorandom number below `below`. state: one per thread, initially not 0. */
static inline uint32_t plain_draw(uint64_t *state, uint32_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32) % below;
}

#endif
