/* report: prints the results of the checks as text or JSON. */
#ifndef WEIR_TOOLS_VET_REPORT_H
#define WEIR_TOOLS_VET_REPORT_H

#include "child.h"

struct vet_report {
    bool json, strict;
    const char *kind; /* of the types: handler, source */
    unsigned ok, failed, skipped;
    char reason[VET_MESSAGE_SIZE];         /* why the last skipped check was skipped */
    struct json_object *document, *checks; /* with json: printed at the end */
};

void vet_report_begin(struct vet_report *report, const struct vet_subject *subject);
void vet_report_type(struct vet_report *report, const char *type);
void vet_report_result(struct vet_report *report, const char *type, const struct vet_result *result);

/* Returns whether no check failed; with strict, whether none was skipped either. */
bool vet_report_end(struct vet_report *report);

#endif
