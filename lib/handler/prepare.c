#include "handler/prepare.h"

#include <string.h>

#include "handler/host_api.h"
#include "handler/plugin.h"
#include "os/log.h"
#include "os/thread_state.h"
#include "text/buffer.h"
#include "text/error.h"
#include "text/units.h"

/* ---- Options --------------------------------------------------------------------------------- */

const struct wr_environment *wr_prepare_environment(const struct wr_prepare_options *options)
{
    const struct wr_environment *own = options->given->environment;
    return own ? own : wr_config_environment(options->config);
}

/* The options that a program passes to weir_configure are not the configuration's: unknown ones are errors. */
struct wr_options_fill wr_prepare_fill(const struct wr_prepare_options *options, struct wr_options_table table,
                                       void *target, const struct wr_node *node)
{
    const struct wr_document *call_document = options->given->document;
    return (struct wr_options_fill){
        .table = table,
        .target = target,
        .environment = wr_prepare_environment(options),
        .keep = options->keep,
        .expanded = options->expanded,
        .ignores_unknown =
            options->config->ignores_unknown && node && (!call_document || node->document != call_document),
        .unknown = options->unknown,
        .problems = options->config->problems,
    };
}

bool wr_prepare_go_on(const struct wr_prepare_options *options, bool done)
{
    return wr_problems_go_on(options->given->node ? options->config->problems : NULL, done, options->error);
}

/* An error in them is the plugin's. */
static bool set_type_defaults(const struct wr_prepare_options *options, const struct wr_options_fill *fill)
{
    const weir_handler_type *is = &options->type->is;
    const char *noun = options->type->kind->noun;
    for (const weir_default *own = is->defaults; own && own->name; own++) {
        const weir_option *row = wr_options_find(&fill->table, own->name);
        if (options->type->kind == &wr_plugins_handlers && strcmp(own->name, "format") == 0)
            continue;
        if (row && wr_options_set_text(fill, row, own->value, options->error))
            continue;
        if (row)
            wr_error_prefix(options->error, "%s \"%s\": the default \"%s\" of \"%s\" ", noun, is->name,
                            own->value, own->name);
        else
            wr_error_set(options->error, WEIR_ERR_PLUGIN,
                         "%s \"%s\": a default for \"%s\", which is not a common option", noun, is->name,
                         own->name);
        options->error->code = WEIR_ERR_PLUGIN;
        return false;
    }
    return true;
}

/* What "*" in the configuration sets for an option that the type's own options hide is checked, and not used.
 */
bool wr_prepare_commons(const struct wr_prepare_options *options)
{
    static const char *const others[] = {"format", NULL};
    const struct wr_node *node = options->defaults;
    bool is_source = options->type->kind == &wr_plugins_sources;
    void *unused = wr_region_alloc(options->keep, options->all.struct_bytes);
    struct wr_options_fill fills[] = {
        wr_prepare_fill(options, options->common, options->commons, node),
        wr_prepare_fill(options, options->all, unused, node),
        wr_prepare_fill(options, options->all, options->commons, node),
    };
    fills[0].unknown = NULL; /* reported when the configuration was read */
    if (!unused)
        return wr_error_no_memory(options->error, NULL);
    return wr_options_set_defaults(&fills[2], options->error) &&
           set_type_defaults(options, &fills[is_source ? 0 : 2]) &&
           (!node || wr_options_set_members(fills, 2, others, node, options->error));
}

bool wr_prepare_given(struct wr_prepare_options *options, const char *const *others)
{
    const struct wr_node *node = options->given->node;
    const struct wr_options_table *table = &options->type->options;
    size_t rows = 0;
    while (wr_options_row(table, rows))
        rows++;
    options->own = wr_region_alloc(options->keep, table->struct_bytes + 1);
    struct wr_options_fill fills[] = {
        wr_prepare_fill(options, *table, options->own, node),
        wr_prepare_fill(options, options->common, options->commons, node),
    };
    fills[0].seen = wr_region_alloc(options->keep, rows + 1);
    if (!options->own || !fills[0].seen)
        return wr_error_no_memory(options->error, NULL);
    if (!wr_options_set_defaults(&fills[0], options->error))
        return false;
    bool set = !node || wr_options_set_members(fills, 2, others, node, options->error);
    return wr_prepare_go_on(options, set) && wr_options_check_required(&fills[0], node, options->error) && set;
}

