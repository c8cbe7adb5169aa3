/* socket_group: the group whose members may use a Unix socket. */
#ifndef WEIR_PLUGINS_SOCKET_GROUP_H
#define WEIR_PLUGINS_SOCKET_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* No group. */
#define SOCKET_GROUP_NONE ((gid_t)-1)

/* Sets *gid to the number of a group with this name or number. Returns 0 or errno; ENOENT: there is none. */
int socket_group_find(const char *name, gid_t *gid);

/* Whether the process at the other end of a connection is in the group: its own one, `first`, or another. */
bool socket_group_has(int fd, gid_t first, gid_t gid);

#endif
