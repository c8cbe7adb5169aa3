#include "store_writer.h"

#include <time.h>

#include "../system.h"
#include "store_file.h"

/* ---- Statements ------------------------------------------------------------------------------ */

int store_writer_init(struct store_writer *writer, sqlite3 *db)
{
    *writer = (struct store_writer){.db = db};
    const struct {
        sqlite3_stmt **statement;
        const char *text;
    } all[] = {
        {&writer->begin, "BEGIN IMMEDIATE"},
        {&writer->commit, "COMMIT"},
        {&writer->rollback, "ROLLBACK"},
        {&writer->put_series,
         "INSERT INTO series (group_name, name, labels, cumulative, unit, help, instrument) VALUES (?, ?, ?, "
         "?, ?, ?, ?) ON CONFLICT DO UPDATE SET instrument = excluded.instrument, unit = ifnull(excluded.unit, "
         "unit), help = ifnull(excluded.help, help) RETURNING id"},
        {&writer->put_sample, "INSERT INTO tail (series, time_ns, value) VALUES (?, ?, ?)"},
        {&writer->put_note, "INSERT INTO notes (series, time_ns, text, value) VALUES (?, ?, ?, ?)"},
        {&writer->get_next, "SELECT next FROM origins WHERE origin = ?"},
        {&writer->set_next,
         "INSERT INTO origins (origin, next, seen_s, since_us) VALUES (?, ?, ?3 / 1000000, ?3) "
         "ON CONFLICT DO UPDATE SET next = excluded.next, seen_s = excluded.seen_s"},
    };
    int code = SQLITE_OK;
    for (size_t i = 0; !code && i < sizeof all / sizeof *all; i++)
        code = store_file_prepare(db, all[i].text, all[i].statement);
    int64_t count = 0;
    if (!code)
        code = store_file_ask_number(db, "SELECT count(*) FROM tail", &count);
    writer->tail_count = (uint64_t)count;
    return code;
}

void store_writer_fini(struct store_writer *writer)
{
    sqlite3_stmt *const all[] = {writer->begin,      writer->commit,   writer->rollback, writer->put_series,
                                 writer->put_sample, writer->put_note, writer->get_next, writer->set_next};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sqlite3_finalize(all[i]);
    series_rows_fini(&writer->rows);
    *writer = (struct store_writer){0};
}

/* ---- Samples --------------------------------------------------------------------------------- */

static void bind_value(sqlite3_stmt *statement, int index, const weir_sample *sample)
{
    if (sample->kind == WEIR_KIND_INT)
        sqlite3_bind_int64(statement, index, sample->value.i64);
    else
        sqlite3_bind_double(statement, index, sample->value.f64);
}

static int put_note(const struct store_writer *writer, sqlite3_int64 row, const weir_sample *sample,
                    const char *text)
{
    sqlite3_bind_int64(writer->put_note, 1, row);
    sqlite3_bind_int64(writer->put_note, 2, sample->time_ns);
    sqlite3_bind_text(writer->put_note, 3, text, -1, SQLITE_STATIC);
    bind_value(writer->put_note, 4, sample);
    return store_file_step(writer->put_note);
}

static int put_sample(struct store_writer *writer, const weir_batch *batch, const weir_sample *sample)
{
    int64_t row;
    int code =
        series_rows_get(&writer->rows, writer->put_series, batch, weir_batch_series(batch, sample), &row);
    if (code)
        return code;
    sqlite3_stmt *statement = writer->put_sample;
    sqlite3_bind_int64(statement, 1, row);
    sqlite3_bind_int64(statement, 2, sample->time_ns);
    bind_value(statement, 3, sample);
    sqlite3_step(statement);
    code = sqlite3_reset(statement);
    return code || !sample->note ? code : put_note(writer, row, sample, batch->notes[sample->note]);
}

/* ---- Senders --------------------------------------------------------------------------------- */

/* How many samples at the front of the batch are there already: a process was killed, or the connection was
 * lost, between the commit and what the core learned of it. Within an origin, numbers come in order. */
static int find_repeats(struct store_writer *writer, const weir_batch *batch, uint32_t *repeats)
{
    sqlite3_int64 next = 0;
    sqlite3_bind_text(writer->get_next, 1, batch->origin, -1, SQLITE_STATIC);
    if (sqlite3_step(writer->get_next) == SQLITE_ROW)
        next = sqlite3_column_int64(writer->get_next, 0);
    uint64_t known = (uint64_t)next > batch->sequence ? (uint64_t)next - batch->sequence : 0;
    *repeats = known < batch->count ? (uint32_t)known : batch->count;
    return sqlite3_reset(writer->get_next);
}

static int set_next(const struct store_writer *writer, const weir_batch *batch)
{
    sqlite3_bind_text(writer->set_next, 1, batch->origin, -1, SQLITE_STATIC);
    sqlite3_bind_int64(writer->set_next, 2, (sqlite3_int64)(batch->sequence + batch->count));
    sqlite3_bind_int64(writer->set_next, 3, wr_system_clock_ns(CLOCK_REALTIME) / 1000);
    return store_file_step(writer->set_next);
}

int store_writer_put(struct store_writer *writer, const weir_batch *batch)
{
    uint32_t repeats = 0;
    writer->repeats = 0;
    series_rows_begin(&writer->rows, batch);
    int code = store_file_step(writer->begin);
    if (!code)
        code = find_repeats(writer, batch, &repeats);
    for (uint32_t i = repeats; !code && i < batch->count; i++)
        code = put_sample(writer, batch, &batch->samples[i]);
    if (!code && repeats < batch->count)
        code = set_next(writer, batch);
    if (!code)
        code = store_file_step(writer->commit);
    if (code)
        return code;
    writer->tail_count += batch->count - repeats;
    writer->repeats = repeats;
    return SQLITE_OK;
}

/* Some errors have already rolled back the transaction. */
void store_writer_roll_back(struct store_writer *writer)
{
    if (!sqlite3_get_autocommit(writer->db))
        store_file_step(writer->rollback);
    series_rows_clear(&writer->rows);
}
