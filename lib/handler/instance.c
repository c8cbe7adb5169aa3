#include "handler/instance.h"

#include <stdlib.h>
#include <string.h>

#include "handler/prepare.h"
#include "text/buffer.h"
#include "text/error.h"
#include "format/format.h"
#include "text/suggest.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200, SHORTEST_MS = 10 /* of an interval */ };

/* ---- The common options ---------------------------------------------------------------------- */

static bool is_hidden(const struct wr_type *type, const char *option)
{
    return !wr_options_find(&type->common_options, option);
}

static void report_hidden(const struct wr_instance *instance, const char *name)
{
    struct wr_options_table all = wr_common_options_table();
    const weir_option *row;
    for (size_t i = 0; instance->host.log && (row = wr_options_row(&all, i)); i++)
        if (is_hidden(instance->type, row->name))
            wr_log_write(
                instance->host.log, WEIR_LOG_INFO,
                "%s: the handler type \"%s\" has an option \"%s\" of its own, so the option of that name "
                "that every handler has keeps its default",
                name, instance->type->is.name, row->name);
}

/* An option of the handler's own that is incompatible with summaries. Elsewhere, as in the entry "*" and among
 * a type's defaults, it applies to other handlers. */
static bool refuse_with_aggregate(const struct wr_prepare_options *from, const char *option, const char *why)
{
    const struct wr_node *at = from->given->node ? wr_node_member(from->given->node, option) : NULL;
    if (!at)
        return true;
    return wr_node_error(at, from->error, "%s cannot be used together with \"aggregate\": %s", option, why);
}

static bool refuse_option(const struct wr_prepare_options *from, const char *option,
                          const struct wr_error *problem)
{
    const struct wr_node *at = wr_prepare_find(from, option);
    if (at)
        wr_node_error(at, from->error, "%s", problem->text);
    else
        *from->error = *problem;
    return false;
}

static bool read_parts_rules(struct wr_parts_rules *rules, const struct wr_common_options *options,
                             const struct wr_prepare_options *from)
{
    struct wr_error problem = {0};
    if (!wr_percentiles_read(&rules->percentiles, &options->percentiles, &problem))
        return refuse_option(from, "percentiles", &problem);
    if (!wr_parts_read_left_out(&rules->left_out, &options->parts, &problem))
        return refuse_option(from, "parts", &problem);
    rules->window_ns = options->window_ns;
    return true;
}

static bool check_aggregate(struct wr_instance *instance, const struct wr_prepare_options *from)
{
    const struct wr_common_options *common_options = &instance->common_options;
    if (!read_parts_rules(&instance->parts_rules, common_options, from))
        return false;
    if (!common_options->aggregate_ns)
        return true;
    const struct wr_node *at = wr_prepare_find(from, "aggregate");
    if (at && common_options->aggregate_ns < SHORTEST_MS * WR_NS_PER_MS)
        return wr_node_error(at, from->error, "aggregate must be 0s or at least %d ms", SHORTEST_MS);
    return (common_options->delivery == 0 ||
            refuse_with_aggregate(from, "delivery", "no call can wait for the end of an interval")) &&
           refuse_with_aggregate(from, "overflow",
                                 "calls never wait, and a full queue makes an interval longer");
}

/* ---- The handler's object -------------------------------------------------------------------- */

/* Whether only a format has an option of this name. Returns that format's name, or NULL. */
static const char *find_format_of(const struct wr_prepare_options *from, const char *option)
{
    const struct wr_format *format;
    if (wr_options_find(&from->type->options, option) || wr_options_find(&from->common, option))
        return NULL;
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        if (wr_options_find(&format->options, option))
            return format->name;
    return NULL;
}

/* The option of a format beside it instead of inside. */
static bool check_levels(const struct wr_prepare_options *from, const char *const *others)
{
    const struct wr_node *node = from->given->node;
    if (!node || wr_prepare_fill(from, from->common, NULL, node).ignores_unknown)
        return true;
    for (const struct wr_node *member = node->first; member; member = member->next) {
        const char *format = find_format_of(from, member->key);
        for (size_t i = 0; format && others[i]; i++)
            if (strcmp(others[i], member->key) == 0)
                format = NULL;
        if (!format)
            continue;
        char shown[SHOWN_ROOM];
        return wr_node_key_error(
            member, from->error,
            "not an option of the handler; it belongs in the format: \"format\": {\"type\": \"%s\", %s: ...}",
            format, wr_utf8_quote(shown, sizeof shown, member->key, strlen(member->key)));
    }
    return true;
}

