/* breaker: a preloaded library that makes the Nth call of a kind fail.
 *
 * BREAK_KIND: the kind of calls, a name from the table below; BREAK_AT: the number of the first failing
 * call, from 1; BREAK_FOR: how many calls fail, 0: all from then on; BREAK_ERROR: the errno, 0: that of the
 * kind; BREAK_NOTE: a file that is created when a call fails, so that the caller knows when to stop;
 * BREAK_SPARE: parts of library names, separated by colons, whose own allocations and keys never fail. Calls
 * are counted from breaker_start to breaker_stop, and only those of the program and its libraries: calls
 * inside libc are not seen. */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum kind {
    ALLOC,
    MMAP,
    MADVISE,
    OPEN,
    WRITE,
    READ,
    STAT,
    FOLDER,
    NAME,
    LOCK,
    THREAD,
    KEY,
    POLL,
    NETWORK,
    KINDS
};

/* The name of each kind, and its errno. */
static const struct {
    const char *name;
    int error;
} kinds[KINDS] = {
    [ALLOC] = {"alloc", ENOMEM}, [MMAP] = {"mmap", ENOMEM},        [MADVISE] = {"madvise", EINVAL},
    [OPEN] = {"open", EMFILE},   [WRITE] = {"write", ENOSPC},      [READ] = {"read", EIO},
    [STAT] = {"stat", ENOMEM},   [FOLDER] = {"folder", EMFILE},    [NAME] = {"name", ENOSPC},
    [LOCK] = {"lock", ENOLCK},   [THREAD] = {"thread", EAGAIN},    [KEY] = {"key", EAGAIN},
    [POLL] = {"poll", ENOMEM},   [NETWORK] = {"network", ENOBUFS},
};

static _Atomic bool started;
static enum kind chosen = KINDS;
static uint64_t first, last; /* numbers of the failing calls */
static int error;            /* 0: that of the kind */
static _Atomic uint64_t calls;

static uint64_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *name = getenv("BREAK_KIND");
    for (enum kind kind = 0; name && kind < KINDS; kind++)
        if (strcmp(kinds[kind].name, name) == 0)
            chosen = kind;
    error = (int)number_of("BREAK_ERROR");
    first = number_of("BREAK_AT");
    last = number_of("BREAK_FOR") ? first + number_of("BREAK_FOR") - 1 : UINT64_MAX;
}

/* Addresses of the code of spared libraries. */
static struct {
    uintptr_t from, to;
} spared[8];
static size_t spared_count;

static bool is_named(const char *path, const char *names)
{
    char name[64];
    for (size_t length; *names; names += length + (names[length] == ':')) {
        length = strcspn(names, ":");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        if (strstr(path, name))
            return true;
    }
    return false;
}

static int find_spared(struct dl_phdr_info *library, size_t size, void *names)
{
    (void)size;
    for (int i = 0; is_named(library->dlpi_name, names) && i < library->dlpi_phnum; i++) {
        if (library->dlpi_phdr[i].p_type != PT_LOAD || !(library->dlpi_phdr[i].p_flags & PF_X) ||
            spared_count == sizeof spared / sizeof spared[0])
            continue;
        spared[spared_count].from = library->dlpi_addr + library->dlpi_phdr[i].p_vaddr;
        spared[spared_count].to = spared[spared_count].from + library->dlpi_phdr[i].p_memsz;
        spared_count++;
    }
    return 0;
}

static bool is_spared(const void *caller)
{
    for (size_t i = 0; i < spared_count; i++)
        if ((uintptr_t)caller >= spared[i].from && (uintptr_t)caller < spared[i].to)
            return true;
    return false;
}

/* Also finds libraries loaded later. Not for calls of the loader itself. */
static bool is_spared_now(const void *caller)
{
    const char *names = getenv("BREAK_SPARE");
    Dl_info library;
    return names && dladdr(caller, &library) && is_named(library.dli_fname, names);
}

EXPORTED void breaker_start(void);
EXPORTED void breaker_stop(void);

EXPORTED void breaker_start(void)
{
    char *names = getenv("BREAK_SPARE");
    if (names)
        dl_iterate_phdr(find_spared, names);
    started = true;
}

EXPORTED void breaker_stop(void)
{
    started = false;
}

static void note(void)
{
    const char *path = getenv("BREAK_NOTE");
    long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        syscall(SYS_close, fd);
}

