/* problems: what is wrong or lost in a process, in words. */
#ifndef WEIR_PLUGINS_COLLECTOR_PROBLEMS_H
#define WEIR_PLUGINS_COLLECTOR_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

enum problem_rank { PROBLEM_HINT, PROBLEM_REFUSED, PROBLEM_LOST, PROBLEM_FAILS, PROBLEM_ENDED };

struct problem {
    enum problem_rank rank;
    uint64_t values; /* that it has cost */
    char where[300], text[400];
};

/* All zeros: none. */
struct problems {
    struct problem *items;
    uint32_t count, room;
    bool failed; /* out of memory: some are missing */
};

/* Each adds what is wrong with one element of the object that the service status/1 returns, and returns its
 * worst problem in words; "": there is none. Valid until the next call. */
const char *problems_of_handler(struct problems *problems, struct json_object *handler);
const char *problems_of_source(struct problems *problems, struct json_object *source);
const char *problems_of_sender(struct problems *problems, struct json_object *sender);
void problems_of_process(struct problems *problems, struct json_object *process);

void problems_add(struct problems *problems, enum problem_rank rank, uint64_t values, const char *where,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Returns them as an array, the worst first, and empties the list. NULL: out of memory. */
struct json_object *problems_take(struct problems *problems);

#endif
