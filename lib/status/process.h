/* process: what tells one process from another: its number is given anew after its end, and other pid
 * namespaces have the same numbers. */
#ifndef WR_PROCESS_H
#define WR_PROCESS_H

#include <stdint.h>

/* When a process of the own namespace was started, in clock ticks since the machine was; it never changes. pid
 * 0: the own one. Answers 0 when there is no such process, or it is not known. */
uint64_t wr_process_started_ticks(int64_t pid);

/* What tells the own pid namespace from others; 0: not known. */
uint64_t wr_process_pid_space(void);

#endif
