#include "spool/spool_index.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spool/spool_block.h"
#include "spool/spool_disk.h"
#include "spool/spool_reader.h"
#include "text/buffer.h"
#include "text/error.h"

void wr_spool_index_fini(struct wr_spool_index *index)
{
    while (index->first) {
        struct wr_spool_file *file = index->first;
        index->first = file->next;
        free(file);
    }
    for (int i = 0; i < WR_SPOOL_INDEX_DIRS; i++) {
        if (index->dirs[i].path)
            wr_owner_dir_leave(&index->dirs[i]);
        free(index->dirs[i].path);
    }
    free(index->place);
    *index = (struct wr_spool_index){0};
}

/* ---- Directories ----------------------------------------------------------------------------- */

static struct wr_owner_dir *find_free_dir(struct wr_spool_index *index)
{
    for (int i = 0; i < WR_SPOOL_INDEX_DIRS; i++)
        if (!index->dirs[i].path)
            return &index->dirs[i];
    return NULL;
}

static void remove_dir_if_empty(const struct wr_spool_index *index, struct wr_owner_dir *dir)
{
    if (dir->files == 0 && dir != index->own)
        wr_owner_dir_remove(dir);
}

/* The directory stays until its files are delivered, but gets no new ones. */
static void disown(struct wr_spool_index *index)
{
    struct wr_owner_dir *dir = index->own;
    index->own = NULL;
    if (dir)
        remove_dir_if_empty(index, dir);
}

