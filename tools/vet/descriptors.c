#include "descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"
#include "thread.h"
#include "vet.h"

/* Higher numbers are not guarded. */
enum { MAX_COUNT = 256 };

static struct {
    int source; /* 0: no guards yet */
    struct stat status;
    int highest; /* the highest guarded number */
    bool placed[MAX_COUNT];
} guards = {.highest = 20};

static bool is_guard(int fd)
{
    struct stat status;
    return guards.source && fstat(fd, &status) == 0 && status.st_dev == guards.status.st_dev &&
           status.st_ino == guards.status.st_ino;
}

/* ---- Open descriptors ------------------------------------------------------------------------ */

static void walk(void (*visit)(int fd, void *ctx), void *ctx)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(folder) && !is_guard(fd))
            visit(fd, ctx);
    }
    if (folder)
        closedir(folder);
}

static void count_one(int fd, void *ctx)
{
    (void)fd;
    ++*(int *)ctx;
}

int vet_descriptors_count(void)
{
    int count = 0;
    walk(count_one, &count);
    return count;
}

struct listing {
    int first;
    char text[500];
    size_t used;
};

static void show_one(int fd, void *ctx)
{
    struct listing *listing = ctx;
    char path[40], target[200];
    if (fd < listing->first || listing->used >= sizeof listing->text)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    listing->used += (size_t)snprintf(listing->text + listing->used, sizeof listing->text - listing->used,
                                      "%s%d %s", listing->used ? ", " : "", fd, target);
}

void vet_descriptors_check(int before, int first, const char *text)
{
    struct listing listing = {.first = first};
    if (vet_descriptors_count() <= before)
        return;
    walk(show_one, &listing);
    vet_fail("%s: %s", text, listing.text);
}

void vet_descriptors_check_left(int before, const char *format, ...)
{
    char after[200], text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(after, sizeof after, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "%d descriptors stay open after %s", vet_descriptors_count() - before, after);
    vet_descriptors_check(before, 3, text);
}

static bool noted[MAX_COUNT];

static void note_one(int fd, void *ctx)
{
    (void)ctx;
    if (fd < MAX_COUNT)
        noted[fd] = true;
}

void vet_descriptors_note(void)
{
    memset(noted, 0, sizeof noted);
    walk(note_one, NULL);
}

static void find_inherited(int fd, void *ctx)
{
    int *found = ctx;
    int flags = fcntl(fd, F_GETFD);
    if (*found < 0 && fd >= VET_STATE_STANDARD && fd < MAX_COUNT && !noted[fd] && flags >= 0 &&
        !(flags & FD_CLOEXEC))
        *found = fd;
}

void vet_descriptors_check_inherited(const void *ctx, const char *callback)
{
    char path[40], target[200];
    int found = -1;
    (void)ctx;
    walk(find_inherited, &found);
    if (found < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", found);
    ssize_t length = readlink(path, target, sizeof target - 1);
    vet_fail("%s opens descriptor %d (%.*s) without O_CLOEXEC: programs that the program starts inherit it",
             callback, found, length > 0 ? (int)length : 0, target);
}

/* ---- Guards ---------------------------------------------------------------------------------- */

static void start_guarding(void)
{
    int file = memfd_create("vet", MFD_CLOEXEC);
    guards.source = fcntl(file, F_DUPFD_CLOEXEC, MAX_COUNT);
    close(file);
    if (guards.source < 0 || fstat(guards.source, &guards.status) != 0)
        guards.source = 0;
}

static void update_highest(int fd, void *ctx)
{
    (void)ctx;
    if (fd > guards.highest && fd < MAX_COUNT)
        guards.highest = fd;
}

/* Guards numbers up to the highest one ever in use. The handler's next descriptor is then just above, and its
 * number is guarded too after the handler has closed it. */
void vet_descriptors_guard(void)
{
    if (!guards.source)
        start_guarding();
    walk(update_highest, NULL);
    for (int fd = 3; guards.source && fd <= guards.highest; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            guards.placed[fd] = dup3(guards.source, fd, O_CLOEXEC) == fd;
}

void vet_descriptors_check_guards(const void *ctx, const char *callback)
{
    static const char hint[] =
        "after close(2) set the descriptor to -1: the program may have reused the number";
    struct stat status;
    (void)ctx;
    for (int fd = 3; guards.source && fd < MAX_COUNT; fd++)
        if (guards.placed[fd] && !is_guard(fd))
            vet_fail("%s closes descriptor %d, which it does not own (any more); %s", callback, fd, hint);
    if (guards.source && fstat(guards.source, &status) == 0 && status.st_size > 0)
        vet_fail("%s writes to a descriptor that it does not own (any more); %s", callback, hint);
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* Returns the number of threads. *newest: gets the largest number of one; those that are started later have
 * larger ones, until the system's largest number is reached. */
static int list_threads(int *newest)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    *newest = 0;
    while (tasks && (entry = readdir(tasks))) {
        int number = atoi(entry->d_name);
        count += number > 0;
        if (number > *newest)
            *newest = number;
    }
    if (tasks)
        closedir(tasks);
    return count;
}

int vet_descriptors_newest_thread(void)
{
    int newest;
    list_threads(&newest);
    return newest;
}

static int count_threads(void)
{
    int newest;
    return list_threads(&newest);
}

int vet_descriptors_threads(int most)
{
    enum { CHECKS = 200 };
    int count = count_threads();
    for (int i = 0; i < CHECKS && count > most; i++) {
        vet_thread_sleep_ms(5);
        count = count_threads();
    }
    return count;
}
