/* host: the core's services as a handler calls them. */
#ifndef WR_HOST_API_H
#define WR_HOST_API_H

#include <weir/handler.h>

#include "config/document.h"
#include "format/encoder.h"
#include "lane/lane.h"
#include "os/log.h"

struct wr_error;

/* What the services need to know of a handler. */
struct wr_host_api {
    weir_host shown;      /* first: plugins hand it back */
    struct wr_lane *lane; /* NULL: not in use yet */
    struct wr_log *log;
    struct wr_encoder *encoder; /* NULL: the type writes no format */
    int64_t patience_ns;        /* how long a try may take on purpose */
    const char *breach;         /* what create changed that is not its own; NULL: nothing */

    /* during create only */
    struct wr_error *refusal;
    const struct wr_node *node; /* the handler in its configuration; NULL: none */
};

/* Fills host->shown. handler: the name, valid as long as the host is. */
void wr_host_api_init(struct wr_host_api *host, const char *handler);

#endif
