#include "spool/spool_index.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/error.h"

void wr_spool_index_fini(struct wr_spool_index *index)
{
    while (index->first) {
        struct wr_spool_file *file = index->first;
        index->first = file->next;
        free(file);
    }
    for (int i = 0; i < WR_SPOOL_INDEX_BOXES; i++) {
        if (index->boxes[i].path)
            wr_owner_dir_leave(&index->boxes[i]);
        free(index->boxes[i].path);
    }
    free(index->place);
    *index = (struct wr_spool_index){0};
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

struct wr_owner_dir *wr_spool_index_free_box(struct wr_spool_index *index)
{
    for (int i = 0; i < WR_SPOOL_INDEX_BOXES; i++)
        if (!index->boxes[i].path)
            return &index->boxes[i];
    return NULL;
}

static void remove_box_if_empty(struct wr_spool_index *index, struct wr_owner_dir *box)
{
    if (box->files == 0 && box != index->own)
        wr_owner_dir_remove(box);
}

/* New files go elsewhere from now on. */
static void disown(struct wr_spool_index *index)
{
    struct wr_owner_dir *box = index->own;
    index->own = NULL;
    if (box)
        remove_box_if_empty(index, box);
}

bool wr_spool_index_make_sure(struct wr_spool_index *index, const char *place, const char *handler, bool *same,
                              struct wr_error *error)
{
    *same = index->own && strcmp(place, index->place) == 0 && wr_owner_dir_hold(index->own);
    if (*same)
        return true;
    disown(index);
    struct wr_owner_dir *box = wr_spool_index_free_box(index);
    char *copy = strdup(place);
    if (!box || !copy) {
        wr_error_set(error, WEIR_ERR_MEMORY, "%s: %s", place,
                     copy ? "too many folders at a time" : "out of memory");
        free(copy);
        return false;
    }
    free(index->place);
    index->place = copy;
    if (!wr_owner_dir_check_place(place, true, error) || !wr_owner_dir_make(box, place, handler, error))
        return false;
    index->own = box;
    return true;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* By far the most files go to the end, so that is looked at first. */
void wr_spool_index_put(struct wr_spool_index *index, struct wr_spool_file *file)
{
    const struct wr_spool_file *last = index->last;
    struct wr_spool_file **place = &index->first;
    if (last && (!last->own || (file->own && last->number < file->number)))
        place = &index->last->next;
    while (*place && (!(*place)->own || (file->own && (*place)->number < file->number)))
        place = &(*place)->next;
    file->next = *place;
    *place = file;
    if (!file->next)
        index->last = file;
    file->box->files++;
    index->bytes += file->bytes;
}

static void take_out(struct wr_spool_index *index, struct wr_spool_file *file)
{
    struct wr_spool_file **place = &index->first, *before = NULL;
    while (*place != file) {
        before = *place;
        place = &before->next;
    }
    *place = file->next;
    if (index->last == file)
        index->last = before;
    file->box->files--;
    index->bytes -= file->bytes;
    remove_box_if_empty(index, file->box);
    free(file);
}

bool wr_spool_index_finish(struct wr_spool_index *index, struct wr_spool_file *file, bool damaged)
{
    bool kept = false;
    if (damaged) {
        kept = wr_owner_dir_keep_bad(file->box, file->number);
    } else {
        char *path = wr_owner_dir_file(file->box, file->number);
        if (path)
            unlink(path);
        free(path);
    }
    take_out(index, file);
    return kept;
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
    for (int i = 0; i < WR_SPOOL_INDEX_BOXES; i++)
        if (index->boxes[i].path)
            wr_owner_dir_leave(&index->boxes[i]);
}

void wr_spool_index_abandon(const struct wr_spool_index *index)
{
    for (int i = 0; i < WR_SPOOL_INDEX_BOXES; i++)
        wr_owner_dir_abandon(&index->boxes[i]);
}
