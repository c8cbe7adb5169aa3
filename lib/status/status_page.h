/* status_page: the layout of status files, which the library writes and `weir status` reads.
 *
 * A head, one part for the process, one for each handler, one for each of the groups with the most values
 * without a handler, one for each source, one for each of the senders to sources. The head contains the size of
 * each kind of part, so that parts can grow at their end: a reader ignores fields that it does not know, and
 * reads zeros for fields that the writer did not know. Any other change increments the version.
 *
 * The file is rewritten in place while others may read it. Writer and reader are not synchronised: a page that
 * was read while it was written has a wrong checksum, and is read again.
 *
 * Numbers have the machine's byte order; there is no padding. Times are durations up to the snapshot in
 * nanoseconds, unless noted; -1: does not apply. */
#ifndef WR_STATUS_PAGE_H
#define WR_STATUS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

struct wr_buffer;
struct wr_error;

enum {
    WR_STATUS_VERSION = 4,
    WR_STATUS_HANDLERS_MOST = 100,
    WR_STATUS_GROUPS_MOST = 10,
    WR_STATUS_ENTRIES_MOST = 5,
    WR_STATUS_SOURCES_MOST = 100,
    WR_STATUS_SENDERS_MOST = 256,
    WR_STATUS_NAME_ROOM = 256,
    WR_STATUS_BYTES_MOST = 1 << 20, /* of a page of any version */
};

struct wr_status_head {
    char magic[8];
    uint32_t version;
    uint32_t crc;    /* of everything after this field */
    uint32_t length; /* of the page */
    uint32_t process_bytes;
    uint32_t handler_count, handler_bytes;
    uint32_t group_count, group_bytes;
    uint32_t source_count, source_bytes;
    uint32_t sender_count, sender_bytes;
};

/* An entry of "metrics". */
struct wr_status_entry {
    char group[WR_STATUS_NAME_ROOM];
    char name[WR_STATUS_NAME_ROOM];
};

struct wr_status_process {
    int64_t pid;
    uint64_t pid_namespace; /* inode of the process's pid namespace; 0: not known */
    uint64_t start_ticks;   /* since boot, as in /proc/PID/stat; 0: not known */
    int64_t taken_ns;       /* time of the snapshot (monotonic) */
    int64_t taken_wall_ns;
    int64_t up_ns;
    uint64_t snapshots; /* this one included */
    char program[WR_STATUS_NAME_ROOM];
    char weir[32]; /* the library's version */

    char config[WR_STATUS_NAME_ROOM]; /* origin of the current configuration */
    int64_t configured_wall_ns;       /* when it was applied; 0: none ever was */
    uint64_t configurations;          /* number of configurations that were applied */

    uint64_t added, taken, in_rings, unrouted;
    uint64_t refused[WEIR_REFUSED_MAX];
    uint64_t threads, series;
    double added_rate;          /* per second, since the snapshot before; negative: there was none */
    uint64_t handlers_more;     /* handlers without a part */
    uint64_t groups_unrouted;   /* groups with values without a handler */
    uint64_t entries;           /* of "metrics" */
    uint64_t entries_unmatched; /* that no name has matched; the first of these: */
    struct wr_status_entry unmatched[WR_STATUS_ENTRIES_MOST];
    uint64_t sources_more; /* sources without a part */
    uint64_t senders_more; /* senders without a part */
};

/* Flags of a handler. */
enum {
    WR_STATUS_OPEN = 1 << 0,
    WR_STATUS_FAILING = 1 << 1,
    WR_STATUS_FULL = 1 << 2,    /* calls wait for room */
    WR_STATUS_STALLED = 1 << 3, /* no progress for block_timeout: values that do not fit are dropped */
    WR_STATUS_ENDED = 1 << 4,   /* all values are dropped: see `ending` */
};

struct wr_status_handler {
    char name[WR_STATUS_NAME_ROOM];
    char type[64]; /* "": it has ended */
    char reason[WR_STATUS_NAME_ROOM];
    uint32_t flags;
    int32_t ending;     /* enum weir_drop, if WR_STATUS_ENDED */
    int64_t failing_ns; /* since its calls fail */
    int64_t busy_ns;    /* since its running call began */
    int64_t reason_ns;  /* since the failure in `reason`; negative: none */
    uint64_t offered, recovered, delivered, dropped[WEIR_DROPPED_MAX], queued, spooled, summing;
    uint64_t queue_bytes, queue_bound, spool_bytes, spool_limit;
    int64_t queue_age_ns;
    uint64_t retries, faults;
    double offered_rate, delivered_rate, dropped_rate; /* as added_rate */
};

struct wr_status_group {
    uint64_t values;
    char name[WR_STATUS_NAME_ROOM];
};

struct wr_status_source {
    char name[WR_STATUS_NAME_ROOM];
    char type[64];
    int64_t state; /* enum weir_source_state */
    uint64_t lines, bad_lines, records, added, refused;
    uint64_t lost;                    /* what it has counted as lost: its counters lost_* */
    char reason[WR_STATUS_NAME_ROOM]; /* why it failed last */
    int64_t reason_ns;                /* since then; negative: it never has */
    uint64_t bytes;                   /* of text */
};

/* See weir_sender of <weir/source.h>. */
struct wr_status_sender {
    char name[128];
    uint64_t processes, added, recovered, delivered, lost, received, repeats, missing;
    int64_t state;  /* enum weir_sender_state */
    int64_t source; /* the index of its source */
};

/* The contents of a page. After reading, whatever the file contained, all texts are terminated, counts are
 * within their bounds, and missing fields are zero. Texts may contain any bytes. */
struct wr_status_view {
    struct wr_status_process process;
    size_t handler_count, group_count, source_count, sender_count;
    struct wr_status_handler handlers[WR_STATUS_HANDLERS_MOST];
    struct wr_status_group groups[WR_STATUS_GROUPS_MOST];
    struct wr_status_source sources[WR_STATUS_SOURCES_MOST];
    struct wr_status_sender senders[WR_STATUS_SENDERS_MOST];
};

/* Appends a page. */
void wr_status_page_put(struct wr_buffer *out, const struct wr_status_view *view);

enum wr_status_verdict {
    WR_STATUS_GOOD,
    WR_STATUS_TORN,    /* possibly being written: read it again */
    WR_STATUS_FOREIGN, /* not a page, or of another version */
};

/* Reads a page. Sets the error unless the result is WR_STATUS_GOOD. */
enum wr_status_verdict wr_status_page_read(const void *bytes, size_t length, struct wr_status_view *view,
                                           struct wr_error *error);

#endif
