/* source_file: reads lines that are appended to files, through rotation and truncation, and remembers how far.
 */

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>

#include "../state_folder.h"
#include "../system.h"
#include "positions.h"
#include "tail.h"

enum { NS_PER_MS = 1000000, SCAN_MS = 1000 };

enum { START_END, START_BEGINNING };

struct file_options {
    const char *path;
    const char *exclude;
    int64_t start;
    bool header;
    const char *state;
    int64_t rotate_wait_ns;
    int64_t max_files;
};

static const weir_option options_table[] = {
    WEIR_OPTION_ROW("path", PATH, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the files; *, ? and [...] match any part of a name", struct file_options, path),
    WEIR_OPTION_ROW("exclude", STRING, 0, "*.gz", NULL,
                    "names of files, without their folders, that are not read", struct file_options, exclude),
    WEIR_OPTION_ROW("start", ENUM, 0, "end", "end|beginning",
                    "where to begin in files that are there when the source runs for the first time",
                    struct file_options, start),
    WEIR_OPTION_ROW("header", BOOL, 0, "false", NULL,
                    "the first line names the columns (CSV): it is read again when reading goes on behind it",
                    struct file_options, header),
    WEIR_OPTION_ROW(
        "state", PATH, 0, NULL, NULL,
        "the file that remembers how far the others were read; without it NAME.positions in $STATE_DIRECTORY, "
        "$XDG_STATE_HOME/weir or ~/.local/state/weir",
        struct file_options, state),
    WEIR_OPTION_ROW("rotate_wait", DURATION, 0, "5s", "0ms..1h",
                    "how long a file is read after it was renamed or removed and nothing came",
                    struct file_options, rotate_wait_ns),
    WEIR_OPTION_ROW("max_files", INT, 0, "1000", "1..100000", "the most files that are open at once",
                    struct file_options, max_files),
    {0},
};

struct source {
    const weir_host *host;
    const struct file_options *options;
    const weir_intake *intake;
    char *state_path;
    struct wr_own_fd lock;   /* of the state */
    struct wr_own_fd notify; /* of inotify; -1: files are looked at each second */

    /* The files. A child that is forked by another thread reads these two at any moment: the room may be larger
     * than the count, each tail before the count is one that is not freed, and a descriptor that is closed is
     * -1 in it before that. Being atomic keeps the compiler from moving the stores behind a free. */
    struct tail **_Atomic tails;
    _Atomic size_t count;
    size_t room;

    struct positions loaded; /* until the first scan is done */
    uint64_t mark;
    bool is_marked;      /* `mark` is asked for */
    bool is_scanned;     /* at least once */
    bool is_changed;     /* the state has to be written */
    bool has_save_fault; /* it was logged */
    bool is_over_limit;  /* the same */
    bool has_lost;       /* descriptors, which the program has closed */
    int open_fault;      /* the same; errno */
};

/* ---- Life ------------------------------------------------------------------------------------ */

static void destroy(void *self)
{
    struct source *source = self;
    free(source->state_path);
    free(source);
}

static void *create(const weir_host *host, const void *given)
{
    const struct file_options *options = given;
    struct source *source = wr_system_allocate(host, sizeof *source);
    if (!source)
        return NULL;
    source->host = host;
    source->options = options;
    source->lock.fd = source->notify.fd = -1;
    source->state_path = options->state ? strdup(options->state) : positions_default_path(host->name);
    if (source->state_path)
        return source;
    host->refuse(
        host, "state",
        "must be set, because neither $STATE_DIRECTORY nor $XDG_STATE_HOME nor $HOME is an absolute path");
    destroy(source);
    return NULL;
}

static void close_descriptors(struct source *source)
{
    wr_own_fd_close(&source->lock);
    if (!source->has_lost) /* else its identity is that of other kinds of descriptors, too */
        wr_own_fd_close(&source->notify);
    source->notify.fd = -1;
}

/* Two sources with one state would overwrite each other's positions. Returns false with the outcome set. */
static bool lock_state(struct source *source, weir_outcome *outcome)
{
    char *path;
    int problem = state_folder_make(source->state_path, false);
    if (problem)
        return wr_system_fail_by(outcome, source->state_path, problem);
    if (asprintf(&path, "%s.lock", source->state_path) < 0)
        return wr_system_fail_by(outcome, source->state_path, ENOMEM);
    bool is_open =
        wr_own_fd_set(&source->lock, wr_fd_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!is_open)
        wr_system_fail_by(outcome, path, errno);
    free(path);
    if (!is_open || flock(source->lock.fd, LOCK_EX | LOCK_NB) == 0)
        return is_open;
    wr_system_fail_by(outcome, source->state_path, errno);
    if (errno == EWOULDBLOCK)
        snprintf(outcome->reason, sizeof outcome->reason, "%s: another source uses it", source->state_path);
    return false;
}

static void open_source(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    unsigned fault;
    source->intake = source->host->service(source->host, WEIR_SERVICE_INTAKE);
    source->has_lost = false;
    if (!lock_state(source, outcome)) {
        close_descriptors(source);
        return;
    }
    int problem = positions_load(&source->loaded, source->state_path, &fault);
    if (problem) {
        wr_system_fail_by(outcome, source->state_path, problem);
        positions_clear(&source->loaded);
        close_descriptors(source);
        return;
    }
    if (fault)
        source->host->log(source->host, WEIR_LOG_WARNING,
                          "%s: line %u: not a position; the files of such lines are read from their beginning",
                          source->state_path, fault);
    wr_own_fd_set(&source->notify, wr_fd_above_stdio(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)));
    source->is_scanned = source->is_marked = source->is_changed = false;
}

