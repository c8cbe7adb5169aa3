/* owner_folder: the folders that processes have in a spool or journal, see os/owner_dir.h. */
#ifndef WEIR_TOOLS_OWNER_FOLDER_H
#define WEIR_TOOLS_OWNER_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct wr_buffer;

/* Whether the process that owns the folder PARENT/NAME is running: it holds the lock. */
bool owner_folder_is_in_use(const char *parent, const char *name);

/* Appends "since 2026-11-21T10:20:30Z"; 0: "since ?" */
void owner_folder_put_time(struct wr_buffer *out, int64_t created_ns);

#endif
