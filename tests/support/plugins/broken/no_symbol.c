/* A shared object without weir_handler_type_at. */
__attribute__((visibility("default"))) int some_other_library = 1;
