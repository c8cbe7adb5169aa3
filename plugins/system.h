/* system: descriptions of errno's numbers, clocks, failures, and descriptors, for plugins of all kinds. */
#ifndef WEIR_PLUGINS_SYSTEM_H
#define WEIR_PLUGINS_SYSTEM_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <weir/host.h>

#include "../lib/os/fd.h"
#include "../lib/os/own_fd.h"

/* Returns a static string. Not strerror: it takes a lock of the C library for translations; if another
 * thread forks at that moment, the lock is never released in the child. */
const char *wr_system_strerror(int error);

int64_t wr_system_clock_ns(clockid_t clock);

/* Returns zeroed memory for an instance; NULL after host->refuse. */
void *wr_system_allocate(const weir_host *host, size_t size);

/* Sets the code of an outcome and its reason. Returns false. */
WEIR_PRINTF(3, 4)
bool wr_system_fail(weir_outcome *outcome, int code, const char *format, ...);

/* The same for a source that has to be opened again, with a number of errno. */
bool wr_system_fail_by(weir_outcome *outcome, const char *what, int error);

/* Whether the path leads to the file with this device and inode, symbolic links followed. */
bool wr_system_leads_to_file(const char *path, dev_t device, ino_t inode);

/* Whether the file system of an open file is on this machine: a write to a file there waits for no other
 * machine and no other process. */
bool wr_system_is_local(int fd);

#endif
