/* status_page: what a process tells of itself in its status file, as the library writes it and `weir status`
 * reads it.
 *
 * A head, one part about the process, one about each handler, one about each of the groups with the most values
 * that nobody listened to. The head tells how many bytes a part of each kind takes, so that parts can grow at
 * their end: a reader takes what it knows of a part, and finds zeros where the writer knew less. Only what
 * cannot be told so raises the version.
 *
 * The file is rewritten in place while others may read it. Both sides are processes that share no memory, so
 * there is nothing to synchronise: a page that was torn by that has a wrong checksum, and is read again.
 *
 * All numbers are of the machine's own byte order, and no bytes are left open between them. Times are durations
 * up to the moment of the snapshot, in nanoseconds, unless they say otherwise; -1: does not apply. */
#ifndef WR_STATUS_PAGE_H
#define WR_STATUS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

struct wr_buffer;
struct wr_error;

enum {
    WR_STATUS_VERSION = 1,
    WR_STATUS_HANDLERS_MOST = 100,
    WR_STATUS_GROUPS_MOST = 10,
    WR_STATUS_NAME_ROOM = 256,
    WR_STATUS_BYTES_MOST = 1 << 20, /* of a page of whatever version */
};

struct wr_status_head {
    char magic[8];
    uint32_t version;
    uint32_t crc;    /* of everything behind this field */
    uint32_t length; /* of the page */
    uint32_t process_bytes;
    uint32_t handler_count, handler_bytes;
    uint32_t group_count, group_bytes;
};

struct wr_status_process {
    int64_t pid;
    uint64_t pid_namespace; /* inode of the process's pid namespace; 0: not known */
    uint64_t start_ticks;   /* since the machine's start, as in /proc/PID/stat; 0: not known */
    int64_t taken_ns;       /* monotonic: the moment of the snapshot */
    int64_t taken_wall_ns;
    int64_t up_ns;
    uint64_t snapshots; /* this one included */
    char program[WR_STATUS_NAME_ROOM];
    char weir[32]; /* the library's version */

    char config[WR_STATUS_NAME_ROOM]; /* where the configuration in force came from */
    int64_t configured_wall_ns;       /* when it was put in force; 0: none ever was */
    uint64_t configurations;          /* so many were put in force */

    uint64_t added, taken, in_rings, unrouted;
    uint64_t refused[WEIR_REFUSALS];
    uint64_t threads, series;
    double added_rate;       /* a second, since the snapshot before; negative: there was none */
    uint64_t handlers_more;  /* beyond those that are shown */
    uint64_t groups_unheard; /* groups with values that nobody listened to */
};

/* What a handler is at. */
enum {
    WR_STATUS_OPEN = 1 << 0,
    WR_STATUS_FAILING = 1 << 1,
    WR_STATUS_FULL = 1 << 2,    /* calls wait for it */
    WR_STATUS_STALLED = 1 << 3, /* it has made no progress for block_timeout: what does not fit is dropped */
    WR_STATUS_ENDED = 1 << 4,   /* all that comes is dropped: see `ending` */
};

struct wr_status_handler {
    char name[WR_STATUS_NAME_ROOM];
    char type[64]; /* "": it has ended */
    char reason[WR_STATUS_NAME_ROOM];
    uint32_t flags;
    int32_t ending;     /* enum weir_drop, if WR_STATUS_ENDED */
    int64_t failing_ns; /* since its tries fail */
    int64_t busy_ns;    /* since it was called and has not come back */
    int64_t reason_ns;  /* since `reason` is its last trouble */
    uint64_t offered, recovered, delivered, dropped[WEIR_DROPS], queued, spooled;
    uint64_t queue_bytes, queue_bound, spool_bytes, spool_limit;
    int64_t queue_age_ns;
    uint64_t retries, faults;
    double offered_rate, delivered_rate, dropped_rate; /* as added_rate */
};

struct wr_status_group {
    uint64_t values;
    char name[WR_STATUS_NAME_ROOM];
};

/* A page in the reader's hands: any bytes at all may have been in the file, but here all texts end, counts are
 * within their bounds, and what was not there is zero. Texts may still hold anything but NUL. */
struct wr_status_view {
    struct wr_status_process process;
    size_t handler_count, group_count;
    struct wr_status_handler handlers[WR_STATUS_HANDLERS_MOST];
    struct wr_status_group groups[WR_STATUS_GROUPS_MOST];
};

/* Appends a page made of such parts. */
void wr_status_page_put(struct wr_buffer *out, const struct wr_status_view *view);

enum wr_status_verdict {
    WR_STATUS_GOOD,
    WR_STATUS_TORN,    /* perhaps it is just being written: read it again */
    WR_STATUS_FOREIGN, /* no page, or of another version */
};

/* Takes a page apart; *error tells why it is not good. */
enum wr_status_verdict wr_status_page_read(const void *bytes, size_t length, struct wr_status_view *view,
                                           struct wr_error *error);

#endif