/* Whether this call is one that fails; errno says why then. */
static bool breaks(enum kind kind)
{
    if (kind != chosen || !started)
        return false;
    uint64_t number = ++calls;
    if (number < first || number > last)
        return false;
    note();
    errno = error ? error : kinds[kind].error;
    return true;
}

/* A function as it is without us. POSIX has it that its pointer fits. */
static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void *get_memory(size_t size, const void *caller)
{
    static void *(*real)(size_t);
    if (!real)
        real = (void *(*)(size_t))next("malloc");
    return !is_spared(caller) && breaks(ALLOC) ? NULL : real(size);
}

EXPORTED void *malloc(size_t size)
{
    return get_memory(size, __builtin_return_address(0));
}

EXPORTED void *calloc(size_t count, size_t size)
{
    static void *(*real)(size_t, size_t);
    if (!real)
        real = (void *(*)(size_t, size_t))next("calloc");
    return !is_spared(__builtin_return_address(0)) && breaks(ALLOC) ? NULL : real(count, size);
}

EXPORTED void *realloc(void *memory, size_t size)
{
    static void *(*real)(void *, size_t);
    if (!real)
        real = (void *(*)(void *, size_t))next("realloc");
    return !is_spared(__builtin_return_address(0)) && breaks(ALLOC) ? NULL : real(memory, size);
}

static char *copy_text(const char *text, size_t most, const void *caller)
{
    size_t length = strnlen(text, most);
    char *copy = get_memory(length + 1, caller);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

EXPORTED char *strndup(const char *text, size_t most)
{
    return copy_text(text, most, __builtin_return_address(0));
}

EXPORTED char *strdup(const char *text)
{
    return copy_text(text, SIZE_MAX, __builtin_return_address(0));
}

EXPORTED void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real)
        real = (void *(*)(void *, size_t, int, int, int, off_t))next("mmap");
    return breaks(MMAP) ? MAP_FAILED : real(address, length, protection, flags, fd, offset);
}

EXPORTED int madvise(void *address, size_t length, int advice)
{
    static int (*real)(void *, size_t, int);
    if (!real)
        real = (int (*)(void *, size_t, int))next("madvise");
    return breaks(MADVISE) ? -1 : real(address, length, advice);
}

/* ---- Files ----------------------------------------------------------------------------------- */

EXPORTED int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (!real)
        real = (int (*)(const char *, int, ...))next("open");
    return breaks(OPEN) ? -1 : real(path, flags, mode);
}

EXPORTED ssize_t write(int fd, const void *data, size_t length)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t))next("write");
    return breaks(WRITE) ? -1 : real(fd, data, length);
}

EXPORTED ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, off_t))next("pwrite");
    return breaks(WRITE) ? -1 : real(fd, data, length, offset);
}

EXPORTED int ftruncate(int fd, off_t length)
{
    static int (*real)(int, off_t);
    if (!real)
        real = (int (*)(int, off_t))next("ftruncate");
    return breaks(WRITE) ? -1 : real(fd, length);
}

EXPORTED ssize_t read(int fd, void *data, size_t length)
{
    static ssize_t (*real)(int, void *, size_t);
    if (!real)
        real = (ssize_t(*)(int, void *, size_t))next("read");
    return breaks(READ) ? -1 : real(fd, data, length);
}

EXPORTED int stat(const char *restrict path, struct stat *restrict status)
{
    static int (*real)(const char *restrict, struct stat *restrict);
    if (!real)
        real = (int (*)(const char *restrict, struct stat *restrict))next("stat");
    return breaks(STAT) ? -1 : real(path, status);
}

EXPORTED int lstat(const char *restrict path, struct stat *restrict status)
{
    static int (*real)(const char *restrict, struct stat *restrict);
    if (!real)
        real = (int (*)(const char *restrict, struct stat *restrict))next("lstat");
    return breaks(STAT) ? -1 : real(path, status);
}

EXPORTED int fstat(int fd, struct stat *status)
{
    static int (*real)(int, struct stat *);
    if (!real)
        real = (int (*)(int, struct stat *))next("fstat");
    return breaks(STAT) ? -1 : real(fd, status);
}

EXPORTED DIR *opendir(const char *path)
{
    static DIR *(*real)(const char *);
    if (!real)
        real = (DIR * (*)(const char *)) next("opendir");
    return breaks(FOLDER) ? NULL : real(path);
}

