/* source_state: the states of sources in words. */
#ifndef WEIR_TOOLS_SOURCE_STATE_H
#define WEIR_TOOLS_SOURCE_STATE_H

/* state: enum weir_source_state. */
const char *source_state_name(int state);

#endif
