#include "os/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/dir_list.h"
#include "os/fd.h"

enum { FLAGS = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, MODE = 0600 };

enum { DIGITS_MOST = 10 }; /* of a 32-bit number */

static bool put_path(char path[PATH_MAX], const char *folder, const char *kind, uint32_t number)
{
    int length = snprintf(path, PATH_MAX, "%s/%s.%u", folder, kind, number);
    return length > 0 && length < PATH_MAX;
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* Allocating beyond RLIMIT_FSIZE raises SIGXFSZ, which would kill the program: it is blocked and consumed. */
static int allocate(int fd, size_t size)
{
    sigset_t only, before, pending;
    sigemptyset(&only);
    sigaddset(&only, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &only, &before);
    bool was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    int problem = posix_fallocate(fd, 0, (off_t)size);
    if (problem == EFBIG && !was_pending)
        sigtimedwait(&only, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

static int map_file(struct wr_journal_map *map, int fd, size_t size, bool writable)
{
    void *memory = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return errno;
    madvise(memory, size, MADV_DONTFORK);
    *map = (struct wr_journal_map){memory, size};
    return 0;
}

int wr_mapped_file_make(struct wr_journal_map *map, const char *folder, const char *kind, uint32_t number,
                        size_t size)
{
    char path[PATH_MAX];
    *map = (struct wr_journal_map){0};
    if (!put_path(path, folder, kind, number))
        return ENAMETOOLONG;
    int fd = wr_fd_open(path, O_RDWR | O_CREAT | O_EXCL | FLAGS, MODE);
    if (fd < 0)
        return errno;
    int problem = allocate(fd, size);
    if (!problem)
        problem = map_file(map, fd, size, true);
    close(fd);
    if (problem)
        unlink(path);
    return problem;
}

/* ---- Existing files -------------------------------------------------------------------------- */

int wr_mapped_file_open(struct wr_journal_map *map, const char *folder, const char *kind, uint32_t number,
                        bool writable)
{
    char path[PATH_MAX];
    struct stat status;
    *map = (struct wr_journal_map){0};
    if (!put_path(path, folder, kind, number))
        return ENAMETOOLONG;
    int fd = wr_fd_open(path, (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK | FLAGS, 0);
    if (fd < 0)
        return errno;
    int problem = fstat(fd, &status) != 0    ? errno
                  : !S_ISREG(status.st_mode) ? EINVAL
                  : status.st_size <= 0      ? ENODATA
                                             : map_file(map, fd, (size_t)status.st_size, writable);
    close(fd);
    return problem;
}

void wr_mapped_file_close(struct wr_journal_map *map)
{
    if (map->memory)
        munmap(map->memory, map->size);
    *map = (struct wr_journal_map){0};
}

bool wr_mapped_file_remove(const char *folder, const char *kind, uint32_t number)
{
    char path[PATH_MAX];
    return put_path(path, folder, kind, number) && unlink(path) == 0;
}

void wr_mapped_file_set_aside(const char *folder, const char *kind, uint32_t number)
{
    char from[PATH_MAX], to[PATH_MAX];
    int length = snprintf(to, sizeof to, "%s-%s.%u.bad", folder, kind, number);
    if (put_path(from, folder, kind, number) && length > 0 && length < PATH_MAX)
        rename(from, to);
}

static bool read_number(const char *name, const char *kind, uint64_t *number)
{
    size_t length = strlen(kind);
    if (strncmp(name, kind, length) != 0 || name[length] != '.')
        return false;
    const char *digits = name + length + 1;
    size_t count = strspn(digits, "0123456789");
    if (!count || count > DIGITS_MOST || digits[count])
        return false;
    *number = strtoull(digits, NULL, 10);
    return *number <= UINT32_MAX;
}

uint64_t *wr_mapped_file_list(const char *folder, const char *kind, size_t *count)
{
    return wr_dir_list_numbers(folder, read_number, kind, count);
}

long wr_mapped_file_count(const char *folder, const char *kind)
{
    size_t count = 0;
    uint64_t *numbers = wr_mapped_file_list(folder, kind, &count);
    free(numbers);
    return numbers ? (long)count : -1;
}

bool wr_mapped_file_remove_all(const char *folder, const char *kind)
{
    size_t count = 0;
    uint64_t *numbers = wr_mapped_file_list(folder, kind, &count);
    bool gone = numbers;
    for (size_t i = 0; numbers && i < count; i++)
        gone &= wr_mapped_file_remove(folder, kind, (uint32_t)numbers[i]);
    free(numbers);
    return gone;
}
