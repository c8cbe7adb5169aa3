/* process_cgroup: the figures of a cgroup (version 2): https://docs.kernel.org/admin-guide/cgroup-v2.html */
#ifndef WEIR_PLUGINS_PROCESS_CGROUP_H
#define WEIR_PLUGINS_PROCESS_CGROUP_H

#include <stdbool.h>

#include "process_tree.h"

/* Those that the cgroup does not have are NAN. Returns false with errno set; ENOENT, ENODEV: there is no
 * such cgroup. */
bool process_cgroup_read(struct proc_file *file, const char *folder, struct process_figures *figures);

#endif
