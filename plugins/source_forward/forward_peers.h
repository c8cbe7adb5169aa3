/* forward_peers: the connections of senders, and what of their blocks is not acknowledged yet. */
#ifndef SOURCE_FORWARD_PEERS_H
#define SOURCE_FORWARD_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/source.h>

#include "../forwarding/forward_wire.h"
#include "../listening/listener.h"
#include "../listening/tenants.h"
#include "forward_senders.h"
#include "source/relaying.h"

/* A block that is added and not acknowledged. */
struct peer_block {
    struct wire_acknowledgement ack;
    uint64_t mark;
};

struct peer_series {
    const weir_source_series *series; /* NULL: refused, or not described */
    bool is_known;                    /* it was described */
};

struct peer {
    enum ready_kind kind; /* first: it leads here */
    struct wr_own_fd own; /* its socket */
    uint32_t events;      /* that the epoll set reports */
    char where[80];       /* for messages: the address, or the user; then the sender's name */
    bool is_tcp;
    bool is_welcome;
    bool is_full;     /* it has described more series than it may have */
    bool is_held;     /* its first frame is a block that has found no room: nothing is read until it has */
    bool all_allowed; /* all series of the block that was decoded last are */
    uint32_t seen;    /* samples of that block that are taken, repeats, or refused and counted */
    uint32_t fresh;   /* how many of these were not there before */
    uint32_t refused; /* how many of these are not taken */
    uint64_t late;    /* values of these that are before others of their origin which have come already */
    bool is_ending;   /* what is in `out` is sent, then it is closed */
    bool is_deaf;     /* ending, and `out` is sent: what it still sends is not looked at, until it closes */
    bool has_ended;   /* it has said good-bye */
    enum wire_ack ack;
    uint8_t *in;
    size_t in_length, in_room;
    struct wr_buffer out;
    size_t out_at;
    struct peer_series *series; /* by their ids */
    uint32_t series_room;
    size_t series_count;
    struct peer_block *blocks; /* a ring; NULL: there never were any */
    size_t block_first, block_count;
    int64_t active_ms;            /* when it was accepted, its last whole frame came, or the next one began */
    struct wire_path *path;       /* NULL: it sends its own values only */
    uint8_t id[WIRE_ID];          /* of its process */
    struct wire_weights *weights; /* of its next block; NULL: there never were any */
    bool has_weights;             /* they were not used yet */
    uint64_t received;            /* samples of its blocks */
    struct sender *sender;        /* who it is; NULL: it was not welcomed */
    struct wr_levels_sender *levels;
    char origin[2 * WIRE_ID + 1]; /* of its blocks; "": there was none */
    bool has_more_origins;        /* there were others */
    struct peer *before, *after;  /* of those that are open; `after` also links those that are free */
};

/* A reason for which connections were refused. */
struct refusal {
    char reason[128];  /* "": none */
    int64_t logged_ms; /* when it was logged last */
    uint64_t unlogged; /* connections since then */
};

enum { PEERS_REFUSALS = 8 };

struct peers {
    const weir_host *host;
    const weir_intake *intake;
    const weir_blocks *blocks;
    const weir_senders *showing;
    const weir_upstream *upstream;
    const struct wr_relaying *relaying; /* NULL: gauges are not merged */
    struct senders senders;
    struct tenants *tenants;
    const uid_t *uids; /* who may connect to a Unix socket */
    size_t uid_count;
    gid_t group;    /* whose members may, too; SOCKET_GROUP_NONE: nobody */
    bool has_token; /* TCP needs one */
    int epoll_fd;   /* borrowed */
    struct peer *all;
    size_t most, count;
    struct peer *first, *free;
    int64_t idle_ms;
    size_t most_series; /* that a peer may describe; 0: any number */
    uint8_t id[WIRE_ID];
    struct accepting accepting;
    bool logged_token;
    struct refusal refusals[PEERS_REFUSALS];
    size_t held_count, pending_count;
    bool is_asking; /* a mark is asked for: all blocks up to it are acknowledged together */
    uint64_t asked;
    struct wire_block decoded;
    struct wire_series described;
    weir_block_sample samples[WIRE_SLOTS];
};

/* host, tenants, uids and so on are set. Returns false if out of memory. */
bool wr_peers_init(struct peers *peers, size_t most);
void wr_peers_fini(struct peers *peers);

void wr_peers_open(struct peers *peers, int epoll_fd);

/* Closes all. */
void wr_peers_close(struct peers *peers);

/* [fork] Calls close(2) for all. */
void wr_peers_abandon(const struct peers *peers);

/* Accepts connections as long as there are, and as many are allowed. */
void wr_peers_accept(struct peers *peers, const struct listener *from, int64_t now_ms);
bool wr_peers_has_room(const struct peers *peers);

/* Reads from a peer and sends to it, which may close it. */
void wr_peers_serve(struct peers *peers, struct peer *peer, uint32_t events, int64_t now_ms);

/* There may be room for the blocks that have found none. */
void wr_peers_resume(struct peers *peers);

/* Adds the levels of gauges that have changed by senders that came or went. */
void wr_peers_publish(struct peers *peers);

/* Acknowledges what is settled by now. Returns whether there was something. */
bool wr_peers_acknowledge(struct peers *peers);

/* Reports the processes whose values come here, also over others. */
void wr_peers_report_upstream(struct peers *peers);

/* Shows who sends, if that has changed. */
void wr_peers_show(struct peers *peers);

/* Logs how many connections were refused that were not logged one by one. */
void wr_peers_log_refusals(struct peers *peers, int64_t now_ms);

/* Closes those that have sent a part of a frame, or no HELLO, for too long. */
void wr_peers_close_idle(struct peers *peers, int64_t now_ms);

#endif
