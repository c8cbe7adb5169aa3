/* closer: closes all descriptors, including weir's, as daemons do, then opens files of its own, which may get
 * the numbers that weir's had. */

#include <fcntl.h>
#include <unistd.h>

#include <weir/weir.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    weir_stream *stream = weir_get_stream("my_app");
    weir_add_int(stream, "before", 1);
    if (weir_flush(-1))
        return 3;
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    for (int i = 0; i < 20; i++)
        if (open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600) < 0)
            return 4;
    weir_add_int(stream, "after", 2);
    return weir_flush(-1) ? 5 : 0;
}
