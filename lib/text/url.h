/* url: URLs as they may be shown. */
#ifndef WR_URL_H
#define WR_URL_H

struct wr_buffer;

/* Appends a URL with "***" in place of user and password, and of the values of parameters that are secret by
 * their names (InfluxDB 1.x is given its password as "p"). */
void wr_url_mask(struct wr_buffer *out, const char *url);

#endif
