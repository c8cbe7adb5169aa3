/* otlp_document: samples as an ExportMetricsServiceRequest. A group is a scope, and the metrics of a name have
 * all its data points, in the order of the samples. */
#ifndef WR_OTLP_DOCUMENT_H
#define WR_OTLP_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

struct wr_buffer;
struct wr_encoder;
struct wr_otlp_document;
struct wr_otlp_resource;

struct wr_otlp_style {
    bool json;
    bool delta; /* of summaries, what the interval has added to the totals */
    /* with `delta`: the most of an exponential histogram; 0: histograms have explicit bounds */
    uint32_t buckets;
};

/* Returns NULL if out of memory. */
struct wr_otlp_document *wr_otlp_document_new(const struct wr_otlp_resource *resource,
                                              const struct wr_otlp_style *style);
void wr_otlp_document_free(struct wr_otlp_document *document);

/* Appends the document of samples [first, end) of the encoder's batch, or nothing if it would have no points.
 * Returns false if out of memory. */
bool wr_otlp_document_put(struct wr_otlp_document *document, struct wr_encoder *encoder, uint32_t first,
                          uint32_t end);

/* As wr_format.put_prefix: the attributes of a series' points. */
void wr_otlp_put_attributes(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out);

#endif
