/* report: what came of the checks, for people and for programs. */
#ifndef WEIR_TOOLS_VET_REPORT_H
#define WEIR_TOOLS_VET_REPORT_H

#include "child.h"

struct vet_report {
    bool json, strict;
    unsigned ok, failed, skipped;
    char reason[VET_WORDS]; /* why the last one was skipped */
};

void vet_report_begin(struct vet_report *report, const struct vet_subject *subject);
void vet_report_type(struct vet_report *report, const char *type);
void vet_report_result(struct vet_report *report, const char *type, const struct vet_result *result);

/* Returns whether all checks passed. */
bool vet_report_end(struct vet_report *report);

#endif
