#include "notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "command.h"
#include "os/clock.h"
#include "text/common.h"

enum { NS_PER_US = 1000 };

/* A path, or with '@' in front the name of an abstract socket. Returns 0 if it is neither. */
static socklen_t find_address(const char *name, struct sockaddr_un *address)
{
    size_t length = strlen(name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((*name != '/' && *name != '@') || length < 2 || length >= sizeof address->sun_path)
        return 0;
    memcpy(address->sun_path, name, length);
    if (*name == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* Returns 0 or an errno. */
static int send_to(const char *name, const char *text)
{
    struct sockaddr_un address;
    socklen_t length = find_address(name, &address);
    if (!length)
        return EAFNOSUPPORT;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address, length);
    int problem = sent < 0 ? errno : 0;
    close(fd);
    return problem;
}

static void notify(const char *text)
{
    static bool has_failed;
    const char *name = secure_getenv("NOTIFY_SOCKET");
    int problem = name && *name ? send_to(name, text) : 0;
    if (problem && !has_failed)
        command_fail("NOTIFY_SOCKET: \"%s\": %s", name, strerror(problem));
    has_failed |= problem != 0;
}

void notify_ready(const char *status)
{
    char text[1024];
    snprintf(text, sizeof text, "READY=1\nSTATUS=%s\n", status);
    notify(text);
}

void notify_reloading(void)
{
    char text[200];
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=reloading\n",
             wr_clock_monotonic_ns() / NS_PER_US);
    notify(text);
}

void notify_stopping(int64_t within_us)
{
    char text[200];
    snprintf(text, sizeof text,
             "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRId64 "\nSTATUS=delivering what is queued\n", within_us);
    notify(text);
}
