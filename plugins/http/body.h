/* body: what is sent, behind its header, and compressed if it has to be. */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>

/* A compressor with its room, made with its first use. All zeros: none yet. */
struct body {
    z_stream stream;
    bool ready;
    unsigned char *room;
    size_t room_bytes;
    char *whole; /* a header and what follows it */
    size_t whole_bytes;
};

/* Puts a header in front of what is sent: *data and *length become those of both, valid until the next call.
 * false: no memory. */
bool body_begin(struct body *body, const char *header, const char **data, size_t *length);

/* Compresses as gzip; *data and *length become those of the result, valid until the next call. false: no
 * memory.
 */
bool body_compress(struct body *body, const char **data, size_t *length);

void body_fini(struct body *body);

#endif
