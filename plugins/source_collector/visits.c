#include "visits.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../store/store_file.h"
#include "../system.h"
#include "json_text.h"
#include "status.h"

enum {
    SHOWN_MOST = 63,     /* of a source's senders, see weir_senders: who else is there is not known */
    MARKS_MOST = 100000, /* in the file */
    WAIT_MS = 200,       /* for others that write: meanwhile no request is handled */
};

/* ---- Who is there ---------------------------------------------------------------------------- */

static size_t length_of(struct json_object *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* Adds the senders of a source with a state to a set, as "SENDER (source SOURCE)". */
static void put_senders(struct json_object *set, struct json_object *source, const char *state)
{
    char text[512];
    struct json_object *senders = json_object_object_get(source, "senders");
    for (size_t i = 0; i < length_of(senders); i++) {
        struct json_object *sender = json_object_array_get_idx(senders, i);
        if (strcmp(json_text_of(sender, "state"), state) != 0)
            continue;
        snprintf(text, sizeof text, "%.200s (source %.200s)", json_text_of(sender, "name"),
                 json_text_of(source, "name"));
        json_object_object_add(set, text, json_object_new_boolean(true));
    }
}

/* Returns false if some are not shown. */
static bool find_senders(struct json_object *process, struct json_object *connected,
                         struct json_object *vanished)
{
    struct json_object *sources = json_object_object_get(process, "sources");
    for (size_t i = 0; i < length_of(sources); i++) {
        struct json_object *source = json_object_array_get_idx(sources, i);
        if (length_of(json_object_object_get(source, "senders")) >= SHOWN_MOST)
            return false;
        put_senders(connected, source, "connected");
        put_senders(vanished, source, "vanished");
    }
    return true;
}

/* ---- Storing --------------------------------------------------------------------------------- */

struct marks {
    sqlite3_stmt *put;
    int64_t now_us;
    int code;
};

static void put_mark(struct marks *marks, const char *kind, const char *name, const char *what)
{
    char text[512];
    if (marks->code)
        return;
    snprintf(text, sizeof text, "%.450s %s", name, what);
    sqlite3_bind_int64(marks->put, 1, marks->now_us);
    sqlite3_bind_text(marks->put, 2, kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(marks->put, 3, text, -1, SQLITE_STATIC);
    marks->code = store_file_step(marks->put);
}

static void put_differences(struct marks *marks, struct json_object *known, struct json_object *connected,
                            struct json_object *vanished)
{
    json_object_object_foreach(connected, joined, unused)
    {
        (void)unused;
        if (!json_object_object_get(known, joined))
            put_mark(marks, "sender_joined", joined, "has joined");
    }
    json_object_object_foreach(known, left, ignored)
    {
        (void)ignored;
        if (!json_object_object_get(connected, left))
            put_mark(marks, "sender_left", left,
                     json_object_object_get(vanished, left) ? "has vanished" : "has ended");
    }
}

static bool is_equal(struct json_object *known, struct json_object *connected)
{
    if (json_object_object_length(known) != json_object_object_length(connected))
        return false;
    json_object_object_foreach(known, name, unused)
    {
        (void)unused;
        if (!json_object_object_get(connected, name))
            return false;
    }
    return true;
}

static int store(sqlite3 *db, struct json_object *known, struct json_object *connected,
                 struct json_object *vanished)
{
    struct marks marks = {.now_us = wr_system_clock_ns(CLOCK_REALTIME) / 1000};
    marks.code =
        sqlite3_prepare_v2(db, "INSERT INTO marks (at_us, kind, text) VALUES (?, ?, ?)", -1, &marks.put, NULL);
    if (!marks.code)
        marks.code = store_file_run(db, "BEGIN IMMEDIATE");
    put_differences(&marks, known, connected, vanished);
    sqlite3_finalize(marks.put);
    char *forget =
        sqlite3_mprintf("DELETE FROM marks WHERE id <= (SELECT max(id) FROM marks) - %d", MARKS_MOST);
    if (!marks.code)
        marks.code = forget ? store_file_run(db, forget) : SQLITE_NOMEM;
    sqlite3_free(forget);
    if (!marks.code)
        marks.code = store_file_run(db, "COMMIT");
    if (!sqlite3_get_autocommit(db))
        store_file_run(db, "ROLLBACK");
    return marks.code;
}

/* ---- Updating -------------------------------------------------------------------------------- */

static bool store_soon(const struct status *status, struct json_object *known, struct json_object *connected,
                       struct json_object *vanished)
{
    sqlite3_busy_timeout(status->db, WAIT_MS);
    int code = store(status->db, known, connected, vanished);
    sqlite3_busy_timeout(status->db, (int)status->busy_ms);
    return code == SQLITE_OK;
}

void visits_update(struct visits *visits, const struct status *status)
{
    struct json_object *process = status_read(status);
    struct json_object *connected = json_object_new_object(), *vanished = json_object_new_object();
    if (!visits->known)
        visits->known = json_object_new_object();
    if (process && connected && vanished && visits->known && find_senders(process, connected, vanished) &&
        !is_equal(visits->known, connected) && store_soon(status, visits->known, connected, vanished)) {
        struct json_object *before = visits->known;
        visits->known = connected;
        connected = before;
    }
    json_object_put(process);
    json_object_put(connected);
    json_object_put(vanished);
}

void visits_fini(struct visits *visits)
{
    json_object_put(visits->known);
    visits->known = NULL;
}
