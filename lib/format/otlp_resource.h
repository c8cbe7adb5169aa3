/* otlp_resource: who the values of this process are from, as OpenTelemetry describes it: attributes from the
 * format's options and from the environment variables that the standard defines. */
#ifndef WR_OTLP_RESOURCE_H
#define WR_OTLP_RESOURCE_H

#include <stdbool.h>

#include <weir/handler.h>

struct wr_otlp_writer;

struct wr_otlp_resource {
    const char *service_name; /* NULL: not set */
    const weir_map *attributes;
};

/* Returns what is wrong with the environment; NULL: nothing. Static. */
const char *wr_otlp_resource_find_fault(void);

/* Writes the attributes, as items of a list. Options take precedence over OTEL_SERVICE_NAME, and that over
 * OTEL_RESOURCE_ATTRIBUTES. Reads the environment. */
void wr_otlp_resource_put(const struct wr_otlp_writer *writer, const struct wr_otlp_resource *resource);

/* Writes an attribute, as an item of a list. number: of the list in its message. */
void wr_otlp_put_attribute(const struct wr_otlp_writer *writer, unsigned number, const char *key,
                           const char *value);

#endif
