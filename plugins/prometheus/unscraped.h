/* unscraped: processes of one family, which share an address to listen on: the first one, and those forked from
 * it. Only the first one listens. The others enter themselves here, so that its page shows how many there are.
 */
#ifndef PROMETHEUS_UNSCRAPED_H
#define PROMETHEUS_UNSCRAPED_H

#include <stdbool.h>
#include <sys/types.h>

struct unscraped;

/* Finds the family for an address, also when another process of it made it, or makes one. Returns NULL if out
 * of memory. [configuring] */
struct unscraped *unscraped_get(const char *address);

/* [configuring, worker] */
void unscraped_put(struct unscraped *family);

/* Returns the process that listens instead of this one; 0: this one has to. In a process whose first one has
 * ended, as that of a daemon does, the family is this process' own from then on. [worker] */
pid_t unscraped_listener(struct unscraped *family);

/* Enters the process until the calling thread ends or leaves. Returns its place; -1: there is none left, so it
 * is not counted. [worker] */
int unscraped_enter(struct unscraped *family);

/* By the thread that has entered. [worker] */
void unscraped_leave(struct unscraped *family, int place);

/* Returns how many are entered. Those that were killed are not. */
unsigned unscraped_count(struct unscraped *family);

#endif
