#include "handler/prepare.h"

#include "handler/host_api.h"
#include "handler/plugin.h"
#include "os/log.h"
#include "os/thread_state.h"
#include "text/error.h"

static bool call(struct wr_type *type, const char *name, const struct wr_node *node, struct wr_log *log,
                 struct wr_error *error)
{
    struct wr_host_api host = {.log = log, .refusal = error, .node = node};
    wr_host_api_init(&host, type->is.name, type);
    struct wr_thread_state thread_state = wr_thread_state_save();
    bool prepared =
        type->kind == &wr_plugins_sources ? type->source.prepare(&host.shown) : type->is.prepare(&host.shown);
    const char *breach = wr_thread_state_restore(&thread_state);
    if (breach && log)
        wr_log_write(log, WEIR_LOG_ERROR, "%s: the %s is at fault: %s", type->is.name, type->kind->noun,
                     breach);
    if (!prepared && !error->code)
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: the %s \"%s\" cannot be used; it gave no reason", name,
                     type->kind->noun, type->is.name);
    return prepared;
}

bool wr_prepare(struct wr_type *type, const char *name, const struct wr_node *node, struct wr_log *log,
                struct wr_error *error)
{
    if (!wr_plugins_begin_prepare(type->home, type))
        return true;
    bool prepared = call(type, name, node, log, error);
    wr_plugins_end_prepare(type->home, type, prepared);
    return prepared;
}
