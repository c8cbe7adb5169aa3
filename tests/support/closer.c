/* closer: closes all descriptors, including weir's, as daemons do, then opens files of its own, which may get
 * the numbers that weir's had.
 *
 * closer FILE [stop | PATH]: opens FILE. It then adds another value; or "stop": it adds none and shuts weir
 * down; or PATH, where the handler writes to: before that it moves the file away and reloads. */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

enum { FILES = 20 };

static bool reload_without(const char *path)
{
    char moved[4096];
    snprintf(moved, sizeof moved, "%s.moved", path);
    if (rename(path, moved) != 0 || weir_reload())
        return false;
    while (access(path, F_OK) != 0)
        usleep(1000);
    return true;
}

static bool are_open(const int fds[FILES])
{
    for (int i = 0; i < FILES; i++)
        if (fcntl(fds[i], F_GETFD) < 0)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    int fds[FILES];
    if (argc < 2)
        return 2;
    weir_stream *stream = weir_get_stream("my_app");
    weir_add_int(stream, "before", 1);
    if (weir_flush(-1))
        return 3;
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    for (int i = 0; i < FILES; i++)
        if ((fds[i] = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600)) < 0)
            return 4;
    if (argc == 2) {
        weir_add_int(stream, "after", 2);
        return weir_flush(-1) ? 5 : 0;
    }
    if (strcmp(argv[2], "stop") != 0 && !(reload_without(argv[2]) && are_open(fds)))
        return 6;
    weir_shutdown(-1);
    return are_open(fds) ? 0 : 7;
}
