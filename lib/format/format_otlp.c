#include "format/format.h"

#include <math.h>
#include <stdlib.h>

#include "format/otlp_document.h"
#include "format/otlp_resource.h"

/* The body of OpenTelemetry's POST to /v1/metrics. https://opentelemetry.io/docs/specs/otlp/ */

enum { ENCODING_PROTOBUF, ENCODING_JSON };
enum { TEMPORALITY_CUMULATIVE, TEMPORALITY_DELTA };
enum { HISTOGRAMS_EXPLICIT, HISTOGRAMS_EXPONENTIAL };

struct otlp_options {
    int64_t encoding, temporality, histograms, max_buckets;
    const char *service_name;
    weir_map resource;
};

#define ROW(name, type, default_text, allowed, help, field)                                                    \
    WEIR_OPTION_ROW(name, type, 0, default_text, allowed, help, struct otlp_options, field)

static const weir_option option_rows[] = {
    ROW("encoding", ENUM, "protobuf", "protobuf|json", "how messages are written", encoding),
    ROW("temporality", ENUM, "cumulative", "cumulative|delta",
        "of what is summed up (aggregate): running totals, or what the interval has added to them",
        temporality),
    ROW("histograms", ENUM, "explicit", "explicit|exponential",
        "explicit: with the bounds that are declared; exponential: with bounds of equal ratios, for deltas",
        histograms),
    ROW("max_buckets", INT, "640", "3..2048",
        "the most buckets of an exponential histogram, of positive and of negative values", max_buckets),
    ROW("service_name", STRING, NULL, NULL,
        "the resource's service.name; default: $OTEL_SERVICE_NAME, or else unknown_service: and the program's "
        "name",
        service_name),
    ROW("resource", MAP, NULL, NULL,
        "further attributes of the resource, besides those of $OTEL_RESOURCE_ATTRIBUTES", resource),
    {0},
};

static const char *find_fault(const void *given)
{
    const struct otlp_options *options = given;
    if (options->histograms == HISTOGRAMS_EXPONENTIAL && options->temporality != TEMPORALITY_DELTA)
        return "\"histograms\": \"exponential\" needs \"temporality\": \"delta\": the distribution is that of "
               "an "
               "interval";
    if (options->service_name && !*options->service_name)
        return "\"service_name\" must not be empty";
    for (size_t i = 0; i < options->resource.count; i++) {
        const weir_label *attribute = &options->resource.items[i];
        if (!*attribute->key)
            return "\"resource\" has an attribute without a name";
        if (options->service_name && strcmp(attribute->key, "service.name") == 0)
            return "only one of \"service_name\" and the attribute \"service.name\" of \"resource\" is allowed";
    }
    return wr_otlp_resource_find_fault();
}

static bool is_json(const void *given)
{
    const struct otlp_options *options = given;
    return options->encoding == ENCODING_JSON;
}

static const char *choose_content_type(const void *options)
{
    return is_json(options) ? "application/json" : "application/x-protobuf";
}

static uint32_t choose_wanted(const void *options)
{
    const struct otlp_options *given = options;
    return WR_WANTS_INSTANCE | WR_WANTS_WHOLE |
           (given->histograms == HISTOGRAMS_EXPONENTIAL ? WR_WANTS_RANKS : 0);
}

/* On the configuring thread: the environment is not read later, when the program may change it. */
static void *make_state(const void *given)
{
    const struct otlp_options *options = given;
    const struct wr_otlp_resource resource = {options->service_name, &options->resource};
    bool is_exponential = options->histograms == HISTOGRAMS_EXPONENTIAL;
    const struct wr_otlp_style style = {
        .json = is_json(options),
        .delta = options->temporality == TEMPORALITY_DELTA,
        .buckets = is_exponential ? (uint32_t)options->max_buckets : 0,
    };
    return wr_otlp_document_new(&resource, &style);
}

static void free_state(void *state)
{
    wr_otlp_document_free(state);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    if (!encoder->state)
        encoder->state = make_state(encoder->options);
    if (!encoder->state || !wr_otlp_document_put(encoder->state, encoder, first, end))
        encoder->out.failed = true;
}

const struct wr_format wr_format_otlp = {
    .name = "otlp",
    .summary = "OpenTelemetry metrics as protobuf or JSON, for POST to /v1/metrics",
    .content_type = "application/x-protobuf",
    .shape = WEIR_FORMAT_DOCUMENTS,
    .options = {option_rows, sizeof(weir_option), sizeof(struct otlp_options)},
    .find_fault = find_fault,
    .choose_content_type = choose_content_type,
    .wanted = choose_wanted,
    .make_state = make_state,
    .put_prefix = wr_otlp_put_attributes,
    .put_event = put_event,
    .free_state = free_state,
};
