#include "proc_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../system.h"

enum { FIRST_ROOM = 16384, ROOM_MOST = 16 << 20, PATH_ROOM = 4096 };

static bool grow(struct proc_file *file)
{
    size_t room = file->room ? file->room * 2 : FIRST_ROOM;
    char *text = room <= ROOM_MOST ? realloc(file->text, room) : NULL;
    if (!text) {
        errno = room <= ROOM_MOST ? ENOMEM : EFBIG;
        return false;
    }
    file->text = text;
    file->room = room;
    return true;
}

static bool read_all(struct proc_file *file, int fd)
{
    file->length = 0;
    for (;;) {
        if (file->length + 1 >= file->room && !grow(file))
            return false;
        ssize_t got = read(fd, file->text + file->length, file->room - file->length - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        file->length += (size_t)got;
    }
    file->text[file->length] = '\0';
    return true;
}

bool proc_file_read(struct proc_file *file, const char *path)
{
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return false;
    open_fds_note(&file->open, fd);
    bool is_read = read_all(file, fd);
    int problem = errno;
    open_fds_forget(&file->open, fd);
    close(fd);
    errno = problem;
    return is_read;
}

bool proc_file_read_in(struct proc_file *file, const char *folder, const char *name)
{
    char path[PATH_ROOM];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    return proc_file_read(file, path);
}

void proc_file_fini(struct proc_file *file)
{
    free(file->text);
    file->text = NULL;
    file->length = file->room = 0;
}

char *proc_file_line(char **rest)
{
    char *line = *rest;
    if (!*line)
        return NULL;
    char *end = strchr(line, '\n');
    *rest = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

char *proc_file_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t");
    if (!*word)
        return NULL;
    char *end = word + strcspn(word, " \t");
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

/* Digits with an optional sign and fraction, whatever the locale. */
static const char *read_number(const char *text, double *number)
{
    bool is_negative = *text == '-';
    const char *first = text + is_negative, *at = first;
    double value = 0, unit = 1;
    for (; *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (*at - '0');
    if (at == first)
        return NULL;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            value += (*at - '0') * (unit /= 10);
    *number = is_negative ? -value : value;
    return at;
}

size_t proc_file_numbers(const char *text, double *numbers, size_t most)
{
    size_t count = 0;
    while (count < most) {
        text += strspn(text, " \t");
        const char *end = read_number(text, &numbers[count]);
        if (!end)
            break;
        text = end;
        count++;
    }
    return count;
}

bool proc_file_find(const char *text, const char *key, double *number)
{
    size_t length = strlen(key);
    while (text && *text) {
        if (strncmp(text, key, length) == 0)
            return proc_file_numbers(text + length, number, 1) == 1;
        text = strchr(text, '\n');
        text += text != NULL;
    }
    return false;
}
