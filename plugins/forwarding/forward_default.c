#include "forward_default.h"

#include <stdio.h>
#include <stdlib.h>

void wr_forward_default(char text[FORWARD_PATH_ROOM + 5])
{
    /* as in the core: the environment of a set-user-id program is its user's */
    const char *folder = secure_getenv("XDG_RUNTIME_DIR");
    if (!folder || *folder != '/')
        folder = "/run";
    snprintf(text, FORWARD_PATH_ROOM + 5, "unix:%s/weir/forward.sock", folder);
}
