/* open_fds: the descriptors that a source has open for a moment, so that a child forked meanwhile can close
 * them.
 *
 * [source] opens and closes; [fork] abandons. A child that is forked within the few instructions between the
 * system call and the note may keep one descriptor, which closes on exec; none is closed twice. */
#ifndef WEIR_PLUGINS_OPEN_FDS_H
#define WEIR_PLUGINS_OPEN_FDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { OPEN_FDS = 4 /* at once: a folder, one in it, and a file */ };

/* All zeros: none. */
struct open_fds {
    atomic_int plus_one[OPEN_FDS]; /* 0: free */
};

/* Notes one that was just opened; -1 allowed. */
static inline void open_fds_note(struct open_fds *fds, int fd)
{
    for (size_t i = 0; fd >= 0 && i < OPEN_FDS; i++) {
        if (atomic_load_explicit(&fds->plus_one[i], memory_order_relaxed))
            continue;
        atomic_store(&fds->plus_one[i], fd + 1);
        return;
    }
}

/* Before it is closed: its number may be another file's afterwards. */
static inline void open_fds_forget(struct open_fds *fds, int fd)
{
    for (size_t i = 0; i < OPEN_FDS; i++)
        if (atomic_load_explicit(&fds->plus_one[i], memory_order_relaxed) == fd + 1)
            atomic_store(&fds->plus_one[i], 0);
}

static inline void open_fds_abandon(const struct open_fds *fds)
{
    for (size_t i = 0; i < OPEN_FDS; i++)
        if (atomic_load(&fds->plus_one[i]))
            close(atomic_load(&fds->plus_one[i]) - 1);
}

#endif
