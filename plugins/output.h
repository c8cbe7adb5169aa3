/* output: functions shared by handlers that write to file descriptors. */
#ifndef WEIR_PLUGINS_OUTPUT_H
#define WEIR_PLUGINS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/handler.h>

#include "system.h"

int64_t wr_output_now_ms(void);

/* Rounded up. */
int64_t wr_output_to_ms(int64_t ns);

int64_t wr_output_least(int64_t a, int64_t b);

/* Parses the option "mode": permissions in octal. Returns false after host->refuse if it is invalid. */
bool wr_output_set_mode(const weir_host *host, const char *text, mode_t *mode);

/* Whether the handler may wait: until a stop is requested, and then as long as the core waits for it. */
bool wr_output_may_wait(const weir_host *host);

/* When to stop waiting for a reader that takes nothing: at limit_ms or, if a part of the batch has been
 * written, soon after the emit was called: that part is reported then, because it is the progress that calls
 * wait for. */
int64_t wr_output_wait_end_ms(int64_t limit_ms, bool partial, int64_t emit_ms);

/* Writes all of the data unless an error occurs. Returns 0 or errno; *written is the number of bytes
 * written. */
int wr_output_write(const weir_host *host, int fd, const char *data, size_t length, size_t *written);

/* Checks whether a file that does not exist could be created: its folder must exist and be writable or, with
 * create_folders, the closest folder that exists. Returns 0 or errno. */
int wr_output_check_create(const char *path, bool create_folders);

/* Writes to a pipe unless that would wait, whatever the mode of its description, which others may share:
 * setting O_NONBLOCK there would change it for them. Returns the number of bytes, at most PIPE_BUF of which are
 * written as one piece or not at all; -1 with errno set, also where the kernel cannot do it (before 6.5). */
ssize_t wr_output_write_pipe_now(int fd, const char *data, size_t length);

#endif
