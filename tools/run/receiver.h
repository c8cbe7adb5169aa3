/* receiver: how the values of the command get to weir run: a named pipe in a private folder, to which a tee
 * (WEIR_TEE) of the command writes. */
#ifndef WEIR_TOOLS_RECEIVER_H
#define WEIR_TOOLS_RECEIVER_H

#include <stdbool.h>

struct receiver {
    char *folder, *pipe; /* NULL: there is none, and the command's values are not counted */
    char *tee;           /* for the command; NULL: WEIR_TEE stays as it is */
    int keeper_fd;       /* keeps the pipe open while writers come and go; -1: none */
};

/* Makes folder and pipe, in $TMPDIR or /tmp. The tee also has what a WEIR_TEE of this process adds, so that the
 * command of a weir run within another one is seen by both. Prints why it could not; then all is NULL. */
void receiver_open(struct receiver *receiver);

/* Removes folder and pipe: what still writes to it then finds nobody, and gives up. May be called twice. */
void receiver_close(struct receiver *receiver);

#endif