static void close_source(void *self)
{
    struct source *source = self;
    struct tail **tails = source->tails;
    size_t count = source->count;
    for (size_t i = 0; i < count; i++)
        tail_close(tails[i]);
    source->count = source->room = 0;
    source->tails = NULL;
    for (size_t i = 0; i < count; i++)
        tail_free(tails[i]);
    free(tails);
    positions_clear(&source->loaded);
    close_descriptors(source);
}

/* [fork] The thread of the source may have been anywhere: see `tails`. One that was being moved is there twice,
 * and the second close fails. */
static void abandon(void *self)
{
    const struct source *source = self;
    for (size_t i = 0; i < source->count; i++)
        wr_own_fd_abandon(&source->tails[i]->own);
    wr_own_fd_abandon(&source->lock);
    wr_own_fd_abandon(&source->notify);
}

/* ---- Finding files --------------------------------------------------------------------------- */

static struct tail *find_tail(const struct source *source, const struct stat *status)
{
    for (size_t i = 0; i < source->count; i++)
        if (source->tails[i]->own.inode == status->st_ino && source->tails[i]->own.device == status->st_dev)
            return source->tails[i];
    return NULL;
}

/* Room for one more. The array's memory is that of a pointer for each file. */
static bool grow(struct source *source)
{
    enum { FIRST = 16 };
    if (source->count < source->room)
        return true;
    size_t room = source->room ? source->room * 2 : FIRST;
    struct tail **tails = malloc(room * sizeof *tails), **before = source->tails;
    if (!tails)
        return false;
    if (source->count)
        memcpy(tails, before, source->count * sizeof *tails);
    source->tails = tails; /* both are whole */
    source->room = room;
    free(before);
    return true;
}

static uint64_t choose_offset(const struct source *source, int fd, const struct stat *status, const char *path)
{
    uint64_t offset;
    if (positions_find(&source->loaded, fd, status, path, &offset))
        return offset;
    bool at_end = source->options->start == START_END && source->loaded.is_first && !source->is_scanned;
    return at_end ? tail_find_last_line(fd, (uint64_t)status->st_size) : 0;
}

/* Takes the descriptor. Returns 0 or errno. */
static int add_tail(struct source *source, const char *path, int fd, const struct stat *status)
{
    if (!grow(source)) {
        close(fd);
        return ENOMEM;
    }
    struct tail *tail = tail_open(source->host, path, fd, status, choose_offset(source, fd, status, path),
                                  source->options->header);
    if (!tail)
        return ENOMEM;
    if (source->notify.fd >= 0)
        tail->watch = inotify_add_watch(source->notify.fd, path, IN_MODIFY | IN_MOVE_SELF | IN_ATTRIB);
    tail->quiet_ns = wr_system_clock_ns(CLOCK_MONOTONIC);
    source->tails[source->count] = tail;
    source->count++;
    source->is_changed = true;
    return 0;
}

static void rename_tail(struct tail *tail, const char *path)
{
    char *kept = strcmp(tail->path, path) == 0 ? NULL : strdup(path);
    if (kept) {
        free(tail->path);
        tail->path = kept;
    }
}

static bool is_excluded(const struct source *source, const char *path)
{
    const char *slash = strrchr(path, '/');
    return source->options->exclude && fnmatch(source->options->exclude, slash ? slash + 1 : path, 0) == 0;
}

