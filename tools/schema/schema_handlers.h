/* schema_handlers: handler types, their options and formats, as `weir schema` describes them. */
#ifndef WEIR_TOOLS_SCHEMA_HANDLERS_H
#define WEIR_TOOLS_SCHEMA_HANDLERS_H

#include <stdbool.h>

#include "common/json_out.h"
#include "handler/plugin.h"

enum { SCHEMA_MOST_TYPES = 1000 };

/* The installed types, in the order of their names. */
struct schema_types {
    const struct wr_type *items[SCHEMA_MOST_TYPES];
    size_t count;
};

/* Writes the definitions "handler" and "defaults", and those that they refer to. */
void schema_handlers_put_definitions(struct json_out *out, const struct schema_types *types);

/* Writes the names of the types as "enum", with their summaries. by_name_alone: of those only for which nothing
 * else has to be said. more: one more name in front, which is explained by more_is; may be NULL. */
void schema_handlers_put_names(struct json_out *out, const struct schema_types *types, bool by_name_alone,
                               const char *more, const char *more_is);

#endif
