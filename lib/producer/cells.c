#include "producer/cells.h"

#include <sys/mman.h>

enum { BUCKETS_ROOM = 64 * 1024 };

static_assert(sizeof(struct wr_cells_block) + sizeof(struct wr_cell_buckets) +
                      WR_BUCKETS_MOST * (3 * sizeof(uint64_t) + sizeof(struct wr_versioned)) +
                      2 * sizeof(struct wr_versioned) + WR_LINE <
                  BUCKETS_ROOM,
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

static void set_chunk(struct wr_cells *cells, unsigned chunk, struct wr_cell *first)
{
    cells->chunks[chunk] = first;
    /* relaxed: it is zeros, and what is stored there is read by loads that acquire */
    atomic_store_explicit(&cells->published[chunk], first, memory_order_relaxed);
}

static size_t count_of(unsigned chunk)
{
    return (size_t)WR_CELLS_FIRST_CHUNK << chunk;
}

static uint32_t first_of(unsigned chunk)
{
    return ((1u << chunk) - 1) * WR_CELLS_FIRST_CHUNK;
}

static bool make_chunk(struct wr_cells *cells, unsigned chunk)
{
    if (cells->is_kept) {
        cells->wanted = chunk < WR_CELLS_KEPT_CHUNKS ? (int)chunk + 1 : 0;
        return false;
    }
    set_chunk(cells, chunk, map(count_of(chunk) * sizeof(struct wr_cell)));
    return cells->chunks[chunk];
}

static unsigned chunk_of(uint32_t series)
{
    return 31u - (unsigned)__builtin_clz(series / WR_CELLS_FIRST_CHUNK + 1);
}

bool wr_cells_open(struct wr_cells *cells, uint32_t series)
{
    unsigned chunk = chunk_of(series);
    cells->wanted = 0;
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
    if (cells->room_left < size && cells->is_kept) {
        cells->wanted = -1;
        return NULL;
    }
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

/* Everything else is there. */
static void start_to_keep(struct wr_cell_buckets *buckets, uint32_t series)
{
    buckets->kept = (struct wr_versioned *)(buckets->taken + buckets->count);
    buckets->series = series;
    memcpy(buckets->kept + buckets->count + 2, buckets->bounds, (buckets->count - 1) * sizeof *buckets->bounds);
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint32_t *)&buckets->size = (uint32_t)wr_cell_buckets_size(buckets->count);
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
    buckets = get_room(cells, cells->is_kept ? wr_cell_buckets_size(count)
                                             : sizeof *buckets + 2 * count * sizeof *buckets->values);
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
    if (cells->is_kept)
        start_to_keep(buckets, series);
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
    return first ? &first[series - first_of(chunk)] : NULL;
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

/* ---- In a journal ----------------------------------------------------------------------------- */

void wr_cells_move(struct wr_cells *cells)
{
    atomic_store_explicit(&cells->no_space, false, memory_order_relaxed);
    if (cells->is_kept)
        return;
    for (unsigned chunk = 0; chunk < WR_CELLS_CHUNKS; chunk++) {
        if (cells->chunks[chunk])
            munmap(cells->chunks[chunk], count_of(chunk) * sizeof(struct wr_cell));
        set_chunk(cells, chunk, NULL);
    }
    atomic_store_explicit(&cells->first, 0, memory_order_relaxed);
    cells->moved = atomic_load_explicit(&cells->values, memory_order_relaxed);
    cells->room = NULL; /* earlier ones stay: 64 KiB for some hundred histograms, once */
    cells->room_left = 0;
    cells->is_kept = true;
}

size_t wr_cells_wanted(const struct wr_cells *cells)
{
    size_t cell = sizeof(struct wr_cell) + sizeof(struct wr_cell_kept);
    return cells->wanted < 0 ? BUCKETS_ROOM
                             : sizeof(struct wr_cells_block) + count_of((unsigned)cells->wanted - 1) * cell;
}

void wr_cells_use(struct wr_cells *cells, struct wr_cells_block *block)
{
    unsigned chunk = (unsigned)cells->wanted - 1;
    if (!block) {
        atomic_store_explicit(&cells->no_space, true, memory_order_relaxed);
    } else if (cells->wanted < 0) {
        cells->room = (char *)(block + 1);
        cells->room_left = block->size - sizeof *block;
    } else {
        block->first = first_of(chunk);
        block->count = (uint32_t)count_of(chunk);
        set_chunk(cells, chunk, wr_cells_block_cells(block));
    }
}

struct wr_cell *wr_cells_block_cells(const struct wr_cells_block *block)
{
    return (struct wr_cell *)(block + 1);
}

struct wr_cell_kept *wr_cells_block_kept(const struct wr_cells_block *block)
{
    return (struct wr_cell_kept *)(wr_cells_block_cells(block) + block->count);
}

struct wr_cell_buckets *wr_cells_block_buckets(const struct wr_cells_block *block)
{
    return (struct wr_cell_buckets *)(block + 1);
}

const double *wr_cell_buckets_bounds(const struct wr_cell_buckets *buckets)
{
    const uint64_t *taken = (const uint64_t *)(buckets->values + buckets->count);
    const struct wr_versioned *kept = (const struct wr_versioned *)(taken + buckets->count);
    return (const double *)(kept + buckets->count + 2);
}

void wr_cells_keep(const struct wr_cells *cells, uint32_t series, const struct wr_cell *cell, uint64_t round)
{
    unsigned chunk = chunk_of(series);
    const struct wr_cell *first = atomic_load_explicit(&cells->published[chunk], memory_order_relaxed);
    struct wr_cell_kept *kept = (struct wr_cell_kept *)(first + count_of(chunk)) + (cell - first);
    wr_versioned_put(&kept->values, round, cell->taken);
    wr_versioned_put(&kept->sum, round, wr_cell_word(cell->taken_sum));
    wr_versioned_put(&kept->compensation, round, wr_cell_word(cell->taken_compensation));
}

void wr_cells_keep_buckets(const struct wr_cell_buckets *buckets, uint64_t round)
{
    struct wr_versioned *kept = buckets->kept;
    for (uint32_t i = 0; i < buckets->count; i++)
        wr_versioned_put(kept++, round, buckets->taken[i]);
    wr_versioned_put(kept++, round, wr_cell_word(buckets->taken_sum));
    wr_versioned_put(kept, round, wr_cell_word(buckets->taken_compensation));
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
    uint64_t values = cells->moved;
    const struct wr_cell *cell;
    for (uint32_t next = atomic_load_explicit(&cells->first, memory_order_relaxed); next; next = cell->next) {
        cell = wr_cells_place(cells, next - 1);
        values += atomic_load_explicit(&cell->values, memory_order_relaxed) +
                  count_buckets(atomic_load_explicit(&cell->buckets, memory_order_relaxed));
    }
    atomic_store_explicit(&cells->values, values, memory_order_relaxed);
}
