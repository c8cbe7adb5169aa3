/* Configurations: any text is accepted, or refused with an error that has a place; parsing it again yields the
 * same configuration. */

#include "config/config.h"
#include "text/error.h"
#include "fuzz.h"
#include "config/parse.h"

static const char *entries[] = {"NAME=value", "EMPTY=", NULL};
static struct wr_environment environment = {.references = 1, .entries = entries, .folder = "/"};

static struct wr_config *parse(const uint8_t *data, size_t size)
{
    struct wr_error error = {0};
    struct wr_config *config = wr_parse_text("TEXT", (const char *)data, size, &environment, &error);
    FUZZ_CHECK((config != NULL) == (error.code == 0));
    if (!config)
        FUZZ_CHECK(strncmp(error.text, "TEXT:", 5) == 0 && strlen(error.text) < WR_ERROR_ROOM);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wr_config *first = parse(data, size), *second = parse(data, size);
    FUZZ_CHECK((first != NULL) == (second != NULL));
    if (first) {
        compare(first, second);
        wr_config_drop(second);
        wr_config_drop(first);
    }
    return 0;
}
