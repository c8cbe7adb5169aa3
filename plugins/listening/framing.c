#include "framing.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct count {
    const char *name;
    unsigned count;
};

static enum MHD_Result count_one(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct count *count = ctx;
    (void)kind, (void)value;
    count->count += strcasecmp(name, count->name) == 0;
    return MHD_YES;
}

unsigned framing_count_headers(struct MHD_Connection *connection, const char *name)
{
    struct count count = {name, 0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_one, &count);
    return count.count;
}

static void __attribute__((format(printf, 3, 4)))
refuse(struct framing *framing, unsigned status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(framing->reason, sizeof framing->reason, format, arguments);
    va_end(arguments);
    framing->status = status;
}

void framing_check(struct framing *framing, struct MHD_Connection *connection, bool needs_body,
                   uint64_t body_limit)
{
    const char *coding =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    framing->status = 0;
    if (framing_count_headers(connection, MHD_HTTP_HEADER_CONTENT_LENGTH) +
            framing_count_headers(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) >
        1)
        refuse(framing, MHD_HTTP_BAD_REQUEST,
               "more than one header Content-Length or Transfer-Encoding; allowed: one of them");
    else if (coding && strcasecmp(coding, "chunked") != 0)
        refuse(framing, MHD_HTTP_BAD_REQUEST, "Transfer-Encoding: \"%.40s\" is not allowed; allowed: chunked",
               coding);
    else if (length && (!*length || strspn(length, "0123456789") != strlen(length)))
        refuse(framing, MHD_HTTP_BAD_REQUEST, "Content-Length: \"%.40s\" is not a number", length);
    else if (needs_body && !coding && !length)
        refuse(framing, MHD_HTTP_LENGTH_REQUIRED, "there is neither Content-Length nor Transfer-Encoding");
    else if (length && (strlen(length) > 18 || strtoull(length, NULL, 10) > body_limit))
        refuse(framing, MHD_HTTP_CONTENT_TOO_LARGE,
               "the body has %.40s bytes; allowed: body_limit (%llu), so send it in parts", length,
               (unsigned long long)body_limit);
}

size_t framing_decode(void *ctx, struct MHD_Connection *connection, char *text)
{
    (void)ctx, (void)connection;
    for (char *at = strstr(text, "%00"); at; at = strstr(at, "%00"))
        at[2] = '1';
    return MHD_http_unescape(text);
}
