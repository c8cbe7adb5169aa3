/* recovery_cells: what the cells of a dead process's journal have, summed over its threads. */
#ifndef WR_RECOVERY_CELLS_H
#define WR_RECOVERY_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/journal_reader.h"

/* Of a series, with its summary: see taken.h. */
struct wr_recovery_sum {
    uint32_t series; /* its id in the journal */
    uint32_t older;  /* one of the series with other bounds: its place, plus 1; 0: none */
    struct wr_cell_taken taken;
    int64_t time_ns;
    char *text;
    size_t length;
};

/* All zeros: nothing was read. */
struct wr_recovery_cells {
    struct wr_recovery_sum *items;
    uint32_t count, room;
    uint32_t *by_series; /* place of the latest, plus 1 */
    uint64_t damaged; /* values of series that there are not. Of what makes no sense the reader counts files */
};

/* Reads all; series: how many ids the journal has; time_ns: of the summaries. Buckets refer to the reader's
 * mappings. Returns false if out of memory. */
bool wr_recovery_cells_read(struct wr_recovery_cells *cells, const struct wr_journal_reader *reader,
                            uint32_t series, int64_t time_ns);

void wr_recovery_cells_fini(struct wr_recovery_cells *cells);

#endif
