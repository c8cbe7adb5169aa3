#include "series_rows.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "registry/labels_walk.h"
#include "text/array.h"

/* A series as it was inserted. */
struct series_row {
    int64_t row; /* 0: not inserted yet */
    const char *unit, *help;
    int32_t instrument;
    uint64_t serial;
};

/* Ids are dense in a process, as a rule, but may also be far apart. */
enum { ROWS_IN_PAGE = 256 };

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

/* ---- Labels ---------------------------------------------------------------------------------- */

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

/* Returns NULL if out of memory. */
static char *make_labels(const weir_batch *batch, const weir_series *series)
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

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Returns NULL if out of memory. */
static struct series_row *find_row(struct series_rows *rows, uint32_t id)
{
    uint32_t page = id / ROWS_IN_PAGE;
    if (!WR_ARRAY_HAS_ROOM(&rows->pages, &rows->room, page + 1))
        return NULL;
    if (!rows->pages[page])
        rows->pages[page] = calloc(ROWS_IN_PAGE, sizeof **rows->pages);
    return rows->pages[page] ? &rows->pages[page][id % ROWS_IN_PAGE] : NULL;
}

/* Whether the row was inserted, and nothing that it has of the series has changed since. */
static bool is_current(const struct series_row *row, const weir_series *series)
{
    return row->row && row->serial == series->serial && row->unit == series->unit &&
           row->help == series->help && row->instrument == series->instrument;
}

static int put_row(struct series_row *row, sqlite3_stmt *insert, const weir_batch *batch,
                   const weir_series *series)
{
    enum { INSTRUMENT = 7 };
    char *labels = make_labels(batch, series);
    if (!labels)
        return SQLITE_NOMEM;
    sqlite3_bind_text(insert, 1, series->group, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 2, series->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 3, labels, -1, sqlite3_free);
    sqlite3_bind_int(insert, 4, series->cumulative);
    sqlite3_bind_text(insert, 5, series->unit, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 6, series->help, -1, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(insert) >= INSTRUMENT)
        sqlite3_bind_int(insert, INSTRUMENT, series->instrument);
    if (sqlite3_step(insert) == SQLITE_ROW)
        *row = (struct series_row){sqlite3_column_int64(insert, 0), series->unit, series->help,
                                   series->instrument, series->serial};
    while (sqlite3_step(insert) == SQLITE_ROW)
        ;
    return sqlite3_reset(insert);
}

int series_rows_get(struct series_rows *rows, sqlite3_stmt *insert, const weir_batch *batch,
                    const weir_series *series, int64_t *row)
{
    struct series_row *known = find_row(rows, series->id);
    int code = known ? SQLITE_OK : SQLITE_NOMEM;
    if (!code && !is_current(known, series))
        code = put_row(known, insert, batch, series);
    *row = code ? 0 : known->row;
    return code;
}