/* ---- The format ------------------------------------------------------------------------------ */

static void refuse_format(const struct wr_node *node, const char *name, struct wr_error *error)
{
    struct wr_suggest suggest;
    struct wr_buffer names = {0};
    char nearest[SHOWN_ROOM];
    const struct wr_format *format;
    wr_suggest_init(&suggest, name);
    for (size_t i = 0; (format = wr_format_at(i)); i++) {
        wr_suggest_try(&suggest, format->name);
        wr_buffer_put_format(&names, "%s%s", i ? ", " : "", format->name);
    }
    const char *list = wr_buffer_text(&names);
    char shown[SHOWN_ROOM];
    const char *words = wr_suggest_text(&suggest, nearest, sizeof nearest);
    wr_node_error(node, error, "%s is not a format%s%s allowed: %s", wr_node_show(node, shown, sizeof shown),
                  words, *words ? "" : ";", list ? list : "");
    wr_buffer_fini(&names);
}

/* The node of the format's name: the value itself, or its "type". Returns NULL with the error set. */
static const struct wr_node *find_format_name(const struct wr_node *node, struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    const struct wr_node *name = node->type == WR_NODE_OBJECT ? wr_node_member(node, "type") : node;
    if (!name)
        wr_node_error(node, error, "the option \"type\" is missing: the format's name");
    else if (name->type != WR_NODE_STRING)
        wr_node_error(name, error,
                      "%s is not a format; it is a name, or an object with \"type\" and the format's options",
                      wr_node_show(name, shown, sizeof shown));
    else
        return name;
    return NULL;
}

static bool check_format_options(const struct wr_instance *instance, const struct wr_node *node,
                                 struct wr_error *error)
{
    const struct wr_format *format = instance->format;
    const char *fault = format->find_fault ? format->find_fault(instance->format_options) : NULL;
    if (fault && node)
        wr_node_error(node, error, "format \"%s\": %s", format->name, fault);
    else if (fault)
        wr_error_set(error, WEIR_ERR_CONFIG, "format \"%s\": %s", format->name, fault);
    return !fault;
}

static bool set_format_options(struct wr_instance *instance, const struct wr_node *node,
                               const struct wr_prepare_options *from)
{
    static const char *const others[] = {"type", NULL};
    const struct wr_options_table *table = &instance->format->options;
    unsigned char seen[64] = {0};
    instance->format_options = wr_region_alloc(&instance->keep, table->struct_bytes + 1);
    if (!instance->format_options)
        return wr_error_no_memory(from->error, NULL);
    struct wr_options_fill fill = wr_prepare_fill(from, *table, instance->format_options, node);
    fill.seen = seen;
    if (!wr_options_set_defaults(&fill, from->error))
        return false;
    bool set =
        !node || node->type != WR_NODE_OBJECT || wr_options_set_members(&fill, 1, others, node, from->error);
    if (!node)
        node = from->given->node;
    return wr_prepare_go_on(from, set) && wr_options_check_required(&fill, node, from->error) && set &&
           check_format_options(instance, node, from->error);
}

static bool check_shape(const struct wr_instance *instance, const struct wr_node *node, struct wr_error *error)
{
    const struct wr_format *format = instance->format;
    if (instance->type->is.formats & format->shape)
        return true;
    return wr_node_error(node, error, "the format \"%s\" makes %s, which the handler type \"%s\" cannot write",
                         format->name, wr_encoder_shape_name(format->shape), instance->type->is.name);
}

static bool find_format(struct wr_instance *instance, const struct wr_node *name,
                        const struct wr_prepare_options *from)
{
    struct wr_buffer text = {0};
    struct wr_error problem = {0};
    if (!wr_expand(wr_prepare_environment(from), name->text, &text, from->expanded, &problem))
        wr_node_problem(name, &problem, from->error);
    else if (!wr_buffer_text(&text))
        wr_error_no_memory(from->error, NULL);
    else if (!(instance->format = wr_format_find(text.data)))
        refuse_format(name, text.data, from->error);
    wr_buffer_fini(&text);
    return instance->format;
}

