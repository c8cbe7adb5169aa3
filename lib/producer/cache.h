/* cache: a thread's short way from a name to its series. It goes by the name's address, and then checks the
 * text: programs mostly pass the same literals again, but may put another text into the same buffer.
 *
 * The text is compared a word at a time, and where the words begin is where the processor likes them: an
 * aligned word lies on one page, so the bytes beside the text that come with it can always be read. They are
 * masked out. No word is read that begins behind the end of the text: the one before did not match then. */
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
    uint64_t words[WR_CACHE_WORDS]; /* the text, with the NUL behind it, as it lies at its address */
    uint64_t masks[WR_CACHE_WORDS]; /* the bytes of `words` that count; 0: the text ended before */
    uint64_t compared;              /* bytes of the text in `words`, if there are more; else 0 */
};

/* All zeros: empty. One thread's alone, and its signal handlers'. */
struct wr_cache {
    struct wr_cache_entry entries[WR_CACHE_ENTRIES];
    bool closed; /* nothing is to be put in: it belongs to several threads or to none, or a call is at it */
    uint32_t declined; /* names whose place was taken */
};

/* Where a name of a stream would be. */
static inline struct wr_cache_entry *wr_cache_place(struct wr_cache *cache, const struct weir_stream *stream,
                                                    const char *name)
{
    uint64_t mixed = ((uintptr_t)name ^ (uintptr_t)stream >> 6) * UINT64_C(0x9e3779b97f4a7c15);
    return &cache->entries[mixed >> (64 - WR_CACHE_BITS)];
}

/* Sanitizers and the C standard know nothing of aligned words. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static inline bool wr_cache_matches(
    const struct wr_cache_entry *entry, const char *name)
{
    const wr_cache_word *word = (const wr_cache_word *)((uintptr_t)name & ~(uintptr_t)7);
    __asm__("" : "+r"(word)); /* the compiler need not know what object it points into */
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

/* NULL: not the one that is in this place. */
static inline struct weir_metric *wr_cache_find(const struct wr_cache_entry *entry,
                                                const struct weir_stream *stream, const char *name)
{
    struct weir_metric *metric = entry->metric;
    return WR_LIKELY(metric && metric->stream == stream && wr_cache_matches(entry, name)) ? metric : NULL;
}

/* Whether a series is to be put into its name's place: always where that is free, else one time of `patience`:
 * WR_CACHE_PATIENCE, or WR_CACHE_CALM for one that the cache_l2 knows. A program that goes through more names
 * than there are places would put each in vain, and drive out those that come again. */
static inline bool wr_cache_wants(struct wr_cache *cache, const struct wr_cache_entry *entry, uint32_t patience)
{
    return !cache->closed && (!entry->metric || ++cache->declined % patience == 0);
}

/* Whether so many names found their places taken that more places are worth their memory: see cache_l2. */
static inline bool wr_cache_is_short(const struct wr_cache *cache)
{
    return !cache->closed && cache->declined >= WR_CACHE_SHORT;
}

/* Puts a series in its name's place, which wants it. */
void wr_cache_put(struct wr_cache *cache, struct wr_cache_entry *entry, struct weir_metric *metric,
                  const char *name);

#endif
