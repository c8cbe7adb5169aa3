/* notify: reports the state of a service to systemd, or to another supervisor that sets NOTIFY_SOCKET, as
 * sd_notify(3) does. Without that variable nothing is done. */
#ifndef WEIR_TOOLS_NOTIFY_H
#define WEIR_TOOLS_NOTIFY_H

#include <stdint.h>

/* status: one line, for people. A message that cannot be sent is reported once, and the service goes on. */
void notify_ready(const char *status);
void notify_reloading(void);

/* within_us: how long it may take; the supervisor waits that long at least. */
void notify_stopping(int64_t within_us);

#endif