/* Whether an error of stat or open is that of a path that leads to no file. */
static bool is_absence(int problem)
{
    return problem == ENOENT || problem == ENOTDIR || problem == ELOOP;
}

/* Returns 0 or errno. What is not a regular file is left out. */
static int look_at(struct source *source, const char *path)
{
    struct stat status;
    if (is_excluded(source, path))
        return 0;
    if (stat(path, &status) != 0)
        return is_absence(errno) ? 0 : errno; /* a file that was removed since is none, either */
    if (!S_ISREG(status.st_mode))
        return 0;
    struct tail *tail = find_tail(source, &status);
    if (tail) {
        tail->is_found = true;
        tail->is_dirty |= (uint64_t)status.st_size != tail->offset;
        rename_tail(tail, path);
        return 0;
    }
    if (source->count >= (size_t)source->options->max_files) {
        if (!source->is_over_limit)
            source->host->log(source->host, WEIR_LOG_WARNING,
                              "%s is one more file than max_files allows (%lld)", path,
                              (long long)source->options->max_files);
        source->is_over_limit = true;
        return 0;
    }
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return 0;
    }
    return add_tail(source, path, fd, &status);
}

/* Logged once, until it is another problem or none. */
static void log_open_fault(struct source *source, const char *path, int problem)
{
    if (problem && problem != source->open_fault)
        source->host->log(source->host, WEIR_LOG_WARNING, "%s: %s; further ones are not logged", path,
                          wr_system_strerror(problem));
    source->open_fault = problem;
}

static void drop_tail(struct source *source, size_t i)
{
    struct tail *tail = source->tails[i];
    if (tail->watch >= 0)
        inotify_rm_watch(source->notify.fd, tail->watch);
    tail_close(tail);
    source->tails[i] = source->tails[source->count - 1];
    source->count--;
    tail_free(tail);
    source->is_over_limit = false;
    source->is_changed = true;
}

/* Those that the pattern has not led to, because a folder could not be listed or for a rename: whether the path
 * still leads there. One that cannot be looked at is not taken for a removed one. */
static void look_for_tails(const struct source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        struct tail *tail = source->tails[i];
        struct stat status;
        if (tail->is_found)
            continue;
        if (stat(tail->path, &status) != 0)
            tail->is_found = !is_absence(errno);
        else
            tail->is_found = status.st_ino == tail->own.inode && status.st_dev == tail->own.device;
    }
}

/* A file that was renamed or removed is read to its end: its writer may still have it open for a moment. Then
 * it is dropped, once its values are settled. */
static void tend_lost_tails(struct source *source)
{
    int64_t now = wr_system_clock_ns(CLOCK_MONOTONIC);
    for (size_t i = source->count; i-- > 0;) {
        struct tail *tail = source->tails[i];
        if (tail->is_found || tail->is_dirty)
            continue;
        if (!tail->is_ended && now - tail->quiet_ns >= source->options->rotate_wait_ns)
            tail->is_ended = tail_finish(tail);
        if (tail->is_ended && tail->settled == tail->offset)
            drop_tail(source, i);
    }
}

/* The errno of the first folder that could not be listed; glob calls its function without a context. */
static _Thread_local int list_fault;

static int note_list_fault(const char *path, int problem)
{
    (void)path;
    if (!list_fault && !is_absence(problem))
        list_fault = problem;
    return 0; /* go on with the others */
}

/* Returns as glob, with list_fault set. */
static int list_files(const struct source *source, glob_t *found)
{
    list_fault = 0;
    int result = glob(source->options->path, 0, note_list_fault, found);
    if (result == GLOB_NOSPACE)
        list_fault = ENOMEM;
    return result;
}

/* Returns false with the outcome set if one of the files cannot be read. */
static bool can_read(char *const *paths, size_t count, weir_outcome *outcome)
{
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        bool is_known = stat(paths[i], &status) == 0;
        if (is_known && !S_ISREG(status.st_mode)) /* it is not read */
            continue;
        int fd = is_known ? open(paths[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
        if (fd < 0 && !is_absence(errno))
            return wr_system_fail_by(outcome, paths[i], errno);
        if (fd >= 0)
            close(fd);
    }
    return true;
}

static void probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct source *source = self;
    glob_t found = {0};
    (void)timeout_ms;
    int result = list_files(source, &found);
    size_t count = result == 0 ? found.gl_pathc : 0;
    if (list_fault)
        wr_system_fail_by(outcome, source->options->path, list_fault);
    else if (can_read(found.gl_pathv, count, outcome))
        snprintf(outcome->reason, sizeof outcome->reason, "%s", count ? "" : "there is no such file yet");
    globfree(&found);
}

