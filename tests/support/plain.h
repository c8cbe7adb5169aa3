/* plain: for plain test programs: exit status 0, or a message on stderr and 1. */
#ifndef PLAIN_H
#define PLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAIN_CHECK(condition, ...)                                                                            \
    ((condition) ? (void)0 : plain_fail(__FILE__, __LINE__, #condition, "" __VA_ARGS__))

static inline void plain_fail(const char *file, int line, const char *condition, const char *text)
{
    fprintf(stderr, "%s:%d: %s: failed%s%s\n", file, line, condition, *text ? ": " : "", text);
    _exit(1);
}

enum { PLAIN_PATIENCE = 4 }; /* how much longer a program may take on a busy machine */

/* A program that hangs is killed by SIGALRM, which is a failure. seconds: on an idle machine, generously. */
static inline void plain_hang_no_longer_than(unsigned seconds)
{
    alarm(seconds * PLAIN_PATIENCE);
}

/* Whether the tests are built with this sanitizer, such as "thread"; "": with any. */
static inline bool plain_is_sanitized(const char *by)
{
    const char *options = getenv("WEIR_TEST_SANITIZED");
    return options && *options && strstr(options, by);
}

/* How often a program repeats what it does `usual` times in the tests: WEIR_TEST_FACTOR times as often. */
static inline int plain_rounds(int usual)
{
    const char *factor = getenv("WEIR_TEST_FACTOR");
    double rounds = factor && *factor ? usual * atof(factor) : usual;
    return rounds < 1 ? 1 : rounds > 1e9 ? 1000000000 : (int)rounds;
}

/* The time limit of a program that takes at most `usual` seconds in the tests. */
static inline unsigned plain_limit(unsigned usual)
{
    unsigned limit = (unsigned)plain_rounds((int)usual);
    return limit > usual ? limit : usual;
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
