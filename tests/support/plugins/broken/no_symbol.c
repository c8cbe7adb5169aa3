/* A shared object, but no plugin. */
__attribute__((visibility("default"))) int some_other_library = 1;
