#include "spool_shelf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"

void wr_spool_shelf_fini(struct wr_spool_shelf *shelf)
{
    while (shelf->first) {
        struct wr_spool_file *file = shelf->first;
        shelf->first = file->next;
        free(file);
    }
    for (int i = 0; i < WR_SPOOL_SHELF_BOXES; i++) {
        if (shelf->boxes[i].path)
            wr_spool_box_leave(&shelf->boxes[i]);
        free(shelf->boxes[i].path);
    }
    free(shelf->place);
    *shelf = (struct wr_spool_shelf){0};
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

struct wr_spool_box *wr_spool_shelf_free_box(struct wr_spool_shelf *shelf)
{
    for (int i = 0; i < WR_SPOOL_SHELF_BOXES; i++)
        if (!shelf->boxes[i].path)
            return &shelf->boxes[i];
    return NULL;
}

static void remove_box_if_empty(struct wr_spool_shelf *shelf, struct wr_spool_box *box)
{
    if (box->files == 0 && box != shelf->own)
        wr_spool_box_remove(box);
}

/* New files go elsewhere from now on. */
static void disown(struct wr_spool_shelf *shelf)
{
    struct wr_spool_box *box = shelf->own;
    shelf->own = NULL;
    if (box)
        remove_box_if_empty(shelf, box);
}

bool wr_spool_shelf_make_sure(struct wr_spool_shelf *shelf, const char *place, const char *handler, bool *same,
                              struct wr_error *error)
{
    *same = shelf->own && strcmp(place, shelf->place) == 0 && wr_spool_box_hold(shelf->own);
    if (*same)
        return true;
    disown(shelf);
    struct wr_spool_box *box = wr_spool_shelf_free_box(shelf);
    char *copy = strdup(place);
    if (!box || !copy) {
        wr_error_set(error, WEIR_ERR_MEMORY, "%s: %s", place,
                     copy ? "too many folders at a time" : "no memory");
        free(copy);
        return false;
    }
    free(shelf->place);
    shelf->place = copy;
    if (!wr_spool_box_check_place(place, true, error) || !wr_spool_box_make(box, place, handler, error))
        return false;
    shelf->own = box;
    return true;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* By far the most files go to the end, so that is looked at first. */
void wr_spool_shelf_put(struct wr_spool_shelf *shelf, struct wr_spool_file *file)
{
    const struct wr_spool_file *last = shelf->last;
    struct wr_spool_file **place = &shelf->first;
    if (last && (!last->own || (file->own && last->number < file->number)))
        place = &shelf->last->next;
    while (*place && (!(*place)->own || (file->own && (*place)->number < file->number)))
        place = &(*place)->next;
    file->next = *place;
    *place = file;
    if (!file->next)
        shelf->last = file;
    file->box->files++;
    shelf->bytes += file->bytes;
}

static void take_out(struct wr_spool_shelf *shelf, struct wr_spool_file *file)
{
    struct wr_spool_file **place = &shelf->first, *before = NULL;
    while (*place != file) {
        before = *place;
        place = &before->next;
    }
    *place = file->next;
    if (shelf->last == file)
        shelf->last = before;
    file->box->files--;
    shelf->bytes -= file->bytes;
    remove_box_if_empty(shelf, file->box);
    free(file);
}

bool wr_spool_shelf_finish(struct wr_spool_shelf *shelf, struct wr_spool_file *file, bool damaged)
{
    bool kept = false;
    if (damaged) {
        kept = wr_spool_box_keep_bad(file->box, file->number);
    } else {
        char *path = wr_spool_box_file(file->box, file->number);
        if (path)
            unlink(path);
        free(path);
    }
    take_out(shelf, file);
    return kept;
}

/* ---- The end --------------------------------------------------------------------------------- */

void wr_spool_shelf_tidy(struct wr_spool_shelf *shelf)
{
    if (shelf->own && shelf->own->files == 0)
        disown(shelf);
}

void wr_spool_shelf_leave(struct wr_spool_shelf *shelf)
{
    disown(shelf);
    for (int i = 0; i < WR_SPOOL_SHELF_BOXES; i++)
        if (shelf->boxes[i].path)
            wr_spool_box_leave(&shelf->boxes[i]);
}

void wr_spool_shelf_abandon(const struct wr_spool_shelf *shelf)
{
    for (int i = 0; i < WR_SPOOL_SHELF_BOXES; i++)
        wr_spool_box_abandon(&shelf->boxes[i]);
}
