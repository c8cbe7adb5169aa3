/* /api/v1/groups, /api/v1/series and /api/v1/labels: which series there are. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api_call.h"
#include "json_text.h"

enum { SERIES = 100, SERIES_MOST = 1000, WORDS_MOST = 10, LABELS_MOST = 10, VALUES_MOST = 10000 };

/* ---- What is known of a series --------------------------------------------------------------- */

static const char *instrument_name(int instrument)
{
    static const char *const names[] = {"value", "counter", "gauge", "histogram"};
    return instrument >= 0 && instrument < 4 ? names[instrument] : names[0];
}

void api_put_info(struct wr_buffer *out, const struct series_info *info)
{
    wr_buffer_put_format(out, "{\"id\":%" PRId64, info->id);
    json_text_put_name(out, "group");
    json_text_put_string(out, info->group);
    json_text_put_name(out, "name");
    json_text_put_string(out, info->name);
    json_text_put_name(out, "labels");
    wr_buffer_put_text(out, info->labels);
    wr_buffer_put_format(out, ",\"cumulative\":%s,\"instrument\":\"%s\"",
                         info->is_cumulative ? "true" : "false", instrument_name(info->instrument));
    json_text_put_name(out, "unit");
    json_text_put_string(out, info->unit);
    json_text_put_name(out, "help");
    json_text_put_string(out, info->help);
}

/* What a series has, in chunks and the tail. */
struct extent {
    uint64_t count;
    int64_t first_ns, last_ns;
    struct chunk_point last;
};

static void extend(struct extent *extent, uint64_t count, int64_t first_ns, int64_t last_ns)
{
    if (!extent->count || first_ns < extent->first_ns)
        extent->first_ns = first_ns;
    if (!extent->count || last_ns >= extent->last_ns)
        extent->last_ns = last_ns;
    extent->count += count;
}

/* The last value: of the piece that ends last; of equal ones the one that came later. */
static int find_last(struct reader *reader, const struct pieces *pieces, struct extent *extent)
{
    const struct piece *last = NULL;
    const struct chunk_point *points;
    size_t count;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece *piece = &pieces->all[i];
        if (!last || piece->last_ns > last->last_ns ||
            (piece->last_ns == last->last_ns && piece->id > last->id))
            last = piece;
    }
    int code = last ? reader_get(reader, pieces, last, &points, &count) : SQLITE_OK;
    if (last && !code)
        extent->last = points[count - 1];
    return code;
}

static int find_extent(struct reader *reader, int64_t series, struct extent *extent)
{
    struct pieces pieces;
    *extent = (struct extent){0};
    int code = reader_find(reader, series, INT64_MIN, INT64_MAX, false, &pieces);
    for (size_t i = 0; !code && i < pieces.count; i++)
        extend(extent, pieces.all[i].totals.count, pieces.all[i].first_ns, pieces.all[i].last_ns);
    if (!code)
        code = find_last(reader, &pieces, extent);
    pieces_fini(&pieces);
    return code ? code : reader_check(reader);
}

static void put_extent(struct wr_buffer *out, const struct extent *extent)
{
    json_text_put_name(out, "count");
    json_text_put_int(out, (int64_t)extent->count);
    if (!extent->count) {
        wr_buffer_put_text(out, ",\"first\":null,\"last\":null,\"last_value\":null");
        return;
    }
    json_text_put_name(out, "first");
    json_text_put_time(out, extent->first_ns);
    json_text_put_name(out, "last");
    json_text_put_time(out, extent->last_ns);
    json_text_put_name(out, "last_value");
    json_text_put_point(out, &extent->last);
}

/* ---- Which are wanted ------------------------------------------------------------------------ */

/* The condition as SQL; all texts of the request are bound, in order. */
struct filter {
    struct wr_buffer sql;
    const char *texts[2 * LABELS_MOST + WORDS_MOST + 4];
    int count;
    char *copies[LABELS_MOST + 1]; /* owned */
    int copy_count;
};

static void filter_fini(struct filter *filter)
{
    for (int i = 0; i < filter->copy_count; i++)
        free(filter->copies[i]);
    wr_buffer_fini(&filter->sql);
}

static void put_condition(struct filter *filter, const char *sql, const char *text)
{
    wr_buffer_put_text(&filter->sql, " AND ");
    wr_buffer_put_text(&filter->sql, sql);
    filter->texts[filter->count++] = text;
}

static bool put_label(struct api_call *call, struct filter *filter, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return query_fail(&call->query, "label", "it is not KEY=VALUE");
    if (filter->copy_count == LABELS_MOST)
        return query_fail(&call->query, "label", "there are too many; allowed: %d", LABELS_MOST);
    char *key = strndup(text, (size_t)(equals - text));
    if (!key)
        return api_check(call, SQLITE_NOMEM);
    filter->copies[filter->copy_count++] = key;
    put_condition(filter, "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND value = ?)", key);
    filter->texts[filter->count++] = equals + 1;
    return true;
}

