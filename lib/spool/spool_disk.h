/* spool_disk: the few things that a spool does with files. Each opens its file and closes it again, so that a
 * program which closes descriptors that are not its own finds none here, and none is written to by mistake. */
#ifndef WR_SPOOL_DISK_H
#define WR_SPOOL_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/buffer.h"

/* Writes all of it at `offset`, to a new file if that is 0. Answers 0, or errno, and then the file is as it was
 * before. What has been written is safe from the death of the process, not from that of the machine. */
int wr_spool_disk_write(const char *path, uint64_t offset, const void *data, size_t length);

/* Overwrites a few bytes of a file. 0, or errno. */
int wr_spool_disk_overwrite(const char *path, uint64_t offset, const void *data, size_t length);

/* Appends the contents of a file. 0, or errno. */
int wr_spool_disk_read(const char *path, struct wr_buffer *out);

/* Whether errno says that there is no space, or no more of it for us. */
bool wr_spool_disk_is_full(int problem);

#endif
