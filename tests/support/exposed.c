/* exposed SEED COUNT FORMAT: prints COUNT documents of a format (prometheus or openmetrics), each of a page of
 * random series and followed by a form feed. Names, labels and parts of histograms are drawn from few words, so
 * that many become equal. The same arguments print the same. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "plain.h"
#include "segment/batch.h"
#include "text/common.h"

enum { SERIES = 40, LABELS = 4, COMMON = 2, NAME_ROOM = 64 };

struct drawn {
    weir_series series;
    weir_label labels[LABELS];
    char name[NAME_ROOM];
};

static struct drawn drawn[SERIES];
static weir_sample samples[SERIES];
static uint32_t count;
static weir_label common[COMMON];
static struct wr_batch_core core;
static uint64_t state;

#define DRAW(words) ((words)[plain_draw(&state, (uint32_t)WR_COUNT_OF(words))])

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const weir_label *)a)->key, ((const weir_label *)b)->key);
}

/* Draws labels with different keys. Returns their number. */
static size_t draw_labels(weir_label *labels, uint32_t most)
{
    static const char *const keys[] = {
        "a",       "a.b",         "a_b",       "group",      "weir_group",
        "le",      "weir_labels", "weir.name", "weir_name",  "exported_weir_name",
        "1",       "__a",         "instance",  "weir-group", "exported.weir_labels",
        "quantile"};
    static const char *const values[] = {"", "x", "1", "a=1,b", "x;x", "\"\\\n"};
    size_t made = 0;
    for (uint32_t i = plain_draw(&state, most + 1); i; i--) {
        const weir_label label = {DRAW(keys), DRAW(values)};
        size_t same = 0;
        while (same < made && strcmp(labels[same].key, label.key) != 0)
            same++;
        if (same == made)
            labels[made++] = label;
    }
    qsort(labels, made, sizeof *labels, compare_labels);
    return made;
}

static bool is_same(const weir_series *a, const weir_series *b)
{
    bool same = a->cumulative == b->cumulative && a->label_count == b->label_count &&
                strcmp(a->group, b->group) == 0 && strcmp(a->name, b->name) == 0;
    for (size_t i = 0; same && i < a->label_count; i++)
        same = strcmp(a->labels[i].key, b->labels[i].key) == 0 &&
               strcmp(a->labels[i].value, b->labels[i].value) == 0;
    return same;
}

/* Adds a series like the model with this name, unless there is one. */
static void add(const weir_series *model, const char *stem, const char *suffix, const weir_label *more)
{
    struct drawn *next = &drawn[count];
    if (count == SERIES)
        return;
    next->series = *model;
    next->series.id = count;
    snprintf(next->name, sizeof next->name, "%s%s", stem, suffix);
    next->series.name = next->name;
    if (model->label_count)
        memcpy(next->labels, model->labels, model->label_count * sizeof *next->labels);
    if (more)
        next->labels[next->series.label_count++] = *more;
    qsort(next->labels, next->series.label_count, sizeof *next->labels, compare_labels);
    next->series.labels = next->labels;
    for (uint32_t i = 0; i < count; i++)
        if (is_same(&drawn[i].series, &next->series))
            return;
    samples[count] = (weir_sample){
        .series = count, .kind = WEIR_KIND_DOUBLE, .time_ns = 1, .value.f64 = plain_draw(&state, 10)};
    count++;
}

static void add_histogram(weir_series *model, const char *stem)
{
    static const weir_label bounds[] = {{"le", "1"}, {"le", "2.5"}, {"le", "+Inf"}};
    for (size_t i = 0; i < model->label_count; i++)
        if (strcmp(model->labels[i].key, "le") == 0)
            return;
    if (count + 5 > SERIES || model->label_count == LABELS)
        return;
    model->cumulative = true;
    model->instrument = WEIR_HISTOGRAM;
    for (size_t i = 0; i < WR_COUNT_OF(bounds); i++)
        add(model, stem, ".bucket", &bounds[i]);
    add(model, stem, ".sum", NULL);
    add(model, stem, ".count", NULL);
}

static void draw_series(void)
{
    static const char *const groups[] = {"g", "g.a", "g_a"}, *const units[] = {NULL, "ms", "s", "By", "1"};
    static const char *const stems[] = {"a", "a.b", "a_b", "a:b", "\xc3\xa4"};
    static const char *const suffixes[] = {"",         ".count",       ".sum",          ".bucket",   ".min",
                                           ".max",     ".last",        ".p99",          ".total",    "_total",
                                           "_value",   "_sum",         "_count",        "_bucket",   "_info",
                                           "_created", "_seconds",     "_distribution", "_bytes",    ".value",
                                           "_s",       ".count.count", "_value_value",  "_sum_value"};
    weir_label labels[LABELS];
    char stem[NAME_ROOM];
    weir_series model = {.size = sizeof model,
                         .group = DRAW(groups),
                         .unit = DRAW(units),
                         .cumulative = plain_draw(&state, 2),
                         .instrument = (int32_t)plain_draw(&state, 4),
                         .labels = labels};
    model.label_count = plain_draw(&state, 2) ? draw_labels(labels, LABELS - 1) : 0;
    snprintf(stem, sizeof stem, "%s%s", DRAW(stems), DRAW(suffixes));
    if (model.instrument == WEIR_HISTOGRAM)
        add_histogram(&model, stem);
    else
        add(&model, stem, "", NULL);
}

static const weir_series *find_series(const weir_batch *batch, uint32_t id)
{
    (void)batch;
    return &drawn[id].series;
}

static bool print_document(const struct wr_format *format, const void *options)
{
    struct wr_encoder encoder;
    weir_encoded encoded;
    count = 0;
    for (uint32_t i = 1 + plain_draw(&state, 20); i; i--)
        draw_series();
    core.labels_number++;
    weir_batch batch = {.size = sizeof batch,
                        .count = count,
                        .samples = samples,
                        .labels = common,
                        .series = find_series,
                        .core = &core,
                        .origin = ""};
    batch.label_count = plain_draw(&state, 2) ? draw_labels(common, COMMON) : 0;
    wr_encoder_init(&encoder, format, options);
    wr_encoder_begin(&encoder);
    bool printed = wr_encoder_encode(&encoder, &batch, 0, SIZE_MAX, &encoded) &&
                   fwrite(encoded.data, 1, encoded.length, stdout) == encoded.length && putchar('\f') == '\f';
    wr_encoder_fini(&encoder);
    return printed;
}

int main(int argc, char **argv)
{
    const struct wr_format *format = argc == 4 ? wr_format_find(argv[3]) : NULL;
    PLAIN_CHECK(format && format->shape == WEIR_FORMAT_DOCUMENTS);
    void *options = calloc(1, format->options.struct_bytes); /* the first value of each is the default */
    PLAIN_CHECK(options);
    for (long seed = atol(argv[1]), end = seed + atol(argv[2]); seed < end; seed++) {
        state = (uint64_t)(seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
        PLAIN_CHECK(print_document(format, options));
    }
    free(options);
    return fflush(stdout) == 0 ? 0 : 1;
}
