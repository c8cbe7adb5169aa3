#include "producer/cells.h"

#include <sys/mman.h>

enum { BUCKETS_ROOM = 64 * 1024 };

static_assert(sizeof(struct wr_cell_buckets) + 2 * WR_BUCKETS_MOST * sizeof(uint64_t) + WR_LINE < BUCKETS_ROOM,
              "any buckets have room");

/* Returns zeros, or NULL. */
static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    /* much of it may never be used */
    madvise(memory, size, MADV_NOHUGEPAGE);
    /* without it (before 4.14) a child has no use for what it inherits: it maps memory of its own */
    madvise(memory, size, MADV_WIPEONFORK);
    return memory;
}

static bool make_chunk(struct wr_cells *cells, unsigned chunk)
{
    cells->chunks[chunk] = map(((size_t)WR_CELLS_FIRST_CHUNK << chunk) * sizeof(struct wr_cell));
    /* relaxed: it is zeros, and what is stored there is read by loads that acquire */
    atomic_store_explicit(&cells->published[chunk], cells->chunks[chunk], memory_order_relaxed);
    return cells->chunks[chunk];
}

static unsigned chunk_of(uint32_t series)
{
    return 31u - (unsigned)__builtin_clz(series / WR_CELLS_FIRST_CHUNK + 1);
}

bool wr_cells_open(struct wr_cells *cells, uint32_t series)
{
    unsigned chunk = chunk_of(series);
    if (chunk >= WR_CELLS_CHUNKS || (!cells->chunks[chunk] && !make_chunk(cells, chunk)))
        return false;
    struct wr_cell *cell = wr_cells_place(cells, series);
    if (cell->is_open)
        return true;
    cell->is_open = true;
    cell->next = atomic_load_explicit(&cells->first, memory_order_relaxed);
    /* release: pairs with the acquire of the reader, who follows the list */
    atomic_store_explicit(&cells->first, series + 1, memory_order_release);
    return true;
}

/* ---- Histograms ------------------------------------------------------------------------------- */

static void *get_room(struct wr_cells *cells, size_t size)
{
    size = (size + WR_LINE - 1) & ~(size_t)(WR_LINE - 1); /* what another thread reads shares no line */
    if (cells->room_left < size) {
        cells->room = map(BUCKETS_ROOM);
        cells->room_left = cells->room ? BUCKETS_ROOM : 0;
    }
    if (!cells->room)
        return NULL;
    void *room = cells->room;
    cells->room += size;
    cells->room_left -= size;
    return room;
}

static struct wr_cell_buckets *find_buckets(const struct wr_cell *cell, uint32_t count, uint32_t bounds_check)
{
    struct wr_cell_buckets *found = atomic_load_explicit(&cell->buckets, memory_order_relaxed);
    while (found && (found->count != count || found->bounds_check != bounds_check))
        found = found->older;
    return found;
}

bool wr_cells_open_buckets(struct wr_cells *cells, uint32_t series, const weir_series *view)
{
    size_t bounds_count;
    const double *bounds = wr_buckets_of(view, &bounds_count);
    uint32_t count = (uint32_t)bounds_count + 1, check = wr_buckets_check(bounds, bounds_count);
    if (!wr_cells_open(cells, series))
        return false;
    struct wr_cell *cell = wr_cells_place(cells, series);
    struct wr_cell_buckets *buckets = find_buckets(cell, count, check);
    if (buckets) { /* the bounds are as before, whatever else was declared anew */
        buckets->view = view;
        return true;
    }
    buckets = get_room(cells, sizeof *buckets + 2 * count * sizeof *buckets->values);
    if (!buckets)
        return false;
    buckets->bounds = bounds;
    buckets->count = count;
    buckets->bounds_check = check;
    buckets->taken = (uint64_t *)(buckets->values + count);
    buckets->view = view;
    atomic_init(&buckets->min, INFINITY);
    atomic_init(&buckets->max, -INFINITY);
    buckets->older = atomic_load_explicit(&cell->buckets, memory_order_relaxed);
    /* release: pairs with the acquire of the reader */
    atomic_store_explicit(&cell->buckets, buckets, memory_order_release);
    return true;
}

/* ---- Reading ---------------------------------------------------------------------------------- */

struct wr_cell *wr_cells_find(const struct wr_cells *cells, uint32_t series)
{
    unsigned chunk = chunk_of(series);
    struct wr_cell *first =
        chunk < WR_CELLS_CHUNKS ? atomic_load_explicit(&cells->published[chunk], memory_order_relaxed) : NULL;
    return first ? &first[series - ((1u << chunk) - 1) * WR_CELLS_FIRST_CHUNK] : NULL;
}

