/* faults: checks with system calls that fail, or that would block, while the handler is called. Parts of the
 * checks of descriptors and of stopping; without seccomp they check nothing. */
#ifndef WEIR_TOOLS_VET_FAULTS_H
#define WEIR_TOOLS_VET_FAULTS_H

#include "vet.h"

/* Creates an instance, calls its open once, while vet_page->stop is set, so that one that waits returns; closes
 * and destroys it. */
struct vet_faults_life {
    const struct vet_subject *subject;
    void (*open_once)(const struct vet_subject *subject);
};

/* Fails the check if open leaves a descriptor behind after one of its system calls has failed. */
void vet_faults_check_open(const struct vet_faults_life *life);

/* Fails the check if emit waits for a destination that would block, but no longer once a stop is requested,
 * although time is left. */
void vet_faults_check_stop(const struct vet_subject *subject);

#endif
