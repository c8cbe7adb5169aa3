/* api: the query API: /api/v1/, which reads the file of a store. See doc/api.md. */
#ifndef WEIR_PLUGINS_COLLECTOR_API_H
#define WEIR_PLUGINS_COLLECTOR_API_H

#include <stdbool.h>
#include <stdint.h>

#include "live.h"
#include "reader.h"
#include "request.h"

struct api {
    const char *path;     /* of the file */
    const char *problem;  /* why the reader is closed */
    int64_t limit_ns;     /* how long a request may take */
    struct reader reader; /* opened and closed with the file */
    struct live live;
};

/* [source] Handles a request whose path begins with /api/v1, but /api/v1/status, which is the collector's own.
 * Returns false if it is none. */
bool api_handle(struct api *api, struct request *request);

#endif
