#include "source_state.h"

#include <weir/weir.h>

const char *source_state_name(int state)
{
    switch (state) {
    case WEIR_SOURCE_STARTING: return "starting";
    case WEIR_SOURCE_RUNNING: return "running";
    case WEIR_SOURCE_WAITING: return "waiting";
    case WEIR_SOURCE_ENDED: return "ended";
    case WEIR_SOURCE_BROKEN: return "failed";
    case WEIR_SOURCE_STOPPED: return "stopped";
    default: return "unknown";
    }
}