bool wr_spool_index_ensure_own(struct wr_spool_index *index, const char *place, const char *handler, bool *same,
                               struct wr_error *error)
{
    *same = index->own && strcmp(place, index->place) == 0 && wr_owner_dir_hold(index->own);
    if (*same)
        return true;
    disown(index);
    struct wr_owner_dir *dir = find_free_dir(index);
    char *copy = strdup(place);
    if (!dir || !copy) {
        wr_error_set(error, WEIR_ERR_MEMORY, "%s: %s", place,
                     copy ? "too many directories in use" : "out of memory");
        free(copy);
        return false;
    }
    free(index->place);
    index->place = copy;
    if (!wr_owner_dir_check_place(place, true, error) || !wr_owner_dir_make(dir, place, handler, error))
        return false;
    index->own = dir;
    return true;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* Most files are appended, so the end is tried first. */
void wr_spool_index_put(struct wr_spool_index *index, struct wr_spool_file *file)
{
    const struct wr_spool_file *last = index->last;
    struct wr_spool_file **link = &index->first;
    if (last && (!last->own || (file->own && last->number < file->number)))
        link = &index->last->next;
    while (*link && (!(*link)->own || (file->own && (*link)->number < file->number)))
        link = &(*link)->next;
    file->next = *link;
    *link = file;
    if (!file->next)
        index->last = file;
    file->dir->files++;
    index->bytes += file->bytes;
}

static void take_out(struct wr_spool_index *index, struct wr_spool_file *file)
{
    struct wr_spool_file **link = &index->first, *before = NULL;
    while (*link != file) {
        before = *link;
        link = &before->next;
    }
    *link = file->next;
    if (index->last == file)
        index->last = before;
    file->dir->files--;
    index->bytes -= file->bytes;
    remove_dir_if_empty(index, file->dir);
    free(file);
}

bool wr_spool_index_finish(struct wr_spool_index *index, struct wr_spool_file *file, bool damaged)
{
    bool kept = false;
    if (damaged) {
        kept = wr_owner_dir_keep_bad(file->dir, file->number);
    } else {
        char *path = wr_owner_dir_file(file->dir, file->number);
        if (path)
            unlink(path);
        free(path);
    }
    take_out(index, file);
    return kept;
}

/* ---- Adoption -------------------------------------------------------------------------------- */

/* A directory that was adopted, and what is in it. */
struct find {
    struct wr_owner_dir *dir;
    struct wr_spool_file *first, **end;
    int64_t created_ns;     /* of its first file */
    bool foreign;           /* another handler's: the checksums of both names are equal */
    uint32_t other_version; /* the format version of a file, if it is not ours; else 0 */
};

/* Returns NULL if out of memory. */
static struct wr_spool_file *measure(struct find *find, const struct wr_buffer *data)
{
    struct wr_spool_writer_info info;
    size_t length;
    bool damaged;
    struct wr_spool_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    *file = (struct wr_spool_file){
        .dir = find->dir,
        .settled = wr_spool_block_read_mark(data->data, data->length),
        .bytes = data->length,
    };
    file->count = wr_spool_reader_measure(data->data, data->length, file->settled, &file->values, &damaged);
    file->damaged = damaged;
    if (file->settled > file->count)
        file->settled = file->count;
    if (wr_spool_block_read_head(data->data, data->length, &info, &length))
        find->created_ns = find->created_ns ? find->created_ns : info.created_ns;
    return file;
}

static bool is_foreign(const struct wr_buffer *data, const char *handler)
{
    struct wr_spool_writer_info info;
    size_t length;
    return wr_spool_block_read_head(data->data, data->length, &info, &length) &&
           strcmp(info.handler, handler) != 0;
}

/* A file that cannot be read now is left for the next search. */
static void add_file(struct find *find, uint64_t number, const char *handler)
{
    struct wr_buffer data = {0};
    char *path = wr_owner_dir_file(find->dir, number);
    struct wr_spool_file *file = path && wr_spool_disk_read(path, &data) == 0 ? measure(find, &data) : NULL;
    if (file) {
        uint32_t version = wr_spool_block_read_version(data.data, data.length);
        if (version && version != WR_SPOOL_BLOCK_VERSION)
            find->other_version = version;
        file->number = number;
        find->foreign |= is_foreign(&data, handler);
        *find->end = file;
        find->end = &file->next;
    }
    wr_buffer_fini(&data);
    free(path);
}

/* Releases the directory, and deletes it if it is empty. */
static void release(struct find *find)
{
    while (find->first) {
        struct wr_spool_file *file = find->first;
        find->first = file->next;
        free(file);
    }
    wr_owner_dir_remove(find->dir);
}

/* Returns false if there is nothing to adopt: the process lives, or the files are not for this handler. */
static bool adopt(struct find *find, const char *place, const char *name, const char *handler)
{
    size_t count = 0;
    find->end = &find->first;
    if (!wr_owner_dir_adopt(find->dir, place, name))
        return false;
    uint64_t *numbers = wr_owner_dir_list(find->dir, &count);
    for (size_t i = 0; i < count; i++)
        add_file(find, numbers[i], handler);
    free(numbers);
    if (find->first && !find->foreign && !find->other_version)
        return true;
    release(find);
    return false;
}

/* Adds the files. Those that are settled, and those in which no sample is found, are finished at once. The
 * latter are not damaged if their process was killed before it had written the first block. */
static void add_files(struct wr_spool_index *index, struct find *find, struct wr_spool_found *found)
{
    struct wr_spool_file *next;
    find->dir->files++; /* keeps the directory until all are added */
    for (struct wr_spool_file *file = find->first; file; file = next) {
        next = file->next;
        wr_spool_index_put(index, file);
        found->samples += file->count - file->settled;
        found->values += file->values;
        if (file->count == file->settled)
            found->kept_bad |= wr_spool_index_finish(index, file, !file->count && file->damaged);
    }
    if (--find->dir->files == 0)
        wr_owner_dir_remove(find->dir);
}

static int compare(const void *a, const void *b)
{
    int64_t first = ((const struct find *)a)->created_ns, second = ((const struct find *)b)->created_ns;
    return first < second ? -1 : first > second;
}

bool wr_spool_index_adopt(struct wr_spool_index *index, const char *place, const char *handler,
                          struct wr_spool_found *found, struct wr_error *error)
{
    struct find finds[WR_SPOOL_INDEX_DIRS];
    size_t count = 0;
    const struct dirent *entry;
    *found = (struct wr_spool_found){0};
    if (!wr_owner_dir_check_place(place, false, error))
        return error->code == WEIR_OK;
    DIR *listing = opendir(place);
    if (!listing)
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s: %s", place, wr_error_system_text(errno));
    while (!found->more && (entry = readdir(listing))) {
        if (!wr_owner_dir_is_name(entry->d_name, handler))
            continue;
        struct find find = {.dir = find_free_dir(index)};
        found->more = !find.dir;
        if (!found->more && adopt(&find, place, entry->d_name, handler))
            finds[count++] = find;
        else if (find.other_version && !index->other_version_found)
            found->other_version = find.other_version;
    }
    closedir(listing);
    index->other_version_found |= found->other_version != 0;
    qsort(finds, count, sizeof *finds, compare);
    for (size_t i = 0; i < count; i++)
        add_files(index, &finds[i], found);
    return true;
}

/* ---- The end --------------------------------------------------------------------------------- */

void wr_spool_index_tidy(struct wr_spool_index *index)
{
    if (index->own && index->own->files == 0)
        disown(index);
}

void wr_spool_index_leave(struct wr_spool_index *index)
{
    disown(index);
    for (int i = 0; i < WR_SPOOL_INDEX_DIRS; i++)
        if (index->dirs[i].path)
            wr_owner_dir_leave(&index->dirs[i]);
}

void wr_spool_index_abandon(const struct wr_spool_index *index)
{
    for (int i = 0; i < WR_SPOOL_INDEX_DIRS; i++)
        wr_owner_dir_abandon(&index->dirs[i]);
}
