/* api: the query API: /api/v1/, which reads the file of a store. See doc/api.md. */
#ifndef WEIR_PLUGINS_COLLECTOR_API_H
#define WEIR_PLUGINS_COLLECTOR_API_H

#include <stdbool.h>
#include <stdint.h>

#include "live.h"
#include "reader.h"
#include "request.h"

/* All zeros but path and limit_ns: nothing was asked so far. */
struct api {
    const char *path;      /* of the file */
    int64_t limit_ns;      /* how long a request may take */
    struct reader *reader; /* opened by the first request */
    struct live live;
};

/* [source] Handles a request whose path begins with /api/v1, but /api/v1/status, which is the collector's own.
 * Returns false if it is none. */
bool api_handle(struct api *api, struct request *request);

/* [fork] In the child: closes the descriptors. */
void api_abandon(const struct api *api);

/* [source] After the server has stopped. */
void api_close(struct api *api);

#endif
