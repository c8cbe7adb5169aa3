/* repair: makes the next reader of a pipe start with a whole line.
 *
 * A reader that is killed may have read a part of a line; the next one would start with the rest. So while a
 * pipe has no reader, its data is taken out, and written again with the first line completed. Lines of other
 * writers may be among it: ours are found from the end, in the order in which they were written.
 *
 * While one process repairs the pipe, it is open for reading, so others could write, or repair it too: the data
 * would get mixed, and a torn line could be anywhere. Therefore a repair holds a lock of the pipe, flock(2),
 * and others that find room in the pipe, or a reader, first wait for it: for a short time only, because anyone
 * who can open the pipe can lock it. */
#ifndef WEIR_PLUGINS_REPAIR_H
#define WEIR_PLUGINS_REPAIR_H

#include "pipe.h"

/* Keeps a copy of lines that were written. wr_repair_start has been called. */
void wr_repair_remember(struct pipe *pipe, const char *lines, size_t length);

/* The pipe was just opened. Returns false if there is no memory. */
bool wr_repair_start(struct pipe *pipe);

/* The pipe has no reader. Returns that result. */
struct pipe_result wr_repair(struct pipe *pipe);

/* Waits for another process that repairs the pipe. */
void wr_repair_wait(struct pipe *pipe);

/* The length of the whole lines that fit into one write, of data that was in the pipe, where the programs of
 * others may have longer lines. Not 0. */
size_t wr_repair_part_length(const char *lines, size_t length);

#endif
