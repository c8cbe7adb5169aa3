#include "socket_group.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- Finding --------------------------------------------------------------------------------- */

static int ask(const char *name, char *room, size_t size, gid_t *gid)
{
    struct group group, *found = NULL;
    int error = getgrnam_r(name, &group, room, size, &found);
    if (found)
        *gid = found->gr_gid;
    return error || found ? error : ENOENT;
}

int socket_group_find(const char *name, gid_t *gid)
{
    enum { FIRST = 4096, MOST = 16 << 20 };
    int error = ERANGE;
    if (*name && strspn(name, "0123456789") == strlen(name) && strlen(name) < 10) {
        *gid = (gid_t)strtoul(name, NULL, 10);
        return 0;
    }
    for (size_t size = FIRST; error == ERANGE && size <= MOST; size *= 4) {
        char *room = malloc(size); /* the names of the members must fit */
        error = room ? ask(name, room, size, gid) : ENOMEM;
        free(room);
    }
    return error;
}

/* ---- Members --------------------------------------------------------------------------------- */

static bool is_among(const gid_t *gids, size_t count, gid_t gid)
{
    for (size_t i = 0; i < count; i++)
        if (gids[i] == gid)
            return true;
    return false;
}

bool socket_group_has(int fd, gid_t first, gid_t gid)
{
    enum { MOST = 65536 }; /* the kernel's limit */
    if (first == gid)
        return true;
    socklen_t length = MOST * sizeof gid;
    gid_t *gids = malloc(length);
    bool has = gids && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &length) == 0 &&
               is_among(gids, length / sizeof gid, gid);
    free(gids);
    return has;
}
