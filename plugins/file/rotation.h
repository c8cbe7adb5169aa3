/* rotation: when and how the file is rotated. Caller holds the output file's exclusive lock. */
#ifndef FILE_ROTATION_H
#define FILE_ROTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "settings.h"
#include "output_file.h"

struct rotation {
    const struct settings *settings;
    int64_t retry_at_ms; /* after a failure: when to try again; INT64_MIN: no failure */
    bool logged;         /* the failure has been logged */
};

void wr_rotation_init(struct rotation *rotation, const struct settings *settings);

/* Whether the output file is rotated at all, and not waiting for the next attempt. */
bool wr_rotation_is_on(const struct rotation *rotation);

/* How many bytes fit into the file; SIZE_MAX: no limit; 0: it must be rotated first. */
size_t wr_rotation_room(const struct rotation *rotation, const struct stat *status);

/* Whether the file holds no values. */
bool wr_rotation_is_empty(const struct rotation *rotation, const struct stat *status);

/* Rotates: renames the file and opens a new one. Releases the lock in all cases. A failure is logged once
 * and disables rotation for a while: the old file continues to be used. Returns 0, or errno if no file is
 * open. */
int wr_rotation_rotate(struct rotation *rotation, struct output_file *output);

#endif
