/* probe: one handler under test. Calls it as the core does, checks each outcome, and ends the check at the
 * first breach of the contract. */
#ifndef WEIR_TOOLS_VET_PROBE_H
#define WEIR_TOOLS_VET_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "batches.h"
#include "handler/instance.h"
#include "vet.h"

struct vet_probe {
    const struct vet_subject *subject;
    struct wr_instance *instance;
    const weir_handler_type *type;
    weir_host core; /* the core's own services, as far as they are handed on */
    void *self;
    bool open;
    uint32_t outcome_size; /* as an older core would have it; 0: today's */
    uint64_t sequence;     /* of the next sample */
    uint64_t delivered;
    int64_t wake_in_ms; /* what the handler asked for last; -1: nothing */
    bool waiting;       /* between begin and end of blocking_call/1 */
    char reason[256];   /* why it did not deliver */

    /* Around each call of the handler's; NULL: nothing. */
    void (*before)(struct vet_probe *probe);
    void (*after)(struct vet_probe *probe, const char *callback);
};

/* What became of samples. */
enum vet_delivery {
    VET_DELIVERED,
    VET_NOT_DELIVERED, /* tried often enough: the destination is not there; probe->reason tells more */
    VET_FINISHED,      /* the handler has said FAILED */
};

/* Makes a handler and has it created; the check ends where that fails. format: or NULL. */
void vet_probe_create(struct vet_probe *probe, const struct vet_subject *subject, const char *format);

/* The same in two steps: the first calls prepare, the second create. What is set in between applies to create.
 */
void vet_probe_make(struct vet_probe *probe, const struct vet_subject *subject, const char *format);
void vet_probe_finish_create(struct vet_probe *probe);

/* Destroys it. */
void vet_probe_destroy(struct vet_probe *probe);

/* [worker] One call each. open returns whether the handler is open; flush and wake return the outcome's code.
 */
bool vet_probe_open(struct vet_probe *probe);
void vet_probe_close(struct vet_probe *probe);
int vet_probe_flush(struct vet_probe *probe, int64_t timeout_ms);
int vet_probe_wake(struct vet_probe *probe, int why);
int vet_probe_reach(struct vet_probe *probe, int64_t timeout_ms); /* the type's probe, while it is not open */
void vet_probe_emit(struct vet_probe *probe, const weir_batch *batch, weir_outcome *outcome);

/* [worker] Opens it, trying some times; the check is skipped where that is in vain. */
void vet_probe_must_open(struct vet_probe *probe);

/* [worker] Makes a batch and delivers it as the core does: the rest again after RETRY, closed and opened after
 * REOPEN; but with next to no pauses, and not for ever. */
enum vet_delivery vet_probe_deliver(struct vet_probe *probe, struct vet_recipe recipe);

/* [worker] The same; the check is skipped where nothing is delivered. */
void vet_probe_must_deliver(struct vet_probe *probe, struct vet_recipe recipe);

/* [worker] A whole life between create and destroy: opened, a few batches, flushed, closed. */
void vet_probe_live(struct vet_probe *probe);

/* Runs a script on a thread like a lane's worker, signals blocked, and waits for its end. */
void vet_probe_on_worker(void (*script)(struct vet_probe *probe), struct vet_probe *probe);

/* Creates a handler, runs the script on its worker, destroys it. */
void vet_probe_run(const struct vet_subject *subject, void (*script)(struct vet_probe *probe));

#endif
