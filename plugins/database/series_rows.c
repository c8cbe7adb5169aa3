#include "series_rows.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "registry/labels_walk.h"
#include "text/array.h"

void series_rows_fini(struct series_rows *rows)
{
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

void series_rows_begin(struct series_rows *rows, const weir_batch *batch)
{
    const uint64_t hash = wr_labels_hash(batch);
    if (hash != rows->labels_hash)
        series_rows_clear(rows);
    rows->labels_hash = hash;
}

struct series_row *series_rows_find(struct series_rows *rows, uint32_t id)
{
    uint32_t page = id / SERIES_ROWS_IN_PAGE;
    if (!WR_ARRAY_HAS_ROOM(&rows->pages, &rows->room, page + 1))
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

static void put_text(sqlite3_str *json, const char *text)
{
    sqlite3_str_appendchar(json, 1, '"');
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20)
            sqlite3_str_appendf(json, "\\u%04x", *text);
        else if (*text == '"' || *text == '\\')
            sqlite3_str_appendf(json, "\\%c", *text);
        else
            sqlite3_str_appendchar(json, 1, *text);
    }
    sqlite3_str_appendchar(json, 1, '"');
}

char *series_rows_labels(const weir_batch *batch, const weir_series *series)
{
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    sqlite3_str *json = sqlite3_str_new(NULL);
    sqlite3_str_appendchar(json, 1, '{');
    while ((label = wr_labels_next(&walk, series, batch))) {
        if (sqlite3_str_length(json) > 1)
            sqlite3_str_appendchar(json, 1, ',');
        put_text(json, label->key);
        sqlite3_str_appendchar(json, 1, ':');
        put_text(json, label->value);
    }
    sqlite3_str_appendchar(json, 1, '}');
    return sqlite3_str_finish(json);
}
