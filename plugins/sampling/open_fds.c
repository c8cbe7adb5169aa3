#include "open_fds.h"

#include <unistd.h>

void open_fds_note(struct open_fds *fds, int fd)
{
    for (size_t i = 0; fd >= 0 && i < OPEN_FDS; i++) {
        if (atomic_load_explicit(&fds->plus_one[i], memory_order_relaxed))
            continue;
        atomic_store(&fds->plus_one[i], fd + 1);
        return;
    }
}

void open_fds_forget(struct open_fds *fds, int fd)
{
    for (size_t i = 0; i < OPEN_FDS; i++)
        if (atomic_load_explicit(&fds->plus_one[i], memory_order_relaxed) == fd + 1)
            atomic_store(&fds->plus_one[i], 0);
}

void open_fds_abandon(const struct open_fds *fds)
{
    for (size_t i = 0; i < OPEN_FDS; i++)
        if (atomic_load(&fds->plus_one[i]))
            close(atomic_load(&fds->plus_one[i]) - 1);
}
