/* url: removes secrets from URLs before they are shown. */
#ifndef WR_URL_H
#define WR_URL_H

struct wr_buffer;

/* Appends a URL with "***" in place of user and password, of the values of query parameters, since a secret can
 * have any name, except for db, rp, bucket, org, precision and consistency, and of the fragment. */
void wr_url_mask(struct wr_buffer *out, const char *url);

#endif
