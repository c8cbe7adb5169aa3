#include "protocol.h"

#include <string.h>

#include "http.h"
#include "otlp_reply.h"

static const struct protocol protocols[] = {
    {"elastic", WEIR_FORMAT_LINES, "/_bulk", false, wr_bulk_emit, wr_response_classify},
    {"otlp", WEIR_FORMAT_DOCUMENTS, NULL, true, wr_events_emit, wr_otlp_classify},
    {NULL, WEIR_FORMAT_RECORDS, NULL, false, wr_records_emit, wr_response_classify},
    {NULL, WEIR_FORMAT_LINES | WEIR_FORMAT_DOCUMENTS, NULL, false, wr_events_emit, wr_response_classify},
};

/* A core that is older than this plugin does not tell the format's name, and has no format with a protocol of
 * its own. */
const struct protocol *wr_protocol_find(const weir_host *host, const weir_encoder *encoder)
{
    const char *name = encoder->name(host);
    const struct protocol *protocol = protocols;
    while (protocol->format ? strcmp(protocol->format, name) != 0 : !(protocol->shape & encoder->format(host)))
        protocol++;
    return protocol;
}
