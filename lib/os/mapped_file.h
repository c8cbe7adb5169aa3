/* journal_file: the files of a journal, each of which is memory too.
 *
 *     KIND.NUMBER    of a fixed size, and fully allocated before it is mapped, since writing to a hole on a
 * full disk would kill the program
 *
 * What is stored there outlives the process, however it ends; not the machine. The file is closed again once it
 * is mapped, so a program that closes descriptors which are not its own finds none here; and a forked child
 * does not have the mapping. Takes no memory but the mapping, so it may be used where series are made. */
#ifndef WR_MAPPED_FILE_H
#define WR_MAPPED_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each file begins with, stored once the rest of its head is in place: 0 is a file that was just being
 * made.
 */
#define WR_JOURNAL_META UINT64_C(0x31746d7269657731)
#define WR_JOURNAL_SERIES UINT64_C(0x3173737269657731)
#define WR_JOURNAL_RING UINT64_C(0x3172727269657731)
#define WR_JOURNAL_SEGMENT UINT64_C(0x3167737269657731)

enum { WR_JOURNAL_VERSION = 2 };

/* All zeros: none. */
struct wr_journal_map {
    char *memory;
    size_t size;
};

/* Makes a file of zeros. 0, or errno. */
int wr_mapped_file_make(struct wr_journal_map *map, const char *folder, const char *kind, uint32_t number,
                        size_t size);

/* Maps a file as it is. 0, or errno; ENODATA: it is empty. */
int wr_mapped_file_open(struct wr_journal_map *map, const char *folder, const char *kind, uint32_t number,
                        bool writable);

void wr_mapped_file_close(struct wr_journal_map *map);

/* Deletes a file. Mappings stay as they are. false: it could not be deleted. */
bool wr_mapped_file_remove(const char *folder, const char *kind, uint32_t number);

/* Moves a damaged file out of the folder, to be kept beside it. */
void wr_mapped_file_set_aside(const char *folder, const char *kind, uint32_t number);

/* The numbers of all files of a kind, rising; the caller frees them. NULL: the folder cannot be read, or there
 * is no memory. */
uint32_t *wr_mapped_file_list(const char *folder, const char *kind, size_t *count);

#endif
