#include "source/source_names.h"

#include <stdlib.h>
#include <string.h>

#include "text/array.h"

/* Separates the parts of a key. Label values may have control characters, but no NUL: so their lengths are what
 * keeps them apart. */
enum { SEPARATOR = '\n' };

void wr_source_names_fini(struct wr_source_names *names)
{
    wr_name_index_fini(&names->index);
    wr_region_fini(&names->keep);
    wr_buffer_fini(&names->key);
    free(names->metrics);
    *names = (struct wr_source_names){0};
}

bool wr_source_names_begin(struct wr_source_names *names, const char *group, const weir_label *labels,
                           size_t count, bool cumulative)
{
    struct wr_buffer *key = &names->key;
    wr_buffer_clear(key);
    wr_buffer_put_text(key, group);
    wr_buffer_put_char(key, cumulative ? '+' : SEPARATOR);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(labels[i].value);
        wr_buffer_put_text(key, labels[i].key);
        wr_buffer_put_char(key, SEPARATOR);
        /* digits in reverse order: the key is not read back */
        for (size_t rest = length; rest; rest /= 10)
            wr_buffer_put_char(key, (char)('0' + rest % 10));
        wr_buffer_put_char(key, SEPARATOR);
        wr_buffer_put(key, labels[i].value, length);
    }
    wr_buffer_put_char(key, SEPARATOR);
    names->stem = key->length;
    return !key->failed;
}

struct weir_metric *wr_source_names_find(struct wr_source_names *names, const char *name)
{
    struct wr_buffer *key = &names->key;
    key->length = names->stem;
    wr_buffer_put_text(key, name);
    if (key->failed)
        return NULL;
    size_t number = wr_name_index_find(&names->index, key->data, key->length);
    return number == SIZE_MAX ? NULL : names->metrics[number];
}

bool wr_source_names_add(struct wr_source_names *names, struct weir_metric *metric)
{
    struct weir_metric **metrics =
        wr_array_reserve(names->metrics, &names->room, names->count + 1, sizeof *metrics);
    if (metrics)
        names->metrics = metrics;
    const char *kept =
        names->key.failed ? NULL : wr_region_text(&names->keep, names->key.data, names->key.length);
    if (!metrics || !kept || !wr_name_index_add(&names->index, kept, names->count))
        return false;
    names->metrics[names->count++] = metric;
    return true;
}
