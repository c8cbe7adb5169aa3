/* Instances of handler types: options, formats, creation, comparison, replacement. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "text/common.h"
#include "text/error.h"
#include "handler/instance.h"
#include "lane/lane_internal.h"
#include "config/config_read.h"
#include "handler/plugin.h"

static struct wr_plugins plugins;
static struct wr_error error;
static struct wr_log silent;

/* ---- A handler type that records its calls --------------------------------------------------- */

struct options {
    int64_t limit;
    const char *token;
    int64_t often_ns;
};

static const weir_option rows[] = {
    {"limit", WEIR_OPTION_INT, 0, "10", "1..100", "how many", offsetof(struct options, limit)},
    {"token", WEIR_OPTION_STRING, WEIR_OPTION_SECRET, NULL, NULL, "who", offsetof(struct options, token)},
    {"deep.often", WEIR_OPTION_DURATION, 0, "2s", NULL, "how often", offsetof(struct options, often_ns)},
    {0},
};

static const weir_default defaults[] = {
    {"overflow", "drop_oldest"}, {"linger", "1s"}, {"format", "bai"}, {NULL, NULL}};

static int created, destroyed, abandoned, probe;
static const struct options *seen_options;
static const weir_host *seen_host;
static void (*refuse)(const weir_host *host);
static bool return_null;

static void *create(const weir_host *host, const void *options)
{
    created++;
    seen_host = host;
    seen_options = options;
    if (refuse)
        refuse(host);
    return return_null ? NULL : &probe;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome;
}

static void flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    (void)self;
    (void)timeout_ms;
    (void)outcome;
}

static void destroy(void *self)
{
    cr_assert_eq(self, &probe);
    destroyed++;
}

static void abandon(void *self)
{
    cr_assert_eq(self, &probe);
    abandoned++;
}

static const weir_handler_type probe_type = {
    .size = sizeof probe_type,
    .abi = WEIR_ABI,
    .name = "probe",
    .summary = "tells what is done to it",
    .kinds = WEIR_KINDS_DOUBLE,
    .formats = WEIR_FORMAT_LINES,
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .defaults = defaults,
    .create = create,
    .emit = emit,
    .flush = flush,
    .destroy = destroy,
    .abandon = abandon,
};

