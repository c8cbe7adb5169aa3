#include "status_collector.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../plugins/state_folder.h"
#include "common/command.h"
#include "common/figures.h"
#include "common/http_client.h"
#include "common/json.h"
#include "common/live_table.h"
#include "text/buffer.h"
#include "text/common.h"

enum { TOKEN_ROOM = 514, NAME_COLUMNS = 24, STATE_COLUMNS = 10, COUNT_COLUMNS = 12 };

/* ---- Asking ---------------------------------------------------------------------------------- */

/* The user's own token is sent to nobody else. Only HOST or HOST:PORT is accepted: in HOST:PASSWORD@OTHER the
 * host is what follows. */
static bool is_local(const char *url)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host = strstr(url, "//") + 2;
    for (size_t i = 0; i < WR_COUNT_OF(hosts); i++) {
        size_t length = strlen(hosts[i]);
        if (strncmp(host, hosts[i], length) != 0)
            continue;
        const char *end = host + length;
        end += *end == ':' ? 1 + strspn(end + 1, "0123456789") : 0;
        return !*end || *end == '/';
    }
    return false;
}

/* Returns false after printing why. */
static bool read_token(const char *path, char token[TOKEN_ROOM])
{
    FILE *file = fopen(path, "re");
    if (!file || !fgets(token, TOKEN_ROOM, file))
        *token = '\0';
    int problem = errno;
    if (file)
        fclose(file);
    token[strcspn(token, " \r\n")] = '\0';
    if (!*token)
        command_fail("token file %s: %s", path, file ? "it is empty" : strerror(problem));
    return *token;
}

static bool find_token(const struct status_collector *collector, char token[TOKEN_ROOM])
{
    *token = '\0';
    if (collector->token_file)
        return read_token(collector->token_file, token);
    char *path = is_local(collector->url) ? state_folder_find("collector/token") : NULL;
    bool is_found = !path || access(path, F_OK) != 0 || read_token(path, token);
    free(path);
    return is_found;
}

static char *make_url(const char *url)
{
    struct wr_buffer path = {0};
    size_t length = strlen(url);
    while (length && url[length - 1] == '/')
        length--;
    wr_buffer_put(&path, url, length);
    wr_buffer_put_text(&path, "/api/v1/status");
    return command_take(&path);
}

static struct json_object *ask(const struct status_collector *collector, const char *token)
{
    char header[TOKEN_ROOM + 32];
    char *url = make_url(collector->url);
    snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    const struct http_call call = {.url = url, .method = "GET", .headers = {*token ? header : NULL}};
    struct json_object *reply = http_client_ask("status", "a collector", &call);
    free(url);
    return reply;
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static const char *text_of(struct json_object *object, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(object, key));
    return text ? text : "";
}

static void put_text(struct wr_buffer *out, const char *text, size_t columns)
{
    live_table_put_cut(out, text, columns);
    wr_buffer_put_char(out, ' ');
}

static void put_count(struct wr_buffer *out, uint64_t count)
{
    struct wr_buffer cell = {0};
    figures_put_scaled(&cell, (double)count);
    live_table_put_right(out, &cell, COUNT_COLUMNS);
}

