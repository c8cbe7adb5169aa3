/* tenants: who may send, recognised by a token, and what holds for what they send. For sources that listen. */
#ifndef SOURCE_HTTP_TENANTS_H
#define SOURCE_HTTP_TENANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <weir/source.h>

enum { TENANT_TOKEN_ROOM = 513, TENANT_LABELS = 16 };

struct tenant {
    const char *name; /* "": the one of the option token_file */
    char *words;      /* the memory that the rest points to */
    const char *token_file;
    const char *group_prefix; /* NULL: none */
    weir_label labels[TENANT_LABELS];
    size_t label_count;
    bool has_max_series;
    uint64_t series_left;
    double rate;  /* values a second; 0: no limit */
    double ready; /* how many may be added now; negative: what the last body had too many */
    int64_t ready_ms;
    struct stat status; /* of the token's file when it was read last */
    size_t token_length;
    char token[TENANT_TOKEN_ROOM];
};

struct tenants {
    size_t count;
    struct tenant *items;
};

/* [create] token_file: NULL: none. given: each tenant's name, with words like "token_file=/PATH rate=1000".
 * Returns false after host->refuse. */
bool tenants_init(struct tenants *tenants, const weir_host *host, const char *token_file,
                  const weir_map *given);
void tenants_fini(struct tenants *tenants);

/* Reads the tokens of files that have changed. Returns false with the reason in `text` if one cannot be used;
 * its previous token, if any, is kept. */
bool tenants_read(struct tenants *tenants, char *text, size_t room);

/* Finds who has this token; the time that it takes does not depend on it. NULL: nobody. */
struct tenant *tenants_find(struct tenants *tenants, const char *token);

/* Whether the tenant may add values now. If not, sets after how many seconds. */
bool tenant_may_add(struct tenant *tenant, int64_t now_ms, unsigned *seconds);

#endif