static bool choose_format(struct wr_instance *instance, const struct wr_node *node,
                          const struct wr_prepare_options *from)
{
    const struct wr_node *name = find_format_name(node, from->error);
    if (!name)
        return false;
    if (!find_format(instance, name, from))
        return false;
    return check_shape(instance, name, from->error) && set_format_options(instance, node, from);
}

/* The format of all handlers: its unknown keys are added once. */
static bool choose_common_format(struct wr_instance *instance, const struct wr_node *node,
                                 const struct wr_prepare_options *from)
{
    struct wr_prepare_options once = *from;
    if (once.unknown && once.unknown->has_common_format)
        once.unknown = NULL;
    if (once.unknown)
        once.unknown->has_common_format = true;
    return choose_format(instance, node, &once);
}

const char *wr_instance_default_format(const struct wr_type *type)
{
    for (const weir_default *own = type->is.defaults; own && own->name; own++)
        if (strcmp(own->name, "format") == 0)
            return own->value;
    return "json";
}

static bool set_format(struct wr_instance *instance, const struct wr_prepare_options *from)
{
    const struct wr_type *type = instance->type;
    const struct wr_node *own = wr_node_member(from->given->node, "format");
    const struct wr_node *common = wr_node_member(from->defaults, "format");
    if (!type->is.formats) {
        if (!own)
            return true;
        return wr_node_key_error(own, from->error, "the handler type \"%s\" writes no format", type->is.name);
    }
    if (own)
        return choose_format(instance, own, from);
    if (common)
        return choose_common_format(instance, common, from);
    instance->format = wr_format_find(wr_instance_default_format(type));
    if (!instance->format)
        return wr_error_refuse(from->error, WEIR_ERR_PLUGIN,
                               "handler type \"%s\": its default format \"%s\" does not exist", type->is.name,
                               wr_instance_default_format(type));
    return set_format_options(instance, NULL, from);
}

/* ---- Identity -------------------------------------------------------------------------------- */

