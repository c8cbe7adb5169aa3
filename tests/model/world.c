#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const world_groups[WORLD_GROUPS] = {"m", "m.a", "m.a.x", "n", "s", "s.x", "v"};
const char *const world_handlers[WORLD_HANDLERS] = {"a", "b", "c", "d", "e", "f"};
const char *const world_names[WORLD_NAMES] = {"hits", "size", "wait", "open", "rate"};
const double world_bounds[3] = {2, 10, 50};

struct world *world;
uint32_t world_self;

void world_make(void)
{
    if (world)
        munmap(world, sizeof *world);
    world =
        mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (world == MAP_FAILED)
        world_fail("out of memory for the model");
    world_self = 0;
    atomic_store(&world->processes, 1);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

enum { POWERS = 21 }; /* 1 to 2^20: the default of a histogram without a unit */

uint32_t world_bucket_count(uint32_t series)
{
    return world_name_of(series) == WORLD_SIZE ? 4 : POWERS + 1;
}

uint32_t world_bucket(uint32_t series, double value)
{
    uint32_t bucket = 0;
    if (world_name_of(series) == WORLD_SIZE)
        while (bucket < 3 && value > world_bounds[bucket])
            bucket++;
    else
        while (bucket < POWERS && value > (double)(1u << bucket))
            bucket++;
    return bucket;
}

void world_sum_add(struct world_sum *sum, uint32_t series, double value)
{
    sum->count++;
    sum->sum += world_is_gauge(series) ? 0 : value;
    if (world_is_histogram(series))
        sum->buckets[world_bucket(series, value)]++;
}

void world_sum_add_all(struct world_sum *sum, const struct world_sum *other)
{
    sum->count += other->count;
    sum->sum += other->sum;
    for (int i = 0; i < WORLD_BUCKETS; i++)
        sum->buckets[i] += other->buckets[i];
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Texts of several lengths, so that they take one or more slots of a ring. */
void world_note(char *text, size_t size, uint32_t actor, uint32_t number)
{
    snprintf(text, size, "%u.%u%.*s", actor, number, (int)(number % 50),
             "..................................................");
}

void world_fail(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "process %u: %s\n", world_self, text);
    _exit(1);
}
