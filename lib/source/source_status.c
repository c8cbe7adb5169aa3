#include "source/source_status.h"

#include <stdlib.h>

#include "runtime/runtime.h"
#include "source/source.h"
#include "status/snapshot.h"
#include "status/status_json.h"
#include "text/buffer.h"

/* The snapshot is a large struct: it is not on the stack. */
static char *read_status(const weir_host *host)
{
    struct wr_runtime *runtime = wr_source_from_host(host)->runtime;
    struct wr_snapshot *snapshot = malloc(sizeof *snapshot);
    struct wr_buffer text = {0};
    if (!snapshot)
        return NULL;
    wr_snapshot_init(snapshot);
    wr_snapshot_take(snapshot, wr_runtime_engine(runtime), &runtime->status.sources);
    wr_status_json_put(&text, &snapshot->view);
    free(snapshot);
    return wr_buffer_take(&text);
}

static void release(char *text)
{
    free(text);
}

const weir_status *wr_source_status_service(void)
{
    static const weir_status service = {sizeof service, read_status, release};
    return &service;
}