/* Counts, and objects of counts, which are summed. */
static uint64_t count_of(struct json_object *object, const char *key)
{
    struct json_object *found = json_object_object_get(object, key);
    uint64_t sum = 0;
    if (!json_object_is_type(found, json_type_object))
        return json_object_get_uint64(found);
    json_object_object_foreach(found, reason, count)
    {
        (void)reason;
        sum += json_object_get_uint64(count);
    }
    return sum;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void put_head(struct wr_buffer *out, const char *url, struct json_object *reply,
                     const struct figures_screen *screen)
{
    struct json_object *store = json_object_object_get(reply, "store");
    double up_s = json_object_get_double(json_object_object_get(reply, "now")) -
                  json_object_get_double(json_object_object_get(reply, "started"));
    wr_buffer_put_format(out, "%s  process %" PRIu64 ", up ", url, count_of(reply, "pid"));
    figures_put_duration(out, (int64_t)(up_s * 1e9));
    wr_buffer_put_text(out, "; ");
    figures_put_count(out, (double)count_of(store, "values"));
    wr_buffer_put_text(out, " values in ");
    figures_put_count(out, (double)count_of(store, "series"));
    wr_buffer_put_text(out, " series, ");
    figures_put_bytes(out, (double)count_of(store, "size_bytes"));
    live_table_end_line(out, screen);
}

static void put_problems(struct wr_buffer *out, struct json_object *reply, const struct figures_screen *screen)
{
    struct json_object *problems = json_object_object_get(reply, "problems");
    size_t count = json_object_array_length(problems);
    if (!count)
        wr_buffer_put_text(out, "nothing is wrong, and nothing was lost");
    for (size_t i = 0; i < count; i++) {
        struct json_object *problem = json_object_array_get_idx(problems, i);
        bool is_error = strcmp(text_of(problem, "severity"), "error") == 0;
        wr_buffer_put_text(out, !screen->has_colours ? "" : is_error ? "\033[31m" : "\033[33m");
        wr_buffer_put_text(out, is_error ? "error    " : "warning  ");
        wr_buffer_put_text(out, screen->has_colours ? "\033[0m" : "");
        command_put_text(out, text_of(problem, "where"));
        wr_buffer_put_text(out, ": ");
        command_put_text(out, text_of(problem, "text"));
        if (i + 1 < count)
            live_table_end_line(out, screen);
    }
    live_table_end_line(out, screen);
}

/* A table of the elements of an array: name, state, and counts. */
static void put_table(struct wr_buffer *out, struct json_object *reply, const char *array_name,
                      const char *title, const char *const *columns, const struct figures_screen *screen)
{
    struct json_object *array = json_object_object_get(reply, array_name);
    size_t count = json_object_array_length(array);
    if (!count)
        return;
    live_table_end_line(out, screen);
    wr_buffer_put_text(out, screen->has_colours ? "\033[1m" : "");
    put_text(out, title, NAME_COLUMNS);
    put_text(out, "state", STATE_COLUMNS);
    for (size_t i = 0; columns[i]; i++)
        figures_put_cell(out, columns[i], -COUNT_COLUMNS);
    wr_buffer_put_text(out, screen->has_colours ? "\033[0m" : "");
    live_table_end_line(out, screen);
    for (size_t i = 0; i < count; i++) {
        struct json_object *element = json_object_array_get_idx(array, i);
        put_text(out, text_of(element, "name"), NAME_COLUMNS);
        put_text(out, text_of(element, "state"), STATE_COLUMNS);
        for (size_t k = 0; columns[k]; k++)
            put_count(out, count_of(element, columns[k]));
        live_table_end_line(out, screen);
    }
}

static void put_reply(struct wr_buffer *out, const char *url, struct json_object *reply,
                      const struct figures_screen *screen)
{
    static const char *const handler_columns[] = {"offered", "delivered", "dropped", "queued", "spooled", NULL};
    static const char *const source_columns[] = {"added", "refused", "bad_lines", "lost", NULL};
    static const char *const sender_columns[] = {"added", "delivered", "waiting", "lost", "received", NULL};
    put_head(out, url, reply, screen);
    put_problems(out, reply, screen);
    put_table(out, reply, "senders", "sender", sender_columns, screen);
    put_table(out, reply, "sources", "source", source_columns, screen);
    put_table(out, reply, "handlers", "handler", handler_columns, screen);
}

/* ---- Showing --------------------------------------------------------------------------------- */

static int print_reply(const struct status_collector *collector, struct json_object *reply, bool again)
{
    struct wr_buffer out = {0};
    if (collector->json)
        return json_print(reply, JSON_LINES, EXIT_SUCCESS);
    struct figures_screen screen = figures_screen_of(STDOUT_FILENO);
    screen.is_terminal &= collector->every_ns != 0; /* once: below what is there */
    live_table_start(&out, &screen, again);
    put_reply(&out, collector->url, reply, &screen);
    json_object_put(reply);
    return live_table_finish(&out, &screen);
}

int status_collector_show(const struct status_collector *collector)
{
    char token[TOKEN_ROOM];
    if (!find_token(collector, token) || !http_client_load("status"))
        return EXIT_FAILURE;
    for (bool again = false;; again = true) {
        struct json_object *reply = ask(collector, token);
        if (!reply || print_reply(collector, reply, again) != EXIT_SUCCESS)
            return EXIT_FAILURE;
        if (!collector->every_ns)
            return EXIT_SUCCESS;
        live_table_pause(collector->every_ns);
    }
}
