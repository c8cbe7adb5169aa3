/* name_key: how tables find what has a name and belongs to an object: a group's family, a stream's measurement.
 */
#ifndef WR_NAME_KEY_H
#define WR_NAME_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/registry.h"
#include "text/hash.h"

struct wr_name_key {
    const struct wr_hash_entry *owner;
    const char *name;
    size_t length;
};

static inline uint64_t wr_name_key_hash(const struct wr_registry *registry, const struct wr_name_key *key)
{
    return wr_hash_bytes(registry->seed ^ wr_hash_of(key->owner), key->name, key->length);
}

static inline bool wr_name_key_is(const struct wr_name_key *key, const struct wr_hash_entry *owner,
                                  const char *name, size_t length)
{
    return key->owner == owner && key->length == length && wr_hash_is_same(key->name, name, length);
}

#endif