static bool set_identity(struct wr_instance *instance, const struct wr_prepare_options *from)
{
    struct wr_buffer text = {0};
    wr_prepare_put_identity(&text, from);
    if (instance->format) {
        wr_buffer_put_format(&text, "format=%s\n", instance->format->name);
        wr_options_put_all(&text, &instance->format->options, instance->format_options);
    }
    instance->identity = wr_buffer_take(&text);
    return instance->identity || wr_error_no_memory(from->error, NULL);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static bool fill_all(struct wr_instance *instance, struct wr_prepare_options *from)
{
    static const char *const others[] = {"type", "plugin", "format", NULL};
    struct wr_common_options *options = &instance->common_options;
    bool commons = wr_prepare_commons(from);
    bool own = wr_prepare_go_on(from, commons) && check_levels(from, others) && wr_prepare_given(from, others);
    instance->options = from->own;
    bool valid = commons && own &&
                 wr_prepare_check_retry(from, options->retry_min_ns, &options->retry_max_ns) &&
                 check_aggregate(instance, from);
    return wr_prepare_go_on(from, valid) && set_format(instance, from) && valid && set_identity(instance, from);
}

static bool choose_wanted(struct wr_instance *instance, const struct wr_prepare_options *from)
{
    struct wr_error problem;
    const struct wr_format *format = instance->format;
    if (!format)
        return true;
    uint32_t wanted = format->wants | (format->wanted ? format->wanted(instance->format_options) : 0);
    instance->parts_rules.wanted = wanted;
    if (!(wanted & WR_WANTS_STATSD) || instance->common_options.aggregate_ns)
        return true;
    wr_error_set(&problem, WEIR_ERR_CONFIG,
                 "names \"statsd\" needs \"aggregate\", such as \"10s\": they are those of an interval");
    return refuse_option(from, "format", &problem);
}

struct wr_instance *wr_instance_new(struct wr_type *type, const struct wr_config *config,
                                    const struct wr_config_handler *handler, struct wr_log *log,
                                    struct wr_expanded *expanded, struct wr_unknown_keys *unknown,
                                    struct wr_error *error)
{
    struct wr_instance *instance = calloc(1, sizeof *instance);
    if (!instance) {
        wr_error_no_memory(error, NULL);
        return NULL;
    }
    instance->type = type;
    instance->host.log = log;
    instance->host.node = handler->node;
    struct wr_prepare_options from = {
        .config = config,
        .defaults = handler->home ? handler->home->defaults : config->defaults,
        .given = handler,
        .type = type,
        .all = wr_common_options_table(),
        .common = type->common_options,
        .commons = &instance->common_options,
        .keep = &instance->keep,
        .expanded = expanded,
        .unknown = unknown,
        .error = error,
    };
    const char *name = wr_region_text(&instance->keep, handler->name, strlen(handler->name));
    if (!name)
        wr_error_no_memory(error, NULL);
    if (!name || !fill_all(instance, &from) || !choose_wanted(instance, &from)) {
        wr_instance_free(instance);
        return NULL;
    }
    report_hidden(instance, name);
    wr_host_api_init(&instance->host, name, type);
    if (instance->format) {
        wr_encoder_init(&instance->encoder, instance->format, instance->format_options);
        instance->host.encoder = &instance->encoder;
    }
    return instance;
}

bool wr_instance_prepare(struct wr_instance *instance, struct wr_error *error)
{
    *error = (struct wr_error){0};
    return wr_prepare(instance->type, instance->host.host_table.name, instance->host.node, instance->host.log,
                      error);
}

bool wr_instance_create(struct wr_instance *instance, struct wr_error *error)
{
    if (!wr_instance_prepare(instance, error))
        return false;
    instance->host.refusal = error;
    instance->self = wr_prepare_create(instance->type, &instance->host.host_table, instance->options,
                                       &instance->host.breach, error);
    instance->host.refusal = NULL;
    instance->host.node = NULL; /* its document may go before the instance does */
    return instance->self;
}

void wr_instance_free(struct wr_instance *instance)
{
    if (!instance)
        return;
    if (instance->self)
        wr_prepare_destroy(instance->type, instance->host.host_table.name, instance->self, instance->host.log);
    wr_encoder_fini(&instance->encoder);
    wr_parts_fini(&instance->parts);
    wr_host_api_fini(&instance->host);
    if (instance->identity)
        explicit_bzero(instance->identity, strlen(instance->identity));
    free(instance->identity);
    wr_region_fini(&instance->keep);
    free(instance);
}

/* Whether more of a histogram is wanted than its buckets, smallest and largest value. */
static bool ranks(const struct wr_instance *instance)
{
    uint32_t wanted = instance->parts_rules.wanted;
    if (wanted & WR_WANTS_WHOLE)
        return wanted & WR_WANTS_RANKS;
    return wanted & WR_WANTS_STATSD || instance->parts_rules.percentiles.count;
}

struct wr_lane_settings wr_instance_settings(const struct wr_instance *instance)
{
    struct wr_lane_settings settings = wr_common_options_settings(&instance->common_options);
    settings.opens_early = instance->type->is.flags & WEIR_TYPE_OPENS_EARLY;
    settings.ranks = ranks(instance);
    return settings;
}

bool wr_instance_wants_label(const struct wr_instance *instance)
{
    return instance->common_options.aggregate_ns && instance->parts_rules.wanted & WR_WANTS_INSTANCE;
}

struct wr_lane_handler wr_instance_for_lane(struct wr_instance *instance)
{
    return (struct wr_lane_handler){
        .instance = instance,
        .type = instance->type->is.name,
        .identity = instance->identity,
        .spool = instance->common_options.spool,
        .settings = wr_instance_settings(instance),
        .kinds = instance->type->is.kinds | WEIR_KINDS_SUMMARY, /* else it gets their parts */
        .has_flush = instance->type->is.flush != NULL,
        .has_now = instance->type->is.emit_now != NULL,
        .try_timeout_ns = instance->host.try_timeout_ns,
        .breach = instance->host.breach,
    };
}

void wr_instance_attach(struct wr_instance *instance, struct wr_lane *lane)
{
    instance->host.lane = lane;
}

void wr_instance_abandon(const struct wr_instance *instance, bool is_torn)
{
    if (instance->self && instance->type->is.abandon && !is_torn)
        instance->type->is.abandon(instance->self);
    wr_connecting_abandon(&instance->host.connecting);
}

static uint32_t count_omitted(const void *ctx, uint32_t samples)
{
    const struct wr_instance *instance = ctx;
    return instance->format ? wr_encoder_count_omitted(&instance->encoder, samples) : 0;
}

struct wr_lane_omissions wr_instance_omissions(const struct wr_instance *instance)
{
    return (struct wr_lane_omissions){count_omitted, instance};
}
