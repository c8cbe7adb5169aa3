/* Configurations: any text is accepted, or refused with an error that has a place; parsing it again yields the
 * same configuration. What is accepted is planned and put in force, with handlers that do nothing; `run` limits
 * its time and memory. */

#include "config/config.h"
#include "config/config_read.h"
#include "engine/commit.h"
#include "engine/engine.h"
#include "engine/plan.h"
#include "fuzz.h"
#include "producer/producer.h"
#include "text/error.h"

static const char *entries[] = {"NAME=value", "EMPTY=", NULL};
static struct wr_environment environment = {.references = 1, .entries = entries, .folder = "/"};

static struct wr_config *parse(const uint8_t *data, size_t size)
{
    struct wr_error error = {0};
    struct wr_config *config = wr_config_read_text("TEXT", (const char *)data, size, &environment, &error);
    FUZZ_CHECK((config != NULL) == (error.code == 0));
    if (!config) /* in the text, or in a file that it includes */
        FUZZ_CHECK((strncmp(error.text, "TEXT:", 5) == 0 || error.text[0] == '/') &&
                   strlen(error.text) < WR_ERROR_ROOM);
    return config;
}

static void compare(const struct wr_config *a, const struct wr_config *b)
{
    FUZZ_CHECK(a->handler_count == b->handler_count && a->route_count == b->route_count);
    FUZZ_CHECK(a->settings.shutdown_timeout_ns == b->settings.shutdown_timeout_ns);
    for (size_t i = 0; i < a->handler_count; i++)
        FUZZ_CHECK(strcmp(a->handlers[i].name, b->handlers[i].name) == 0);
    for (size_t i = 0; i < a->route_count; i++) {
        FUZZ_CHECK(strcmp(a->routes[i].group, b->routes[i].group) == 0);
        FUZZ_CHECK(a->routes[i].count == b->routes[i].count);
    }
}

/* ---- Handlers that do nothing ---------------------------------------------------------------- */

struct options {
    const char *path;
    int64_t size, wait, word;
    bool flag;
    weir_list list;
    weir_map map;
};

static const weir_option rows[] = {
    {"path", WEIR_OPTION_PATH, 0, NULL, NULL, "", offsetof(struct options, path)},
    {"size", WEIR_OPTION_SIZE, 0, "1MiB", "1KiB..1GiB", "", offsetof(struct options, size)},
    {"tls.wait", WEIR_OPTION_DURATION, 0, "1s", "0s..1h", "", offsetof(struct options, wait)},
    {"tls.word", WEIR_OPTION_ENUM, 0, "auto", "auto|always|never", "", offsetof(struct options, word)},
    {"flag", WEIR_OPTION_BOOL, 0, "false", NULL, "", offsetof(struct options, flag)},
    {"list", WEIR_OPTION_LIST, 0, NULL, NULL, "", offsetof(struct options, list)},
    {"map", WEIR_OPTION_MAP, 0, NULL, NULL, "", offsetof(struct options, map)},
    {0},
};

static char created;

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &created;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome;
}

static void destroy(void *self)
{
    FUZZ_CHECK(self == &created);
}

/* ---- In force -------------------------------------------------------------------------------- */

/* Lanes are never freed, and keep the names of their handlers. */
enum { LANES_MOST = 2000 };

static struct wr_registry registry;
static struct wr_producers producers;
static struct wr_plugins plugins;
static struct wr_log silent; /* level 0 */
static struct wr_engine *engine;
static size_t lanes;

static void register_type(const char *name, uint32_t formats)
{
    struct wr_error error;
    weir_handler_type *type = calloc(1, sizeof *type);
    FUZZ_CHECK(type);
    *type = (weir_handler_type){
        .size = sizeof *type,
        .abi = WEIR_ABI,
        .name = name,
        .summary = "",
        .formats = formats,
        .options = rows,
        .option_row_size = sizeof *rows,
        .options_size = sizeof(struct options),
        .create = create,
        .emit = emit,
        .destroy = destroy,
    };
    FUZZ_CHECK(wr_plugins_register(&plugins, &wr_plugins_handlers, type, NULL, &error) == 0);
}

static void set_up(void)
{
    if (engine)
        return;
    FUZZ_CHECK(wr_registry_init(&registry) && wr_producers_init(&producers));
    register_type("null", 0);
    register_type("console", WEIR_FORMAT_LINES);
    register_type("file", WEIR_FORMAT_LINES | WEIR_FORMAT_DOCUMENTS | WEIR_FORMAT_RECORDS);
    struct wr_config *empty = wr_config_new();
    FUZZ_CHECK(empty);
    engine = wr_engine_new(&registry, &producers, &plugins, &silent, empty, NULL);
    FUZZ_CHECK(engine);
    wr_config_drop(empty); /* the engine holds it */
}

/* Nothing on disk is written, and no shared object is loaded. */
static bool is_harmless(const struct wr_config *config)
{
    for (size_t i = 0; i < config->handler_count; i++)
        if (config->handlers[i].plugin)
            return false;
    return !config->settings.journal;
}

static bool may_commit(const struct wr_plan *plan)
{
    size_t new_lanes = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct wr_plan_handler *handler = &plan->handlers[i];
        if (handler->instance && handler->instance->common_options.spool)
            return false;
        new_lanes += handler->new_lane;
    }
    if (lanes + new_lanes > LANES_MOST)
        return false;
    lanes += new_lanes;
    return true;
}

static size_t count_in_feeds(const struct wr_branch *branch)
{
    size_t count = 0;
    for (size_t i = 0; i < branch->feed_count; i++)
        count += branch->feeds[i]->lane_count;
    return count;
}

/* Each lane is in one feed. Each route has the lanes of its feeds, once. */
static void check_router(const struct wr_router *router)
{
    size_t in_feeds = 0;
    for (size_t i = 0; i < router->feed_count; i++)
        in_feeds += router->feeds[i].lane_count;
    FUZZ_CHECK(in_feeds == router->lane_count);
    for (size_t i = 0; i < router->route_count; i++) {
        const struct wr_route *route = &router->routes[i];
        size_t of_feeds = count_in_feeds(&route->plain);
        for (size_t j = 0; j < route->mapped_count; j++)
            of_feeds += count_in_feeds(&route->mapped[j]);
        FUZZ_CHECK(of_feeds == route->lane_count);
    }
}

static void put_in_force(struct wr_config *config)
{
    struct wr_error error = {0};
    uint64_t generation = atomic_load(&engine->generation);
    struct wr_plan_site site = wr_engine_plan_site(engine, generation, false);
    struct wr_plan *plan = is_harmless(config) ? wr_plan_new(config, &site, &error) : NULL;
    if (!plan) {
        FUZZ_CHECK(!is_harmless(config) == !error.code);
        return;
    }
    check_router(plan->router);
    if (may_commit(plan))
        FUZZ_CHECK(wr_commit(engine, plan));
    else
        wr_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wr_config *first = parse(data, size), *second = parse(data, size);
    FUZZ_CHECK((first != NULL) == (second != NULL));
    if (first) {
        compare(first, second);
        set_up();
        put_in_force(first);
        wr_config_drop(second);
        wr_config_drop(first);
    }
    return 0;
}
