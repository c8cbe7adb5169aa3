/* index_name: the names of Elasticsearch indexes and data streams, from a template with the fields {group},
 * {name} and {label.KEY}. */
#ifndef WR_INDEX_NAME_H
#define WR_INDEX_NAME_H

#include <weir/handler.h>

struct wr_buffer;

enum { WR_INDEX_NAME_LONGEST = 255 };

/* Returns what is wrong with a template; NULL: nothing. Static. */
const char *wr_index_name_find_fault(const char *text);

/* Appends the name for a series. What replaces a field becomes lowercase, and other characters than letters,
 * digits and "._-" become '_'; a label that the series does not have becomes "none". A name that is too long is
 * cut. */
void wr_index_name_put(struct wr_buffer *out, const char *text, const weir_series *series,
                       const weir_batch *batch);

#endif
