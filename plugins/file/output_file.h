/* target: the file that is written to. Used by the handler's worker alone, but for wr_output_file_abandon.
 *
 * Other processes may append to the same file, and others still may rotate, delete or truncate it. */
#ifndef FILE_OUTPUT_FILE_H
#define FILE_OUTPUT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <weir/handler.h>

#include "settings.h"

struct output_file {
    const weir_host *host;
    const struct settings *settings;
    char path[PATH_MAX]; /* of the open file; with a date in it: that of dated_s */
    time_t dated_s;
    bool truncate; /* what is there when it is opened next */
    int fd;        /* -1: not open */
    dev_t device;  /* of the open file */
    ino_t inode;
    bool regular;
    bool fresh;       /* nothing was written since it was opened */
    bool torn;        /* the file may end within a line */
    off_t end;        /* where it ended after our last write, as far as we know */
    bool dirty;       /* there may be more in the file than is on the disk */
    int sync_problem; /* of the last sync that failed; 0: none, or somebody has seen to it */
    unsigned opened;  /* how often */
    bool said_missed; /* that it could not be opened anew */
    int64_t looked_ms;
};

void wr_output_file_init(struct output_file *target, const weir_host *host, const struct settings *settings);

/* Makes sure that there is a file to write to, ours and the one at the path, as far as that was looked at half
 * a second ago. 0, or errno. */
int wr_output_file_make_sure(struct output_file *target);

/* Looks for the file by its path at once: rotated or deleted, or another one by its date: a new one; while that
 * cannot be opened, the old one does. */
void wr_output_file_follow(struct output_file *target);

/* Lets go of the file and opens that at the path, unless it cannot be had. 0, or errno. */
int wr_output_file_reopen(struct output_file *target);

/* Whether the file at the path could be opened now, without creating, emptying or waiting for anything;
 * *exists: it is there already. 0, or errno. */
int wr_output_file_probe(const struct output_file *target, bool *exists);

void wr_output_file_close(struct output_file *target);

/* [fork] */
void wr_output_file_abandon(const struct output_file *target);

/* Whether the file at the path is the open one. */
bool wr_output_file_is_in_place(const struct output_file *target);

/* how: as for flock(2). */
void wr_output_file_lock(const struct output_file *target, int how);

/* Writes, under a lock; *written: how much is out. 0, or errno. */
int wr_output_file_write(struct output_file *target, const char *data, size_t length, size_t *written);

/* Under the exclusive lock: finds out whether somebody else, who died at it, has left a part of a line. */
void wr_output_file_look_at_end(struct output_file *target, off_t size);

/* A line that was torn and could not be taken back is at least ended, before anything else follows it. 0, or
 * errno. */
int wr_output_file_end_line(struct output_file *target);

/* Takes what is left of a line, the last `length` bytes that we wrote, off the end of the file, if they are its
 * end still; otherwise the line will be ended before anything else is written. Lets go of the lock. */
void wr_output_file_take_back(struct output_file *target, size_t length);

/* Forces what was written to the disk. 0, or errno. */
int wr_output_file_sync(struct output_file *target);

#endif