EXPORTED struct dirent *readdir(DIR *folder)
{
    static struct dirent *(*real)(DIR *);
    if (!real)
        real = (struct dirent * (*)(DIR *)) next("readdir");
    return breaks(FOLDER) ? NULL : real(folder);
}

EXPORTED int rename(const char *old, const char *new)
{
    static int (*real)(const char *, const char *);
    if (!real)
        real = (int (*)(const char *, const char *))next("rename");
    return breaks(NAME) ? -1 : real(old, new);
}

EXPORTED int unlink(const char *path)
{
    static int (*real)(const char *);
    if (!real)
        real = (int (*)(const char *))next("unlink");
    return breaks(NAME) ? -1 : real(path);
}

EXPORTED int rmdir(const char *path)
{
    static int (*real)(const char *);
    if (!real)
        real = (int (*)(const char *))next("rmdir");
    return breaks(NAME) ? -1 : real(path);
}

EXPORTED int mkdir(const char *path, mode_t mode)
{
    static int (*real)(const char *, mode_t);
    if (!real)
        real = (int (*)(const char *, mode_t))next("mkdir");
    return breaks(NAME) ? -1 : real(path, mode);
}

EXPORTED int flock(int fd, int operation)
{
    static int (*real)(int, int);
    if (!real)
        real = (int (*)(int, int))next("flock");
    return breaks(LOCK) ? -1 : real(fd, operation);
}

/* All commands used here take no argument, or one that fits into a pointer. */
EXPORTED int fcntl(int fd, int command, ...)
{
    static int (*real)(int, int, ...);
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (!real)
        real = (int (*)(int, int, ...))next("fcntl");
    return breaks(LOCK) ? -1 : real(fd, command, argument);
}

/* ---- Threads, and waiting -------------------------------------------------------------------- */

EXPORTED int pthread_attr_init(pthread_attr_t *attributes)
{
    static int (*real)(pthread_attr_t *);
    if (!real)
        real = (int (*)(pthread_attr_t *))next("pthread_attr_init");
    return breaks(THREAD) ? ENOMEM : real(attributes);
}

EXPORTED int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                            void *(*run)(void *), void *restrict argument)
{
    static int (*real)(pthread_t *restrict, const pthread_attr_t *restrict, void *(*)(void *), void *restrict);
    if (!real)
        real = (int (*)(pthread_t *restrict, const pthread_attr_t *restrict, void *(*)(void *),
                        void *restrict))next("pthread_create");
    return breaks(THREAD) ? EAGAIN : real(thread, attributes, run, argument);
}

EXPORTED int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    static int (*real)(pthread_key_t *, void (*)(void *));
    if (!real)
        real = (int (*)(pthread_key_t *, void (*)(void *)))next("pthread_key_create");
    return !is_spared_now(__builtin_return_address(0)) && breaks(KEY) ? EAGAIN : real(key, destructor);
}

EXPORTED int pthread_setspecific(pthread_key_t key, const void *value)
{
    static int (*real)(pthread_key_t, const void *);
    if (!real)
        real = (int (*)(pthread_key_t, const void *))next("pthread_setspecific");
    return !is_spared_now(__builtin_return_address(0)) && breaks(KEY) ? ENOMEM : real(key, value);
}

EXPORTED int poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
    static int (*real)(struct pollfd *, nfds_t, int);
    if (!real)
        real = (int (*)(struct pollfd *, nfds_t, int))next("poll");
    return breaks(POLL) ? -1 : real(files, count, timeout_ms);
}

/* ---- The network ----------------------------------------------------------------------------- */

EXPORTED int socket(int domain, int type, int protocol)
{
    static int (*real)(int, int, int);
    if (!real)
        real = (int (*)(int, int, int))next("socket");
    return breaks(NETWORK) ? -1 : real(domain, type, protocol);
}

EXPORTED ssize_t send(int fd, const void *data, size_t length, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, int))next("send");
    return breaks(NETWORK) ? -1 : real(fd, data, length, flags);
}

EXPORTED ssize_t recv(int fd, void *data, size_t length, int flags)
{
    static ssize_t (*real)(int, void *, size_t, int);
    if (!real)
        real = (ssize_t(*)(int, void *, size_t, int))next("recv");
    return breaks(NETWORK) ? -1 : real(fd, data, length, flags);
}
