/* segment_file: a segment of a journal in a mapped file: samples, their texts, and for each lane which are
 * settled.
 *
 *     head | ids, one for each lane | names of the lanes | marks, a bit a sample, for each lane | samples |
 * texts
 *
 * Samples and texts are in effect once they are committed: see versioned.h. A lane sets the mark of a sample
 * when it is delivered or dropped, in any order. */
#ifndef WR_SEGMENT_FILE_H
#define WR_SEGMENT_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "text/common.h"
#include "os/mapped_file.h"
#include "os/versioned.h"
#include "segment/origin.h"

struct wr_segment_head {
    WR_ALIGNED_LINE uint64_t magic;
    uint32_t version;
    uint32_t room;                                 /* samples */
    uint32_t text_room;                            /* bytes */
    uint32_t lanes;                                /* that receive it; a lane is known by its slot, from 0 */
    uint32_t name_bytes;                           /* length of their names, each with a NUL */
    uint32_t feed;                                 /* its number in the process */
    uint64_t reserved;                             /* 0 */
    _Atomic uint64_t sequence;                     /* order in which segments were begun; 0: not in use */
    WR_ALIGNED_LINE struct wr_versioned committed; /* samples */
};

/* The sizes and lanes of a new segment. */
struct wr_segment_shape {
    uint32_t room, text_room;
    uint32_t lanes;
    const char *const *names; /* of the lanes */
};

struct wr_segment_file {
    struct wr_journal_map map;
    struct wr_segment_head *head;
    struct wr_sample_id *ids; /* by slot: the identity of the first sample, as that lane numbered it */
    const char *names;
    unsigned char *marks;
    size_t stride; /* bytes of the marks of a lane */
    weir_sample *samples;
    char *texts;
    uint32_t text_used;
    const char *folder; /* borrowed */
    uint32_t number;
    _Atomic bool kept; /* this process will not settle all of it: the file stays */
};

#define WR_SEGMENT_FILE_KIND "seg"

/* Makes a file, not in use yet. folder: borrowed. Returns 0 or errno. */
int wr_segment_file_make(struct wr_segment_file **file, const char *folder, uint32_t number,
                         const struct wr_segment_shape *shape);

/* Opens an existing file. Returns 0 or errno; EBADMSG: damaged; ENODATA: its process died while it made the
 * file. */
int wr_segment_file_open(struct wr_segment_file **file, const char *folder, uint32_t number, bool writable);

/* Unmaps the file, and deletes it unless `kept`. May be NULL. */
void wr_segment_file_free(struct wr_segment_file *file);

/* Unmaps the file. May be NULL. */
void wr_segment_file_close(struct wr_segment_file *file);

/* Starts to use a file: empty, with nothing settled. The caller has set file->ids. */
void wr_segment_file_begin(struct wr_segment_file *file, uint64_t sequence, uint32_t feed);

/* Marks the file as not in use: everything in it is settled. */
void wr_segment_file_end(struct wr_segment_file *file);

/* Whether a text of this many bytes, with its NUL, fits. */
static inline bool wr_segment_file_has_room(const struct wr_segment_file *file, size_t bytes)
{
    return file->head->text_room - file->text_used >= bytes;
}

/* Copies a text into the file; there must be room. */
const char *wr_segment_file_put_text(struct wr_segment_file *file, const char *text, size_t length);

/* Marks samples as settled by a lane, from the front: if the process dies in between, the rest is delivered
 * again. */
void wr_segment_file_settle(struct wr_segment_file *file, uint32_t slot, uint32_t first, uint32_t count);

/* Whether all of these are settled by a lane. */
bool wr_segment_file_is_settled(const struct wr_segment_file *file, uint32_t slot, uint32_t first,
                                uint32_t count);

/* The name of the lane of a slot. */
const char *wr_segment_file_lane(const struct wr_segment_file *file, uint32_t slot);

#endif
