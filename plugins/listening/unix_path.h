/* unix_path: the path of a Unix socket that a source listens at. What a dead process has left there is
 * replaced; a socket that something receives from, and any other file, stays. */
#ifndef WEIR_PLUGINS_UNIX_PATH_H
#define WEIR_PLUGINS_UNIX_PATH_H

#include <stdbool.h>
#include <sys/types.h>

struct unix_path {
    const char *path; /* absolute, shorter than sockaddr_un.sun_path; borrowed */
    dev_t device;     /* of the socket that was bound last */
    ino_t inode;      /* 0: none was */
};

/* Binds a socket to the path. type: SOCK_STREAM or SOCK_DGRAM; mode and group: of the path; the group stays
 * if it is SOCKET_GROUP_NONE. Returns 0 or errno: EADDRINUSE if something receives there, EEXIST if the path is
 * no socket. */
int wr_unix_path_bind(struct unix_path *path, int fd, int type, mode_t mode, gid_t group);

/* Whether the path still leads to the socket. */
bool wr_unix_path_is_in_place(const struct unix_path *path);

/* Removes the path, if it still leads to the socket. */
void wr_unix_path_remove(struct unix_path *path);

#endif
