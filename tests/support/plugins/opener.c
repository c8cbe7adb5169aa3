/* opener: open succeeds, fails or hangs, as its option "how" says; logs its calls to a file. Without `probe`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/handler.h>

enum { OPENS, REFUSES, HANGS };

struct opener_options {
    const char *notes;
    int64_t how;
    const char *key;
};

static const weir_option rows[] = {
    {"notes", WEIR_OPTION_PATH, WEIR_OPTION_REQUIRED, NULL, NULL, "the file that the calls are logged to",
     offsetof(struct opener_options, notes)},
    {"how", WEIR_OPTION_ENUM, 0, "opens", "opens|refuses|hangs", "what open does",
     offsetof(struct opener_options, how)},
    {"key", WEIR_OPTION_STRING, WEIR_OPTION_SECRET, NULL, NULL, "a secret that must not be shown",
     offsetof(struct opener_options, key)},
    {0},
};

static void note(const struct opener_options *options, const char *what)
{
    FILE *notes = fopen(options->notes, "a");
    if (!notes)
        abort();
    fprintf(notes, "%s\n", what);
    fclose(notes);
}

static void *opener_create(const weir_host *host, const void *options)
{
    (void)host;
    return (void *)options;
}

static void opener_open(void *self, weir_outcome *outcome)
{
    const struct opener_options *options = self;
    note(options, "open");
    while (options->how == HANGS)
        pause();
    if (options->how != REFUSES)
        return;
    outcome->code = WEIR_OUTCOME_REOPEN;
    snprintf(outcome->reason, sizeof outcome->reason, "the key %s\nis wrong",
             options->key ? options->key : "-");
}

static void opener_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)batch, (void)outcome;
    note(self, "emit");
}

static void opener_close(void *self)
{
    note(self, "close");
}

static void opener_destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = offsetof(weir_handler_type, probe),
    .abi = WEIR_ABI,
    .name = "opener",
    .summary = "opens, or does not",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct opener_options),
    .create = opener_create,
    .open = opener_open,
    .emit = opener_emit,
    .close = opener_close,
    .destroy = opener_destroy,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
