/* problems: all errors of a configuration, for a command that reports them all. Elsewhere the first one ends
 * the reading. */
#ifndef WR_PROBLEMS_H
#define WR_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/region.h"

struct wr_error;

/* How many are kept; the next one ends the reading. */
enum { WR_PROBLEMS_MAX = 100 };

struct wr_problem {
    uint64_t place; /* see struct wr_error */
    const char *text;
};

/* All zeros: none. */
struct wr_problems {
    struct wr_problem items[WR_PROBLEMS_MAX]; /* in the order of their places */
    size_t count;
    struct wr_region keep;
};

void wr_problems_fini(struct wr_problems *problems);

/* Whether the caller goes on: if it is `done`, or if the error could be added, unless it is there already; then
 * the error has code 0. An error of code 0 was added before. problems NULL: only if it is done. */
bool wr_problems_go_on(struct wr_problems *problems, bool done, struct wr_error *error);

/* Whether there are any. problems may be NULL. */
bool wr_problems_any(const struct wr_problems *problems);

#endif
