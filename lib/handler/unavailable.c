#include "handler/unavailable.h"

#include <stdio.h>

#include <weir/weir.h>

/* Calls that wait return that the values are on disk only. */
static void open_never(void *self, weir_outcome *outcome)
{
    (void)self;
    outcome->code = WEIR_OUTCOME_FAILED;
    snprintf(outcome->reason, sizeof outcome->reason,
             "unavailable in this process, which was forked while its type was in use");
    outcome->error = WEIR_ERR_SPOOLED;
}

static void emit_nothing(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)batch;
    outcome->done = 0;
    open_never(self, outcome);
}

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    return (void *)options;
}

static void destroy(void *self)
{
    (void)self;
}

bool wr_unavailable_make(struct wr_instance *instance)
{
    struct wr_type *type = wr_region_alloc(&instance->keep, sizeof *type);
    if (!type)
        return false;
    /* no copy of the whole: parts of it change while other threads use the type */
    const struct wr_type *real = instance->type;
    *type = (struct wr_type){
        .kind = real->kind,
        .is = {.size = sizeof type->is,
               .abi = real->is.abi,
               .kinds = real->is.kinds,
               .name = real->is.name,
               .summary = real->is.summary,
               .formats = real->is.formats,
               .create = create,
               .open = open_never,
               .emit = emit_nothing,
               .destroy = destroy},
        .given = real->given,
        .path = real->path,
        .home = real->home,
    };
    instance->type = type;
    instance->self = type;
    return true;
}
