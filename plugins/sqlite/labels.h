/* labels: labels as one text of JSON, the same for the same labels. */
#ifndef WEIR_PLUGINS_SQLITE_LABELS_H
#define WEIR_PLUGINS_SQLITE_LABELS_H

#include <stddef.h>

#include <weir/types.h>

/* {"a":"1","b":"2"}, sorted by key. Where a key is in both, the first ones count. To be freed by sqlite3_free;
 * NULL: no memory. */
char *labels_to_json(const weir_label *first, size_t first_count, const weir_label *second,
                     size_t second_count);

#endif
