#include "state_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *state_folder_find(const char *name)
{
    const char *state = secure_getenv("STATE_DIRECTORY"), *user = secure_getenv("XDG_STATE_HOME");
    const char *home = secure_getenv("HOME");
    const char *slash = name ? "/" : "";
    char *path = NULL;
    int length = -1;
    name = name ? name : "";
    if (state && *state == '/')
        length = asprintf(&path, "%.*s%s%s", (int)strcspn(state, ":"), state, slash, name);
    else if (user && *user == '/')
        length = asprintf(&path, "%s/weir%s%s", user, slash, name);
    else if (home && *home == '/')
        length = asprintf(&path, "%s/.local/state/weir%s%s", home, slash, name);
    return length < 0 ? NULL : path;
}

int state_folder_make(const char *path, bool is_whole)
{
    char *folder = NULL;
    int problem = asprintf(&folder, "%s%s", path, is_whole ? "/" : "") < 0 ? ENOMEM : 0;
    if (problem)
        return problem;
    for (char *slash = strchr(folder + 1, '/'); slash && !problem; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            problem = errno;
        *slash = '/';
    }
    free(folder);
    return problem;
}
