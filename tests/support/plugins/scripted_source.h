/* scripted_source: a source type whose callbacks are functions of the test program. */
#ifndef SCRIPTED_SOURCE_H
#define SCRIPTED_SOURCE_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/source.h>

struct scripted_options {
    const char *tag; /* for the functions */
};

struct source_script {
    void (*create)(void), (*close)(void), (*destroy)(void);                      /* NULL: nothing more */
    void (*open)(const weir_host *host, const char *tag, weir_outcome *outcome); /* NULL: OK */
    /* NULL: waits for a stop */
    void (*run)(const weir_host *host, const char *tag, weir_outcome *outcome);
    _Atomic int created, opened, closed, destroyed, abandoned;
};

/* The plugin's symbol. */
typedef struct source_script *get_source_script(void);

/* Loads the plugin. path: gets where it is, for the option "plugin". Returns NULL if it cannot be loaded. */
static inline struct source_script *load_source_script(char *path, size_t room)
{
    snprintf(path, room, "%s/tests/support/plugins/.libs/scripted.source.so", getenv("WEIR_TEST_BUILD"));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    get_source_script *get = library ? (get_source_script *)(uintptr_t)dlsym(library, "source_script") : NULL;
    return get ? get() : NULL;
}

#endif
