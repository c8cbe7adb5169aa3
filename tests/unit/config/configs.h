/* configs: makes configurations from texts. The test owns the results and drops them. */
#ifndef CONFIGS_H
#define CONFIGS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "config/config_read.h"
#include "text/error.h"

static struct wr_error error;

static inline struct wr_config *read_text(const char *text)
{
    error = (struct wr_error){0};
    return wr_config_read_text("weir.json", text, strlen(text), NULL, &error);
}

static inline struct wr_config *make_from(const char *text)
{
    struct wr_config *config = read_text(text);
    cr_assert_not_null(config, "%s: %s", text, error.text);
    return config;
}

/* The route of a group, as "one two"; "-": none. Static buffer. */
static inline const char *route_of(const struct wr_config *config, const char *group, bool above)
{
    static char text[500];
    const struct wr_config_route *route = wr_config_find_route(config, group, above);
    *text = '\0';
    for (size_t i = 0; route && i < route->count; i++)
        sprintf(text + strlen(text), "%s%s", i ? " " : "", route->items[i]);
    return route ? text : "-";
}

/* All handlers, as "name=type name=type". Static buffer. */
static inline const char *handlers_of(const struct wr_config *config)
{
    static char text[500];
    *text = '\0';
    for (size_t i = 0; i < config->handler_count; i++)
        sprintf(text + strlen(text), "%s%s=%s", i ? " " : "", config->handlers[i].name,
                config->handlers[i].type);
    return text;
}

#endif
