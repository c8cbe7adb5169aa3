/* probe: a handler under test. Calls it as the core does, checks each outcome, and ends the check at the first
 * violation of the contract. */
#ifndef WEIR_TOOLS_VET_PROBE_H
#define WEIR_TOOLS_VET_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "batches.h"
#include "handler/instance.h"
#include "tested.h"
#include "vet.h"

struct vet_probe {
    struct vet_tested tested;
    const struct vet_subject *subject;
    struct wr_instance *instance;
    const weir_handler_type *type;
    void *self;
    bool open;
    uint64_t sequence; /* of the next sample */
    uint64_t delivered;
    uint64_t rejected, repeated; /* samples refused for good, and offered more than once */
    const weir_batch *batch;     /* of the emit in progress; NULL: none */
    char reason[256];            /* of the last outcome that had one */

    void *context; /* of the check */
};

/* Prepares and creates a handler; the check fails if this fails. format may be NULL: as in --options. */
void vet_probe_create(struct vet_probe *probe, const struct vet_subject *subject, const char *format);

/* The same in two steps: the first calls prepare, the second create. Set before and after in between. */
void vet_probe_make(struct vet_probe *probe, const struct vet_subject *subject, const char *format);
void vet_probe_finish_create(struct vet_probe *probe);

void vet_probe_destroy(struct vet_probe *probe);

/* [worker] One call each. open returns whether the handler is open; flush and probe return the outcome's code.
 */
bool vet_probe_open(struct vet_probe *probe);
void vet_probe_close(struct vet_probe *probe); /* nothing happens if it is not open */
int vet_probe_flush(struct vet_probe *probe, int64_t timeout_ms);
void vet_probe_wake(struct vet_probe *probe, int why);
int vet_probe_probe(struct vet_probe *probe, int64_t timeout_ms); /* the type's probe, while it is not open */
void vet_probe_emit(struct vet_probe *probe, const weir_batch *batch, weir_outcome *outcome);

/* [worker] Opens it, with retries; the check is skipped if it cannot be opened. */
void vet_probe_must_open(struct vet_probe *probe);

/* [worker] Creates a batch and delivers it as the core does: offers the rest again after RETRY, reopens after
 * REOPEN; but with a short back-off and a limited number of attempts. Returns false if they have all failed, or
 * if the handler has returned FAILED; see probe->reason. */
bool vet_probe_deliver(struct vet_probe *probe, struct vet_recipe recipe);

/* [worker] The same; the check is skipped if the batch is not delivered. */
void vet_probe_must_deliver(struct vet_probe *probe, struct vet_recipe recipe);

/* [worker] The life cycle between create and destroy: open, a few batches, flush, close. */
void vet_probe_live(struct vet_probe *probe);

/* Runs the script on a thread like a lane's worker, with signals blocked, and joins it. */
void vet_probe_on_worker(void (*script)(struct vet_probe *probe), struct vet_probe *probe);

/* The same with several at the same time, each on a thread of its own. */
enum { VET_PROBE_WORKERS = 4 };
void vet_probe_on_workers(void (*script)(struct vet_probe *probe), struct vet_probe *probes, int count);

/* Creates a handler, runs the script on its worker, destroys it. */
void vet_probe_run(const struct vet_subject *subject, void (*script)(struct vet_probe *probe));

#endif
