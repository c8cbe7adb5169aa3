/* proc_file: reads the kernel's text files, and the numbers in them. */
#ifndef WEIR_PLUGINS_PROC_FILE_H
#define WEIR_PLUGINS_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "open_fds.h"

/* All zeros: nothing is read. Kept for the next file. */
struct proc_file {
    char *text; /* ends in NUL */
    size_t length, room;
    struct open_fds open; /* while it is read */
};

/* Reads a file, at most 16 MiB. Returns false with errno set. */
bool proc_file_read(struct proc_file *file, const char *path);

/* The same of folder/name. */
bool proc_file_read_in(struct proc_file *file, const char *folder, const char *name);

void proc_file_fini(struct proc_file *file);

/* Cuts off the first line of *rest, and moves *rest behind it. Returns NULL at the end. */
char *proc_file_line(char **rest);

/* The same for words between blanks and tabs within a line. */
char *proc_file_word(char **rest);

/* Reads up to `most` numbers, each behind blanks. Returns how many there were: it stops at anything else. */
size_t proc_file_numbers(const char *text, double *numbers, size_t most);

/* The number behind a key at the beginning of a line, such as "MemTotal:". Returns false if it is not there. */
bool proc_file_find(const char *text, const char *key, double *number);

#endif
