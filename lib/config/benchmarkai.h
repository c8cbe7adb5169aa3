/* benchmarkai: environment -> config: benchmarkai's variables, without a configuration file:
 *
 *     BENCHMARK_AI                      stdout or fifo, in any case
 *     BENCHMARK_AI_FIFO_FILEPATH        that of the handler type fifo
 *     BENCHMARK_AI_FIFO_MAX_WAIT_TIME   10, in seconds
 *     BENCHMARK_AI_FIFO_WAIT_TIME_STEP  0.5, in seconds
 *
 * An empty one counts as not set. */
#ifndef WR_BENCHMARKAI_H
#define WR_BENCHMARKAI_H

#include <stdbool.h>

struct wr_config;
struct wr_error;

/* Whether BENCHMARK_AI is set. */
bool wr_benchmarkai_is_set(void);

/* The configuration that they select; returns one reference. NULL: BENCHMARK_AI is not set, or error is set. */
struct wr_config *wr_benchmarkai_config(struct wr_error *error);

#endif
