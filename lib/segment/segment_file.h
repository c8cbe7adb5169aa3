/* segment_file: a segment of a journal: samples, their texts, and for each lane which of them are settled, in a
 * file that outlives the process.
 *
 *     head | ids, one for each lane | names of the lanes | marks, a bit a sample, for each lane | samples |
 * texts
 *
 * The samples and texts that count are those that were committed: see twin.h. A mark is set once the lane is
 * done with the sample, for good: marks need no order, so lanes may settle what they like first. */
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
    uint32_t lanes;                                /* that are offered it, numbered by slots from 0 */
    uint32_t name_bytes;                           /* of their names, each with a NUL */
    uint32_t feed;                                 /* its number in the process */
    uint64_t reserved;                             /* 0 */
    _Atomic uint64_t sequence;                     /* segments were begun in this order; 0: it is not in use */
    WR_ALIGNED_LINE struct wr_versioned committed; /* samples */
};

/* What a segment is made for. */
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
    _Atomic bool kept; /* something in it is not settled, and never will be by this process: it stays */
};

#define WR_SEGMENT_FILE_KIND "seg"

/* Makes a file, not in use yet. folder: borrowed. 0, or errno. */
int wr_segment_file_make(struct wr_segment_file **file, const char *folder, uint32_t number,
                         const struct wr_segment_shape *shape);

/* Opens one that is there. 0, or errno; EBADMSG: it is damaged; ENODATA: it was just being made. */
int wr_segment_file_open(struct wr_segment_file **file, const char *folder, uint32_t number, bool writable);

/* Unmaps it; and deletes it, unless it is kept. May be NULL. */
void wr_segment_file_free(struct wr_segment_file *file);

/* Unmaps it, and leaves it where it is. May be NULL. */
void wr_segment_file_close(struct wr_segment_file *file);

/* Takes a file that is not in use into use: empty, with nothing settled. The caller has set file->ids. */
void wr_segment_file_begin(struct wr_segment_file *file, uint64_t sequence, uint32_t feed);

/* All in it is settled. */
void wr_segment_file_end(struct wr_segment_file *file);

/* Whether a text of so many bytes, with its NUL, has room. */
static inline bool wr_segment_file_has_room(const struct wr_segment_file *file, size_t bytes)
{
    return file->head->text_room - file->text_used >= bytes;
}

/* Keeps a copy of a text, for which there must be room. */
const char *wr_segment_file_put_text(struct wr_segment_file *file, const char *text, size_t length);

/* Marks samples as settled by a lane; from the front, so that a death in between leaves the rest. */
void wr_segment_file_settle(struct wr_segment_file *file, uint32_t slot, uint32_t first, uint32_t count);

/* Whether all of these are settled by a lane. */
bool wr_segment_file_is_settled(const struct wr_segment_file *file, uint32_t slot, uint32_t first,
                                uint32_t count);

/* The name of the lane of a slot. */
const char *wr_segment_file_lane(const struct wr_segment_file *file, uint32_t slot);

#endif
