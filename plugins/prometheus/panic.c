#include "panic.h"

#include <microhttpd.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local jmp_buf *way_out; /* NULL: the thread is not in panic_catch */

/* The library expects this not to return. */
static void on_panic(void *ctx, const char *file, unsigned line, const char *reason)
{
    (void)ctx;
    if (way_out)
        longjmp(*way_out, 1);
    fprintf(stderr, "Fatal error in GNU libmicrohttpd %s:%u: %s\n", file, line, reason ? reason : "");
    abort();
}

void panic_init(void)
{
    MHD_set_panic_func(on_panic, NULL);
}

bool panic_catch(void (*call)(void *ctx), void *ctx)
{
    jmp_buf place;
    if (setjmp(place) != 0) {
        way_out = NULL;
        return false;
    }
    way_out = &place;
    call(ctx);
    way_out = NULL;
    return true;
}
