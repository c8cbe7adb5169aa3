/* pipes: finds the pipes with which librdkafka's threads wake each other. librdkafka makes them without
 * O_CLOEXEC and offers no way to do it for it, or to learn their numbers. They are known by what else they are:
 * not blocking, and with the least capacity there is. */
#ifndef KAFKA_PIPES_H
#define KAFKA_PIPES_H

#include <stddef.h>
#include <sys/types.h>

enum { PIPES_MAX = 128 };

struct pipes_end {
    int fd;
    ino_t inode;
};

struct pipes {
    struct pipes_end ends[PIPES_MAX];
    size_t count;
};

/* Lists the descriptors of this process that look like such a pipe's and are inherited by other programs. */
void wr_pipes_list(struct pipes *pipes);

/* Lists those that are not in `before`, and lets other programs not inherit them. */
void wr_pipes_take(struct pipes *pipes, const struct pipes *before);

/* [any thread] Lets other programs inherit none of them. */
void wr_pipes_close_on_exec(void);

/* Forgets those that were closed, or whose number is that of another file now. */
void wr_pipes_forget_closed(struct pipes *pipes);

/* [fork] Closes them with close(2). */
void wr_pipes_abandon(const struct pipes *pipes);

#endif
