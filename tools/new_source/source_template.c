/* @NAME@: a source type for weir. It reads lines from datagrams: put what you read from in their place. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/source.h>

/* The options; weir fills the struct as the table describes. */
struct options {
    const char *path;
};

static const weir_option rows[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED, NULL, NULL, "the Unix datagram socket, which is created",
                    struct options, path),
    {0},
};

struct source {
    const weir_host *host;
    const weir_intake *intake;
    const weir_parser *parser;
    struct sockaddr_un address;
    weir_text *text; /* NULL: not open */
    int fd;          /* -1: not open */
};

static void *create(const weir_host *host, const void *options)
{
    const char *path = ((const struct options *)options)->path;
    struct source *source = calloc(1, sizeof *source);
    size_t most = sizeof source->address.sun_path - 1;
    if (source && strlen(path) <= most) {
        source->host = host;
        source->intake = host->service(host, WEIR_SERVICE_INTAKE);
        source->parser = host->service(host, WEIR_SERVICE_PARSER);
        source->address.sun_family = AF_UNIX;
        memcpy(source->address.sun_path, path, strlen(path));
        source->fd = -1;
        return source;
    }
    if (source)
        host->refuse(host, "path", "\"%.200s\" is too long for a socket; allowed: %zu bytes", path, most);
    else
        host->refuse(host, "", "out of memory");
    free(source);
    return NULL;
}

static void fail(weir_outcome *outcome, const char *operation, const struct source *source, int error)
{
    outcome->code = WEIR_OUTCOME_REOPEN;
    snprintf(outcome->reason, sizeof outcome->reason, "%s %s: %s", operation, source->address.sun_path, strerror(error));
}

/* A socket that nobody receives from was left behind by a process that was killed. */
static void remove_stale(const struct sockaddr_un *address)
{
    struct stat status;
    if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED)
        unlink(address->sun_path);
    if (fd >= 0)
        close(fd);
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    remove_stale(&source->address);
    source->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_bound = source->fd >= 0 && bind(source->fd, (const struct sockaddr *)&source->address, sizeof source->address) == 0;
    int error = is_bound ? ENOMEM : errno;
    source->text = is_bound ? source->parser->begin(source->host, "", NULL) : NULL;
    if (source->text)
        return;
    fail(outcome, "bind", source, error);
    if (is_bound)
        unlink(source->address.sun_path);
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

enum reading { NOTHING, ADDED, FULL, FAILED };

/* Reads a datagram, whose last line may lack its newline. FULL: a line of it finds no room. */
static enum reading read_one(struct source *source)
{
    size_t room;
    char *to = source->parser->room(source->text, &room);
    if (!to) {
        errno = ENOMEM;
        return FAILED;
    }
    ssize_t length = recv(source->fd, to, room - 1, MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? NOTHING : FAILED;
    if ((size_t)length >= room) {
        source->intake->refuse(source->host, 1, "", "a datagram of %zd bytes; allowed: %zu", length, room - 1);
        return ADDED;
    }
    to[length] = '\n';
    return source->parser->parse(source->text, (size_t)length + 1) ? ADDED : FULL;
}

/* While something finds no room, nothing is read: so the senders have to wait. At a stop, reads what was sent before. */
static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    bool is_full = false, stops = false;
    while (!stops) {
        struct pollfd fd = {source->fd, POLLIN, 0};
        stops = source->intake->wait(source->host, &fd, is_full ? 0 : 1, -1) & WEIR_WAIT_STOP;
        is_full = is_full && !source->parser->resume(source->text);
        enum { MOST = 1000 }; /* of senders that never pause */
        enum reading last = ADDED;
        for (int i = 0; !is_full && last == ADDED && i < MOST; i++) {
            last = read_one(source);
            is_full = last == FULL;
        }
        if (last == FAILED) {
            fail(outcome, "recv", source, errno);
            return;
        }
    }
}

static void close_it(void *self)
{
    struct source *source = self;
    unlink(source->address.sun_path);
    close(source->fd);
    source->fd = -1;
    source->parser->end(source->text); /* what still finds no room is counted as refused */
    source->text = NULL;
}

static void abandon(void *self)
{
    const struct source *source = self;
    if (source->fd >= 0)
        close(source->fd);
}

static const weir_source_type type = {
    .size = sizeof type, .abi = WEIR_SOURCE_ABI, .flags = WEIR_SOURCE_TYPE_PARSES,
    .name = "@NAME@", .summary = "reads lines from a Unix datagram socket",
    .options = rows, .option_row_size = sizeof(weir_option), .options_size = sizeof(struct options),
    .create = create, .open = open_it, .run = run, .close = close_it, .destroy = free, .abandon = abandon,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
