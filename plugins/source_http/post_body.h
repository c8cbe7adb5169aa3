/* post_body: the body of a request, in memory, decompressed, within limits. */
#ifndef SOURCE_HTTP_POST_BODY_H
#define SOURCE_HTTP_POST_BODY_H

#include <stdbool.h>
#include <stddef.h>

/* What all bodies share. */
struct body_limits {
    size_t each;   /* bytes of one, decompressed */
    size_t memory; /* bytes of all */
    size_t used;   /* of these */
};

enum body_fault {
    BODY_OK,
    BODY_TOO_LONG, /* beyond body_limit, or compressed more than any values can be */
    BODY_NO_ROOM,  /* beyond the memory of all */
    BODY_BROKEN,   /* not gzip, or cut */
};

struct post_body {
    struct body_limits *limits;
    char *data;
    size_t length, room;
    size_t received;             /* bytes before decompression */
    enum body_fault fault;       /* the first; what follows is discarded */
    struct z_stream_s *inflater; /* NULL: not compressed */
    bool is_ended;               /* the compressed data is complete */
};

/* Returns false if out of memory. */
bool post_body_init(struct post_body *body, struct body_limits *limits, bool is_gzip);
void post_body_fini(struct post_body *body);

void post_body_put(struct post_body *body, const char *data, size_t length);

/* All has come. */
void post_body_end(struct post_body *body);

#endif
