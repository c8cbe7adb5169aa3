/* descriptors: which ones are open, and guards: descriptors of vet's own in all the numbers that are free,
 * where a handler hits them when it closes or writes to what is not its own. */
#ifndef WEIR_TOOLS_VET_DESCRIPTORS_H
#define WEIR_TOOLS_VET_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of open descriptors, without guards. */
int vet_descriptors_count(void);

/* Lists the open descriptors from `first` on, without guards, with their targets: "7 socket:[123], 8 /tmp/x".
 * Returns words. */
const char *vet_descriptors_show(int first, char *words, size_t room);

/* Puts guards into the free numbers. */
void vet_descriptors_guard(void);

/* Whether all guards are as they were; else the words tell what happened to one. */
bool vet_descriptors_check(char *words, size_t room);

/* How many threads the process has. Where that is more than `most`, it waits a little for those that are just
 * ending. */
int vet_descriptors_threads(int most);

#endif