/* Which files are there no more is known once all folders were listed, but for those of a wider pattern that
 * may never be: a moment without descriptors must not end files that are still written. */
static bool may_tend(int result)
{
    return !list_fault || (list_fault == EACCES && result == 0);
}

static void scan(struct source *source)
{
    glob_t found = {0};
    const char *at = source->options->path;
    bool is_first = source->loaded.is_first;
    for (size_t i = 0; i < source->count; i++)
        source->tails[i]->is_found = false;
    int result = list_files(source, &found), fault = list_fault;
    for (size_t i = 0; result == 0 && i < found.gl_pathc; i++) {
        int problem = look_at(source, found.gl_pathv[i]);
        if (problem && !fault) {
            fault = problem;
            at = found.gl_pathv[i];
        }
    }
    log_open_fault(source, at, fault);
    globfree(&found);
    look_for_tails(source);
    if (may_tend(result))
        tend_lost_tails(source);
    if (!fault) /* else a file may be there that cannot be opened yet */
        positions_clear(&source->loaded);
    if (may_tend(result) && !source->is_scanned) {
        source->is_changed |= is_first;
        source->is_scanned = true;
    }
}

/* ---- Remembering ----------------------------------------------------------------------------- */

/* By its path if the program has closed its descriptor. */
static bool hash_file(struct tail *tail, uint32_t length)
{
    if (wr_own_fd_is_open(&tail->own))
        return positions_hash(tail->own.fd, length, &tail->hash);
    int fd = wr_fd_open(tail->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    bool is_known =
        wr_fd_is_file(fd, tail->own.device, tail->own.inode) && positions_hash(fd, length, &tail->hash);
    if (fd >= 0)
        close(fd);
    return is_known;
}

/* The hash of a file that has become shorter cannot be made: it is read from its beginning anyway. */
static bool put_position(struct positions *positions, struct tail *tail)
{
    uint32_t length = tail->settled < POSITIONS_HASHED ? (uint32_t)tail->settled : POSITIONS_HASHED;
    if ((length != tail->hashed || !length) && !hash_file(tail, length))
        return true;
    tail->hashed = length;
    const struct position position = {tail->own.device, tail->own.inode, tail->settled,
                                      tail->hash,       length,          tail->path};
    return positions_add(positions, &position);
}

static void save(struct source *source)
{
    struct positions positions = {0};
    int problem = 0;
    for (size_t i = 0; !problem && i < source->count; i++)
        problem = put_position(&positions, source->tails[i]) ? 0 : ENOMEM;
    /* until all files were looked at once */
    for (size_t i = 0; !problem && i < source->loaded.count; i++)
        problem = positions_add(&positions, &source->loaded.items[i]) ? 0 : ENOMEM;
    if (!problem)
        problem = positions_save(&positions, source->state_path);
    positions_clear(&positions);
    source->is_changed = problem;
    if (problem && !source->has_save_fault)
        source->host->log(source->host, WEIR_LOG_WARNING, "%s: %s; after a restart, lines may be read again",
                          source->state_path, wr_system_strerror(problem));
    else if (!problem && source->has_save_fault)
        source->host->log(source->host, WEIR_LOG_WARNING, "%s: positions are kept again", source->state_path);
    source->has_save_fault = problem;
}

/* Positions follow what is settled: one mark for all files at a time. Returns whether nothing is left to be
 * settled. */
static bool settle(struct source *source)
{
    if (source->is_marked && source->intake->settled(source->host, source->mark) != WEIR_MARK_PENDING) {
        for (size_t i = 0; i < source->count; i++)
            source->tails[i]->settled = source->tails[i]->marked;
        source->is_marked = false;
        source->is_changed = true;
    }
    bool is_behind = false;
    for (size_t i = 0; i < source->count; i++)
        is_behind |= source->tails[i]->settled != source->tails[i]->added;
    if (!is_behind || source->is_marked)
        return !is_behind;
    for (size_t i = 0; i < source->count; i++)
        source->tails[i]->marked = source->tails[i]->added;
    source->mark = source->intake->mark(source->host);
    source->is_marked = true;
    return false;
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct turn {
    bool has_read, is_full;
};

/* Logged once, until it is another problem or none. */
static void log_read_fault(const struct source *source, struct tail *tail, int problem)
{
    if (problem && problem != tail->read_fault)
        source->host->log(source->host, WEIR_LOG_WARNING, "%s: %s; it is tried again each second", tail->path,
                          wr_system_strerror(problem));
    tail->read_fault = problem;
}

static void read_tail(struct source *source, size_t i, struct turn *turn)
{
    struct tail *tail = source->tails[i];
    bool truncated;
    switch (tail_read(tail, &truncated)) {
    case PUMP_READ:
        log_read_fault(source, tail, 0);
        turn->has_read = true;
        tail->quiet_ns = wr_system_clock_ns(CLOCK_MONOTONIC);
        break;
    case PUMP_FULL: turn->is_full = true; break;
    case PUMP_FAILED:
        log_read_fault(source, tail, errno);
        tail->is_dirty = false;
        break;
    case PUMP_END: log_read_fault(source, tail, 0); /* fallthrough */
    default: tail->is_dirty = false;
    }
    if (truncated)
        source->host->log(source->host, WEIR_LOG_INFO,
                          "%s is shorter than before: it is read from its beginning", tail->path);
}

/* Each file that may have more gives one part. */
static struct turn take_turn(struct source *source)
{
    struct turn turn = {0};
    for (size_t i = 0; i < source->count; i++)
        if (source->tails[i]->is_dirty)
            read_tail(source, i, &turn);
    return turn;
}

static void mark_dirty(const struct source *source, int watch)
{
    for (size_t i = 0; i < source->count; i++)
        if (source->tails[i]->watch == watch || watch < 0)
            source->tails[i]->is_dirty = true;
}

/* Events are reasons to look at a file, no more. */
static void take_events(const struct source *source)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t length;
    while ((length = read(source->notify.fd, events, sizeof events)) > 0)
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);
            mark_dirty(source, event->mask & IN_Q_OVERFLOW ? -1 : event->wd);
            at += (ssize_t)(sizeof *event + event->len);
        }
}

