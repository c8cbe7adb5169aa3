/* mapped_file: the files of a journal, which are mapped into memory.
 *
 *     KIND.NUMBER    of a fixed size
 *
 * A file is fully allocated before it is mapped: storing to a hole raises SIGBUS if the disk is full. What is
 * stored survives the process, however it ends, but not the machine. The descriptor is closed after mapping, so
 * the program cannot close or reuse it. A forked child does not have the mapping (MADV_DONTFORK). Does not call
 * malloc, so it may be used where series are made. */
#ifndef WR_MAPPED_FILE_H
#define WR_MAPPED_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first word of each file, stored after the rest of its head. 0: the process died while it made the file.
 */
#define WR_JOURNAL_META UINT64_C(0x31746d7269657731)
#define WR_JOURNAL_SERIES UINT64_C(0x3173737269657731)
#define WR_JOURNAL_RING UINT64_C(0x3172727269657731)
#define WR_JOURNAL_CELLS UINT64_C(0x3165637269657731)
#define WR_JOURNAL_FRONTS UINT64_C(0x3174667269657731)
#define WR_JOURNAL_SEGMENT UINT64_C(0x3167737269657731)

/* Version 2 added to each segment the origin and sequence of its first sample, for each lane; version 3 cells,
 * and summaries in segments. */
enum { WR_JOURNAL_VERSION = 3 };

/* All zeros: no mapping. */
struct wr_journal_map {
    char *memory;
    size_t size;
};

/* Makes and maps a file of zeros. Returns 0 or errno. */
int wr_mapped_file_make(struct wr_journal_map *map, const char *folder, const char *kind, uint32_t number,
                        size_t size);

/* Maps an existing file. Returns 0 or errno; ENODATA if it is empty. */
int wr_mapped_file_open(struct wr_journal_map *map, const char *folder, const char *kind, uint32_t number,
                        bool writable);

void wr_mapped_file_close(struct wr_journal_map *map);

/* Deletes a file; mappings stay valid. Returns false on failure. */
bool wr_mapped_file_remove(const char *folder, const char *kind, uint32_t number);

/* Moves a damaged file beside the folder, as FOLDER-KIND.NUMBER.bad. */
void wr_mapped_file_set_aside(const char *folder, const char *kind, uint32_t number);

/* Returns the numbers of all files of a kind, ascending; the caller frees them. NULL: the folder cannot be
 * read, or out of memory. */
uint64_t *wr_mapped_file_list(const char *folder, const char *kind, size_t *count);

/* Returns how many files of a kind there are. -1: the folder cannot be read, or out of memory. */
long wr_mapped_file_count(const char *folder, const char *kind);

/* Returns whether all files of a kind were deleted. */
bool wr_mapped_file_remove_all(const char *folder, const char *kind);

#endif
