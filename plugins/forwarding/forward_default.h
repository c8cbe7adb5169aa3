/* forward_default: where the ends of the link meet that name no address. */
#ifndef FORWARD_DEFAULT_H
#define FORWARD_DEFAULT_H

/* More than an address has, so that a path that is too long is refused and not cut. */
enum { FORWARD_PATH_ROOM = 110 };

/* The address of the socket: "unix:" and $XDG_RUNTIME_DIR/weir/forward.sock or, if that variable is no absolute
 * path, /run/weir/forward.sock. */
void wr_forward_default(char text[FORWARD_PATH_ROOM + 5]);

#endif
