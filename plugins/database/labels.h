/* labels: labels as canonical JSON text: equal labels give equal text. */
#ifndef WEIR_PLUGINS_DATABASE_LABELS_H
#define WEIR_PLUGINS_DATABASE_LABELS_H

#include <stddef.h>

#include <weir/types.h>

/* Returns {"a":"1","b":"2"}, sorted by key. If a key is in both lists, the first list takes precedence. Free
 * the result with sqlite3_free. Returns NULL if out of memory. */
char *wr_labels_to_json(const weir_label *first, size_t first_count, const weir_label *second,
                        size_t second_count);

#endif
