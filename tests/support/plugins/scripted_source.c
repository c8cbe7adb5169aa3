#include "scripted_source.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct source_script script;

struct source {
    const weir_host *host;
    const char *tag;
};

static const weir_option options[] = {
    {"tag", WEIR_OPTION_STRING, 0, "", NULL, "for the test", offsetof(struct scripted_options, tag)},
    {0},
};

static void *create(const weir_host *host, const void *given)
{
    const struct scripted_options *own = given;
    if (strcmp(own->tag, "refused") == 0) {
        host->refuse(host, "tag", "must not be \"%s\"", own->tag);
        return NULL;
    }
    if (host->wait(host, 1)) {
        host->refuse(host, "", "create has waited");
        return NULL;
    }
    if (script.create)
        script.create();
    struct source *source = calloc(1, sizeof *source);
    source->host = host;
    source->tag = own->tag;
    atomic_fetch_add(&script.created, 1);
    return source;
}

static void open_source(void *self, weir_outcome *outcome)
{
    const struct source *source = self;
    if (script.open)
        script.open(source->host, source->tag, outcome);
    atomic_fetch_add(&script.opened, outcome->code == WEIR_OUTCOME_OK);
}

static void run(void *self, weir_outcome *outcome)
{
    const struct source *source = self;
    const weir_intake *intake = source->host->service(source->host, WEIR_SERVICE_INTAKE);
    if (script.run)
        script.run(source->host, source->tag, outcome);
    else
        while (!(intake->wait(source->host, NULL, 0, -1) & WEIR_WAIT_STOP))
            ;
}

static void close_source(void *self)
{
    (void)self;
    if (script.close)
        script.close();
    atomic_fetch_add(&script.closed, 1);
}

static void destroy(void *self)
{
    if (script.destroy)
        script.destroy();
    atomic_fetch_add(&script.destroyed, 1);
    free(self);
}

static void abandon(void *self)
{
    (void)self;
    atomic_fetch_add(&script.abandoned, 1);
}

static void probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct source *source = self;
    (void)timeout_ms;
    bool is_there = strcmp(source->tag, "unreachable") != 0;
    outcome->code = is_there ? WEIR_OUTCOME_OK : WEIR_OUTCOME_RETRY;
    strcpy(outcome->reason, is_there ? "" : "it is not there");
}

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
    .flags = WEIR_SOURCE_TYPE_PARSES,
    .name = "scripted",
    .summary = "for tests",
    .options = options,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct scripted_options),
    .create = create,
    .open = open_source,
    .run = run,
    .close = close_source,
    .destroy = destroy,
    .abandon = abandon,
    .probe = probe,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}

WEIR_PLUGIN_EXPORT struct source_script *source_script(void);

struct source_script *source_script(void)
{
    return &script;
}
