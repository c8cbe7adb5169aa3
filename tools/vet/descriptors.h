/* descriptors: counts open descriptors and threads, and places guards: descriptors of vet in all free numbers,
 * which detect a handler that closes or writes to descriptors that it does not own. */
#ifndef WEIR_TOOLS_VET_DESCRIPTORS_H
#define WEIR_TOOLS_VET_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of open descriptors, without guards. */
int vet_descriptors_count(void);

/* Writes the open descriptors from `first` on, without guards, with their targets: "7 socket:[123], 8 /tmp/x".
 * Returns text. */
const char *vet_descriptors_show(int first, char *text, size_t size);

/* Remembers the open descriptors as the program's own. */
void vet_descriptors_note(void);

/* Returns the first descriptor that was opened since vet_descriptors_note and that programs inherit, because it
 * lacks FD_CLOEXEC, and writes it to text; -1: none. */
int vet_descriptors_inherited(char *text, size_t size);

/* Places guards in the free numbers. */
void vet_descriptors_guard(void);

/* Returns whether all guards are intact; otherwise writes what the handler did to text. */
bool vet_descriptors_check(char *text, size_t size);

/* Returns the number of the thread that was started last, of those that are there. */
int vet_descriptors_newest_thread(void);

/* The same. If there are more than `most`, waits up to a second for exiting threads. */
int vet_descriptors_threads(int most);

#endif
