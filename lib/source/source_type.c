/* What a source type needs beyond what all types need. */
#include "handler/plugin.h"
#include "source/source_options.h"

static const void *source_at(void *entry, uint32_t index)
{
    return ((const weir_source_type *(*)(uint32_t))(uintptr_t)entry)(index);
}

static bool finish_source(struct wr_type *type, const char *where, struct wr_error *error)
{
    const weir_source_type *is = &type->source;
    const char *missing = !is->create ? "create" : !is->run ? "run" : !is->destroy ? "destroy" : NULL;
    const struct wr_options_table *own = &type->options;
    bool parses = is->flags & WEIR_SOURCE_TYPE_PARSES;
    return wr_plugins_check_type(type, missing, where, error) &&
           wr_plugins_check_clash(type, wr_source_options_find_clash(own, false), "all sources", where,
                                  error) &&
           (!parses || wr_plugins_check_clash(type, wr_source_options_find_clash(own, true),
                                              "sources that read text", where, error));
}

const struct wr_plugins_kind wr_plugins_sources = {
    .noun = "source type",
    .suffix = ".source.so",
    .entry = "weir_source_type_at",
    .number = "source ABI",
    .abi = WEIR_SOURCE_ABI,
    .least = offsetof(weir_source_type, destroy) + sizeof((weir_source_type *)0)->destroy,
    .bytes = sizeof(weir_source_type),
    .offered = source_at,
    .finish = finish_source,
};
