/* scripted_source: a source type whose callbacks are functions of the test program. */
#ifndef SCRIPTED_SOURCE_H
#define SCRIPTED_SOURCE_H

#include <stdatomic.h>

#include <weir/source.h>

struct scripted_options {
    const char *tag; /* for the functions */
};

struct source_script {
    void (*create)(void), (*close)(void), (*destroy)(void);                             /* NULL: nothing more */
    void (*open)(const weir_host *host, const char *tag, weir_source_outcome *outcome); /* NULL: OK */
    /* NULL: waits for a stop */
    void (*run)(const weir_host *host, const char *tag, weir_source_outcome *outcome);
    _Atomic int created, opened, closed, destroyed, abandoned;
};

/* The plugin's symbol. */
typedef struct source_script *get_source_script(void);

#endif
