/* spool_disk: file operations of a spool. Each opens and closes its file, so that no descriptor stays open that
 * the program could close or reuse by mistake. */
#ifndef WR_SPOOL_DISK_H
#define WR_SPOOL_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/buffer.h"

/* Writes all bytes at `offset`, to a new file if that is 0. Returns 0, or errno with the file unchanged. The
 * data survives the process; it is not synced, so it may not survive the machine. */
int wr_spool_disk_write(const char *path, uint64_t offset, const void *data, size_t length);

/* Overwrites bytes of a file. Returns 0 or errno. */
int wr_spool_disk_overwrite(const char *path, uint64_t offset, const void *data, size_t length);

/* Appends the contents of a file to `out`. Returns 0 or errno. */
int wr_spool_disk_read(const char *path, struct wr_buffer *out);

/* Whether the errno means that disk, quota or file size limit is exhausted. */
bool wr_spool_disk_is_full(int problem);

#endif
