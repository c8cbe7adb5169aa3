#include "handler/instance.h"

#include <stdlib.h>
#include <string.h>

#include "handler/prepare.h"
#include "text/buffer.h"
#include "text/error.h"
#include "format/format.h"
#include "os/thread_state.h"
#include "text/suggest.h"
#include "text/units.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200, SHORTEST_MS = 10 /* of an interval */ };

/* Where the options of a handler come from; the later ones take precedence. */
struct sources {
    const struct wr_config *config;
    const struct wr_config_handler *handler;
    const struct wr_environment *environment;
    struct wr_expanded *expanded;
    struct wr_unknown_keys *unknown;
    struct wr_error *error;
};

static bool fail_memory(struct wr_error *error)
{
    return wr_error_no_memory(error, NULL);
}

/* Whether more of a handler with an error is checked. Of one that a route made, the caller sets the error's
 * place.
 */
static bool go_on(const struct sources *from, bool done)
{
    return wr_problems_go_on(from->handler->node ? from->config->problems : NULL, done, from->error);
}

/* ---- The common options ---------------------------------------------------------------------- */

static struct wr_options_fill fill_of(struct wr_options_table table, struct wr_common_options *target,
                                      struct wr_instance *instance, const struct sources *from)
{
    return (struct wr_options_fill){
        .table = table,
        .target = target,
        .environment = from->environment,
        .keep = &instance->keep,
        .expanded = from->expanded,
        .ignores_unknown = from->config->ignores_unknown, /* reported when the configuration was read */
        .problems = from->config->problems,
    };
}

/* What is set for all handlers. NULL: nothing. */
static const struct wr_node *defaults_of(const struct sources *from)
{
    return from->handler->home ? from->handler->home->defaults : from->config->defaults;
}

/* The options that a program passes to weir_configure are not the configuration's: unknown ones are errors. */
static bool ignores_unknown(const struct sources *from, const struct wr_node *node)
{
    const struct wr_document *of_call = from->handler->document;
    return from->config->ignores_unknown && node && (!of_call || node->document != of_call);
}

/* Sets the type's own defaults. An error in them is the plugin's. */
static bool set_type_defaults(struct wr_instance *instance, const struct wr_options_fill *fill,
                              struct wr_error *error)
{
    const weir_default *own = instance->type->is.defaults;
    for (; own && own->name; own++) {
        const weir_option *row = wr_options_find(&fill->table, own->name);
        if (strcmp(own->name, "format") == 0)
            continue;
        if (!row) {
            wr_error_set(error, WEIR_ERR_PLUGIN,
                         "handler type \"%s\": a default for \"%s\", which is not a common option",
                         instance->type->is.name, own->name);
            return false;
        }
        if (!wr_options_set_text(fill, row, own->value, error)) {
            wr_error_prefix(error, "handler type \"%s\": the default \"%s\" of \"%s\" ",
                            instance->type->is.name, own->value, own->name);
            error->code = WEIR_ERR_PLUGIN;
            return false;
        }
    }
    return true;
}

/* What "*" in the configuration sets for an option that the type's own options hide is checked, and not used.
 */
static bool set_commons(struct wr_instance *instance, const struct sources *from)
{
    static const char *const others[] = {"format", NULL};
    struct wr_common_options unused;
    struct wr_options_table all = wr_common_options_table();
    struct wr_options_fill fill = fill_of(all, &instance->common_options, instance, from);
    const struct wr_options_fill fills[2] = {
        fill_of(instance->type->common_options, &instance->common_options, instance, from),
        fill_of(all, &unused, instance, from),
    };
    if (!wr_options_set_defaults(&fill, from->error) || !set_type_defaults(instance, &fill, from->error))
        return false;
    return !defaults_of(from) || wr_options_set_members(fills, 2, others, defaults_of(from), from->error);
}

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

/* Where an option is set: in the handler, or for all handlers. NULL: nowhere. */
static const struct wr_node *find_given(const struct sources *from, const char *option)
{
    const struct wr_node *own = from->handler->node ? wr_node_member(from->handler->node, option) : NULL;
    return own || !defaults_of(from) ? own : wr_node_member(defaults_of(from), option);
}

/* A rule about two options. */
static bool has_default(const weir_default *defaults, const char *option)
{
    for (; defaults && defaults->name; defaults++)
        if (strcmp(defaults->name, option) == 0)
            return true;
    return false;
}

