#include "journal_read.h"

#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "journal/journal_reader.h"
#include "segment/segment.h"

/* ---- A box ----------------------------------------------------------------------------------- */

static struct journal_read_handler *find_handler(struct journal_read_box *box, const char *name)
{
    for (size_t i = 0; i < box->handler_count; i++)
        if (strcmp(box->handlers[i].name, name) == 0)
            return &box->handlers[i];
    box->handlers = command_must(realloc(box->handlers, (box->handler_count + 1) * sizeof *box->handlers));
    struct journal_read_handler *made = &box->handlers[box->handler_count++];
    *made = (struct journal_read_handler){.name = command_must(strdup(name))};
    return made;
}

/* Sets *id to that of the first of them. */
static uint64_t count_unsettled(const struct wr_journal_reader *reader, const struct wr_segment_file *file,
                                uint32_t slot, struct wr_sample_id *id)
{
    uint32_t first = 0, length, count = wr_journal_reader_count(reader, file);
    uint64_t values = 0;
    for (; (length = wr_journal_reader_unsettled(file, slot, &first, count)); first += length) {
        if (!values)
            *id = wr_sample_id_behind(&file->ids[slot], first);
        for (uint32_t i = first; i < first + length; i++)
            values += wr_sample_values(&file->samples[i]);
    }
    return values;
}

static uint64_t count_cells(struct wr_cells_block *block, uint64_t round)
{
    struct wr_journal_cells_walk walk = {.block = block, .round = round};
    struct wr_journal_cells cells;
    uint64_t values = 0;
    while (wr_journal_cells_next(&walk, &cells))
        values += cells.taken.values;
    return values;
}

static void count_segment(struct journal_read_box *box, const struct wr_journal_reader *reader,
                          const struct wr_segment_file *file)
{
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        struct wr_sample_id first;
        uint64_t values = count_unsettled(reader, file, slot, &first);
        if (!values)
            continue;
        struct journal_read_handler *handler = find_handler(box, wr_segment_file_lane(file, slot));
        if (!handler->values)
            handler->first = first;
        handler->values += values;
    }
}

static void count_all(struct journal_read_box *box, const struct wr_journal_reader *reader)
{
    box->folder.pid = reader->head->pid;
    box->folder.created_ns = reader->head->created_ns;
    box->damaged = reader->damaged;
    for (size_t i = 0; i < reader->ring_count; i++)
        box->in_rings += wr_journal_reader_count_ring(&reader->rings[i]);
    for (size_t i = 0; i < reader->cells_count; i++)
        box->in_rings += count_cells(reader->cells[i].block, reader->round);
    for (size_t i = 0; i < reader->segment_count; i++)
        count_segment(box, reader, reader->segments[i]);
}

/* ---- All boxes ------------------------------------------------------------------------------- */

/* A box that cannot be opened is damaged, unless a process is creating or deleting it. */
static void read_box(void *made, const char *place)
{
    struct journal_read_box *box = made;
    struct wr_journal_reader reader;
    char *path = command_join(place, box->folder.name);
    switch (wr_journal_reader_open(&reader, path, false)) {
    case WR_JOURNAL_READ:
        count_all(box, &reader);
        wr_journal_reader_close(&reader);
        break;
    case WR_JOURNAL_NOTHING: break;
    case WR_JOURNAL_OTHER_VERSION: box->other_version = reader.version; /* fallthrough */
    default: box->damaged = true;
    }
    free(path);
}

static void fini_box(void *made)
{
    struct journal_read_box *box = made;
    for (size_t i = 0; i < box->handler_count; i++)
        free((char *)box->handlers[i].name);
    free(box->handlers);
}

const struct owner_folder_kind journal_read_kind = {sizeof(struct journal_read_box), WR_JOURNAL_DIR, read_box,
                                                    fini_box};