static bool put_words(struct api_call *call, struct filter *filter, const char *search)
{
    char *copy = strdup(search), *rest = copy;
    int words = 0;
    if (!copy)
        return api_check(call, SQLITE_NOMEM);
    filter->copies[filter->copy_count++] = copy;
    for (char *word; (word = strsep(&rest, " \t"));) {
        if (!*word)
            continue;
        if (words++ == WORDS_MOST)
            return query_fail(&call->query, "search", "there are too many words; allowed: %d", WORDS_MOST);
        put_condition(filter, "instr(lower(group_name || ' ' || name || ' ' || labels), lower(?)) > 0", word);
    }
    return true;
}

static bool put_filter(struct api_call *call, struct filter *filter)
{
    const struct query *query = &call->query;
    const char *group = query_get(query, "group"), *name = query_get(query, "name"),
               *search = query_get(query, "search");
    bool is_inside = false, is_good = query_bool(&call->query, "inside", &is_inside);
    if (group)
        put_condition(filter,
                      is_inside ? "(group_name = ?1 OR substr(group_name, 1, length(?1) + 1) = ?1 || '.')"
                                : "group_name = ?1",
                      group);
    if (name)
        put_condition(filter, "name = ?", name);
    for (size_t i = 0; is_good && i < query->count; i++)
        if (strcmp(query->all[i].name, "label") == 0)
            is_good = put_label(call, filter, query->all[i].value);
    return is_good && (!search || put_words(call, filter, search));
}

static sqlite3_stmt *prepare_filtered(struct api_call *call, struct filter *filter, const char *text)
{
    struct wr_buffer sql = {0};
    wr_buffer_put_text(&sql, text);
    wr_buffer_put(&sql, filter->sql.data, filter->sql.length);
    const char *whole = filter->sql.failed ? NULL : wr_buffer_text(&sql);
    sqlite3_stmt *statement = NULL;
    if (!whole)
        api_check(call, SQLITE_NOMEM);
    else
        statement = api_prepare(call, whole, "");
    for (int i = 0; statement && i < filter->count; i++)
        sqlite3_bind_text(statement, i + 1, filter->texts[i], -1, SQLITE_STATIC);
    wr_buffer_fini(&sql);
    return statement;
}

/* ---- Series ---------------------------------------------------------------------------------- */

struct page {
    int64_t ids[QUERY_IDS];
    size_t id_count;
    int64_t limit, after;
};

static void put_page(struct filter *filter, const struct page *page)
{
    wr_buffer_put_format(&filter->sql, " AND id > %" PRId64, page->after);
    for (size_t i = 0; i < page->id_count; i++)
        wr_buffer_put_format(&filter->sql, "%s%" PRId64, i ? "," : " AND id IN (", page->ids[i]);
    wr_buffer_put_format(&filter->sql, "%s ORDER BY id LIMIT %" PRId64, page->id_count ? ")" : "",
                         page->limit + 1);
}

static bool put_series(struct api_call *call, sqlite3_stmt *row, bool is_first)
{
    struct series_info info;
    struct extent extent;
    bool is_good = api_check(call, api_read_info(row, &info) ? SQLITE_OK : SQLITE_NOMEM) &&
                   api_check(call, find_extent(call->reader, info.id, &extent));
    if (is_good) {
        wr_buffer_put_text(&call->out, is_first ? "" : ",");
        api_put_info(&call->out, &info);
        put_extent(&call->out, &extent);
        wr_buffer_put_char(&call->out, '}');
    }
    api_free_info(&info);
    return is_good;
}

static bool put_list(struct api_call *call, struct filter *filter, const struct page *page)
{
    sqlite3_stmt *statement =
        prepare_filtered(call, filter, "SELECT " API_SERIES_COLUMNS " FROM series WHERE 1");
    int64_t count = 0, last = 0;
    bool is_good = statement, has_more = false;
    wr_buffer_put_text(&call->out, "{\"series\":[");
    while (is_good && !has_more && sqlite3_step(statement) == SQLITE_ROW) {
        has_more = count == page->limit;
        if (has_more)
            break;
        last = sqlite3_column_int64(statement, 0);
        is_good = put_series(call, statement, !count++);
    }
    is_good = api_finish(call, statement) && is_good;
    wr_buffer_put_text(&call->out, "],\"next\":");
    if (has_more)
        json_text_put_int(&call->out, last);
    wr_buffer_put_text(&call->out, has_more ? "}" : "null}");
    return is_good;
}

