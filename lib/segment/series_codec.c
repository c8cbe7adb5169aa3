#include "segment/series_codec.h"

#include <string.h>

#include "registry/series.h"
#include "registry/stream.h"
#include "text/error.h"

/* ---- Writing --------------------------------------------------------------------------------- */

uint16_t wr_series_codec_flags(const weir_series *view)
{
    return (uint16_t)((view->cumulative ? WR_SERIES_CODEC_CUMULATIVE : 0) |
                      (view->unit ? WR_SERIES_CODEC_UNIT : 0) | (view->help ? WR_SERIES_CODEC_HELP : 0));
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

size_t wr_series_codec_bytes(const weir_series *view)
{
    size_t bytes =
        text_bytes(view->group) + text_bytes(view->name) + text_bytes(view->unit) + text_bytes(view->help);
    for (size_t i = 0; i < view->label_count; i++)
        bytes += text_bytes(view->labels[i].key) + text_bytes(view->labels[i].value);
    return bytes;
}

static char *put_text(char *to, const char *text)
{
    return text ? stpcpy(to, text) + 1 : to;
}

char *wr_series_codec_put(char *to, const weir_series *view)
{
    to = put_text(put_text(to, view->group), view->name);
    to = put_text(put_text(to, view->unit), view->help);
    for (size_t i = 0; i < view->label_count; i++)
        to = put_text(put_text(to, view->labels[i].key), view->labels[i].value);
    return to;
}

/* ---- Reading --------------------------------------------------------------------------------- */

const char *wr_series_codec_take_text(const char **at, const char *end)
{
    const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));
    if (!nul)
        return NULL;
    *at = nul + 1;
    return text;
}

bool wr_series_codec_take_labels(const char **at, const char *end, weir_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        labels[i].key = wr_series_codec_take_text(at, end);
        labels[i].value = labels[i].key ? wr_series_codec_take_text(at, end) : NULL;
        if (!labels[i].value)
            return false;
    }
    return true;
}

bool wr_series_codec_take(const char **at, const char *end, uint16_t flags, uint16_t label_count,
                          weir_series *view, weir_label *labels)
{
    *view = (weir_series){.size = sizeof *view, .labels = labels, .label_count = label_count};
    view->cumulative = flags & WR_SERIES_CODEC_CUMULATIVE;
    view->group = wr_series_codec_take_text(at, end);
    view->name = view->group ? wr_series_codec_take_text(at, end) : NULL;
    if (!view->name || label_count > WR_SERIES_CODEC_LABELS_MOST)
        return false;
    if (flags & WR_SERIES_CODEC_UNIT && !(view->unit = wr_series_codec_take_text(at, end)))
        return false;
    if (flags & WR_SERIES_CODEC_HELP && !(view->help = wr_series_codec_take_text(at, end)))
        return false;
    return wr_series_codec_take_labels(at, end, labels, label_count);
}

/* This process's own description takes precedence. */
static void describe(struct wr_registry *registry, struct weir_metric *metric, const weir_series *read)
{
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    if ((read->unit || read->help) && !view->unit && !view->help)
        wr_series_describe(registry, metric->stream, read->name, read->unit, read->help, NULL);
}

uint32_t wr_series_codec_intern(struct wr_registry *registry, const weir_series *view, bool *no_memory)
{
    struct wr_error error;
    struct weir_stream *stream = wr_stream_get(registry, view->group, view->labels, view->label_count, &error);
    struct weir_metric *metric =
        wr_series_get(registry, stream, view->name, view->cumulative ? WEIR_SAMPLE_CUMULATIVE : 0, &error);
    *no_memory |= metric->stream->refusal == WEIR_ERR_MEMORY;
    if (metric->stream->refusal)
        return 0;
    if (metric->stream == stream)
        describe(registry, metric, view);
    return metric->series + 1;
}
