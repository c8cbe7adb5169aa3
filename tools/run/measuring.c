#include "measuring.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "common/command.h"
#include "common/json.h"
#include "config/config_read.h"
#include "config/tee.h"
#include "engine/engine.h"
#include "mlbench_run.h"
#include "runtime/configure.h"
#include "runtime/runtime.h"
#include "tally.h"
#include "text/buffer.h"
#include "text/error.h"
#include "text/units.h"

#define JOB_SOURCE "run.job"
#define MLBENCH_HANDLER "weir run mlbench" /* of the tee */

/* ---- Sources --------------------------------------------------------------------------------- */

/* The labels of a source's values. */
static struct json_object *add_labels(struct json_object *source, const struct measuring *measuring)
{
    char id[MLBENCH_ID_BYTES];
    struct json_object *labels = json_add_object(source, "labels");
    if (measuring->mlbench->id)
        json_add_text(labels, MLBENCH_RUN_LABEL, mlbench_run_put_id(measuring->mlbench, id));
    return labels;
}

static struct json_object *add_source(struct json_object *sources, const char *name, const char *type,
                                      const struct measuring *measuring)
{
    char interval[WR_UNITS_ROOM];
    struct json_object *source = json_add_object(sources, name);
    json_add_text(source, "type", type);
    json_add_text(source, "interval", wr_units_put_duration(interval, measuring->every_ns));
    json_add_expandable(add_labels(source, measuring), TALLY_LABEL, measuring->name);
    return source;
}

static struct wr_config *make_sources(const struct measuring *measuring, struct wr_error *error)
{
    struct json_object *root = json_start_object(), *sources = json_add_object(root, "sources");
    add_source(sources, "run.system", "system", measuring);
    struct json_object *process = add_source(sources, "run.process", "process", measuring);
    json_add_count(process, "pid", (uint64_t)measuring->pid);
    json_add_bool(process, "from_start", true);
    if (measuring->pipe) {
        struct json_object *job = json_add_object(sources, JOB_SOURCE);
        json_add_text(job, "type", "fifo");
        json_add_expandable(job, "path", measuring->pipe);
        json_add_text(job, "parse", "json");
        json_add_bool(job, "create", false);
        add_labels(job, measuring);
    }
    char *text = json_take(root);
    struct wr_config *config = wr_config_read_text("weir run", text, strlen(text), NULL, error);
    free(text);
    return config;
}

/* The file's sources are those of services: nobody else starts them. It is not read again. */
static bool add_sources(struct wr_config *config, const struct wr_config *sources, struct wr_error *error)
{
    config->settings.reload_ns = 0;
    config->source_count = 0;
    for (size_t i = 0; i < sources->source_count; i++)
        if (!wr_config_add_source(config, &sources->sources[i]))
            return wr_error_no_memory(error, NULL);
    return true;
}

/* ---- Starting -------------------------------------------------------------------------------- */

static struct json_object *add_handler(struct json_object *handlers, struct json_object *route,
                                       const char *name, const char *type)
{
    struct json_object *handler = json_add_object(handlers, name);
    json_add_text(handler, "type", type);
    json_add_text(handler, "queue", "16MiB");
    json_add_text(handler, "overflow", "block");
    json_add_text(handler, "block_timeout", "1d");
    json_add_text(route, NULL, name);
    return handler;
}

/* The machine is that of this process: the command's own values may be named alike. */
static void add_report(struct json_object *report, const struct measuring *measuring)
{
    json_add_expandable(json_add_object(report, "machine_labels"), TALLY_LABEL, measuring->name);
    json_add_expandable(report, "title", measuring->title);
    json_add_count(report, "series", 10000);
    if (measuring->details)
        json_add_expandable(report, "details", measuring->details);
    if (measuring->html)
        json_add_expandable(report, "html", measuring->html);
}

/* The server may be slow or gone: then values wait in memory, and at last the oldest are lost. */
static void add_mlbench(struct json_object *handlers, struct json_object *route,
                        const struct mlbench_run *mlbench)
{
    char *url = mlbench_run_values_url(mlbench);
    if (!url)
        command_out_of_memory();
    struct json_object *handler = json_add_object(handlers, MLBENCH_HANDLER);
    json_add_text(handler, "type", "http");
    json_add_expandable(handler, "url", url);
    json_add_text(handler, "format", "json");
    json_add_text(json_add_object(handler, "headers"), "Content-Type", "application/x-ndjson");
    json_add_text(route, NULL, MLBENCH_HANDLER);
    free(url);
}

/* Tally and report are a tee of this process: they are added to whatever routes the file has. */
static char *make_tee(const struct measuring *measuring)
{
    struct json_object *root = json_start_object(), *handlers = json_add_object(root, "handlers");
    struct json_object *route = json_add_array(json_add_object(root, "groups"), "*");
    add_handler(handlers, route, "weir run", TALLY_TYPE);
    if (measuring->details || measuring->html)
        add_report(add_handler(handlers, route, "weir run report", "report"), measuring);
    if (measuring->mlbench->id)
        add_mlbench(handlers, route, measuring->mlbench);
    return json_take(root);
}

/* The variables of before are the command's. */
static bool change_environment(const struct measuring *measuring)
{
    char *tee = make_tee(measuring);
    bool is_set = setenv("WEIR_TEE", tee, 1) == 0;
    free(tee);
    unsetenv("WEIR_CONFIG");
    unsetenv("BENCHMARK_AI");
    return is_set;
}

static struct wr_config *read_config(const struct measuring *measuring, struct wr_error *error)
{
    return measuring->config ? wr_config_read_file(measuring->config, NULL, error)
                             : wr_config_read_text("weir run", "{}", 2, NULL, error);
}

/* A command may be over before a thread has opened the pipe: its values would be lost. */
static void await_sources(void)
{
    enum { TRIES = 10000 };
    weir_source_stats stats;
    for (size_t i = 0; command_read_source(i, &stats); i++)
        for (int tries = 0; stats.state == WEIR_SOURCE_STARTING && tries < TRIES; tries++) {
            poll(NULL, 0, 1);
            command_read_source(i, &stats);
        }
}

/* The sources' configuration owns the texts that the other one refers to: it is never freed. */
bool measuring_start(const struct measuring *measuring)
{
    struct wr_error error = {0};
    if (!change_environment(measuring))
        command_out_of_memory();
    static struct wr_config *sources;
    sources = make_sources(measuring, &error);
    struct wr_config *config = sources ? read_config(measuring, &error) : NULL;
    if (config && !add_sources(config, sources, &error)) {
        wr_config_drop(config);
        config = NULL;
    }
    if (!config || wr_configure_whole(wr_runtime_get(), config, &error) != 0) {
        command_fail("%s", error.text);
        return false;
    }
    if (weir_start_sources() != 0) {
        command_fail("%s", weir_last_error());
        return false;
    }
    await_sources();
    return true;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct measuring_lost measuring_lost(void)
{
    struct measuring_lost lost = {0};
    weir_source_stats stats;
    for (size_t i = 0; command_read_source(i, &stats); i++)
        if (strcmp(stats.name, JOB_SOURCE) == 0) {
            lost.bad_lines = stats.bad_lines;
            lost.refused = stats.refused;
        }
    weir_handler_stats mlbench;
    if (weir_get_handler_stats(WR_TEE_PREFIX MLBENCH_HANDLER, &mlbench, sizeof mlbench) == 0)
        lost.unsent = mlbench.offered - mlbench.delivered;
    return lost;
}
