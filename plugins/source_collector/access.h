/* access: who may ask what.
 *
 * The pages and /api/v1/ need a session or a token; the rest is open to all of this machine while the collector
 * listens only there. A session begins with a URL that is valid once, for ten minutes: see access_files.h. */
#ifndef WEIR_PLUGINS_COLLECTOR_ACCESS_H
#define WEIR_PLUGINS_COLLECTOR_ACCESS_H

#include <stdbool.h>

#include <weir/source.h>

#include "../listening/access_files.h"
#include "../listening/tenants.h"
#include "request.h"

struct access_options {
    const char *token_file, *folder;
    weir_list hosts; /* further names of this machine */
};

struct access {
    const weir_host *host;
    const struct access_options *options;
    bool is_loopback;
    char *folder, *token_path; /* NULL: there is none */
    struct tenants given, own;
    char url[ACCESS_URL_ROOM]; /* "": not listening */
    char cookie[32];           /* its name */
    bool token_fault;          /* is logged */
};

/* [configuring] Returns false after host->refuse. */
bool access_init(struct access *access, const weir_host *host, const struct access_options *options,
                 bool is_loopback);
void access_fini(struct access *access);

/* [source] Reads the tokens. Returns false with the reason if that of the option cannot be read. */
bool access_open(struct access *access, char *reason, size_t room);

/* [source] It listens there: "127.0.0.1:8080". Makes the files for commands of this machine. */
void access_publish(struct access *access, const char *address);
void access_close(struct access *access);

/* [source] Reads tokens again if they have changed, and makes the file of the URL again if it is gone. */
void access_refresh(struct access *access);

/* Whether the request is allowed; if not, it replies. */
bool access_check(struct access *access, struct request *request);

/* Begins a session. */
bool session_handle(struct access *access, struct request *request);

#endif
