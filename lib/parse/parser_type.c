/* The parsers of the library. Apart from the rest of `parser`, which the plugin with the parser "patterns" has
 * a copy of. */

#include <string.h>

#include "parse/parser.h"
#include "parse/parser_type.h"
#include "text/common.h"

static const struct wr_parser_type *const types[] = {
    &wr_parser_auto,   &wr_parser_text,     &wr_parser_json,       &wr_parser_bai,         &wr_parser_influx,
    &wr_parser_statsd, &wr_parser_graphite, &wr_parser_prometheus, &wr_parser_openmetrics, &wr_parser_csv,
};

const struct wr_parser_type *wr_parser_type_at(size_t i)
{
    return i < WR_COUNT_OF(types) ? types[i] : NULL;
}

const struct wr_parser_type *wr_parser_type_find(const char *name)
{
    for (size_t i = 0; i < WR_COUNT_OF(types); i++)
        if (strcmp(types[i]->name, name) == 0)
            return types[i];
    return NULL;
}

const char *wr_parser_type_name(const struct wr_parser_type *type)
{
    return type->name;
}

bool wr_parser_type_has_groups(const struct wr_parser_type *type, enum wr_parser_split split)
{
    return type->has_groups || (type->has_paths && split != WR_PARSER_SPLIT_NONE);
}