const struct wr_node *wr_prepare_find(const struct wr_prepare_options *options, const char *option)
{
    const struct wr_node *own = options->given->node ? wr_node_member(options->given->node, option) : NULL;
    return own || !options->defaults ? own : wr_node_member(options->defaults, option);
}

static bool has_default(const weir_default *defaults, const char *option)
{
    for (; defaults && defaults->name; defaults++)
        if (strcmp(defaults->name, option) == 0)
            return true;
    return false;
}

bool wr_prepare_check_retry(const struct wr_prepare_options *options, int64_t least_ns, int64_t *most_ns)
{
    const struct wr_type *type = options->type;
    bool is_limited = wr_prepare_find(options, "retry_max") || !has_default(type->is.defaults, "retry_max");
    if (*most_ns < least_ns && !is_limited)
        *most_ns = least_ns;
    char least[WR_UNITS_ROOM], most[WR_UNITS_ROOM];
    if (least_ns <= *most_ns)
        return true;
    wr_units_put_duration(least, least_ns);
    wr_units_put_duration(most, *most_ns);
    const struct wr_node *at = wr_prepare_find(options, "retry_min");
    if (!at)
        at = wr_prepare_find(options, "retry_max");
    if (at)
        wr_node_error(at, options->error, "a retry_min of %s is longer than the retry_max of %s", least, most);
    else
        wr_error_set(options->error, WEIR_ERR_PLUGIN,
                     "%s \"%s\": its default retry_min of %s is longer than the retry_max of %s",
                     type->kind->noun, type->is.name, least, most);
    return false;
}

void wr_prepare_put_identity(struct wr_buffer *out, const struct wr_prepare_options *options)
{
    /* the address differs for types of one name in different shared objects */
    wr_buffer_put_format(out, "%s %p\n", options->type->is.name, (const void *)options->type);
    wr_options_put_all(out, &options->all, options->commons);
    wr_options_put_all(out, &options->type->options, options->own);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

void wr_prepare_log_breach(const struct wr_type *type, const char *name, const char *breach, struct wr_log *log)
{
    if (breach && log)
        wr_log_write(log, WEIR_LOG_ERROR, "%s: the %s is at fault: %s", name, type->kind->noun, breach);
}

static bool call(struct wr_type *type, const char *name, const struct wr_node *node, struct wr_log *log,
                 struct wr_error *error)
{
    struct wr_host_api host = {.log = log, .refusal = error, .node = node};
    wr_host_api_init(&host, type->is.name, type);
    struct wr_thread_state thread_state = wr_thread_state_save();
    bool prepared = type->kind == &wr_plugins_sources ? type->source.prepare(&host.host_table)
                                                      : type->is.prepare(&host.host_table);
    wr_prepare_log_breach(type, type->is.name, wr_thread_state_restore(&thread_state), log);
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

/* What fork waits for, and marks in the child: a handler's type, of which the child uses a stand-in. A source's
 * code counts as the loader's. */
static struct wr_type *entered(struct wr_type *type)
{
    return type->kind == &wr_plugins_sources ? NULL : type;
}

void *wr_prepare_create(struct wr_type *type, const weir_host *host, const void *options, const char **breach,
                        struct wr_error *error)
{
    wr_plugins_enter(type->home, entered(type));
    struct wr_thread_state thread_state = wr_thread_state_save();
    void *self =
        type->kind == &wr_plugins_sources ? type->source.create(host, options) : type->is.create(host, options);
    *breach = wr_thread_state_restore(&thread_state);
    wr_plugins_leave(type->home, entered(type));
    if (!self && !error->code)
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: the %s \"%s\" refused its options and gave no reason",
                     host->name, type->kind->noun, type->is.name);
    return self;
}

void wr_prepare_destroy(struct wr_type *type, const char *name, void *self, struct wr_log *log)
{
    struct wr_thread_state thread_state = wr_thread_state_save();
    wr_plugins_enter(type->home, entered(type));
    if (type->kind == &wr_plugins_sources)
        type->source.destroy(self);
    else
        type->is.destroy(self);
    wr_plugins_leave(type->home, entered(type));
    wr_prepare_log_breach(type, name, wr_thread_state_restore(&thread_state), log);
}
