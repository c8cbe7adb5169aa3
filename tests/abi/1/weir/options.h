/* weir - option tables: what a configuration may say to a plugin's type. Included by <weir/handler.h>.
 *
 * One table validates the configuration, fills a struct of the plugin's, and is what `weir handlers NAME`, the
 * JSON Schema and the reference show to users. */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of an option, with the C type of the field at weir_option.offset. A field of another C type has an
 * undefined value; the compiler refuses it in rows made by WEIR_OPTION_ROW. */
enum weir_option_type {
    WEIR_OPTION_BOOL = 1, /* bool */
    WEIR_OPTION_INT,      /* int64_t */
    WEIR_OPTION_DOUBLE,   /* double */
    WEIR_OPTION_STRING,   /* const char *; NULL if not set */
    WEIR_OPTION_PATH,     /* const char *, absolute; NULL if not set */
    WEIR_OPTION_DURATION, /* int64_t, nanoseconds */
    WEIR_OPTION_SIZE,     /* int64_t, bytes */
    WEIR_OPTION_ENUM,     /* int64_t, the index of the word in weir_option.allowed, from 0 */
    WEIR_OPTION_LIST,     /* weir_list; a count of 0 if not set */
    WEIR_OPTION_MAP,      /* weir_map; a count of 0 if not set */
};

/* Bits of weir_option.flags. */
enum {
    WEIR_OPTION_REQUIRED = 1u << 0,    /* a configuration without it is refused */
    WEIR_OPTION_SECRET = 1u << 1,      /* the value is masked wherever options are shown */
    WEIR_OPTION_URL = 1u << 2,         /* of a string: credentials in the URL are masked where it is shown */
    WEIR_OPTION_DESTINATION = 1u << 3, /* where a handler's values go: shown beside its name; or where a
                                          source's come from. `weir check` compares them */
};

/* The value of an option of type LIST. Owned by the core; valid as long as the options struct. This struct
 * never changes. */
typedef struct weir_list {
    size_t count;             /* number of items */
    const char *const *items; /* in the order of the configuration */
} weir_list;

/* The value of an option of type MAP. Owned by the core; valid as long as the options struct. This struct never
 * changes. */
typedef struct weir_map {
    size_t count;            /* number of items */
    const weir_label *items; /* in the order of the configuration; keys are unique */
} weir_map;

/* One option. A table is an array of these that ends with a row whose name is NULL. It is constant and valid
 * until the process ends. Fields may be appended: option_row_size is the size of the type's rows.
 *
 * The options that every handler has (`queue`, `linger`, `format` and so on) belong to the core: a table with
 * one of their names is refused. See weir-handler(7), OPTIONS, for names that later versions of weir add. */
typedef struct weir_option {
    const char *name;          /* [a-z0-9_.]; a dotted name makes an object: "tls.verify" */
    uint32_t type;             /* enum weir_option_type */
    uint32_t flags;            /* WEIR_OPTION_REQUIRED and so on */
    const char *default_value; /* as in a configuration: "64KiB"; NULL: none */
    const char *allowed;       /* enum: "auto|always|never"; numbers: "1..65535", "1s..", "..1GiB";
                                  NULL: any value of the type */
    const char *help;          /* one line */
    size_t offset;             /* of the field in the type's options struct, in bytes */
} weir_option;

#ifdef __cplusplus
}

/* Not part of the interface: WEIR_OPTION_ROW uses it. Does not compile if the types differ. */
template <typename field, typename expected> struct weir_option_field {
    static_assert(sizeof(field) == 0, "the field does not have the C type of the option");
    static constexpr size_t offset = 0;
};
template <typename expected> struct weir_option_field<expected, expected> {
    static constexpr size_t offset = 0;
};
#define WEIR_OPTION_CHECK(options, field, ctype)                                                               \
    weir_option_field<decltype(static_cast<options *>(nullptr)->field), ctype>::offset

extern "C" {
#else
#if __STDC_VERSION__ >= 201112L
/* Not part of the interface: WEIR_OPTION_ROW uses it. 0, or an error when it is compiled. */
#define WEIR_OPTION_CHECK(options, field, ctype)                                                               \
    0 * sizeof(struct {                                                                                        \
        _Static_assert(_Generic(&((options *)NULL)->field, ctype * : 1, default : 0),                          \
                       "the field does not have the C type of the option");                                    \
        char unused;                                                                                           \
    })
#else
/* Not part of the interface: WEIR_OPTION_ROW uses it. C99 cannot compare types. */
#define WEIR_OPTION_CHECK(options, field, ctype) 0 * sizeof(ctype)
#endif
#endif

/* Not part of the interface: the C type of a field, by the type of its option. */
#define WEIR_OPTION_INT_FIELD int64_t
#define WEIR_OPTION_DOUBLE_FIELD double
#define WEIR_OPTION_STRING_FIELD const char *
#define WEIR_OPTION_PATH_FIELD const char *
#define WEIR_OPTION_DURATION_FIELD int64_t
#define WEIR_OPTION_SIZE_FIELD int64_t
#define WEIR_OPTION_ENUM_FIELD int64_t
#define WEIR_OPTION_LIST_FIELD weir_list
#define WEIR_OPTION_MAP_FIELD weir_map
#ifdef __cplusplus
/* As above. */
#define WEIR_OPTION_BOOL_FIELD bool
#else
/* As above. */
#define WEIR_OPTION_BOOL_FIELD _Bool
#endif

/* One row of a table, the fields in the order of weir_option, but the type without its prefix, and the field in
 * place of its offset:
 *     WEIR_OPTION_ROW("port", INT, 0, "80", "1..65535", "the port", struct options, port),
 * A field that does not have the C type of the option does not compile, in C11, C++11 and later. */
#define WEIR_OPTION_ROW(name, type, flags, default_value, allowed, help, options, field)                       \
    {                                                                                                          \
        name, WEIR_OPTION_##type, flags, default_value, allowed, help,                                         \
            offsetof(options, field) + WEIR_OPTION_CHECK(options, field, WEIR_OPTION_##type##_FIELD)           \
    }

/* A type's default for an option that every handler has ("queue", "linger", "format" and so on), in place of
 * the core's default. An array of these ends with a NULL name. This struct never changes. */
typedef struct weir_default {
    const char *name;  /* of the common option */
    const char *value; /* as in a configuration */
} weir_default;

#ifdef __cplusplus
}
#endif

#endif
