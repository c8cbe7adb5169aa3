/* open_fds: the descriptors that a source has open for a moment, so that a child forked meanwhile can close
 * them.
 *
 * [source] opens and closes; [fork] abandons. A child that is forked within the few instructions between the
 * system call and the note may keep one descriptor, which closes on exec; none is closed twice. */
#ifndef WEIR_PLUGINS_OPEN_FDS_H
#define WEIR_PLUGINS_OPEN_FDS_H

#include <stdatomic.h>

enum { OPEN_FDS = 4 /* at once: a folder, one in it, and a file */ };

/* All zeros: none. */
struct open_fds {
    atomic_int plus_one[OPEN_FDS]; /* 0: free */
};

/* Notes one that was just opened; -1 allowed. */
void open_fds_note(struct open_fds *fds, int fd);

/* Before it is closed: its number may be another file's afterwards. */
void open_fds_forget(struct open_fds *fds, int fd);

void open_fds_abandon(const struct open_fds *fds);

#endif
