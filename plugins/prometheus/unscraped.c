#include "unscraped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PLACES = 1000 };

struct unscraped {
    struct unscraped *next;
    unsigned references; /* of this process' handlers, and in a child of those that it inherited */
    _Atomic pid_t listener;
    pid_t first; /* the process that made it */
    char address[LISTENING_TEXT];
};

/* Each process has its own list; a child inherits it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct unscraped *families;

/* ---- Families -------------------------------------------------------------------------------- */

static struct unscraped *make(const char *address)
{
    struct unscraped *family = calloc(1, sizeof *family);
    if (!family)
        return NULL;
    family->listener = family->first = getpid();
    snprintf(family->address, sizeof family->address, "%s", address);
    family->next = families;
    families = family;
    return family;
}

struct unscraped *unscraped_get(const struct listening *listening)
{
    char address[LISTENING_TEXT];
    listening_format(&listening->address, address);
    pthread_mutex_lock(&lock);
    struct unscraped *family = families;
    while (family && strcmp(family->address, address) != 0)
        family = family->next;
    if (!family)
        family = make(address);
    if (family)
        family->references++;
    pthread_mutex_unlock(&lock);
    return family;
}

void unscraped_put(struct unscraped *family)
{
    pthread_mutex_lock(&lock);
    if (--family->references == 0) {
        struct unscraped **at = &families;
        while (*at != family)
            at = &(*at)->next;
        *at = family->next;
        free(family);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- The first process ----------------------------------------------------------------------- */

/* Its parent may not have waited for it yet. */
static bool is_zombie(pid_t process)
{
    char path[32], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const char *end = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL; /* of the program's name */
    fclose(file);
    return end && (strncmp(end, ") Z", 3) == 0 || strncmp(end, ") X", 3) == 0);
}

static bool lives(pid_t process)
{
    return getppid() == process || ((kill(process, 0) == 0 || errno == EPERM) && !is_zombie(process));
}

pid_t unscraped_listener(struct unscraped *family)
{
    pid_t self = getpid(), listener = atomic_load(&family->listener);
    if (listener == self)
        return 0;
    if (lives(listener))
        return listener;
    atomic_store(&family->listener, self);
    return 0;
}

/* ---- Places ---------------------------------------------------------------------------------- */

struct place_name {
    struct sockaddr_un address;
    socklen_t length;
};

/* With port 0 each process listens on a port of its own, so only those forked from it belong to it. */
static struct place_name name_place(const struct unscraped *family, int number)
{
    struct place_name name = {.address.sun_family = AF_UNIX};
    char *text = name.address.sun_path + 1; /* the name is abstract */
    size_t room = sizeof name.address.sun_path - 1, length = strlen(family->address);
    bool is_own = length > 2 && strcmp(family->address + length - 2, ":0") == 0;
    int written = snprintf(text, room, "weir-unscraped/%s/%d/%d", family->address,
                           is_own ? (int)family->first : 0, number);
    name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)written);
    return name;
}

static int new_socket(void)
{
    return wr_fd_above_stdio(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static bool take(const struct unscraped *family, int fd)
{
    for (int i = 0; i < PLACES; i++) {
        struct place_name name = name_place(family, i);
        if (bind(fd, (struct sockaddr *)&name.address, name.length) == 0)
            return true;
        if (errno != EADDRINUSE)
            return false;
    }
    return false;
}

void unscraped_enter(const struct unscraped *family, struct wr_own_fd *place)
{
    if (!wr_own_fd_is_open(place) && wr_own_fd_set(place, new_socket()) && !take(family, place->fd))
        wr_own_fd_close(place);
}

/* Only to a name that exists a socket can be connected. */
int unscraped_count(const struct unscraped *family)
{
    int fd = new_socket(), count = 0;
    if (fd < 0)
        return -1;
    for (int i = 0; i < PLACES; i++) {
        struct place_name name = name_place(family, i);
        count += connect(fd, (struct sockaddr *)&name.address, name.length) == 0;
    }
    close(fd);
    return count;
}
