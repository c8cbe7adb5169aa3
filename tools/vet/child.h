/* child: runs one check in a child process with a deadline, and determines the result. */
#ifndef WEIR_TOOLS_VET_CHILD_H
#define WEIR_TOOLS_VET_CHILD_H

#include "vet.h"

struct vet_result {
    const char *name;
    enum vet_verdict verdict;
    char message[VET_MESSAGE_SIZE];
    char guide[VET_GUIDE_SIZE]; /* the section of the handler guide to read after a failure */
    unsigned broken;            /* bits of vet_call: the callbacks that crashed or did not return */
    char stderr_tail[600];      /* the end of the standard error of a failed child */
};

/* The page must be shared and zeroed. */
void vet_child_run(const struct vet_check *check, const struct vet_subject *subject, struct vet_page *page,
                   struct vet_result *result);

#endif
