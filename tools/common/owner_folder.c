#include "owner_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "text/buffer.h"

bool owner_folder_is_in_use(const char *parent, const char *name)
{
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/%s/lock", parent, name);
    const char *text = command_text(&path);
    int fd = open(text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    wr_buffer_fini(&path);
    return locked;
}

void owner_folder_put_time(struct wr_buffer *out, int64_t created_ns)
{
    struct tm parts;
    time_t seconds = (time_t)(created_ns / 1000000000);
    char text[32] = "?";
    if (created_ns && gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    wr_buffer_put_format(out, "since %s", text);
}
