#include "access_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../state_folder.h"
#include "../system.h"

enum { HALF = (ACCESS_TICKET_ROOM - 1) / 2, TICKETS_MOST = 1000, ONCE_S = 600, SESSION_S = 30 * 86400 };

/* ---- Files ----------------------------------------------------------------------------------- */

static int open_folder(const char *folder)
{
    return wr_fd_open(folder, O_RDONLY | O_DIRECTORY, 0);
}

static int open_in(int folder, const char *name, int flags)
{
    return wr_fd_above_stdio(openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600));
}

const char *access_files_make_folder(const char *folder)
{
    struct stat status;
    int problem = state_folder_make(folder, true);
    if (problem || stat(folder, &status) != 0)
        return wr_system_strerror(problem ? problem : errno);
    if (!S_ISDIR(status.st_mode))
        return "is not a folder";
    if (status.st_mode & (S_IRWXG | S_IRWXO))
        return "can be entered by others; chmod 700 it";
    return NULL;
}

/* Replaces a file. Where root does it for a service, the file is for the owner of the folder. */
static int write_file(int folder, const char *name, const char *text)
{
    char draft[64];
    struct stat status;
    snprintf(draft, sizeof draft, ".%s-%d", name, (int)getpid());
    int fd = open_in(folder, draft, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0)
        return errno;
    size_t length = strlen(text);
    bool is_done = write(fd, text, length) == (ssize_t)length && fstat(folder, &status) == 0 &&
                   (geteuid() != 0 || fchown(fd, status.st_uid, status.st_gid) == 0);
    int problem = is_done ? 0 : errno ? errno : ENOSPC;
    close(fd);
    if (!problem && renameat(folder, draft, folder, name) != 0)
        problem = errno;
    if (problem)
        unlinkat(folder, draft, 0);
    return problem;
}

/* Returns its length, or -1 with errno set. */
static ssize_t read_file(int folder, const char *name, char *text, size_t room)
{
    int fd = open_in(folder, name, O_RDONLY | O_NONBLOCK);
    ssize_t length = fd < 0 ? -1 : read(fd, text, room - 1);
    int problem = errno;
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    errno = problem;
    return length;
}

/* ---- Random texts ---------------------------------------------------------------------------- */

static bool make_text(char text[ACCESS_TICKET_ROOM])
{
    unsigned char bytes[HALF];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

int access_files_make_token(const char *folder)
{
    char token[ACCESS_TICKET_ROOM + 1];
    int fd = open_folder(folder);
    if (fd < 0)
        return errno;
    int problem = faccessat(fd, "token", F_OK, 0) == 0 ? 0 : errno;
    if (problem == ENOENT) {
        problem = make_text(token) ? 0 : errno;
        if (!problem)
            problem = write_file(fd, "token", strcat(token, "\n"));
    }
    close(fd);
    return problem;
}

/* ---- Tickets --------------------------------------------------------------------------------- */

static const char *const prefixes[] = {[ACCESS_ONCE] = "once-", [ACCESS_SESSION] = "session-"};
static const int lives_s[] = {[ACCESS_ONCE] = ONCE_S, [ACCESS_SESSION] = SESSION_S};

static bool is_old(const struct stat *status, enum access_kind kind)
{
    int64_t age_s = (int64_t)time(NULL) - status->st_mtime;
    return age_s > lives_s[kind] || age_s < -lives_s[kind];
}

/* Returns how many are left. */
static size_t remove_old(int folder, enum access_kind kind)
{
    size_t left = 0;
    struct stat status;
    int copy = open_in(folder, ".", O_RDONLY | O_DIRECTORY);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        if (strncmp(entry->d_name, prefixes[kind], strlen(prefixes[kind])) != 0 ||
            fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (is_old(&status, kind))
            unlinkat(folder, entry->d_name, 0);
        else
            left++;
    }
    if (list)
        closedir(list);
    else if (copy >= 0)
        close(copy);
    return left;
}

static void put_name(char name[HALF + 16], enum access_kind kind, const char *ticket)
{
    snprintf(name, HALF + 16, "%s%.*s", prefixes[kind], (int)HALF, ticket);
}

int access_files_make_ticket(const char *folder, enum access_kind kind, char ticket[ACCESS_TICKET_ROOM])
{
    char name[HALF + 16];
    int fd = open_folder(folder);
    if (fd < 0)
        return errno;
    int problem = remove_old(fd, kind) < TICKETS_MOST ? 0 : EDQUOT;
    if (!problem)
        problem = make_text(ticket) ? 0 : errno;
    if (!problem) {
        put_name(name, kind, ticket);
        problem = write_file(fd, name, ticket + HALF);
    }
    close(fd);
    return problem;
}

/* All bytes are looked at, whatever the first that differs. */
static bool is_equal(const char *a, const char *b)
{
    volatile unsigned char differs = 0;
    for (size_t i = 0; i < HALF; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return !differs;
}

bool access_files_check_ticket(const char *folder, enum access_kind kind, const char *ticket)
{
    char name[HALF + 16], secret[HALF + 2];
    struct stat status;
    if (strspn(ticket, "0123456789abcdef") != ACCESS_TICKET_ROOM - 1 || ticket[ACCESS_TICKET_ROOM - 1])
        return false;
    put_name(name, kind, ticket);
    int fd = open_folder(folder);
    bool is_valid = fd >= 0 && fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !is_old(&status, kind) &&
                    read_file(fd, name, secret, sizeof secret) == HALF && is_equal(secret, ticket + HALF);
    if (kind == ACCESS_ONCE && is_valid)
        is_valid = unlinkat(fd, name, 0) == 0; /* of two at once, one gets it */
    if (fd >= 0)
        close(fd);
    return is_valid;
}

/* ---- The URL --------------------------------------------------------------------------------- */

int access_files_write_url(const char *folder, const char *url)
{
    int fd = open_folder(folder);
    int problem = fd < 0 ? errno : write_file(fd, "url", url);
    if (fd >= 0)
        close(fd);
    return problem;
}

int access_files_read_url(const char *folder, char url[ACCESS_URL_ROOM])
{
    *url = '\0';
    int fd = open_folder(folder);
    int problem = fd < 0 || read_file(fd, "url", url, ACCESS_URL_ROOM) < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    url[strcspn(url, " \n\t\r")] = '\0';
    return problem;
}

void access_files_remove_url(const char *folder, const char *own)
{
    char url[ACCESS_URL_ROOM];
    int fd = open_folder(folder);
    if (fd >= 0 && read_file(fd, "url", url, sizeof url) > 0 && strcmp(url, own) == 0)
        unlinkat(fd, "url", 0);
    if (fd >= 0)
        close(fd);
}
