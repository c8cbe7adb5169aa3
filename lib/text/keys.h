/* keys: which keys have been seen in which objects of a document, to find those that stand twice. */
#ifndef WR_KEYS_H
#define WR_KEYS_H

#include <stddef.h>
#include <stdint.h>

/* All zeros: none. */
struct wr_keys {
    struct wr_keys_entry *entries; /* open addressing */
    size_t count, room;
};

enum wr_keys_answer { WR_KEYS_NEW, WR_KEYS_TWICE, WR_KEYS_NO_MEMORY };

/* Notes a key of an object, whose number is above 0. The key is not copied. */
enum wr_keys_answer wr_keys_add(struct wr_keys *keys, uint32_t object, const char *key, size_t length);

void wr_keys_fini(struct wr_keys *keys);

#endif
