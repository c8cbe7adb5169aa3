/* unscraped: processes that share an address with the one that listens on it, whose page shows how many there
 * are: those forked from it, and others that were started with the same address.
 *
 * Each has a place: an abstract Unix socket, whose name holds the address and a number. Such names belong to
 * the network namespace, as the address does, and the kernel frees them with their process, also by SIGKILL.
 * Nothing is sent. Any process of the machine could take places, which makes the number on the page larger, and
 * no more.
 */
#ifndef PROMETHEUS_UNSCRAPED_H
#define PROMETHEUS_UNSCRAPED_H

#include <stdbool.h>
#include <sys/types.h>

#include "../listening/listening.h"
#include "../system.h"

/* A process and those forked from it. */
struct unscraped;

/* Finds the family for an address, also when another process of it made it, or makes one. Returns NULL if out
 * of memory. [configuring] */
struct unscraped *unscraped_get(const struct listening *listening);

/* [configuring, worker] */
void unscraped_put(struct unscraped *family);

/* Returns the process that listens instead of this one, or tries to; 0: this one has to. In a process whose
 * first one has ended, as that of a daemon does, the family is this process' own from then on. [worker] */
pid_t unscraped_listener(struct unscraped *family);

/* Takes a place, unless `place` is one: until it is closed, or the process ends. Without a descriptor or a
 * place that is left, of 1,000, the process is not counted. [worker] */
void unscraped_enter(const struct unscraped *family, struct wr_own_fd *place);

/* Returns how many places are taken; -1: without a descriptor this cannot be found out. */
int unscraped_count(const struct unscraped *family);

#endif
