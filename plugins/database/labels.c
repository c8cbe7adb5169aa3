#include "labels.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const weir_label *const *first = a, *const *second = b;
    return strcmp((*first)->key, (*second)->key);
}

static bool has_key(const weir_label *labels, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(labels[i].key, key) == 0)
            return true;
    return false;
}

static void put_text(sqlite3_str *json, const char *text)
{
    sqlite3_str_appendchar(json, 1, '"');
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20)
            sqlite3_str_appendf(json, "\\u%04x", *text);
        else if (*text == '"' || *text == '\\')
            sqlite3_str_appendf(json, "\\%c", *text);
        else
            sqlite3_str_appendchar(json, 1, *text);
    }
    sqlite3_str_appendchar(json, 1, '"');
}

static char *write_json(const weir_label *const *labels, size_t count)
{
    sqlite3_str *json = sqlite3_str_new(NULL);
    sqlite3_str_appendchar(json, 1, '{');
    for (size_t i = 0; i < count; i++) {
        if (i)
            sqlite3_str_appendchar(json, 1, ',');
        put_text(json, labels[i]->key);
        sqlite3_str_appendchar(json, 1, ':');
        put_text(json, labels[i]->value);
    }
    sqlite3_str_appendchar(json, 1, '}');
    return sqlite3_str_finish(json);
}

char *wr_labels_to_json(const weir_label *first, size_t first_count, const weir_label *second,
                        size_t second_count)
{
    size_t count = 0;
    const weir_label **all = malloc((first_count + second_count + 1) * sizeof *all);
    if (!all)
        return NULL;
    for (size_t i = 0; i < first_count; i++)
        all[count++] = &first[i];
    for (size_t i = 0; i < second_count; i++)
        if (!has_key(first, first_count, second[i].key))
            all[count++] = &second[i];
    qsort(all, count, sizeof *all, compare);
    char *json = write_json(all, count);
    free(all);
    return json;
}
