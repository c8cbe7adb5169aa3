/* program: a program that uses the handler under test, through the public interface. For checks of what only
 * the whole core can show. */
#ifndef WEIR_TOOLS_VET_PROGRAM_H
#define WEIR_TOOLS_VET_PROGRAM_H

#include <stdint.h>

#include "vet.h"

/* Removes what takes precedence over the program's own configuration from the environment. */
void vet_program_clear_environment(void);

/* Configures the handler, as in --options, for all groups; the check fails if that is refused. linger: of the
 * handler; a changed one replaces it. timeout_ms: settings.shutdown_timeout. */
void vet_program_configure(const struct vet_subject *subject, const char *linger, int64_t timeout_ms);

/* What has become of the values of a program that has ended. */
struct vet_ledger {
    bool known; /* false: the program did not end by exit() */
    int status; /* of waitpid(2) */
    uint64_t offered, delivered, rejected;
    int64_t elapsed_us; /* set by the script */
};

/* Runs a script in a process of its own, as a program that configures the handler and ends with exit(). */
struct vet_ledger vet_program_run(const struct vet_subject *subject,
                                  void (*script)(void *ctx, struct vet_ledger *ledger), void *ctx);

/* Forks a child of the program, which ends with exit() after run_child, which may be NULL; the check fails if a
 * signal ends it. */
void vet_program_fork(void (*run_child)(void));

#endif
