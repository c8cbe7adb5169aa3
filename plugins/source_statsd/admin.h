/* admin: a part of the admin commands of the server StatsD, for what monitors it: stats and health. */
#ifndef STATSD_ADMIN_H
#define STATSD_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "../listening/listener.h"

enum { ADMIN_CLIENTS = 16 };

struct admin_client {
    enum ready_kind kind; /* first: it leads here */
    struct wr_own_fd own; /* its socket; -1: it is free */
    uint64_t active;      /* the turn in which it was accepted, or sent something */
};

struct admin {
    const weir_host *host;
    struct listeners listeners; /* at most one, with an epoll set of its own */
    struct accepting accepting;
    struct admin_client clients[ADMIN_CLIENTS];
    int64_t started_ms;
    uint64_t turn; /* counts what clients do */
    bool is_ready; /* the epoll set has something */
    bool is_down;  /* what the command health has set, and reports */
};

/* What the command stats reports. */
struct admin_stats {
    int64_t seen_ms; /* when a value was received last; 0: never */
    uint64_t bad_lines;
};

/* address: the option, which stays valid; NULL: there is none. Returns false after host->refuse. */
bool wr_admin_init(struct admin *admin, const weir_host *host, const char *address, bool is_guarded);
void wr_admin_fini(struct admin *admin);

static inline bool wr_admin_is_on(const struct admin *admin)
{
    return admin->listeners.count > 0;
}

/* Without an address these do nothing. wr_admin_open returns false with the outcome set. */
bool wr_admin_open(struct admin *admin, weir_outcome *outcome);
void wr_admin_close(struct admin *admin);

/* The same: [fork] calls close(2) for all. */
void wr_admin_abandon(const struct admin *admin);

/* Returns whether the program has closed its descriptors. Then the outcome is set. */
bool wr_admin_find_loss(struct admin *admin, weir_outcome *outcome);

/* If it is ready: accepts connections, and runs the commands that have come. Never waits. */
void wr_admin_serve(struct admin *admin, const struct admin_stats *stats);

/* A while after the system had no descriptor for a connection (accepting.is_short): accepts again. */
void wr_admin_try_again(struct admin *admin);

#endif