/* A default of the type is no limit for what the user has chosen. */
static bool check_pauses(struct wr_instance *instance, const struct sources *from)
{
    struct wr_common_options *common_options = &instance->common_options;
    bool is_limited = find_given(from, "retry_max") || !has_default(instance->type->is.defaults, "retry_max");
    if (common_options->retry_max_ns < common_options->retry_min_ns && !is_limited)
        common_options->retry_max_ns = common_options->retry_min_ns;
    char least[WR_UNITS_ROOM], most[WR_UNITS_ROOM];
    if (common_options->retry_min_ns <= common_options->retry_max_ns)
        return true;
    wr_units_put_duration(least, common_options->retry_min_ns);
    wr_units_put_duration(most, common_options->retry_max_ns);
    const struct wr_node *at = find_given(from, "retry_min");
    if (!at)
        at = find_given(from, "retry_max");
    if (at)
        wr_node_error(at, from->error, "a retry_min of %s is longer than the retry_max of %s", least, most);
    else
        wr_error_set(from->error, WEIR_ERR_PLUGIN,
                     "handler type \"%s\": its default retry_min of %s is longer than the retry_max of %s",
                     instance->type->is.name, least, most);
    return false;
}

/* An option of the handler's own that is incompatible with summaries. Elsewhere, as in the entry "*" and among
 * a type's defaults, it applies to other handlers. */
static bool refuse_with_aggregate(const struct sources *from, const char *option, const char *why)
{
    const struct wr_node *at = from->handler->node ? wr_node_member(from->handler->node, option) : NULL;
    if (!at)
        return true;
    wr_node_error(at, from->error, "%s cannot be used together with \"aggregate\": %s", option, why);
    return false;
}

static bool refuse_option(const struct sources *from, const char *option, const struct wr_error *problem)
{
    const struct wr_node *at = find_given(from, option);
    if (at)
        wr_node_error(at, from->error, "%s", problem->text);
    else
        *from->error = *problem;
    return false;
}

static bool read_parts_rules(struct wr_parts_rules *rules, const struct wr_common_options *options,
                             const struct sources *from)
{
    struct wr_error problem = {0};
    if (!wr_percentiles_read(&rules->percentiles, &options->percentiles, &problem))
        return refuse_option(from, "percentiles", &problem);
    if (!wr_parts_read_left_out(&rules->left_out, &options->parts, &problem))
        return refuse_option(from, "parts", &problem);
    rules->window_ns = options->window_ns;
    return true;
}

static bool check_aggregate(struct wr_instance *instance, const struct sources *from)
{
    const struct wr_common_options *common_options = &instance->common_options;
    if (!read_parts_rules(&instance->parts_rules, common_options, from))
        return false;
    if (!common_options->aggregate_ns)
        return true;
    const struct wr_node *at = find_given(from, "aggregate");
    if (at && common_options->aggregate_ns < SHORTEST_MS * WR_NS_PER_MS) {
        wr_node_error(at, from->error, "aggregate must be 0s or at least %d ms", SHORTEST_MS);
        return false;
    }
    return (common_options->delivery == 0 ||
            refuse_with_aggregate(from, "delivery", "no call can wait for the end of an interval")) &&
           refuse_with_aggregate(from, "overflow",
                                 "calls never wait, and a full queue makes an interval longer");
}

/* ---- The handler's object -------------------------------------------------------------------- */

/* Whether only a format has an option of this name. Returns that format's name, or NULL. */
static const char *find_format_of(const struct wr_options_fill fills[2], const char *option)
{
    const struct wr_format *format;
    if (wr_options_find(&fills[0].table, option) || wr_options_find(&fills[1].table, option))
        return NULL;
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        if (wr_options_find(&format->options, option))
            return format->name;
    return NULL;
}

/* The option of a format beside it instead of inside. */
static bool check_levels(const struct wr_options_fill fills[2], const char *const *others,
                         const struct wr_node *node, struct wr_error *error)
{
    for (const struct wr_node *member = node->first; member; member = member->next) {
        const char *format = find_format_of(fills, member->key);
        for (size_t i = 0; format && others[i]; i++)
            if (strcmp(others[i], member->key) == 0)
                format = NULL;
        if (!format)
            continue;
        char shown[SHOWN_ROOM];
        wr_node_key_error(
            member, error,
            "not an option of the handler; it belongs in the format: \"format\": {\"type\": \"%s\", %s: ...}",
            format, wr_utf8_quote(shown, sizeof shown, member->key, strlen(member->key)));
        return false;
    }
    return true;
}

