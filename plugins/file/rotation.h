/* rotation: when the file has to be put aside, and how. Under the target's exclusive lock. */
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
    int64_t off_until_ms; /* after a failure */
    bool said;            /* it */
};

void wr_rotation_init(struct rotation *rotation, const struct settings *settings);

/* Whether the target is a file that is put aside now and then. */
bool wr_rotation_is_on(const struct rotation *rotation, const struct output_file *target);

/* How many of the next `length` bytes may go into the file as it is, in bytes; SIZE_MAX: any. 0: it has to be
 * put aside first. */
size_t wr_rotation_room(const struct rotation *rotation, const struct stat *status);

/* Whether the file holds no values. */
bool wr_rotation_is_empty(const struct rotation *rotation, const struct stat *status);

/* Puts the file aside and opens a new one, lets go of the lock in any case. Where that fails it is said once,
 * and the rotation is off for a while: then the old file is written to, or, without one, an errno is answered.
 */
int wr_rotation_turn(struct rotation *rotation, struct output_file *target);

#endif
