/* descriptors: counts open descriptors and threads, and places guards: descriptors of vet in all free numbers,
 * which detect a handler that closes or writes to descriptors that it does not own. */
#ifndef WEIR_TOOLS_VET_DESCRIPTORS_H
#define WEIR_TOOLS_VET_DESCRIPTORS_H

/* Returns the number of open descriptors, without guards. */
int vet_descriptors_count(void);

/* Fails the check if more are open than before, with a text, and those from `first` on with their targets:
 * "7 socket:[123], 8 /tmp/x". */
void vet_descriptors_check(int before, int first, const char *text);

/* The same with "2 descriptors stay open after", and what the format says. */
void vet_descriptors_check_left(int before, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Remembers the open descriptors as the program's own. */
void vet_descriptors_note(void);

/* After a callback: fails the check if programs inherit a descriptor that was opened since
 * vet_descriptors_note, because it lacks FD_CLOEXEC. ctx: not used. */
void vet_descriptors_check_inherited(const void *ctx, const char *callback);

/* Places guards in the free numbers. */
void vet_descriptors_guard(void);

/* After a callback: fails the check if a guard is not intact. ctx: not used. */
void vet_descriptors_check_guards(const void *ctx, const char *callback);

/* Returns the number of the thread that was started last, of those that are there. */
int vet_descriptors_newest_thread(void);

/* Returns the number of threads. If there are more than `most`, waits up to a second for exiting ones. */
int vet_descriptors_threads(int most);

#endif
