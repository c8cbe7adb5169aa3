/* wakeup_fds: finds the two descriptors that libcurl uses to wake itself.
 *
 * Older versions of libcurl, such as Debian 12's, open them without FD_CLOEXEC and have no function that
 * returns them, so forked children and executed programs would inherit them. They are found by observing
 * which descriptors become readable when libcurl is woken up. */
#ifndef HTTP_WAKEUP_FDS_H
#define HTTP_WAKEUP_FDS_H

#include <curl/curl.h>

/* Finds the descriptors of a new handle and sets FD_CLOEXEC on them. Sets both fds to -1 if none need this. */
void wr_wakeup_fds_find(CURLM *multi, int fds[2]);

#endif
