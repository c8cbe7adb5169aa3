/* nats_subjects: the subject of each series, made once. */
#ifndef NATS_SUBJECTS_H
#define NATS_SUBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

enum { NATS_SUBJECT_MAX = 2048 }; /* bytes, with the NUL; the server's limit of a line is 4096 */

struct nats_subjects {
    const char *template;
    bool is_constant;
    char **texts; /* by weir_series.id; NULL: not made yet */
    uint32_t room;
    uint64_t labels_hash; /* of the batch's labels that they were made with */
    uint64_t definitions; /* weir_batch.definitions, then */
};

void wr_nats_subjects_init(struct nats_subjects *subjects, const char *template);
void wr_nats_subjects_fini(struct nats_subjects *subjects);

/* Forgets the subjects if the batch has other labels than those before, or ids may stand for other series. */
void wr_nats_subjects_begin(struct nats_subjects *subjects, const weir_batch *batch);

/* Returns the subject of a series; NULL: out of memory; "": it is too long. Valid until the next begin. */
const char *wr_nats_subjects_get(struct nats_subjects *subjects, const weir_batch *batch,
                                 const weir_series *series);

/* Writes the subjects that the template can become: its text up to the first field, and > for the rest. */
void wr_nats_subjects_filter(const char *template, char *filter, size_t room);

#endif
