#include "series_rows.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "labels.h"

void series_rows_fini(struct series_rows *rows)
{
    sqlite3_free(rows->common_labels);
    series_rows_clear(rows);
    free(rows->pages);
    *rows = (struct series_rows){0};
}

void series_rows_clear(struct series_rows *rows)
{
    for (uint32_t i = 0; i < rows->room; i++) {
        free(rows->pages[i]);
        rows->pages[i] = NULL;
    }
}

bool series_rows_begin(struct series_rows *rows, const weir_batch *batch)
{
    char *json = wr_labels_to_json(batch->labels, batch->label_count, NULL, 0);
    if (!json)
        return false;
    if (!rows->common_labels || strcmp(json, rows->common_labels) != 0)
        series_rows_clear(rows);
    sqlite3_free(rows->common_labels);
    rows->common_labels = json;
    return true;
}

static bool grow(struct series_rows *rows, uint32_t page)
{
    uint32_t room = page < 16 ? 16 : 2 * page; /* at most UINT32_MAX / SERIES_ROWS_IN_PAGE * 2 */
    struct series_row **grown = realloc(rows->pages, room * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + rows->room, 0, (room - rows->room) * sizeof(*grown));
    rows->pages = grown;
    rows->room = room;
    return true;
}

struct series_row *series_rows_find(struct series_rows *rows, uint32_t id)
{
    uint32_t page = id / SERIES_ROWS_IN_PAGE;
    if (page >= rows->room && !grow(rows, page))
        return NULL;
    if (!rows->pages[page])
        rows->pages[page] = calloc(SERIES_ROWS_IN_PAGE, sizeof **rows->pages);
    return rows->pages[page] ? &rows->pages[page][id % SERIES_ROWS_IN_PAGE] : NULL;
}

bool series_row_is_current(const struct series_row *row, const weir_series *series)
{
    return row->row && row->serial == series->serial && row->unit == series->unit &&
           row->help == series->help && row->instrument == series->instrument;
}

struct series_row series_row_of(int64_t row, const weir_series *series)
{
    return (struct series_row){row, series->unit, series->help, series->instrument, series->serial};
}

char *series_rows_labels(const weir_batch *batch, const weir_series *series)
{
    size_t count;
    const weir_label *common = weir_batch_labels(batch, series, &count);
    return wr_labels_to_json(series->labels, series->label_count, common, count);
}
