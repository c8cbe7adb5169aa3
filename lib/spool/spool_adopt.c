#include "spool/spool_adopt.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/error.h"
#include "spool/spool_block.h"
#include "spool/spool_disk.h"
#include "spool/spool_reader.h"

/* A box that was adopted. */
struct find {
    struct wr_owner_dir *box;
    struct wr_spool_file *first, **end;
    int64_t created_ns;     /* of its first file */
    bool foreign;           /* another handler's, in spite of its name */
    uint32_t other_version; /* a file has this format; 0: none has another one */
};

/* Makes an entry of a file's contents. NULL without memory. */
static struct wr_spool_file *measure(struct find *find, const struct wr_buffer *data)
{
    struct wr_spool_writer_info info;
    size_t length;
    struct wr_spool_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    *file = (struct wr_spool_file){
        .box = find->box,
        .count = wr_spool_reader_measure(data->data, data->length),
        .settled = wr_spool_block_read_mark(data->data, data->length),
        .bytes = data->length,
    };
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

/* What cannot be read at this moment stays for the next time. */
static void look_at_file(struct find *find, uint64_t number, const char *handler)
{
    struct wr_buffer data = {0};
    char *path = wr_owner_dir_file(find->box, number);
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

static void forget(struct find *find)
{
    while (find->first) {
        struct wr_spool_file *file = find->first;
        find->first = file->next;
        free(file);
    }
    wr_owner_dir_remove(find->box);
}

/* Adopts a box, if it is ours to adopt. */
static bool adopt(struct find *find, const char *place, const char *name, const char *handler)
{
    size_t count = 0;
    find->end = &find->first;
    if (!wr_owner_dir_adopt(find->box, place, name))
        return false;
    uint64_t *numbers = wr_owner_dir_list(find->box, &count);
    for (size_t i = 0; i < count; i++)
        look_at_file(find, numbers[i], handler);
    free(numbers);
    if (find->first && !find->foreign && !find->other_version)
        return true;
    forget(find);
    return false;
}

/* What was settled before its process died goes at once, and what nothing can be read of. */
static void take_in(struct wr_spool_index *index, struct find *find, struct wr_spool_found *found)
{
    struct wr_spool_file *next;
    find->box->files++; /* it stays until all are in */
    for (struct wr_spool_file *file = find->first; file; file = next) {
        next = file->next;
        wr_spool_index_put(index, file);
        found->samples += file->count - file->settled;
        if (file->count == file->settled)
            found->kept_bad |= wr_spool_index_finish(index, file, !file->count);
    }
    if (--find->box->files == 0)
        wr_owner_dir_remove(find->box);
}

static int compare(const void *a, const void *b)
{
    int64_t first = ((const struct find *)a)->created_ns, second = ((const struct find *)b)->created_ns;
    return first < second ? -1 : first > second;
}

bool wr_spool_adopt_find(struct wr_spool_index *index, const char *place, const char *handler,
                         struct wr_spool_found *found, struct wr_error *error)
{
    struct find finds[WR_SPOOL_INDEX_BOXES];
    size_t count = 0;
    const struct dirent *entry;
    *found = (struct wr_spool_found){0};
    if (!wr_owner_dir_check_place(place, false, error))
        return error->code == WEIR_OK;
    DIR *folder = opendir(place);
    if (!folder) {
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", place, wr_error_of_system(errno));
        return false;
    }
    while (!found->more && (entry = readdir(folder))) {
        if (!wr_owner_dir_is_name(entry->d_name, handler))
            continue;
        struct find find = {.box = wr_spool_index_free_box(index)};
        found->more = !find.box;
        if (!found->more && adopt(&find, place, entry->d_name, handler))
            finds[count++] = find;
        else if (find.other_version && !index->other_version_found)
            found->other_version = find.other_version;
    }
    closedir(folder);
    index->other_version_found |= found->other_version != 0;
    qsort(finds, count, sizeof *finds, compare);
    for (size_t i = 0; i < count; i++)
        take_in(index, &finds[i], found);
    return true;
}
