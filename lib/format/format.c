#include "format/format.h"

#include <string.h>

#include "text/common.h"

static const struct wr_format *const formats[] = {
    &wr_format_text,   &wr_format_json,       &wr_format_bai,         &wr_format_csv,
    &wr_format_influx, &wr_format_prometheus, &wr_format_openmetrics, &wr_format_graphite,
    &wr_format_statsd, &wr_format_elastic,    &wr_format_otlp,        &wr_format_mlbench,
};

const struct wr_format *wr_format_at(size_t i)
{
    return i < WR_COUNT_OF(formats) ? formats[i] : NULL;
}

const struct wr_format *wr_format_find(const char *name)
{
    for (size_t i = 0; i < WR_COUNT_OF(formats); i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}