/* Adds what was read of files for which there was no room, for two seconds at most, however many they are. */
static void add_held(struct source *source)
{
    enum { STEP_MS = 10, STEPS = 200 };
    for (int step = 0; step < STEPS; step++) {
        size_t held = 0;
        for (size_t i = 0; i < source->count; i++)
            held += !tail_resume(source->tails[i]);
        if (!held)
            return;
        poll(NULL, 0, STEP_MS);
    }
}

/* A stop was requested: what was read is added, and the positions follow what is settled soon. What is not
 * settled by then is read again by the next one. */
static void finish(struct source *source)
{
    enum { STEP_MS = 10, STEPS = 150 };
    add_held(source);
    for (int i = 0; !settle(source) && i < STEPS; i++)
        poll(NULL, 0, STEP_MS);
    if (source->is_changed)
        save(source);
}

/* Those of files are looked at when they are read, too: all are opened anew. */
static bool find_loss(struct source *source, weir_outcome *outcome)
{
    bool is_lost = !wr_own_fd_is_open(&source->lock);
    for (size_t i = 0; !is_lost && i < source->count; i++)
        is_lost = source->tails[i]->is_dirty && !wr_own_fd_is_open(&source->tails[i]->own);
    source->has_lost = is_lost;
    if (!is_lost)
        return false;
    wr_system_fail(outcome, WEIR_OUTCOME_REOPEN, "%s: the program has closed its descriptors",
                   source->options->path);
    return true;
}

static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    int64_t next_ns = 0;
    while (!find_loss(source, outcome)) {
        struct turn turn = take_turn(source);
        int64_t now = wr_system_clock_ns(CLOCK_MONOTONIC);
        if (now >= next_ns) {
            scan(source);
            settle(source);
            if (source->is_changed)
                save(source);
            next_ns = now + (int64_t)SCAN_MS * NS_PER_MS;
            turn.has_read = true; /* what was found is read first */
        }
        struct pollfd fd = {source->notify.fd, POLLIN, 0};
        int64_t timeout_ms = turn.has_read ? 0 : (next_ns - now) / NS_PER_MS + 1;
        size_t count = source->notify.fd >= 0 && !turn.is_full;
        if (source->intake->wait(source->host, &fd, count, timeout_ms) & WEIR_WAIT_STOP)
            break;
        if (count && fd.revents && !find_loss(source, outcome))
            take_events(source);
    }
    finish(source);
}

/* ---- The type -------------------------------------------------------------------------------- */

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_PARSES | WEIR_SOURCE_TYPE_UNGROUPED,
    .name = "file",
    .summary = "reads lines that are appended to files",
    .options = options_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct file_options),
    .create = create,
    .open = open_source,
    .run = run,
    .close = close_source,
    .destroy = destroy,
    .abandon = abandon,
    .probe = probe,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
