/* Handler types with an invalid description; the macro WRONG_... selects the error. */

#include <locale.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/plugins/sound.h"

struct options {
    int64_t port;
    const char *path;
};

#define AT(field) offsetof(struct options, field)

static const weir_option rows[] = {
#if defined(WRONG_OFFSET)
    {"port", WEIR_OPTION_INT, 0, "80", NULL, "the port", AT(port) + 2},
#elif defined(WRONG_PLACE)
    {"port", WEIR_OPTION_INT, 0, "80", NULL, "the port", sizeof(struct options)},
#elif defined(WRONG_RANGE)
    {"port", WEIR_OPTION_INT, 0, "80", "1-65535", "the port", AT(port)},
#elif defined(WRONG_DEFAULT)
    {"port", WEIR_OPTION_INT, 0, "eighty", NULL, "the port", AT(port)},
#elif defined(WRONG_OVERLAP)
    {"port", WEIR_OPTION_INT, 0, "80", NULL, "the port", AT(port)},
    {"path", WEIR_OPTION_PATH, 0, NULL, NULL, "the path", AT(port)},
#elif defined(WRONG_REQUIRED)
    {"port", WEIR_OPTION_INT, WEIR_OPTION_REQUIRED, "80", NULL, "the port", AT(port)},
#elif defined(WRONG_CLASH)
    {"spool.size", WEIR_OPTION_INT, 0, "80", NULL, "the size", AT(port)},
#elif defined(WRONG_HELP)
    {"port", WEIR_OPTION_INT, 0, "80", NULL, "", AT(port)},
#endif
    {0},
};

#ifdef WRONG_COMMON
static const weir_default defaults[] = {{"no_such_option", "1s"}, {NULL, NULL}};
#endif

#ifdef WRONG_TIMER
static void *request_wake(const weir_host *host, const void *options)
{
    host->wake_in(host, 1000);
    return sound_create(host, options);
}
#endif

#ifdef WRONG_PREPARE
static bool change_umask(const weir_host *host)
{
    (void)host;
    umask(0);
    return true;
}
#endif

#ifdef WRONG_THREAD
static void *sleep_on(void *ctx)
{
    pause();
    return ctx;
}

static bool start_thread(const weir_host *host)
{
    pthread_t thread;
    (void)host;
    return pthread_create(&thread, NULL, sleep_on, NULL) == 0;
}
#endif

#ifdef WRONG_REASON
static bool refuse_silently(const weir_host *host)
{
    (void)host;
    return false;
}
#endif

#ifdef WRONG_CONSTRUCTOR
__attribute__((constructor)) static void change_locale(void)
{
    setlocale(LC_ALL, "C.UTF-8");
}
#endif

static const weir_handler_type type = {
    SOUND_TYPE("tables"), /* a later initializer may override a member */
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
#ifdef WRONG_COMMON
    .defaults = defaults,
#endif
#ifdef WRONG_TIMER
    .create = request_wake,
#endif
#ifdef WRONG_PREPARE
    .prepare = change_umask,
#endif
#ifdef WRONG_THREAD
    .prepare = start_thread,
#endif
#ifdef WRONG_REASON
    .prepare = refuse_silently,
#endif
#ifdef WRONG_KINDS
    .kinds = 1u << 7,
#endif
#ifdef WRONG_FLAGS
    .flags = 1u << 7,
#endif
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
#if defined(WRONG_END)
    (void)index;
    return &type;
#elif defined(WRONG_TWICE)
    return index < 2 ? &type : NULL;
#elif defined(WRONG_NONE)
    (void)index;
    (void)&type;
    return NULL;
#else
    return index == 0 ? &type : NULL;
#endif
}
