/* inputs: the samples in a journal that summaries were made of.
 *
 * The journal has no summaries: it has the samples, which are settled there when all summaries of their
 * interval are. If the process dies before, a later one sums them again.
 *
 * Made by the dispatcher, then owned by the segment of the summaries. [lane lock, once a lane has the segment]
 */
#ifndef WR_INPUTS_H
#define WR_INPUTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wr_inputs;
struct wr_segment;

/* Samples of a segment. */
struct wr_input {
    struct wr_segment *segment;
    uint32_t first, count;
    uint32_t slot;   /* the lane's, in the segment's file */
    uint64_t values; /* of those that were summed */
};

/* Adds samples, with a reference of its own to their segment; *inputs becomes a list if it was NULL. held:
 * counts the bytes of all inputs of a lane; lives as long as the list. Returns false if out of memory. */
bool wr_inputs_add(struct wr_inputs **inputs, const struct wr_input *input, _Atomic uint64_t *held);

/* How many bytes of samples are in the list, which may be NULL. */
uint64_t wr_inputs_bytes(const struct wr_inputs *inputs);

/* Marks all as settled, unless they were left. */
void wr_inputs_settle(struct wr_inputs *inputs);

/* Leaves all in the journal, for a later process. Returns how many of `values`, the values of some of the
 * summaries, are among them. */
uint64_t wr_inputs_leave(struct wr_inputs *inputs, uint64_t values);

/* Releases the segments. May be NULL. */
void wr_inputs_free(struct wr_inputs *inputs);

#endif
