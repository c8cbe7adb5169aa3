/* child: runs one check in a process of its own, with a deadline, and tells what came of it. */
#ifndef WEIR_TOOLS_VET_CHILD_H
#define WEIR_TOOLS_VET_CHILD_H

#include "vet.h"

/* What a check came to. */
struct vet_result {
    const char *name;
    enum vet_verdict verdict;
    char words[VET_WORDS];
    unsigned broken; /* bits of vet_call: what crashed or did not return */
    char heard[600]; /* the end of what a crashed child wrote on standard error */
};

/* The page must be shared and all zeros. */
void vet_child_run(const struct vet_check *check, const struct vet_subject *subject, struct vet_page *page,
                   struct vet_result *result);

#endif
