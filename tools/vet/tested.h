/* tested: what a handler and a source under test have in common: the host that they get, and what is checked
 * around each of their callbacks. */
#ifndef WEIR_TOOLS_VET_TESTED_H
#define WEIR_TOOLS_VET_TESTED_H

#include <weir/handler.h>

#include "config/options.h"
#include "vet.h"

/* The first member of vet_probe and of vet_specimen. */
struct vet_tested {
    weir_host *host;     /* that it gets */
    weir_host core;      /* the core's functions, which some of vet's call */
    void *const *self;   /* NULL there: not created */
    const char *kind;    /* "handler" or "source" */
    const void *options; /* its own ones, and their table */
    const struct wr_options_table *table;
    bool waiting; /* between begin and end of blocking_call/1 */

    /* Called before and after each callback, unless NULL. */
    void (*before)(void);
    void (*after)(const void *tested, const char *callback);
};

/* Replaces log and refuse of the host. They record calls, and fail the check if a call violates the contract.
 * At most 16 at a time. */
void vet_tested_attach(struct vet_tested *tested, weir_host *host);
void vet_tested_detach(struct vet_tested *tested);

/* Returns whose host it is; the check fails if it is none. */
struct vet_tested *vet_tested_of(const weir_host *host);

/* Fails the check if a text that it passes has the value of a secret option. what: "the reason of an outcome".
 */
void vet_tested_check_text(const struct vet_tested *tested, const char *what, const char *text);

/* Before and after each callback. */
void vet_tested_begin(struct vet_tested *tested);
void vet_tested_end(struct vet_tested *tested, const char *callback);

/* An outcome followed by bytes that the callback must not change. */
struct vet_fenced {
    weir_outcome outcome;
    unsigned char fence[64];
};

void vet_fenced_init(struct vet_fenced *fenced, uint32_t done);

/* Fails the check if the outcome's size has changed, or the fence. */
void vet_fenced_check(const struct vet_fenced *fenced, const char *callback);

/* Fails the check if the reason is not a text, or missing. */
void vet_fenced_check_reason(const struct vet_fenced *fenced, const char *callback);

#endif
