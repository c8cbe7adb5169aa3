/* pipe: the named pipe that the handler writes to, its path, and its descriptor. Nothing here waits, except
 * for another process that repairs the pipe. */
#ifndef WEIR_PLUGINS_PIPE_H
#define WEIR_PLUGINS_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/handler.h>

#include "../system.h"

/* The state of the named pipe at `path`. */
enum pipe_state {
    PIPE_READY,
    PIPE_MISSING, /* the path does not exist */
    PIPE_NO_READER,
    PIPE_FULL,
    PIPE_WRONG_TYPE, /* the path is not a named pipe */
    PIPE_CREATE_FAILED,
    PIPE_OPEN_FAILED,
    PIPE_WRITE_FAILED,
};

struct pipe_result {
    enum pipe_state state;
    int error;   /* errno, where it adds information */
    mode_t type; /* PIPE_WRONG_TYPE: the type of the file at the path */
};

/* A named pipe may be at one of so many places. */
enum { PIPE_PATHS = 2 };

/* Whole lines. */
struct pipe_text {
    char *data;
    size_t length, room;
};

/* Zero except for what fifo_create sets. */
struct pipe {
    const weir_host *host;
    const char *paths[PIPE_PATHS];        /* where it may be, the first one preferred; NULL: no second one */
    const char *path;                     /* where the open pipe is, or what the last attempt was best at */
    bool create;                          /* if none is there, at the last of them */
    mode_t mode;                          /* permissions of a created pipe */
    int size;                             /* 0: leave the capacity unchanged */
    struct wr_own_fd own;                 /* the open pipe */
    int64_t checked_ms;                   /* when the path was last compared with the open pipe */
    bool logged_size;                     /* a refused pipe_size has been logged */
    struct pipe_result tried[PIPE_PATHS]; /* by the last attempt to open it */

    /* of repair.c */
    struct pipe_text written; /* the last lines written, at least as many as the pipe holds */
    struct pipe_text waiting; /* whole lines that no longer fit into the pipe; before all others */
    size_t kept;              /* how many bytes of `written` are kept at least */
    int unread;               /* bytes in the pipe after the last repair; -1: something was written since */
    int read_fd;              /* open during a repair, else -1 */
    int64_t ignore_lock_ms;   /* until when its lock is ignored, which was held for longer than a repair */
    bool logged_access;       /* a pipe that cannot be read has been logged */
};

static inline struct pipe_result wr_pipe_result(enum pipe_state state, int error)
{
    return (struct pipe_result){.state = state, .error = error};
}

/* Sets the code, and a description of the result as the reason. If no pipe is open, it names each place. */
void wr_pipe_fail(const struct pipe *pipe, const struct pipe_result *result, int code, weir_outcome *outcome);

/* Whether the path still names the open pipe. */
bool wr_pipe_is_in_place(struct pipe *pipe);

/* A process that repairs the pipe counts, too. */
bool wr_pipe_has_reader(const struct pipe *pipe);

/* Checks that pipe->path is a named pipe, without opening it; create: makes a missing one. */
struct pipe_result wr_pipe_check_path(const struct pipe *pipe, bool create);

/* Checks, without opening or creating it, that there is a pipe that may be written. READY with ENOENT: there is
 * none, but it may be created. */
struct pipe_result wr_pipe_find(struct pipe *pipe);

/* Closes the open pipe if the path no longer names it, and opens it if none is open. */
struct pipe_result wr_pipe_follow(struct pipe *pipe);

/* As wr_pipe_follow, and checks that the pipe has a reader; if not, repairs it. */
struct pipe_result wr_pipe_reach(struct pipe *pipe);

/* Frees the memory of a closed one. Logs how many bytes are lost that no longer fitted into it. */
void wr_pipe_fini(struct pipe *pipe);

#endif
