/* journal_series: what the ids of series mean, in a journal: files to which definitions are only ever appended.
 *
 *     head | definition | definition | ...
 *
 * A definition counts once the head says so. Ids are defined in order, from 0; one that is defined again has
 * got another description. */
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

/* All zeros, but for the folder: nothing is defined. */
struct wr_journal_series {
    const char *folder; /* borrowed */
    struct wr_journal_map map;
    uint32_t files;
    uint32_t known; /* ids before this one are defined */
};

/* Appends the definition of the next id, or again of one before it. Takes no memory from malloc. 0, or errno.
 */
int wr_journal_series_put(struct wr_journal_series *series, const weir_series *view);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Definitions by id, as they lie in the files. */
struct wr_journal_views {
    const struct wr_journal_definition **items;
    uint32_t count;
    bool damaged;
};

/* Adds what one of the files holds, which must stay mapped; files in their order. false: no memory. */
bool wr_journal_views_add(struct wr_journal_views *views, const struct wr_journal_map *map);

void wr_journal_views_fini(struct wr_journal_views *views);

/* What an id means, as far as that is told; the labels go to `labels`, with room for
 * WR_SERIES_CODEC_LABELS_MOST. false: it is not known, or makes no sense. */
bool wr_journal_views_get(const struct wr_journal_views *views, uint32_t id, weir_series *view,
                          weir_label *labels);

#endif