bool api_series(struct api_call *call)
{
    struct query *query = &call->query;
    struct page page = {.limit = SERIES};
    struct filter filter = {0};
    bool is_good = query_ids(query, "ids", page.ids, &page.id_count) &&
                   query_integer(query, "limit", 1, SERIES_MOST, &page.limit) &&
                   query_integer(query, "after", 0, INT64_MAX, &page.after) && put_filter(call, &filter);
    if (is_good) {
        put_page(&filter, &page);
        is_good = put_list(call, &filter, &page);
    }
    filter_fini(&filter);
    return is_good;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static bool put_labels(struct api_call *call, sqlite3_stmt *statement)
{
    struct wr_buffer *out = &call->out;
    char *key = NULL;
    bool is_good = true;
    wr_buffer_put_text(out, "{\"labels\":{");
    while (is_good && sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        bool is_new = !key || strcmp(key, name) != 0;
        if (is_new) {
            wr_buffer_put_text(out, key ? "]," : "");
            json_text_put_string(out, name);
            wr_buffer_put_text(out, ":[");
            free(key);
            key = strdup(name);
            is_good = api_check(call, key ? SQLITE_OK : SQLITE_NOMEM);
        } else
            wr_buffer_put_char(out, ',');
        json_text_put_string(out, (const char *)sqlite3_column_text(statement, 1));
    }
    wr_buffer_put_text(out, key ? "]}}" : "}}");
    free(key);
    return is_good;
}

bool api_labels(struct api_call *call)
{
    struct filter filter = {0};
    bool is_good = put_filter(call, &filter);
    if (is_good) {
        wr_buffer_put_format(&filter.sql, " ORDER BY 1, 2 LIMIT %d", VALUES_MOST);
        sqlite3_stmt *statement = prepare_filtered(
            call, &filter, "SELECT DISTINCT key, value FROM series, json_each(series.labels) WHERE 1");
        is_good = statement && put_labels(call, statement);
        is_good = api_finish(call, statement) && is_good;
    }
    filter_fini(&filter);
    return is_good;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* The time of the last value, by the tail in memory and the index of chunks. */
static int64_t last_of_tail(const struct tail *tail, int64_t series)
{
    int64_t last_ns = INT64_MIN;
    for (const struct tail_row *row = tail_last(tail, series); row; row = tail_before(tail, row))
        last_ns = row->time_ns > last_ns ? row->time_ns : last_ns;
    return last_ns;
}

static void put_group(struct wr_buffer *out, const char *group, int64_t series, int64_t last_ns, bool is_first)
{
    wr_buffer_put_text(out, is_first ? "{\"group\":" : ",{\"group\":");
    json_text_put_string(out, group);
    wr_buffer_put_format(out, ",\"series\":%" PRId64 ",\"last\":", series);
    if (last_ns == INT64_MIN)
        wr_buffer_put_text(out, "null");
    else
        json_text_put_time(out, last_ns);
    wr_buffer_put_char(out, '}');
}

struct group {
    char *name;
    int64_t series, last_ns;
    bool is_first;
};

static bool take_series(struct api_call *call, sqlite3_stmt *row, struct group *group)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    int64_t last_ns = sqlite3_column_type(row, 2) == SQLITE_NULL ? INT64_MIN : sqlite3_column_int64(row, 2);
    int64_t tail_ns = last_of_tail(&call->reader->tail, sqlite3_column_int64(row, 1));
    last_ns = tail_ns > last_ns ? tail_ns : last_ns;
    if (!group->name || strcmp(group->name, name) != 0) {
        if (group->name)
            put_group(&call->out, group->name, group->series, group->last_ns, group->is_first);
        bool is_first = !group->name;
        free(group->name);
        *group = (struct group){.name = strdup(name), .last_ns = INT64_MIN, .is_first = is_first};
        if (!group->name)
            return api_check(call, SQLITE_NOMEM);
    }
    group->series++;
    group->last_ns = last_ns > group->last_ns ? last_ns : group->last_ns;
    return true;
}

bool api_groups(struct api_call *call)
{
    struct group group = {0};
    sqlite3_stmt *statement = api_prepare(
        call,
        "SELECT group_name, id, (SELECT max(last_ns) FROM chunks WHERE chunks.series = series.id) FROM "
        "series ORDER BY group_name",
        "");
    bool is_good = statement;
    wr_buffer_put_text(&call->out, "{\"groups\":[");
    while (is_good && sqlite3_step(statement) == SQLITE_ROW)
        is_good = take_series(call, statement, &group);
    is_good = api_finish(call, statement) && is_good;
    if (group.name)
        put_group(&call->out, group.name, group.series, group.last_ns, group.is_first);
    wr_buffer_put_text(&call->out, "]}");
    free(group.name);
    return is_good;
}
