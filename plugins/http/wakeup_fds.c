#include "wakeup_fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { CANDIDATES = 64, ROUNDS = 3 };

struct candidates {
    int fds[CANDIDATES];
    int count;
};

static int get_option(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/* Bytes that can be read from the descriptor, and bytes sent that the other end has not read. */
static int bytes_in(int fd)
{
    int bytes = 0;
    return ioctl(fd, SIOCINQ, &bytes) == 0 ? bytes : 0;
}

static int bytes_out(int fd)
{
    int bytes = 0;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

static bool is_candidate(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC) && get_option(fd, SO_DOMAIN) == AF_UNIX &&
           get_option(fd, SO_TYPE) == SOCK_STREAM && !bytes_in(fd) && !bytes_out(fd);
}

static void list_candidates(struct candidates *all)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (folder && all->count < CANDIDATES && (entry = readdir(folder))) {
        int fd = *entry->d_name == '.' ? -1 : atoi(entry->d_name);
        if (fd >= 0 && fd != dirfd(folder) && is_candidate(fd))
            all->fds[all->count++] = fd;
    }
    if (folder)
        closedir(folder);
}

static bool has_bytes(int fd)
{
    return bytes_in(fd) || bytes_out(fd);
}

static void filter(struct candidates *all, bool with_bytes)
{
    int kept = 0;
    for (int i = 0; i < all->count; i++)
        if (has_bytes(all->fds[i]) == with_bytes)
            all->fds[kept++] = all->fds[i];
    all->count = kept;
}

/* Between a wakeup and the next poll, one end has bytes to read and the other has unread bytes sent. No
 * other sockets of the process show this pattern several times in a row by chance, whatever other threads
 * do. */
void wr_wakeup_fds_find(CURLM *multi, int fds[2])
{
    struct candidates all = {.count = 0};
    list_candidates(&all);
    for (int i = 0; i < ROUNDS && all.count; i++) {
        if (curl_multi_wakeup(multi) != CURLM_OK)
            all.count = 0;
        filter(&all, true);
        if (curl_multi_poll(multi, NULL, 0, 0, NULL) != CURLM_OK)
            all.count = 0;
        filter(&all, false);
    }
    fds[0] = fds[1] = -1;
    if (all.count != 2)
        return;
    for (int i = 0; i < 2; i++) {
        fds[i] = all.fds[i];
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    }
}
