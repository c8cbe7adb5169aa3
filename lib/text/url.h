/* url: removes secrets from URLs before they are shown. */
#ifndef WR_URL_H
#define WR_URL_H

struct wr_buffer;

/* Appends a URL with "***" in place of user and password, and of the values of query parameters whose names
 * denote secrets (InfluxDB 1.x takes its password as "p"). */
void wr_url_mask(struct wr_buffer *out, const char *url);

#endif
