#include "engine/recovery_cells.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/taken.h"
#include "text/array.h"

static bool has_bounds_of(const struct wr_recovery_sum *sum, const struct wr_cell_taken *taken)
{
    return sum->taken.bucket_count == taken->bucket_count && sum->taken.bounds_check == taken->bounds_check;
}

/* Another thread's of the same series and bounds, or NULL. */
static struct wr_recovery_sum *find(const struct wr_recovery_cells *cells, const struct wr_journal_cells *found)
{
    for (uint32_t place = cells->by_series[found->series]; place; place = cells->items[place - 1].older)
        if (has_bounds_of(&cells->items[place - 1], &found->taken))
            return &cells->items[place - 1];
    return NULL;
}

/* Returns NULL if out of memory. */
static struct wr_recovery_sum *make(struct wr_recovery_cells *cells, const struct wr_journal_cells *found)
{
    uint64_t *buckets = calloc(found->taken.bucket_count + 1, sizeof *buckets);
    if (!buckets || !WR_ARRAY_HAS_ROOM(&cells->items, &cells->room, cells->count + 1)) {
        free(buckets);
        return NULL;
    }
    struct wr_recovery_sum *sum = &cells->items[cells->count++];
    *sum = (struct wr_recovery_sum){
        .series = found->series, .older = cells->by_series[found->series], .taken = found->taken};
    sum->taken.values = 0;
    sum->taken.sum = 0;
    sum->taken.buckets = buckets;
    cells->by_series[found->series] = cells->count;
    return sum;
}

static void add_up(struct wr_recovery_sum *sum, const struct wr_cell_taken *taken)
{
    uint64_t *buckets = (uint64_t *)sum->taken.buckets;
    sum->taken.values += taken->values;
    sum->taken.sum += taken->sum;
    sum->taken.min = taken->min < sum->taken.min ? taken->min : sum->taken.min;
    sum->taken.max = taken->max > sum->taken.max ? taken->max : sum->taken.max;
    for (size_t i = 0; i < taken->bucket_count; i++)
        buckets[i] += taken->buckets[i];
}

/* Returns false if out of memory, as the next functions do. */
static bool add(struct wr_recovery_cells *cells, const struct wr_journal_cells *found, uint32_t series)
{
    if (found->series >= series) {
        cells->damaged += found->taken.values;
        return true;
    }
    struct wr_recovery_sum *sum = find(cells, found);
    if (!sum)
        sum = make(cells, found);
    if (sum)
        add_up(sum, &found->taken);
    return sum;
}

static bool read_block(struct wr_recovery_cells *cells, struct wr_journal_cells_walk *walk, uint32_t series)
{
    struct wr_journal_cells found;
    while (wr_journal_cells_next(walk, &found))
        if (!add(cells, &found, series))
            return false;
    return true;
}

static bool read_all(struct wr_recovery_cells *cells, const struct wr_journal_reader *reader, uint32_t series)
{
    struct wr_journal_cells_walk *walk = malloc(sizeof *walk);
    bool good = walk;
    for (size_t i = 0; good && i < reader->cells_count; i++) {
        *walk = (struct wr_journal_cells_walk){.block = reader->cells[i].block, .round = reader->round};
        good = read_block(cells, walk, series);
    }
    free(walk);
    return good;
}

/* Those of counters have none. */
static bool write_all(struct wr_recovery_cells *cells, int64_t time_ns)
{
    struct wr_taken *work = calloc(1, sizeof *work);
    bool good = work;
    for (size_t i = 0; good && i < cells->count; i++) {
        struct wr_recovery_sum *sum = &cells->items[i];
        struct wr_cell_taken taken = sum->taken;
        taken.buckets = taken.bucket_count ? taken.buckets : NULL;
        sum->time_ns = time_ns;
        sum->length = wr_taken_write(work, &taken, time_ns);
        sum->text = sum->length ? strdup(work->text) : NULL;
        good = sum->text;
    }
    if (work)
        wr_sketch_fini(&work->sketch);
    free(work);
    return good;
}

bool wr_recovery_cells_read(struct wr_recovery_cells *cells, const struct wr_journal_reader *reader,
                            uint32_t series, int64_t time_ns)
{
    cells->by_series = calloc(series + 1, sizeof *cells->by_series);
    return cells->by_series && read_all(cells, reader, series) && write_all(cells, time_ns);
}

void wr_recovery_cells_fini(struct wr_recovery_cells *cells)
{
    for (size_t i = 0; i < cells->count; i++) {
        free((uint64_t *)cells->items[i].taken.buckets);
        free(cells->items[i].text);
    }
    free(cells->items);
    free(cells->by_series);
    *cells = (struct wr_recovery_cells){0};
}