/* Of an addition in progress only one of sum and compensation may be there, which can make the sum fall
 * although no value is negative: the next reading has the difference. Each is subtracted by itself: small
 * values are not lost beside what a large one has left in the sum. */
static double subtract(double sum, double compensation, double *taken_sum, double *taken_compensation,
                       bool never_falls)
{
    double difference = (sum - *taken_sum) + (compensation - *taken_compensation);
    if (difference < 0 && never_falls)
        return 0;
    *taken_sum = sum;
    *taken_compensation = compensation;
    return difference;
}

struct wr_cell_taken wr_cell_take(struct wr_cells *cells, struct wr_cell *cell)
{
    /* acquire: pairs with the release in wr_cells_add */
    uint64_t values = atomic_load_explicit(&cell->values, memory_order_acquire);
    if (values == cell->taken)
        return (struct wr_cell_taken){0};
    double sum = atomic_load_explicit(&cell->sum, memory_order_relaxed);
    double compensation = atomic_load_explicit(&cell->compensation, memory_order_relaxed);
    struct wr_cell_taken taken = {
        .values = values - cell->taken,
        .sum = subtract(sum, compensation, &cell->taken_sum, &cell->taken_compensation, true),
    };
    cell->taken = values;
    cells->taken += taken.values;
    return taken;
}

/* Puts a value into the bounds of a bucket. */
static double clamp(const struct wr_cell_taken *taken, size_t bucket, double value)
{
    if (bucket && value < taken->bounds[bucket - 1])
        value = taken->bounds[bucket - 1];
    if (bucket + 1 < taken->bucket_count && value > taken->bounds[bucket])
        value = taken->bounds[bucket];
    return value;
}

/* Values that are counted have their parts in the sum and in min and max, unless an earlier reading had these:
 * then those of that reading are theirs too, as far as their buckets allow. */
static void take_extremes(struct wr_cell_buckets *from, struct wr_cell_taken *taken)
{
    double min = atomic_exchange_explicit(&from->min, INFINITY, memory_order_relaxed);
    double max = atomic_exchange_explicit(&from->max, -INFINITY, memory_order_relaxed);
    size_t lowest = 0, highest = taken->bucket_count - 1;
    while (!taken->buckets[lowest])
        lowest++;
    while (!taken->buckets[highest])
        highest--;
    if (isfinite(min))
        from->taken_min = min;
    if (isfinite(max))
        from->taken_max = max;
    taken->min = clamp(taken, lowest, from->taken_min);
    taken->max = clamp(taken, highest, from->taken_max);
    if (taken->max < taken->min)
        taken->min = taken->max;
}

struct wr_cell_taken wr_cell_take_buckets(struct wr_cells *cells, struct wr_cell_buckets *from, uint64_t *room)
{
    struct wr_cell_taken taken = {
        .buckets = room,
        .bounds = from->bounds,
        .bucket_count = from->count,
        .bounds_check = from->bounds_check,
    };
    for (uint32_t i = 0; i < from->count; i++) {
        /* acquire: pairs with the release in wr_cells_add_to_buckets */
        uint64_t values = atomic_load_explicit(&from->values[i], memory_order_acquire);
        room[i] = values - from->taken[i];
        from->taken[i] = values;
        taken.values += room[i];
    }
    if (!taken.values)
        return taken;
    take_extremes(from, &taken);
    double sum = atomic_load_explicit(&from->sum, memory_order_relaxed);
    double compensation = atomic_load_explicit(&from->compensation, memory_order_relaxed);
    taken.sum = subtract(sum, compensation, &from->taken_sum, &from->taken_compensation, taken.min >= 0);
    cells->taken += taken.values;
    return taken;
}

/* ---- A thread that ends inside a call ---------------------------------------------------------- */

static uint64_t count_buckets(const struct wr_cell_buckets *buckets)
{
    uint64_t values = 0;
    for (; buckets; buckets = buckets->older)
        for (uint32_t i = 0; i < buckets->count; i++)
            values += atomic_load_explicit(&buckets->values[i], memory_order_relaxed);
    return values;
}

void wr_cells_recount(struct wr_cells *cells)
{
    uint64_t values = 0;
    const struct wr_cell *cell;
    for (uint32_t next = atomic_load_explicit(&cells->first, memory_order_relaxed); next; next = cell->next) {
        cell = wr_cells_place(cells, next - 1);
        values += atomic_load_explicit(&cell->values, memory_order_relaxed) +
                  count_buckets(atomic_load_explicit(&cell->buckets, memory_order_relaxed));
    }
    atomic_store_explicit(&cells->values, values, memory_order_relaxed);
}