static const weir_handler_type mute_type = {
    .size = sizeof mute_type,
    .abi = WEIR_ABI,
    .name = "mute",
    .summary = "writes nothing",
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

static const weir_handler_type any_type = {
    .size = sizeof any_type,
    .abi = WEIR_ABI,
    .name = "any",
    .summary = "writes every format",
    .formats = WEIR_FORMAT_LINES | WEIR_FORMAT_DOCUMENTS | WEIR_FORMAT_RECORDS,
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

static struct wr_config *config;
static struct wr_instance *instance;

static void setup(void)
{
    cr_assert_eq(wr_plugins_register(&plugins, &wr_plugins_handlers, &probe_type, NULL, &error), 0);
    cr_assert_eq(wr_plugins_register(&plugins, &wr_plugins_handlers, &mute_type, NULL, &error), 0);
    cr_assert_eq(wr_plugins_register(&plugins, &wr_plugins_handlers, &any_type, NULL, &error), 0);
}

static void teardown(void)
{
    wr_instance_free(instance);
    wr_config_drop(config);
}

TestSuite(instance, .init = setup, .fini = teardown);

/* Makes the instance of handler "h" of a configuration's "handlers". */
static struct wr_instance *make_from(const char *handlers)
{
    char text[1000];
    wr_instance_free(instance);
    wr_config_drop(config);
    instance = NULL;
    int length = snprintf(text, sizeof text, "{\"handlers\": %s}", handlers);
    error = (struct wr_error){0};
    config = wr_config_read_text("test", text, (size_t)length, NULL, &error);
    if (!config)
        return NULL;
    const struct wr_config_handler *handler = wr_config_find_handler(config, "h");
    struct wr_type *type = wr_plugins_find(&plugins, &wr_plugins_handlers, handler->type, NULL, &error);
    return instance = wr_instance_new(type, config, handler, &silent, NULL, NULL, &error);
}

/* The same from the handler's members only: "\"limit\": 5". */
static struct wr_instance *make(const char *members)
{
    char text[900];
    snprintf(text, sizeof text, "{\"h\": {\"type\": \"probe\"%s%s}}", *members ? ", " : "", members);
    return make_from(text);
}

static const struct options *options(void)
{
    cr_assert(instance, "%s", error.text);
    return instance->options;
}

static void assert_refused(const struct wr_instance *made, const char *words)
{
    cr_assert_null(made);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert(strstr(error.text, words), "\"%s\" does not say \"%s\"", error.text, words);
}

/* ---- Options --------------------------------------------------------------------------------- */

Test(instance, unset_options_have_their_defaults)
{
    make("");
    cr_assert_eq(options()->limit, 10);
    cr_assert_null(options()->token);
    cr_assert_eq(options()->often_ns, 2 * WR_NS_PER_S);
}

Test(instance, given_options_are_used)
{
    make("\"limit\": 5, \"token\": \"t\", \"deep\": {\"often\": \"3ms\"}");
    cr_assert_eq(options()->limit, 5);
    cr_assert_str_eq(options()->token, "t");
    cr_assert_eq(options()->often_ns, 3 * WR_NS_PER_MS);
}

Test(instance, common_options_have_their_defaults)
{
    make_from("{\"h\": {\"type\": \"mute\"}}");
    cr_assert(instance, "%s", error.text);
    struct wr_lane_settings settings = wr_common_options_settings(&instance->common_options);
    cr_assert_eq(settings.overflow, WR_OVERFLOW_BLOCK);
    cr_assert_eq(settings.queue_bytes, 1 << 20);
    cr_assert_eq(settings.block_timeout_ns, WR_NS_PER_S);
    cr_assert_eq(settings.batch, 5000);
    cr_assert_eq(settings.batch_bytes, 1 << 20);
    cr_assert_eq(settings.linger_ns, 0);
    cr_assert_eq(settings.retry_min_ns, 500 * WR_NS_PER_MS);
    cr_assert_eq(settings.retry_max_ns, 30 * WR_NS_PER_S);
    cr_assert_not(settings.sync);
}

Test(instance, a_type_has_other_defaults_for_common_options)
{
    make("");
    cr_assert_eq(instance->common_options.overflow, WR_OVERFLOW_DROP_OLDEST);
    cr_assert_eq(instance->common_options.linger_ns, WR_NS_PER_S);
}

Test(instance, the_configurations_defaults_take_precedence_over_the_types)
{
    make_from("{\"*\": {\"linger\": \"2s\", \"batch\": 7}, \"h\": {\"type\": \"probe\"}}");
    cr_assert_eq(instance->common_options.linger_ns, 2 * WR_NS_PER_S);
    cr_assert_eq(instance->common_options.batch, 7);
    cr_assert_eq(instance->common_options.overflow, WR_OVERFLOW_DROP_OLDEST);
}

Test(instance, the_handlers_own_options_take_precedence)
{
    make_from("{\"*\": {\"linger\": \"2s\"}, \"h\": {\"type\": \"probe\", \"linger\": \"3s\"}}");
    cr_assert_eq(instance->common_options.linger_ns, 3 * WR_NS_PER_S);
}

Test(instance, an_unknown_option_is_refused_with_its_place)
{
    assert_refused(make("\"limits\": 5"), "test:1:");
    assert_refused(make("\"limits\": 5"), "handlers.h.limits: ");
    assert_refused(make("\"limits\": 5"), "\"limit\"");
    assert_refused(make("\"deep\": {\"seldom\": \"1s\"}"), "handlers.h.deep.seldom");
}

Test(instance, a_value_out_of_range_is_refused)
{
    assert_refused(make("\"limit\": 101"), "handlers.h.limit: ");
    assert_refused(make("\"limit\": 101"), "1..100");
    assert_refused(make("\"limit\": \"5\""), "handlers.h.limit: ");
    assert_refused(make("\"linger\": 5"), "handlers.h.linger: ");
}

Test(instance, a_types_default_for_an_unknown_option_is_reported_as_an_error_of_the_plugin)
{
    static const weir_default wrong[] = {{"overflows", "block"}, {NULL, NULL}};
    weir_handler_type type = mute_type;
    type.name = "wrong";
    type.defaults = wrong;
    cr_assert_eq(wr_plugins_register(&plugins, &wr_plugins_handlers, &type, NULL, &error), 0);
    cr_assert_null(make_from("{\"h\": {\"type\": \"wrong\"}}"));
    cr_assert_eq(error.code, WEIR_ERR_PLUGIN);
    cr_assert(strstr(error.text, "\"wrong\": a default for \"overflows\", which is not a common option"));
}

/* ---- Formats --------------------------------------------------------------------------------- */

Test(instance, a_type_has_a_default_format)
{
    make("");
    cr_assert_str_eq(instance->format->name, "bai");
}

Test(instance, a_format_is_a_name_or_an_object)
{
    make("\"format\": \"json\"");
    cr_assert_str_eq(instance->format->name, "json");
    make("\"format\": {\"type\": \"text\"}");
    cr_assert_str_eq(instance->format->name, "text");
}

Test(instance, the_configurations_format_takes_precedence_over_the_types)
{
    make_from("{\"*\": {\"format\": \"json\"}, \"h\": {\"type\": \"probe\"}}");
    cr_assert_str_eq(instance->format->name, "json");
}

Test(instance, a_format_that_does_not_exist_is_refused)
{
    assert_refused(make("\"format\": \"jsn\""), "handlers.h.format: \"jsn\" is not a format");
    assert_refused(make("\"format\": \"jsn\""), "\"json\"");
    assert_refused(make("\"format\": 5"), "handlers.h.format: ");
    assert_refused(make("\"format\": {}"), "the option \"type\" is missing");
}

Test(instance, a_type_that_writes_no_format_has_none)
{
    make_from("{\"*\": {\"format\": \"json\"}, \"h\": {\"type\": \"mute\"}}");
    cr_assert(instance, "%s", error.text);
    cr_assert_null(instance->format);
    assert_refused(make_from("{\"h\": {\"type\": \"mute\", \"format\": \"json\"}}"),
                   "the handler type \"mute\" writes no format");
}

Test(instance, a_format_of_a_shape_that_the_type_does_not_write_is_refused)
{
    assert_refused(make("\"format\": \"prometheus\""),
                   "handlers.h.format: the format \"prometheus\" makes documents, which the handler type "
                   "\"probe\" cannot write");
    assert_refused(make("\"format\": {\"type\": \"mlbench\"}"), "makes records");
    cr_assert(make_from("{\"h\": {\"type\": \"any\", \"format\": \"prometheus\"}}"), "%s", error.text);
}

Test(instance, errors_in_options_of_a_format_name_their_place)
{
    cr_assert(make("\"format\": {\"type\": \"influx\", \"integers\": true}"), "%s", error.text);
    assert_refused(make("\"format\": {\"type\": \"influx\", \"integers\": 1}"),
                   "handlers.h.format.integers: 1 is not true or false");
    assert_refused(make("\"format\": {\"type\": \"influx\", \"integer\": true}"), "did you mean \"integers\"?");
}

Test(instance, a_format_may_refuse_its_options_together)
{
    static const char *const form = "{\"h\": {\"type\": \"any\", \"format\": %s}}";
    char text[300];
    snprintf(text, sizeof text, form, "\"mlbench\"");
    assert_refused(make_from(text),
                   "handlers.h.format: format \"mlbench\": the option \"run_id\" or \"pod_name\" is missing");
    snprintf(text, sizeof text, form, "{\"type\": \"mlbench\", \"run_id\": \"7\", \"pod_name\": \"p\"}");
    assert_refused(make_from(text), "handlers.h.format: format \"mlbench\": only one of");
    snprintf(text, sizeof text, form, "{\"type\": \"mlbench\", \"run_id\": \"7\"}");
    cr_assert(make_from(text), "%s", error.text);
}

/* ---- Identity -------------------------------------------------------------------------------- */

static bool is_same(const char *members, const char *others)
{
    static char identity[2000];
    cr_assert(make(members), "%s", error.text);
    snprintf(identity, sizeof identity, "%s", instance->identity);
    cr_assert(make(others), "%s", error.text);
    return strcmp(identity, instance->identity) == 0;
}

Test(instance, handlers_with_equal_options_are_equal)
{
    cr_assert(is_same("", ""));
    cr_assert(is_same("\"limit\": 10", ""));
    cr_assert(is_same("\"linger\": \"1s\"", "\"linger\": \"1000ms\""));
    cr_assert(is_same("\"format\": \"json\"", "\"format\": {\"type\": \"json\"}"));
}

Test(instance, handlers_with_different_options_are_different)
{
    cr_assert_not(is_same("\"limit\": 11", ""));
    cr_assert_not(is_same("\"linger\": \"2s\"", ""));
    cr_assert_not(is_same("\"format\": \"json\"", ""));
    cr_assert_not(is_same("\"token\": \"a\"", "\"token\": \"b\""));
}

/* ---- Creating -------------------------------------------------------------------------------- */

Test(instance, create_receives_the_options)
{
    make("\"limit\": 5");
    cr_assert_eq(created, 0);
    cr_assert(wr_instance_create(instance, &error));
    cr_assert_eq(created, 1);
    cr_assert_eq(seen_options->limit, 5);
    cr_assert_eq(seen_host, &instance->host);
    cr_assert_eq(instance->self, &probe);
}

Test(instance, a_created_handler_is_destroyed_once)
{
    make("");
    wr_instance_create(instance, &error);
    wr_instance_free(instance);
    instance = NULL;
    cr_assert_eq(destroyed, 1);
}

Test(instance, a_handler_that_was_not_created_is_not_destroyed)
{
    make("");
    wr_instance_free(instance);
    instance = NULL;
    cr_assert_eq(destroyed, 0);
}

static void refuse_limit(const weir_host *host)
{
    host->refuse(host, "limit", "%d is an unlucky number", 7);
}

static void refuse_all(const weir_host *host)
{
    host->refuse(host, "", "these two do not go together");
}

static void refuse_other(const weir_host *host)
{
    host->refuse(host, "token", "needed with this limit");
}

static void assert_not_created(void (*how)(const weir_host *host), const char *members, const char *words)
{
    refuse = how;
    return_null = true;
    cr_assert(make(members), "%s", error.text);
    cr_assert_not(wr_instance_create(instance, &error));
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert(strstr(error.text, words), "\"%s\" does not say \"%s\"", error.text, words);
}

Test(instance, a_plugin_may_refuse_an_option_at_its_place)
{
    assert_not_created(refuse_limit, "\"limit\": 7", "handlers.h.limit: 7 is an unlucky number");
}

Test(instance, a_plugin_may_refuse_an_option_that_was_not_given)
{
    assert_not_created(refuse_other, "\"limit\": 7", "handlers.h: token: needed with this limit");
}

Test(instance, a_plugin_may_refuse_its_options_together)
{
    assert_not_created(refuse_all, "\"limit\": 7", "handlers.h: these two do not go together");
}

Test(instance, a_plugin_that_refuses_without_a_message_is_reported)
{
    assert_not_created(NULL, "", "h: the handler type \"probe\" refused its options and gave no reason");
}

Test(instance, refusing_is_ignored_outside_create)
{
    make("");
    cr_assert(wr_instance_create(instance, &error));
    instance->host.host_table.refuse(&instance->host.host_table, "limit", "too late");
    cr_assert_eq(error.code, 0);
}

/* ---- Preparing ------------------------------------------------------------------------------- */

static int prepared, created_before;
static bool can_prepare;
static const char *prepare_message;

static bool prepare(const weir_host *host)
{
    prepared++;
    created_before = created;
    cr_assert_str_eq(host->name, "careful");
    cr_assert_str_eq(host->type->name, "careful");
    cr_assert_null(host->service(host, WEIR_SERVICE_ENCODER));
    cr_assert_not(host->stopping(host));
    if (prepare_message)
        host->refuse(host, "", "%s", prepare_message);
    return can_prepare;
}

static const weir_handler_type careful_type = {
    .size = sizeof careful_type,
    .abi = WEIR_ABI,
    .name = "careful",
    .summary = "has to be prepared",
    .formats = WEIR_FORMAT_LINES,
    .prepare = prepare,
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

static bool create_careful(void)
{
    cr_assert(make_from("{\"h\": {\"type\": \"careful\"}}"), "%s", error.text);
    return wr_instance_create(instance, &error);
}

static void use_careful(bool able, const char *words)
{
    if (!prepared)
        cr_assert_eq(wr_plugins_register(&plugins, &wr_plugins_handlers, &careful_type, NULL, &error), 0);
    can_prepare = able;
    prepare_message = words;
}

Test(instance, a_type_is_prepared_once_and_before_it_creates)
{
    use_careful(true, NULL);
    cr_assert(create_careful());
    cr_assert(create_careful());
    cr_assert_eq(prepared, 1);
    cr_assert_eq(created_before, 0);
    cr_assert_eq(created, 2);
}

Test(instance, a_failed_prepare_prevents_create_and_reports_why)
{
    use_careful(false, "no entropy");
    cr_assert_not(create_careful());
    cr_assert(strstr(error.text, "handlers.h: no entropy"), "%s", error.text);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert_eq(created, 0);
}

Test(instance, a_failed_prepare_without_a_message_names_the_type)
{
    use_careful(false, NULL);
    cr_assert_not(create_careful());
    cr_assert_str_eq(error.text, "h: the handler type \"careful\" cannot be used; it gave no reason");
}

Test(instance, a_failed_prepare_is_retried)
{
    use_careful(false, "not yet");
    cr_assert_not(create_careful());
    use_careful(true, NULL);
    cr_assert(create_careful());
    cr_assert(create_careful());
    cr_assert_eq(prepared, 2);
}

/* Another thread forks while this one is inside prepare or before it: in the child this thread does not exist.
 */
Test(instance, a_child_prepares_types_that_its_parent_has_not)
{
    use_careful(true, NULL);
    cr_assert(make_from("{\"h\": {\"type\": \"careful\"}}"), "%s", error.text);
    cr_assert(wr_plugins_begin_prepare(&plugins, instance->type));
    wr_plugins_mark_torn(&plugins);
    wr_plugins_after_fork(&plugins);
    cr_assert(atomic_load(&instance->type->fork_unsafe));
    cr_assert_not(instance->type->preparing);
    cr_assert_not(instance->type->prepared);
}

Test(instance, a_child_does_not_prepare_types_that_its_parent_has)
{
    use_careful(true, NULL);
    cr_assert(create_careful());
    wr_plugins_after_fork(&plugins);
    cr_assert(create_careful());
    cr_assert_eq(prepared, 1);
}

/* ---- Options that hide common ones ------------------------------------------------------------- */

/* As if this common option were newer than every plugin. */
static const char *newer_option;

const weir_option *__real_wr_common_options_find_clash(const struct wr_options_table *own);
const weir_option *__wrap_wr_common_options_find_clash(const struct wr_options_table *own);
const weir_option *__wrap_wr_common_options_find_clash(const struct wr_options_table *own)
{
    const weir_option *clash = __real_wr_common_options_find_clash(own);
    return newer_option && clash && clash == wr_options_find_key(own, newer_option) ? NULL : clash;
}

static struct wr_instance *make_hiding(const char *name, const char *handlers)
{
    static weir_option hiding_rows[2];
    static weir_handler_type hiding_type;
    hiding_rows[0] = (weir_option){name, WEIR_OPTION_STRING, 0, "mine", NULL, "hides", 0};
    hiding_type = (weir_handler_type){
        .size = sizeof hiding_type,
        .abi = WEIR_ABI,
        .name = "hiding",
        .summary = "has an option of that name",
        .options = hiding_rows,
        .option_row_size = sizeof(weir_option),
        .options_size = sizeof(const char *),
        .create = create,
        .emit = emit,
        .destroy = destroy,
    };
    newer_option = "batch";
    cr_assert_eq(wr_plugins_register(&plugins, &wr_plugins_handlers, &hiding_type, NULL, &error), 0, "%s",
                 error.text);
    return make_from(handlers);
}

Test(instance, an_option_of_the_type_hides_a_newer_common_one_which_keeps_its_default)
{
    cr_assert(make_hiding("batch", "{\"*\": {\"batch\": 7, \"linger\": \"3s\"}, \"h\": {\"type\": \"hiding\", "
                                   "\"batch\": \"of my own\", \"queue\": \"2KiB\"}}"),
              "%s", error.text);
    cr_assert_str_eq(*(const char **)instance->options, "of my own");
    cr_assert_eq(instance->common_options.batch, 5000);
    cr_assert_eq(instance->common_options.linger_ns, 3 * WR_NS_PER_S);
    cr_assert_eq(instance->common_options.queue_bytes, 2048);
}

Test(instance, an_object_of_the_type_hides_a_newer_common_option)
{
    cr_assert(make_hiding("batch.size", "{\"h\": {\"type\": \"hiding\", \"batch\": {\"size\": \"large\"}}}"),
              "%s", error.text);
    cr_assert_str_eq(*(const char **)instance->options, "large");
    cr_assert_eq(instance->common_options.batch, 5000);
}

Test(instance, defaults_of_all_handlers_are_checked_even_where_hidden)
{
    cr_assert_null(make_hiding("batch", "{\"*\": {\"batch\": 0}, \"h\": {\"type\": \"hiding\"}}"));
    cr_assert(strstr(error.text, "handlers.*.batch: 0 is out of range"), "%s", error.text);
}

Test(instance, only_hidden_rows_are_removed)
{
    make_hiding("batch", "{\"h\": {\"type\": \"hiding\"}}");
    const struct wr_options_table *common = &instance->type->common_options, all = wr_common_options_table();
    size_t count = 0, here = 0;
    while (wr_options_row(&all, count))
        count++;
    while (wr_options_row(common, here))
        here++;
    cr_assert_eq(here, count - 1);
    cr_assert_null(wr_options_find(common, "batch"));
    cr_assert(wr_options_find(common, "batch_bytes"));
}

/* ---- Successors and abandoning --------------------------------------------------------------- */

static struct wr_lane *make_lane(void)
{
    struct wr_lane *lane = wr_lane_new("h", &silent, NULL, NULL);
    cr_assert(lane);
    make("\"queue\": \"2KiB\"");
    wr_instance_create(instance, &error);
    return lane;
}

/* As a reload does for a lane without a worker. */
static void apply_to(struct wr_lane *lane)
{
    struct wr_instance *instances[2];
    struct wr_lane_discarded discarded = {.instances = instances};
    const struct wr_lane_handler handler = wr_instance_for_lane(instance);
    const struct wr_lane_change change = {.end_reason = WR_LANE_LIVES, .handler = &handler};
    cr_assert(wr_lane_config_apply(lane, &change, &discarded));
    wr_instance_attach(instance, lane);
}

Test(instance, a_successor_applies_its_settings)
{
    struct wr_lane *lane = make_lane();
    apply_to(lane);
    cr_assert_eq(lane->handler.instance, instance);
    cr_assert_null(lane->successor.instance);
    cr_assert_eq(instance->host.lane, lane);
    cr_assert_eq(lane->settings.queue_bytes, 2048);
    cr_assert_eq(lane->settings.overflow, WR_OVERFLOW_DROP_OLDEST);
    cr_assert_eq(lane->handler.kinds, (WEIR_KINDS_DOUBLE | WEIR_KINDS_SUMMARY));
    cr_assert(lane->handler.has_flush);
    wr_lane_free_unused(lane);
}

Test(instance, a_successor_of_a_failed_handler_starts_again)
{
    struct wr_lane *lane = make_lane();
    lane->end_reason = WEIR_DROPPED_FAILED;
    lane->delivery.retry_at_ns = WR_NEVER - 1;
    lane->delivery.faults_in_a_row = 9;
    lane->ledger.waiters.error = WEIR_ERR_TIMEOUT;
    apply_to(lane);
    cr_assert_eq(lane->end_reason, WR_LANE_LIVES);
    cr_assert_eq(lane->delivery.retry_at_ns, 0);
    cr_assert_eq(lane->delivery.faults_in_a_row, 0);
    cr_assert_eq(lane->ledger.waiters.error, 0);
    wr_lane_free_unused(lane);
}

static void set_try_timeout(const weir_host *host)
{
    const weir_try_timeout *try_timeout = host->service(host, WEIR_SERVICE_TRY_TIMEOUT);
    try_timeout->set(host, 7000);
}

Test(instance, a_successor_has_the_try_timeout_set_in_create)
{
    struct wr_lane *lane = make_lane();
    lane->handler.try_timeout_ns = WR_NS_PER_S;
    apply_to(lane);
    cr_assert_eq(lane->handler.try_timeout_ns, 0);
    refuse = set_try_timeout;
    wr_instance_create(instance, &error);
    apply_to(lane);
    cr_assert_eq(lane->handler.try_timeout_ns, 7 * WR_NS_PER_S);
    wr_lane_free_unused(lane);
}

Test(instance, in_a_forked_child_the_handler_is_abandoned)
{
    make("");
    wr_instance_create(instance, &error);
    wr_instance_abandon(instance, false);
    cr_assert_eq(abandoned, 1);
    cr_assert_eq(destroyed, 0);
}

Test(instance, abandoning_does_nothing_without_a_created_handler_or_a_callback)
{
    make("");
    wr_instance_abandon(instance, false);
    make_from("{\"h\": {\"type\": \"mute\"}}");
    wr_instance_create(instance, &error);
    wr_instance_abandon(instance, false);
    cr_assert_eq(abandoned, 0);
}

Test(instance, a_handler_that_the_fork_interrupted_is_not_abandoned_but_its_connection_is_closed)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    make("");
    wr_instance_create(instance, &error);
    cr_assert(wr_own_fd_set(&instance->host.connecting.last, fd));
    wr_instance_abandon(instance, true);
    cr_assert_eq(abandoned, 0);
    cr_assert_eq(fcntl(fd, F_GETFD), -1);
}
