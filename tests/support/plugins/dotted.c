/* dotted: options of every type, some with dots in their names. */
#include <stdlib.h>

#include <weir/handler.h>

struct dotted_options {
    const char *name;
    bool verify;
    double deeper;
    weir_list words;
    weir_map further;
    int64_t level;
};

static const weir_option rows[] = {
    {"tls.name", WEIR_OPTION_STRING, WEIR_OPTION_REQUIRED, NULL, NULL, "a name",
     offsetof(struct dotted_options, name)},
    {"words", WEIR_OPTION_LIST, 0, "one,two", NULL, "some words", offsetof(struct dotted_options, words)},
    {"tls.verify", WEIR_OPTION_BOOL, 0, "true", NULL, "whether to look",
     offsetof(struct dotted_options, verify)},
    {"tls.deep.er", WEIR_OPTION_DOUBLE, 0, "2.5", "0.5..10", "how deep",
     offsetof(struct dotted_options, deeper)},
    {"further", WEIR_OPTION_MAP, WEIR_OPTION_SECRET, NULL, NULL, "what else",
     offsetof(struct dotted_options, further)},
    {"level", WEIR_OPTION_INT, 0, "3", "1..", "how high", offsetof(struct dotted_options, level)},
    {0},
};

static void *dotted_create(const weir_host *host, const void *options)
{
    (void)host, (void)options;
    return malloc(1);
}

static void dotted_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self, (void)batch, (void)outcome;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "dotted",
    .summary = "has options in objects",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct dotted_options),
    .create = dotted_create,
    .emit = dotted_emit,
    .destroy = free,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
