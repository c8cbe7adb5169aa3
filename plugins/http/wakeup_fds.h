/* wakeup_fds: the two descriptors by which libcurl wakes itself.
 *
 * Older libcurls (Debian 12's among them) open them without FD_CLOEXEC and tell nobody, so every program that
 * is started by exec, and every forked child, would keep them. They are found by what happens to them when
 * libcurl is told to wake up. */
#ifndef HTTP_WAKEUP_FDS_H
#define HTTP_WAKEUP_FDS_H

#include <curl/curl.h>

/* Finds the descriptors of a new handle, sets FD_CLOEXEC on them, and puts them into fds; -1 in both: there are
 * none that would need it. */
void wakeup_fds_find(CURLM *multi, int fds[2]);

#endif
