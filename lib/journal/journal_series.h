/* journal_series: definitions of series ids in a journal, in files that are only appended to.
 *
 *     head | definition | definition | ...
 *
 * A definition is in effect once head.used includes it. Ids are defined in order, from 0; a later definition of
 * the same id changes its description. */
#ifndef WR_JOURNAL_SERIES_H
#define WR_JOURNAL_SERIES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "os/mapped_file.h"
#include "segment/series_codec.h"

#define WR_JOURNAL_SERIES_KIND "series"

struct wr_journal_series_head {
    uint64_t magic;
    uint32_t version, reserved;
    _Atomic uint64_t used; /* bytes behind the head */
};

/* Followed by the texts of the series, see series_codec.h, and by padding to a multiple of 8 bytes. */
struct wr_journal_definition {
    uint32_t bytes; /* of all */
    uint32_t id;
    uint16_t flags;
    uint16_t labels;
    uint32_t reserved;
};

/* ---- Writing --------------------------------------------------------------------------------- */

/* All zeros except for the folder: nothing is defined. */
struct wr_journal_series {
    const char *folder; /* borrowed */
    struct wr_journal_map map;
    uint32_t files;
    uint32_t known; /* number of ids that are defined */
};

/* Appends the definition of the next id, or another one of an earlier id. is_part: it is made of summaries, and
 * no sample in a journal is of it. Does not call malloc. Returns 0 or errno. */
int wr_journal_series_put(struct wr_journal_series *series, const weir_series *view, bool is_part);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Definitions by id, in the mapped files. */
struct wr_journal_views {
    const struct wr_journal_definition **items;
    uint32_t count, room;
    bool damaged;
};

/* Adds the definitions of a file, which must stay mapped; files in order. Returns false if out of memory. */
bool wr_journal_views_add(struct wr_journal_views *views, const struct wr_journal_map *map);

void wr_journal_views_fini(struct wr_journal_views *views);

/* Reads the definition of an id. Returns false if there is none, if it is damaged, or a part of summaries: in
 * the process that reads it, this would be a name in use by itself. */
bool wr_journal_views_get(const struct wr_journal_views *views, uint32_t id, weir_series *view,
                          struct wr_series_codec_room *room);

#endif
