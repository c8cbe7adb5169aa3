/* accepts: which format and encoding a scraper accepts, from its request's headers. */
#ifndef PROMETHEUS_ACCEPTS_H
#define PROMETHEUS_ACCEPTS_H

#include <stdbool.h>

/* Whether the header "Accept" names OpenMetrics 1.0.0 and rates no text format higher. NULL: no header. */
bool accepts_openmetrics(const char *accept);

/* Whether the header "Accept-Encoding" names gzip. NULL: no header. */
bool accepts_gzip(const char *accept_encoding);

#endif
