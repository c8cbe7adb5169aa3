/* cache: a thread's direct-mapped cache from a name to its series. The key is the name's address; then the text
 * is compared, since programs mostly pass the same literals again, but may put another text into the same
 * buffer.
 *
 * The text is compared by aligned words. An aligned word lies on one page, so the bytes beside the text that
 * are read with it are always readable; they are masked out. No word is read that begins behind the end of the
 * text: the word before it has not matched then. */
#ifndef WR_CACHE_H
#define WR_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "text/common.h"
#include "registry/registry.h"

enum {
    WR_CACHE_BITS = 9,
    WR_CACHE_ENTRIES = 1 << WR_CACHE_BITS,
    WR_CACHE_WORDS = 3,
    WR_CACHE_PATIENCE = 8,
    WR_CACHE_CALM = 64,
    WR_CACHE_SHORT = 256
};

typedef uint64_t __attribute__((may_alias)) wr_cache_word;

struct wr_cache_entry {
    WR_ALIGNED_LINE struct weir_metric *metric; /* NULL: empty */
    uint64_t words[WR_CACHE_WORDS]; /* the text and its NUL, at the same offset in a word as at its address */
    uint64_t masks[WR_CACHE_WORDS]; /* 0xff for bytes of the text; a mask of 0: the text ended before */
    uint64_t compared;              /* bytes of the text in `words` if it has more, else 0 */
};

/* All zeros: empty, and nothing may be stored. Used by one thread and its signal handlers. */
struct wr_cache {
    struct wr_cache_entry entries[WR_CACHE_ENTRIES];
    bool open;         /* entries may be stored: one thread uses it, and no call is changing it */
    uint32_t declined; /* names whose entry was in use */
};

/* The entry of a name of a stream. */
static inline struct wr_cache_entry *wr_cache_place(struct wr_cache *cache, const struct weir_stream *stream,
                                                    const char *name)
{
    uint64_t mixed = ((uintptr_t)name ^ (uintptr_t)stream >> 6) * UINT64_C(0x9e3779b97f4a7c15);
    return &cache->entries[mixed >> (64 - WR_CACHE_BITS)];
}

/* Reads beside the text, which sanitizers and the C standard do not allow. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static inline bool wr_cache_matches(
    const struct wr_cache_entry *entry, const char *name)
{
    const wr_cache_word *word = (const wr_cache_word *)((uintptr_t)name & ~(uintptr_t)7);
    __asm__("" : "+r"(word)); /* hides from the compiler which object it points into */
    if ((word[0] & entry->masks[0]) != entry->words[0])
        return false;
    if (entry->masks[1] == 0)
        return true;
    if ((word[1] & entry->masks[1]) != entry->words[1])
        return false;
    if (entry->masks[2] == 0)
        return true;
    if ((word[2] & entry->masks[2]) != entry->words[2])
        return false;
    return WR_LIKELY(entry->compared == 0) ||
           strcmp(name + entry->compared, entry->metric->name + entry->compared) == 0;
}

/* NULL: the entry is of another name. */
static inline struct weir_metric *wr_cache_find(const struct wr_cache_entry *entry,
                                                const struct weir_stream *stream, const char *name)
{
    struct weir_metric *metric = entry->metric;
    return WR_LIKELY(metric && metric->stream == stream && wr_cache_matches(entry, name)) ? metric : NULL;
}

/* Whether to store a series in its name's entry: always if that is free, else each `patience`th time:
 * WR_CACHE_PATIENCE, or WR_CACHE_CALM for a name that is in the second level. Otherwise a program that loops
 * over more names than there are entries would replace an entry with each call, and evict names before they
 * recur. */
static inline bool wr_cache_wants(struct wr_cache *cache, const struct wr_cache_entry *entry, uint32_t patience)
{
    return cache->open && (!entry->metric || ++cache->declined % patience == 0);
}

/* Whether so many entries were in use that the second level is worth its memory. */
static inline bool wr_cache_is_short(const struct wr_cache *cache)
{
    return cache->open && cache->declined >= WR_CACHE_SHORT;
}

/* Stores a series in its name's entry. */
void wr_cache_put(struct wr_cache *cache, struct wr_cache_entry *entry, struct weir_metric *metric,
                  const char *name);

#endif
