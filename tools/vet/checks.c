/* The checks of a handler type and of a source type, in the order in which they are run. */

#include "vet.h"

enum { WHOLE_LIFE = VET_LOAD | VET_LIFE | VET_FLUSH };

const struct vet_check vet_checks_of_type[] = {
    {"type", vet_check_type, "quick-start", VET_LOAD, false},
    {"options", vet_check_options, "options", VET_LOAD, false},
    {"prepare", vet_check_prepare, "create", VET_LOAD | VET_PREPARE, false},
    {"create", vet_check_create, "create", VET_LOAD | VET_MAKE, false},
    {"values", vet_check_values, "options", VET_LOAD | VET_MAKE, false},
    {"life", vet_check_life, "life-cycle", WHOLE_LIFE, false},
    {"batches", vet_check_batches, "batches-and-done", VET_LOAD | VET_LIFE, false},
    {"names", vet_check_names, "batches-and-done", WHOLE_LIFE, false},
    {"series", vet_check_series, "batches-and-done", VET_LOAD | VET_LIFE, false},
    {"numbers", vet_check_numbers, "batches-and-done", WHOLE_LIFE, false},
    {"formats", vet_check_formats, "encoders", WHOLE_LIFE, false},
    {"flush", vet_check_flush, "flush", WHOLE_LIFE, false},
    {"wake", vet_check_wake, "timers-and-reloads", VET_LOAD | VET_LIFE | VET_WAKE, false},
    {"now", vet_check_now, "delivering-on-the-callers-thread", WHOLE_LIFE, false},
    {"probe", vet_check_probe, "waiting-and-stopping", WHOLE_LIFE | VET_PROBE, false},
    {"stop", vet_check_stop, "waiting-and-stopping", WHOLE_LIFE, false},
    {"instances", vet_check_instances, "responsibilities-and-threads", WHOLE_LIFE, false},
    {"state", vet_check_state, "responsibilities-and-threads", WHOLE_LIFE | VET_WAKE, false},
    {"descriptors", vet_check_descriptors, "open-and-close", WHOLE_LIFE, false},
    {"threads", vet_check_threads, "responsibilities-and-threads", WHOLE_LIFE, false},
    {"memory", vet_check_memory, "life-cycle", WHOLE_LIFE, false},
    {"abandon", vet_check_abandon, "fork", WHOLE_LIFE | VET_ABANDON, false},
    {"program", vet_check_program, "life-cycle", WHOLE_LIFE | VET_WAKE, true},
    {"exit", vet_check_exit, "waiting-and-stopping", WHOLE_LIFE, false},
    {"fork", vet_check_fork, "fork", WHOLE_LIFE | VET_ABANDON, true},
    {0},
};

enum { WHOLE_SOURCE = VET_LOAD | VET_SOURCE_LIFE };

const struct vet_check vet_checks_of_source[] = {
    {"type", vet_check_source_type, "the-shape", VET_LOAD, false},
    {"options", vet_check_source_options, "the-shape", VET_LOAD, false},
    {"create", vet_check_create, "create-and-open", VET_LOAD | VET_MAKE, false},
    {"values", vet_check_source_values, "create-and-open", VET_LOAD | VET_MAKE, false},
    {"life", vet_check_source_life, "outcomes", WHOLE_SOURCE, false},
    {"idle", vet_check_source_idle, "waiting", WHOLE_SOURCE, false},
    {"full", vet_check_source_full, "adding-never-waits", WHOLE_SOURCE, false},
    {"refused", vet_check_source_refused, "adding-never-waits", WHOLE_SOURCE, false},
    {"stop", vet_check_source_stop, "waiting", WHOLE_SOURCE, false},
    {"reload", vet_check_source_reload, "create-and-open", WHOLE_SOURCE, false},
    {"probe", vet_check_source_probe, "create-and-open", VET_LOAD | VET_MAKE | VET_PROBE, false},
    {"state", vet_check_state, "create-and-open", WHOLE_SOURCE, false},
    {"descriptors", vet_check_source_descriptors, "create-and-open", WHOLE_SOURCE, false},
    {"threads", vet_check_threads, "create-and-open", WHOLE_SOURCE, false},
    {"memory", vet_check_memory, "create-and-open", WHOLE_SOURCE, false},
    {"abandon", vet_check_source_abandon, "fork", WHOLE_SOURCE | VET_ABANDON, false},
    {"program", vet_check_source_program, "waiting", WHOLE_SOURCE | VET_ABANDON, true},
    {0},
};
