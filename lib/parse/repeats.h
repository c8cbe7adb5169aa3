/* repeats: how often a measurement is added of which only a part was sent, such as a timer of StatsD. */
#ifndef WR_REPEATS_H
#define WR_REPEATS_H

#include <stdint.h>

#include "parse/parser.h"

/* The default of the option repeat_limit. */
enum { WR_REPEATS_MOST = 1000 };

/* Returns how often to add the record, 1 to `most`. With a sample rate of 0.4, which are 2.5 times, half of the
 * records are added 2 and half 3 times. *random: the state of a generator, never 0. *left_out: how often it is
 * not added because of `most`. */
uint32_t wr_repeats_choose(const struct wr_parse_record *record, uint32_t most, uint64_t *random,
                           uint64_t *left_out);

#endif
