#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const world_groups[WORLD_GROUPS] = {"m", "m.a", "m.a.x", "n"};
const char *const world_handlers[WORLD_HANDLERS] = {"a", "b", "c"};

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
