#include "segment/series_codec.h"

#include <math.h>
#include <string.h>

#include "registry/family.h"
#include "registry/reuse.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "text/common.h"
#include "text/error.h"

/* ---- Writing --------------------------------------------------------------------------------- */

uint16_t wr_series_codec_flags(const weir_series *view)
{
    return (uint16_t)((view->cumulative ? WR_SERIES_CODEC_CUMULATIVE : 0) |
                      (view->unit ? WR_SERIES_CODEC_UNIT : 0) | (view->help ? WR_SERIES_CODEC_HELP : 0) |
                      (view->bucket_count ? WR_SERIES_CODEC_BUCKETS : 0) |
                      (view->foreign ? WR_SERIES_CODEC_FOREIGN : 0) |
                      view->instrument << WR_SERIES_CODEC_INSTRUMENT_SHIFT);
}

/* 17 characters for each bucket: the bits of the double in hexadecimal, and a blank or the final NUL. */
enum { BUCKET_CHARACTERS = 17 };

static char *put_buckets(char *to, const weir_series *view)
{
    for (size_t i = 0; i < view->bucket_count; i++, to += BUCKET_CHARACTERS) {
        uint64_t bits;
        memcpy(&bits, &view->buckets[i], sizeof bits);
        for (int digit = 0; digit < BUCKET_CHARACTERS - 1; digit++)
            to[digit] = "0123456789abcdef"[bits >> (60 - 4 * digit) & 15];
        to[BUCKET_CHARACTERS - 1] = i + 1 < view->bucket_count ? ' ' : '\0';
    }
    return to;
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
    return bytes + view->bucket_count * BUCKET_CHARACTERS;
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
    return put_buckets(to, view);
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

static bool take_bucket(const char *text, double *bucket)
{
    uint64_t bits = 0;
    for (int i = 0; i < BUCKET_CHARACTERS - 1; i++) {
        int digit = wr_hex_digit(text[i], 'a');
        if (digit < 0)
            return false;
        bits = bits << 4 | (uint64_t)digit;
    }
    memcpy(bucket, &bits, sizeof bits);
    return isfinite(*bucket);
}

static bool take_buckets(const char *text, weir_series *view, double *buckets)
{
    view->buckets = buckets;
    for (; text; text = text[BUCKET_CHARACTERS - 1] ? text + BUCKET_CHARACTERS : NULL) {
        size_t n = view->bucket_count;
        if (n == WR_FAMILY_BUCKETS_MAX || !take_bucket(text, &buckets[n]) ||
            (n && buckets[n] <= buckets[n - 1]))
            return false;
        if (text[BUCKET_CHARACTERS - 1] != ' ' && text[BUCKET_CHARACTERS - 1] != '\0')
            return false;
        view->bucket_count++;
    }
    return view->bucket_count;
}

bool wr_series_codec_take(const char **at, const char *end, uint16_t flags, uint16_t label_count,
                          weir_series *view, struct wr_series_codec_room *room)
{
    *view = (weir_series){.size = sizeof *view, .labels = room->labels, .label_count = label_count};
    view->instrument = flags >> WR_SERIES_CODEC_INSTRUMENT_SHIFT & 3;
    view->cumulative = flags & WR_SERIES_CODEC_CUMULATIVE;
    view->foreign = flags & WR_SERIES_CODEC_FOREIGN;
    view->group = wr_series_codec_take_text(at, end);
    view->name = view->group ? wr_series_codec_take_text(at, end) : NULL;
    if (!view->name || label_count > WR_SERIES_CODEC_LABELS_MOST)
        return false;
    if (flags & WR_SERIES_CODEC_UNIT && !(view->unit = wr_series_codec_take_text(at, end)))
        return false;
    if (flags & WR_SERIES_CODEC_HELP && !(view->help = wr_series_codec_take_text(at, end)))
        return false;
    if (!wr_series_codec_take_labels(at, end, room->labels, label_count))
        return false;
    return !(flags & WR_SERIES_CODEC_BUCKETS) ||
           take_buckets(wr_series_codec_take_text(at, end), view, room->buckets);
}

static bool has_labels(const struct weir_stream *stream, const weir_series *view)
{
    bool equal = stream->label_count == view->label_count;
    for (size_t i = 0; equal && i < view->label_count; i++)
        equal = strcmp(stream->labels[i].key, view->labels[i].key) == 0 &&
                strcmp(stream->labels[i].value, view->labels[i].value) == 0;
    return equal;
}

/* What was shared already when it was stored is itself. */
static bool is_shared(const struct weir_metric *metric, const weir_series *view)
{
    return wr_registry_is_shared(metric) &&
           !(strcmp(metric->name, view->name) == 0 && has_labels(metric->stream, view));
}

static struct wr_series_codec_place intern(struct wr_registry *registry, const weir_series *view,
                                           bool *no_memory)
{
    struct wr_error error;
    wr_stream_adopt_group(registry, view->group);
    const struct wr_stream_key key = {NULL, view->labels, view->label_count, view->foreign, view->name};
    struct weir_stream *stream = wr_stream_get_for(registry, view->group, &key, &error);
    uint16_t flags = view->cumulative ? WEIR_SAMPLE_CUMULATIVE : 0;
    bool is_new = !wr_series_find(registry, stream, view->name, flags);
    struct weir_metric *metric = wr_series_get(registry, stream, view->name, flags, &error);
    *no_memory |= metric->stream->refusal == WEIR_ERR_MEMORY;
    if (metric->stream->refusal)
        return (struct wr_series_codec_place){0};
    if (is_new)
        wr_series_recover(metric);
    struct wr_series_codec_place place = {metric->series + 1, is_shared(metric, view)};
    if (!place.is_shared)
        wr_family_learn(registry, metric, view);
    return place;
}

struct wr_series_codec_place wr_series_codec_intern(struct wr_registry *registry, const weir_series *view,
                                                    bool *no_memory)
{
    wr_reuse_begin_reading(registry);
    struct wr_series_codec_place place = intern(registry, view, no_memory);
    wr_reuse_end_reading(registry);
    return place;
}