static bool set_own(struct wr_instance *instance, const struct sources *from)
{
    static const char *const others[] = {"type", "plugin", "format", NULL};
    const struct wr_type *type = instance->type;
    const struct wr_node *node = from->handler->node;
    size_t rows = 0;
    while (wr_options_row(&type->options, rows))
        rows++;
    unsigned char *seen = wr_region_alloc(&instance->keep, rows + 1);
    instance->options = wr_region_alloc(&instance->keep, type->options.struct_bytes + 1);
    if (!seen || !instance->options)
        return fail_memory(from->error);
    bool ignores = ignores_unknown(from, node);
    const struct wr_options_fill fills[2] = {
        {
            .table = type->options,
            .target = instance->options,
            .environment = from->environment,
            .keep = &instance->keep,
            .seen = seen,
            .expanded = from->expanded,
            .ignores_unknown = ignores,
            .unknown = from->unknown,
            .problems = from->config->problems,
        },
        fill_of(type->common_options, &instance->common_options, instance, from),
    };
    if (!wr_options_set_defaults(&fills[0], from->error))
        return false;
    if (node && !ignores && !check_levels(fills, others, node, from->error))
        return false;
    bool set = !node || wr_options_set_members(fills, 2, others, node, from->error);
    return go_on(from, set) && wr_options_check_required(&fills[0], node, from->error) && set;
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
                               const struct sources *from)
{
    static const char *const others[] = {"type", NULL};
    const struct wr_options_table *table = &instance->format->options;
    unsigned char seen[64] = {0};
    instance->format_options = wr_region_alloc(&instance->keep, table->struct_bytes + 1);
    if (!instance->format_options)
        return fail_memory(from->error);
    const struct wr_options_fill fill = {
        .table = *table,
        .target = instance->format_options,
        .environment = from->environment,
        .keep = &instance->keep,
        .seen = seen,
        .expanded = from->expanded,
        .ignores_unknown = ignores_unknown(from, node),
        .unknown = from->unknown,
        .problems = from->config->problems,
    };
    if (!wr_options_set_defaults(&fill, from->error))
        return false;
    bool set =
        !node || node->type != WR_NODE_OBJECT || wr_options_set_members(&fill, 1, others, node, from->error);
    if (!node)
        node = from->handler->node;
    return go_on(from, set) && wr_options_check_required(&fill, node, from->error) && set &&
           check_format_options(instance, node, from->error);
}

static bool check_shape(const struct wr_instance *instance, const struct wr_node *node, struct wr_error *error)
{
    const struct wr_format *format = instance->format;
    if (instance->type->is.formats & format->shape)
        return true;
    wr_node_error(node, error, "the format \"%s\" makes %s, which the handler type \"%s\" cannot write",
                  format->name, wr_encoder_shape_name(format->shape), instance->type->is.name);
    return false;
}

static bool find_format(struct wr_instance *instance, const struct wr_node *name, const struct sources *from)
{
    struct wr_buffer text = {0};
    struct wr_error problem = {0};
    if (!wr_expand(from->environment, name->text, &text, from->expanded, &problem) || !wr_buffer_text(&text))
        wr_node_error(name, from->error, "%s", problem.code ? problem.text : "out of memory");
    else if (!(instance->format = wr_format_find(text.data)))
        refuse_format(name, text.data, from->error);
    wr_buffer_fini(&text);
    return instance->format;
}

