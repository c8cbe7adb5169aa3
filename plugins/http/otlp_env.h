/* otlp_env: the environment variables that OpenTelemetry defines for exporters: where values go, and with which
 * headers. https://opentelemetry.io/docs/specs/otel/protocol/exporter/ */
#ifndef HTTP_OTLP_ENV_H
#define HTTP_OTLP_ENV_H

#include <stdbool.h>

/* Returns the URL for metrics, to be freed. NULL with *no_memory false: none is set. */
char *wr_otlp_env_url(bool *no_memory);

/* Takes a header of the list in this variable. */
typedef bool otlp_env_add(void *ctx, const char *variable, const char *name, const char *value);

/* Calls `add` for each header. Returns false if it does, if out of memory, or, with *fault set, if a variable
 * is not a list of headers. */
bool wr_otlp_env_headers(otlp_env_add *add, void *ctx, const char **fault);

#endif
