#include "page.h"

#include <stdint.h>
#include <string.h>

#include "../gzip.h"
#include "accepts.h"
#include "text/buffer.h"

enum { GZIP_FROM = 1024 };

/* Takes the response over. */
static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status,
                               struct MHD_Response *response)
{
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result page_refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    if (response) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
            MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    return respond(connection, status, response);
}

static void log_clash(struct state *state)
{
    state->host->log(state->host, WEIR_LOG_WARNING,
                     "some names or labels are equal once they are written for Prometheus; words like "
                     "\"_value\" and the labels \"group\", \"weir_name\" and \"weir_labels\" keep them apart");
}

static void write_own(struct state *state, struct wr_buffer *page)
{
    int count = unscraped_count(state->family);
    if (count < 0)
        return;
    wr_buffer_put_text(page, "# HELP " WR_EXPOSITION_OWN
                             " processes with this address whose values are not on this page\n"
                             "# TYPE " WR_EXPOSITION_OWN " gauge\n");
    wr_buffer_put_format(page, WR_EXPOSITION_OWN " %d\n", count);
}

static bool take_snapshot(struct state *state)
{
    pthread_mutex_lock(&state->lock);
    series_table_expire(&state->table, state_now_ns() - state->expiry_ns);
    bool done = series_table_take_snapshot(&state->table, &state->snapshot);
    pthread_mutex_unlock(&state->lock);
    return done;
}

static void release_snapshot(struct state *state)
{
    pthread_mutex_lock(&state->lock);
    series_table_release_snapshot(&state->table, &state->snapshot);
    pthread_mutex_unlock(&state->lock);
}

static void write_page(struct state *state, struct wr_buffer *page, enum wr_exposition_format format)
{
    write_own(state, page);
    if (!take_snapshot(state)) {
        page->failed = true;
        return;
    }
    bool has_clashes = wr_exposition_write(page, state->snapshot.entries, state->snapshot.count, format);
    release_snapshot(state);
    if (has_clashes && !state->has_logged_clash)
        log_clash(state);
    state->has_logged_clash |= has_clashes;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

enum MHD_Result page_respond(struct state *state, struct MHD_Connection *connection)
{
    bool openmetrics = accepts_openmetrics(header_of(connection, MHD_HTTP_HEADER_ACCEPT));
    enum wr_exposition_format format = openmetrics ? WR_EXPOSITION_OPENMETRICS : WR_EXPOSITION_TEXT;
    struct wr_buffer page = {0};
    write_page(state, &page, format);
    if (page.failed) {
        wr_buffer_fini(&page);
        return page_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    }
    bool zipped = page.length >= GZIP_FROM &&
                  accepts_gzip(header_of(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING)) && gzip_text(&page);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(page.length, page.data, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        wr_buffer_fini(&page);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            openmetrics ? WR_EXPOSITION_OPENMETRICS_TYPE : WR_EXPOSITION_TEXT_TYPE);
    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
    if (zipped)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    state->host->count(state->host, "scrapes", 1);
    return respond(connection, MHD_HTTP_OK, response);
}
