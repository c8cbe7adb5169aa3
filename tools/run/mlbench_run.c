#include "mlbench_run.h"

#include <ctype.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "common/http_client.h"
#include "text/buffer.h"
#include "text/escape.h"

/* ---- URLs ------------------------------------------------------------------------------------ */

bool mlbench_run_set_url(struct mlbench_run *run, const char *url)
{
    struct wr_buffer api = {0};
    size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
    size_t length = strlen(url);
    bool is_url = scheme && url[scheme] && url[scheme] != '/' && strcspn(url, "?# \t\n\"<>") == length;
    if (!is_url)
        return false;
    while (url[length - 1] == '/')
        length--;
    wr_buffer_put(&api, url, length);
    wr_buffer_put_text(&api, command_has_ending(url, length, "/api") ? "/" : "/api/");
    run->api = wr_buffer_take(&api);
    if (!run->api)
        command_out_of_memory();
    return true;
}

const char *mlbench_run_put_id(const struct mlbench_run *run, char *text)
{
    snprintf(text, MLBENCH_ID_BYTES, "%" PRId64, run->id);
    return text;
}

char *mlbench_run_values_url(const struct mlbench_run *run)
{
    struct wr_buffer url = {0};
    wr_buffer_put_format(&url, "%smetrics/?run_id=%" PRId64 "&names=full&omit=command," MLBENCH_RUN_LABEL,
                         run->api, run->id);
    return wr_buffer_take(&url);
}

/* Returns the response's object, which the caller owns; NULL after printing why. */
static struct json_object *request(const char *url, const char *method, const char *type, const char *body)
{
    const struct http_call call = {.url = url, .method = method, .headers = {type}, .body = body};
    return http_client_ask("--mlbench", "an MLBench server", &call);
}

/* ---- The run --------------------------------------------------------------------------------- */

/* MLBench allows letters a-z, digits and -. */
static void put_name(struct wr_buffer *out, const char *name)
{
    enum { NAME_MOST = 50 };
    size_t start = out->length;
    for (; *name && out->length < start + NAME_MOST; name++) {
        bool is_allowed = isascii((unsigned char)*name) && isalnum((unsigned char)*name);
        if (is_allowed)
            wr_buffer_put_char(out, (char)tolower((unsigned char)*name));
        else if (out->length > start && out->data[out->length - 1] != '-')
            wr_buffer_put_char(out, '-');
    }
    while (out->length > start && out->data[out->length - 1] == '-')
        out->length--;
    if (out->length == start)
        wr_buffer_put_text(out, "run");
}

/* The form describes a job that MLBench would start; the collector starts none. */
static char *make_form(const char *name, const char *title)
{
    struct wr_buffer form = {0};
    wr_buffer_put_text(&form, "name=");
    put_name(&form, name);
    wr_buffer_put_text(&form, "&num_workers=1&image_name=custom_image&custom_image_name=");
    put_name(&form, name);
    wr_buffer_put_text(&form,
                       "&gpu_enabled=false&backend=custom_backend&custom_backend=none&run_all_nodes=false"
                       "&light_target=false&custom_image_command=");
    wr_escape_form(&form, title);
    return wr_buffer_take(&form);
}

static char *make_url(const struct mlbench_run *run)
{
    struct wr_buffer url = {0};
    wr_buffer_put_format(&url, "%sruns/", run->api);
    if (run->id)
        wr_buffer_put_format(&url, "%" PRId64 "/", run->id);
    return wr_buffer_take(&url);
}

bool mlbench_run_create(struct mlbench_run *run, const char *name, const char *title)
{
    if (!http_client_load("--mlbench"))
        return false;
    char *form = make_form(name, title), *url = make_url(run);
    if (!form || !url)
        command_out_of_memory();
    struct json_object *reply = request(url, "POST", "Content-Type: application/x-www-form-urlencoded", form);
    run->id = json_object_get_int64(json_object_object_get(reply, "id"));
    if (reply && run->id <= 0)
        command_fail("--mlbench: %s: the response has no id", url);
    json_object_put(reply);
    free(form);
    free(url);
    return run->id > 0;
}

bool mlbench_run_set_state(const struct mlbench_run *run, const char *state)
{
    struct wr_buffer body = {0};
    wr_buffer_put_format(&body, "{\"state\": \"%s\"}", state);
    const char *text = wr_buffer_text(&body);
    char *url = make_url(run);
    if (!text || !url)
        command_out_of_memory();
    struct json_object *reply = request(url, "PATCH", "Content-Type: application/json", text);
    bool is_set = reply;
    json_object_put(reply);
    wr_buffer_fini(&body);
    free(url);
    return is_set;
}
