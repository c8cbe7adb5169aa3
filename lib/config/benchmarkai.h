/* benchmarkai: the modes that benchmarkai's variables select, without any configuration file:
 *
 *     BENCHMARK_AI                      stdout or fifo, in whatever case
 *     BENCHMARK_AI_FIFO_FILEPATH        /tmp/benchmark-ai-fifo
 *     BENCHMARK_AI_FIFO_MAX_WAIT_TIME   10, in seconds
 *     BENCHMARK_AI_FIFO_WAIT_TIME_STEP  0.5, in seconds
 *
 * One that is empty counts as not set. */
#ifndef WR_BENCHMARKAI_H
#define WR_BENCHMARKAI_H

struct wr_config;
struct wr_error;

/* The configuration that they ask for. NULL: none, if error->code stays 0; otherwise one of them is wrong. */
struct wr_config *wr_benchmarkai_config(struct wr_error *error);

#endif
