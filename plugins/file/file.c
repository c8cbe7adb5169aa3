/* file: appends values to a file, whole lines at a time.
 *
 * Other processes may append to the same file, and other programs may rotate, delete or truncate it: it is
 * looked for by its path at least twice a second while values come. A write holds a shared lock of the file;
 * only when a write came out short, as on a full disk, is it held alone, to take the torn line off the file's
 * end. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <weir/handler.h>

#include "../output.h"

enum { CHUNK = 128 * 1024, LOOK_EVERY_MS = 500 };

struct file_options {
    const char *path;
    bool append;
    const char *mode;
    bool create_folders;
};

static const weir_option file_rows[] = {
    {"path", WEIR_OPTION_PATH, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL, "the file",
     offsetof(struct file_options, path)},
    {"append", WEIR_OPTION_BOOL, 0, "true", NULL, "false: begin with an empty file",
     offsetof(struct file_options, append)},
    {"mode", WEIR_OPTION_STRING, 0, "0644", NULL, "the permissions of a file that is created, in octal",
     offsetof(struct file_options, mode)},
    {"create_folders", WEIR_OPTION_BOOL, 0, "false", NULL, "create the folders of the path that are missing",
     offsetof(struct file_options, create_folders)},
    {0},
};

struct file {
    const weir_host *host;
    const weir_encoder *encoder;
    const struct file_options *options;
    mode_t mode;
    bool truncate; /* what is there when it is opened next */
    int fd;        /* -1: not open */
    dev_t device;  /* of the open file */
    ino_t inode;
    bool regular;
    bool torn;        /* the file may end within a line of ours */
    bool said_missed; /* that it could not be opened anew */
    int64_t looked_ms;
};

/* ---- Creating -------------------------------------------------------------------------------- */

static void *file_create(const weir_host *host, const void *given)
{
    const struct file_options *options = given;
    mode_t mode;
    if (!output_set_mode(host, options->mode, &mode))
        return NULL;
    struct file *file = calloc(1, sizeof *file);
    if (!file) {
        host->refuse(host, "", "no memory");
        return NULL;
    }
    file->host = host;
    file->encoder = host->service(host, WEIR_ENCODER);
    file->options = options;
    file->mode = mode;
    file->truncate = !options->append;
    file->fd = -1;
    return file;
}

static void file_destroy(void *self)
{
    free(self);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void create_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); /* what fails here is noticed when the file is opened */
        *slash = '/';
    }
}

/* A file of its own making gets exactly the mode that was asked for, whatever the umask; one that exists keeps
 * its own. */
static int open_path(const struct file *file)
{
    const char *path = file->options->path;
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
    int fd = open(path, flags | O_CREAT | O_EXCL, file->mode);
    if (fd >= 0)
        fchmod(fd, file->mode);
    else if (errno == EEXIST)
        fd = open(path, flags | O_CREAT | (file->truncate ? O_TRUNC : 0), file->mode);
    return fd;
}

static int open_with_folders(const struct file *file)
{
    int fd = open_path(file);
    if (fd >= 0 || errno != ENOENT || !file->options->create_folders)
        return fd;
    char *path = strdup(file->options->path);
    if (!path)
        return -1;
    create_folders(path);
    free(path);
    return open_path(file);
}

/* Opens the file, and only then lets go of the one before. 0, or errno. */
static int reopen(struct file *file)
{
    struct stat status;
    int fd = open_with_folders(file);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int problem = errno;
        if (fd >= 0)
            close(fd);
        return problem;
    }
    if (file->fd >= 0)
        close(file->fd);
    file->fd = fd;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->regular = S_ISREG(status.st_mode);
    file->truncate = false;
    file->torn = false;
    file->said_missed = false;
    file->looked_ms = output_now_ms();
    return 0;
}

static void say(weir_outcome *outcome, int code, const struct file *file, const char *doing, int problem)
{
    outcome->code = code;
    snprintf(outcome->reason, sizeof outcome->reason, "%s %.180s: %s", doing, file->options->path,
             strerror(problem));
}

static void file_open(void *self, weir_outcome *outcome)
{
    struct file *file = self;
    int problem = reopen(file);
    if (problem)
        say(outcome, WEIR_OUTCOME_RETRY, file, "open", problem);
}

