#include "failing.h"

#include <stdlib.h>

static bool is_failing, is_once;
static unsigned long calls_left = -1ul; /* calls that still succeed; -1: no limit */

void failing_set(bool failing)
{
    is_failing = failing;
    calls_left = -1ul;
}

void failing_after(unsigned calls)
{
    is_failing = is_once = false;
    calls_left = calls;
}

void failing_once(unsigned calls)
{
    failing_after(calls);
    is_once = true;
}

static bool fails(void)
{
    if (calls_left == -1ul)
        return is_failing;
    if (calls_left) {
        calls_left--;
        return false;
    }
    if (is_once)
        failing_set(false);
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__real_wr_pages_get(size_t size);
void *__real_wr_pages_grow(void *memory, size_t size);
void *__wrap_wr_pages_get(size_t size);
void *__wrap_wr_pages_grow(void *memory, size_t size);

void *__wrap_wr_pages_get(size_t size)
{
    return fails() ? NULL : __real_wr_pages_get(size);
}

void *__wrap_wr_pages_grow(void *memory, size_t size)
{
    return fails() ? NULL : __real_wr_pages_grow(memory, size);
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}
