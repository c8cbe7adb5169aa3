/* The checks of a handler type, in the order in which they are run. */

#include "vet.h"

enum { WHOLE_LIFE = VET_LOAD | VET_LIFE | VET_FLUSH };

const struct vet_check vet_checks_of_type[] = {
    {"type", vet_check_type, VET_LOAD, false},
    {"options", vet_check_options, VET_LOAD, false},
    {"prepare", vet_check_prepare, VET_LOAD | VET_PREPARE, false},
    {"create", vet_check_create, VET_LOAD | VET_MAKE, false},
    {"values", vet_check_values, VET_LOAD | VET_MAKE, false},
    {"life", vet_check_life, WHOLE_LIFE, false},
    {"batches", vet_check_batches, VET_LOAD | VET_LIFE, false},
    {"names", vet_check_names, WHOLE_LIFE, false},
    {"numbers", vet_check_numbers, WHOLE_LIFE, false},
    {"formats", vet_check_formats, WHOLE_LIFE, false},
    {"older-core", vet_check_older_core, WHOLE_LIFE, false},
    {"flush", vet_check_flush, WHOLE_LIFE, false},
    {"wake", vet_check_wake, VET_LOAD | VET_LIFE | VET_WAKE, false},
    {"probe", vet_check_probe, WHOLE_LIFE | VET_PROBE, false},
    {"stop", vet_check_stop, WHOLE_LIFE, false},
    {"instances", vet_check_instances, WHOLE_LIFE, false},
    {"manners", vet_check_manners, WHOLE_LIFE | VET_WAKE, false},
    {"descriptors", vet_check_descriptors, WHOLE_LIFE, false},
    {"threads", vet_check_threads, WHOLE_LIFE, false},
    {"memory", vet_check_memory, WHOLE_LIFE, false},
    {"abandon", vet_check_abandon, WHOLE_LIFE | VET_ABANDON, false},
    {"program", vet_check_program, WHOLE_LIFE | VET_WAKE, true},
    {"fork", vet_check_fork, WHOLE_LIFE | VET_ABANDON, true},
    {0},
};