static void file_close(void *self)
{
    struct file *file = self;
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

static void file_abandon(void *self)
{
    const struct file *file = self;
    if (file->fd >= 0)
        close(file->fd);
}

/* A named pipe in its place is not waited for. */
static void file_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct file *file = self;
    (void)timeout_ms;
    int fd = open(file->options->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int problem = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    else if (problem == ENOENT)
        problem = output_find_obstacle(file->options->path, file->options->create_folders);
    if (problem)
        say(outcome, WEIR_OUTCOME_RETRY, file, "open", problem);
    else if (fd < 0)
        snprintf(outcome->reason, sizeof outcome->reason, "it does not exist yet");
}

/* ---- Still the same file? -------------------------------------------------------------------- */

/* A program that closes all descriptors, as daemons do, may have given ours to somebody else: it is not ours to
 * write to or close. */
static bool is_ours(const struct file *file)
{
    struct stat status;
    return fstat(file->fd, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode;
}

static bool is_in_place(const struct file *file)
{
    struct stat status;
    return stat(file->options->path, &status) == 0 && status.st_dev == file->device &&
           status.st_ino == file->inode;
}

/* Rotated or deleted: a new one; while that cannot be opened, the old one does. */
static void follow_path(struct file *file)
{
    file->looked_ms = output_now_ms();
    if (is_in_place(file))
        return;
    int problem = reopen(file);
    if (!problem || file->said_missed)
        return;
    file->said_missed = true;
    file->host->log(file->host, 2, "%s is gone and cannot be opened anew (%s); writing goes on where it went",
                    file->options->path, strerror(problem));
}

/* Makes sure that there is a file to write to. 0, or errno. */
static int make_sure(struct file *file)
{
    if (file->fd >= 0 && !is_ours(file))
        file->fd = -1;
    if (file->fd < 0)
        return reopen(file);
    if (output_now_ms() - file->looked_ms >= LOOK_EVERY_MS)
        follow_path(file);
    return 0;
}

static void file_wake(void *self, int why, weir_outcome *outcome)
{
    struct file *file = self;
    (void)outcome;
    if (why == WEIR_WAKE_RELOAD)
        follow_path(file);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void lock(const struct file *file, int how)
{
    /* where a file system has no locks there is nothing better to do than to go on */
    while (file->regular && flock(file->fd, how) != 0 && errno == EINTR)
        ;
}

/* Takes what is left of a line, the last `length` bytes that we wrote, off the end of the file, if they are its
 * end still. */
static bool take_back(const struct file *file, size_t length)
{
    struct stat status;
    lock(file, LOCK_EX);
    off_t end = lseek(file->fd, 0, SEEK_CUR); /* with O_APPEND: where our last write ended */
    bool last = file->regular && fstat(file->fd, &status) == 0 && end >= (off_t)length && status.st_size == end;
    bool taken = last && ftruncate(file->fd, end - (off_t)length) == 0;
    lock(file, LOCK_UN);
    return taken;
}

/* A line that was torn and could not be taken back is at least ended, before anything else follows it. */
static int end_torn_line(struct file *file)
{
    size_t written;
    if (!file->torn)
        return 0;
    int problem = output_write(file->host, file->fd, "\n", 1, &written);
    file->torn = problem != 0;
    return problem;
}

/* Writes what was encoded; *settled: how many samples of it are in the file, whole. 0, or errno. */
static int write_encoded(struct file *file, const weir_encoded *encoded, uint32_t *settled)
{
    size_t written = 0, whole;
    lock(file, LOCK_SH);
    int problem = end_torn_line(file);
    if (!problem)
        problem = output_write(file->host, file->fd, encoded->data, encoded->length, &written);
    lock(file, LOCK_UN);
    *settled = file->encoder->settled(file->host, written, &whole);
    if (written > whole)
        file->torn = !take_back(file, written - whole);
    return problem;
}

static void file_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct file *file = self;
    weir_encoded encoded;
    uint32_t settled;
    outcome->done = 0;
    int problem = make_sure(file);
    if (problem) {
        say(outcome, WEIR_OUTCOME_REOPEN, file, "open", problem);
        return;
    }
    while (outcome->done < batch->count) {
        if (!file->encoder->encode(file->host, batch, outcome->done, CHUNK, &encoded)) {
            say(outcome, WEIR_OUTCOME_RETRY, file, "write", ENOMEM);
            return;
        }
        problem = write_encoded(file, &encoded, &settled);
        outcome->done += settled;
        if (problem) {
            /* with a full disk the file is as good as before; anything else may mean that it is not */
            bool full = problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
            say(outcome, full ? WEIR_OUTCOME_RETRY : WEIR_OUTCOME_REOPEN, file, "write", problem);
            return;
        }
    }
}

static const weir_handler_type file_type = {
    .size = sizeof file_type,
    .abi = WEIR_ABI,
    .name = "file",
    .summary = "appends values to a file",
    .takes = WEIR_FORMAT_LINES,
    .options = file_rows,
    .option_size = sizeof(weir_option),
    .options_size = sizeof(struct file_options),
    .create = file_create,
    .open = file_open,
    .emit = file_emit,
    .close = file_close,
    .destroy = file_destroy,
    .wake = file_wake,
    .abandon = file_abandon,
    .probe = file_probe,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &file_type : NULL;
}
