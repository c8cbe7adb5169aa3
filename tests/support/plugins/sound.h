/* sound: a valid handler type that does nothing. Each plugin here differs from it in one way. */
#ifndef SOUND_H
#define SOUND_H

#include <weir/handler.h>

static char sound_instance;

static inline void *sound_create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &sound_instance;
}

static inline void sound_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    (void)outcome;
}

static inline void sound_destroy(void *self)
{
    (void)self;
}

/* The initializer of the type; members that follow override these. */
#define SOUND_TYPE(type_name)                                                                                  \
    .size = sizeof(weir_handler_type), .abi = WEIR_ABI, .name = type_name, .summary = "does nothing",          \
    .create = sound_create, .emit = sound_emit, .destroy = sound_destroy

#endif
