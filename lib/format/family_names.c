#include "format/family_names.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

void wr_family_names_fini(struct wr_family_names *names)
{
    free(names->slots);
    *names = (struct wr_family_names){0};
}

const char *wr_family_names_word(enum wr_series_type type)
{
    static const char *const words[] = {[WR_SERIES_COUNTER] = "_counter",
                                        [WR_SERIES_HISTOGRAM] = "_distribution",
                                        [WR_SERIES_GAUGE] = "_value"};
    return words[type];
}

/* What the names of a family end in. */
static const char *const *suffixes_of(enum wr_series_type type)
{
    static const char *const counter[] = {"", "_total", "_created", NULL};
    static const char *const histogram[] = {"", "_bucket", "_sum", "_count", "_created", NULL};
    static const char *const gauge[] = {"", NULL};
    switch (type) {
    case WR_SERIES_COUNTER: return counter;
    case WR_SERIES_HISTOGRAM: return histogram;
    default: return gauge;
    }
}

/* FNV-1a */
static uint64_t add_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_of(const char *family, enum wr_series_type type, unsigned words, const char *suffix)
{
    uint64_t hash = add_text(UINT64_C(0xcbf29ce484222325), family);
    for (; words; words--)
        hash = add_text(hash, wr_family_names_word(type));
    hash = add_text(hash, suffix);
    return hash ? hash : 1;
}

/* The slot of a hash, or the empty one where it belongs. */
static uint64_t *find_slot(uint64_t *slots, size_t capacity, uint64_t hash)
{
    size_t i = (size_t)(hash ^ hash >> 32) & (capacity - 1);
    while (slots[i] && slots[i] != hash)
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

/* Makes room for the names of one more family: the table is at most half full. */
static bool grow(struct wr_family_names *names)
{
    enum { OF_A_FAMILY = 5 };
    if (names->count + OF_A_FAMILY <= names->capacity / 2)
        return true;
    size_t capacity = names->capacity ? names->capacity * 2 : FIRST_CAPACITY;
    uint64_t *slots = calloc(capacity, sizeof *slots);
    names->failed |= !slots;
    if (!slots)
        return false;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i])
            *find_slot(slots, capacity, names->slots[i]) = names->slots[i];
    free(names->slots);
    names->slots = slots;
    names->capacity = capacity;
    return true;
}

bool wr_family_names_take(struct wr_family_names *names, const char *family, enum wr_series_type type,
                          unsigned words)
{
    const char *const *suffixes = suffixes_of(type);
    if (!grow(names))
        return false;
    for (size_t i = 0; suffixes[i]; i++)
        if (*find_slot(names->slots, names->capacity, hash_of(family, type, words, suffixes[i])))
            return false;
    for (size_t i = 0; suffixes[i]; i++, names->count++) {
        uint64_t hash = hash_of(family, type, words, suffixes[i]);
        *find_slot(names->slots, names->capacity, hash) = hash;
    }
    return true;
}
