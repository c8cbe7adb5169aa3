/* exits: the process ends while a handler is using a library for the first time. The library destroys itself in
 * an exit handler, which is registered after weir's; no handler may find it destroyed. Each end has a process
 * of its own; the library is simulated, and in other cases it is OpenSSL. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

enum { STEPS = 20, STEP_US = 1500 };

static _Atomic int *delivered;    /* shared with the parent */
static _Atomic bool library_gone; /* its exit handler has run */
static const char *callback;      /* the one that uses the library first */
static bool real;                 /* the library is OpenSSL */

static void end_library(void)
{
    library_gone = true;
}

static void use_simulated(void)
{
    static _Atomic bool initialized;
    usleep(STEP_US);
    if (!atomic_exchange(&initialized, true))
        atexit(end_library);
    for (int i = 0; i < STEPS; i++) {
        usleep(STEP_US);
        PLAIN_CHECK(!library_gone);
    }
}

/* Makes TLS contexts, as libpq does for each connection. */
static void use_openssl(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    PLAIN_CHECK(library);
    const void *(*method)(void) = (const void *(*)(void))(uintptr_t)dlsym(library, "TLS_client_method");
    void *(*new_context)(const void *) = (void *(*)(const void *))(uintptr_t)dlsym(library, "SSL_CTX_new");
    void (*free_context)(void *) = (void (*)(void *))(uintptr_t)dlsym(library, "SSL_CTX_free");
    for (int i = 0; i < STEPS; i++) {
        void *context = new_context(method());
        PLAIN_CHECK(context);
        free_context(context);
    }
}

static void use_library(const char *in)
{
    if (strcmp(in, callback) != 0)
        return;
    if (real)
        use_openssl();
    else
        use_simulated();
}

static void open_it(void *self, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    use_library("open");
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    use_library("emit");
    *delivered += (int)batch->count;
}

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &library_gone;
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "library_user",
    .summary = "uses a library, for tests",
    .create = create,
    .open = open_it,
    .emit = emit,
    .destroy = destroy,
};

static int end_soon(int delay_us)
{
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    static const char config[] =
        "{\"settings\":{\"shutdown_timeout\":\"1m\"},\"groups\":{\"*\":\"library_user\"}}";
    PLAIN_CHECK(weir_configure_text(config, sizeof config - 1) == 0);
    PLAIN_CHECK(weir_add_value(weir_get_stream("g"), "v", 1) == 0);
    PLAIN_CHECK(ledger_all_are_balanced());
    usleep((useconds_t)delay_us);
    return 0;
}

/* Returns whether the value was delivered and the child ended with status 0. */
static bool ends_well(int delay_us)
{
    int status;
    *delivered = 0;
    pid_t child = fork();
    if (child == 0)
        exit(end_soon(delay_us));
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status == 0 && *delivered == 1)
        return true;
    fprintf(stderr, "exits: %s, %s library, end after %d us: status %#x, %d delivered\n", callback,
            real ? "real" : "simulated", delay_us, (unsigned)status, *delivered);
    return false;
}

static int count_bad(const char *in)
{
    int bad = 0;
    callback = in;
    for (int i = 0; i < 12; i++)
        bad += !ends_well(i * STEP_US);
    return bad;
}

int main(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    delivered = mmap(NULL, sizeof *delivered, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PLAIN_CHECK(delivered != MAP_FAILED);
    int bad = count_bad("open") + count_bad("emit");
    real = library;
    if (real)
        bad += count_bad("open") + count_bad("emit");
    return bad != 0;
}