static bool choose_format(struct wr_instance *instance, const struct wr_node *node, const struct sources *from)
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
                                 const struct sources *from)
{
    struct sources once = *from;
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

static bool set_format(struct wr_instance *instance, const struct sources *from)
{
    const struct wr_type *type = instance->type;
    const struct wr_node *own = wr_node_member(from->handler->node, "format");
    const struct wr_node *common = wr_node_member(defaults_of(from), "format");
    if (!type->is.formats) {
        if (!own)
            return true;
        wr_node_key_error(own, from->error, "the handler type \"%s\" writes no format", type->is.name);
        return false;
    }
    if (own)
        return choose_format(instance, own, from);
    if (common)
        return choose_common_format(instance, common, from);
    instance->format = wr_format_find(wr_instance_default_format(type));
    if (!instance->format) {
        wr_error_set(from->error, WEIR_ERR_PLUGIN,
                     "handler type \"%s\": its default format \"%s\" does not exist", type->is.name,
                     wr_instance_default_format(type));
        return false;
    }
    return set_format_options(instance, NULL, from);
}

/* ---- Identity -------------------------------------------------------------------------------- */

static bool set_identity(struct wr_instance *instance, struct wr_error *error)
{
    struct wr_buffer text = {0};
    struct wr_options_table common_options = wr_common_options_table();
    /* the address differs for types of one name in different shared objects */
    wr_buffer_put_format(&text, "%s %p\n", instance->type->is.name, (const void *)instance->type);
    wr_options_put_all(&text, &common_options, &instance->common_options);
    wr_options_put_all(&text, &instance->type->options, instance->options);
    if (instance->format) {
        wr_buffer_put_format(&text, "format=%s\n", instance->format->name);
        wr_options_put_all(&text, &instance->format->options, instance->format_options);
    }
    instance->identity = wr_buffer_take(&text);
    return instance->identity || fail_memory(error);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static const struct wr_environment *environment_of(const struct wr_config *config,
                                                   const struct wr_config_handler *handler)
{
    static const char *no_entries[] = {NULL};
    static const struct wr_environment empty = {.entries = no_entries, .folder = "/"};
    if (handler->environment)
        return handler->environment;
    return config->environment ? config->environment : &empty;
}

static bool fill_all(struct wr_instance *instance, const struct sources *from)
{
    bool commons = set_commons(instance, from), own = go_on(from, commons) && set_own(instance, from);
    bool valid = commons && own && check_pauses(instance, from) && check_aggregate(instance, from);
    return go_on(from, valid) && set_format(instance, from) && valid && set_identity(instance, from->error);
}

static bool choose_wanted(struct wr_instance *instance, const struct sources *from)
{
    struct wr_error problem;
    if (!instance->format || !instance->format->wanted)
        return true;
    uint32_t wanted = instance->parts_rules.wanted = instance->format->wanted(instance->format_options);
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
        fail_memory(error);
        return NULL;
    }
    instance->type = type;
    instance->host.log = log;
    instance->host.node = handler->node;
    struct sources from = {config, handler, environment_of(config, handler), expanded, unknown, error};
    const char *name = wr_region_text(&instance->keep, handler->name, strlen(handler->name));
    if (!name)
        fail_memory(error);
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
    return wr_prepare(instance->type, instance->host.shown.name, instance->host.node, instance->host.log,
                      error);
}

bool wr_instance_create(struct wr_instance *instance, struct wr_error *error)
{
    if (!wr_instance_prepare(instance, error))
        return false;
    instance->host.refusal = error;
    wr_plugins_enter(instance->type->home, instance->type);
    struct wr_thread_state thread_state = wr_thread_state_save();
    instance->self = instance->type->is.create(&instance->host.shown, instance->options);
    instance->host.breach = wr_thread_state_restore(&thread_state);
    wr_plugins_leave(instance->type->home, instance->type);
    instance->host.refusal = NULL;
    instance->host.node = NULL; /* its document may go before the instance does */
    if (!instance->self && !error->code)
        wr_error_set(error, WEIR_ERR_CONFIG,
                     "%s: the handler type \"%s\" refused its options and gave no reason",
                     instance->host.shown.name, instance->type->is.name);
    return instance->self;
}

static void destroy(struct wr_instance *instance)
{
    struct wr_thread_state thread_state = wr_thread_state_save();
    wr_plugins_enter(instance->type->home, instance->type);
    instance->type->is.destroy(instance->self);
    wr_plugins_leave(instance->type->home, instance->type);
    const char *breach = wr_thread_state_restore(&thread_state);
    if (breach && instance->host.log)
        wr_log_write(instance->host.log, WEIR_LOG_ERROR, "%s: the handler type is at fault: %s",
                     instance->host.shown.name, breach);
}

void wr_instance_free(struct wr_instance *instance)
{
    if (!instance)
        return;
    if (instance->self)
        destroy(instance);
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
        .patience_ns = instance->host.try_timeout_ns,
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
