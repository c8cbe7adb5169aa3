/* member_table: which members of sets are known, as hashes in one bounded table. Not thread-safe.
 *
 * Two members with one hash of 64 bits count once: with a million members, the chance that there are any is 1
 * in 37 million. */
#ifndef WR_MEMBER_TABLE_H
#define WR_MEMBER_TABLE_H

#include <stdint.h>

/* All zeros: empty. */
struct wr_member_table {
    uint64_t *hashes; /* open addressing; 0: free */
    uint32_t room;    /* a power of two, or 0 */
    uint32_t count;
};

void wr_member_table_fini(struct wr_member_table *table);

/* Forgets all members, and gives back what a small table does not need. */
void wr_member_table_clear(struct wr_member_table *table);

enum wr_member_result {
    WR_MEMBER_NEW,
    WR_MEMBER_KNOWN,
    WR_MEMBER_BEYOND_LIMIT, /* not added: there are `most` already */
    WR_MEMBER_NO_MEMORY,    /* not added */
};

enum wr_member_result wr_member_table_add(struct wr_member_table *table, uint64_t hash, uint32_t most);

#endif
