/* page: what requests get: the page of all series, or a refusal. */
#ifndef PROMETHEUS_PAGE_H
#define PROMETHEUS_PAGE_H

#include <microhttpd.h>

#include "state.h"

/* In the format and encoding that the request accepts. */
enum MHD_Result page_respond(struct state *state, struct MHD_Connection *connection);

/* text: a string constant. */
enum MHD_Result page_refuse(struct MHD_Connection *connection, unsigned status, const char *text);

#endif
