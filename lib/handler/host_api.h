/* host_api: the functions of weir_host, and the services. */
#ifndef WR_HOST_API_H
#define WR_HOST_API_H

#include <stdarg.h>

#include <weir/handler.h>

#include "config/document.h"
#include "format/encoder.h"
#include "handler/ahead.h"
#include "handler/connecting.h"
#include "lane/lane.h"
#include "os/log.h"

struct wr_error;
struct wr_parts;
struct wr_type;

/* A handler's host, with what its functions need. */
struct wr_host_api {
    weir_host host_table; /* first member: plugins pass a pointer to it back */
    struct wr_lane *lane; /* NULL: the handler is not in use yet */
    struct wr_log *log;
    struct wr_encoder *encoder;   /* NULL: the type uses no format */
    int64_t try_timeout_ns;       /* how long an attempt may block by design */
    struct wr_ahead ahead;        /* of the worker */
    const struct wr_parts *parts; /* that the running emit gets in place of summaries; NULL: it gets samples */
    struct wr_host_summary *summary; /* that was read last; NULL: none */
    struct wr_connecting connecting; /* of the worker */
    bool has_connecting;             /* the type may use it */
    const char *breach;              /* what prepare or create changed and had to leave alone; NULL: nothing */

    /* during prepare and create only */
    struct wr_error *refusal;
    const struct wr_node *node; /* the handler in its configuration; NULL: none */
};

/* Fills host->host_table. name: the handler's name, borrowed as long as the host is used. */
void wr_host_api_init(struct wr_host_api *host, const char *name, const struct wr_type *type);

/* weir_host.refuse. refusal: gets the error; NULL: it is not called within create. node: of the handler or
 * source, or NULL. */
void wr_host_api_refuse(const weir_host *host, struct wr_error *refusal, const struct wr_node *node,
                        const char *option, const char *format, va_list arguments)
    __attribute__((format(printf, 5, 0)));

/* Frees what the services have allocated. */
void wr_host_api_fini(struct wr_host_api *host);

#endif
