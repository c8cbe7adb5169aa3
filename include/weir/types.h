/* weir - what applications (<weir/weir.h>) and plugins (<weir/handler.h>, <weir/source.h>) have in common. */
#ifndef WEIR_TYPES_H
#define WEIR_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* A label of a stream, or of a whole configuration. Both strings end in NUL. This struct never changes. */
typedef struct weir_label {
    const char *key;   /* valid UTF-8, 1 to 255 bytes, no control characters */
    const char *value; /* valid UTF-8, at most 1023 bytes, control characters allowed */
} weir_label;

/* The level of a log message. A smaller number is more severe. */
enum weir_log_level {
    WEIR_LOG_ERROR = 1,   /* values are lost, or a configuration is invalid */
    WEIR_LOG_WARNING = 2, /* a failure that may pass; nothing is lost yet */
    WEIR_LOG_INFO = 3,    /* normal operation */
    WEIR_LOG_DEBUG = 4,   /* for finding bugs */
};

/* weir_sample.kind, weir_number.kind and weir_sample_spec.kind: how a value is stored. */
enum {
    WEIR_KIND_DOUBLE = 0,  /* a double */
    WEIR_KIND_INT = 1,     /* an int64_t */
    WEIR_KIND_SUMMARY = 2, /* an int64_t: of how many values this is a summary; never added by programs */
};

/* What the values of a name mean, for all label sets of the name in its group. */
enum weir_instrument {
    WEIR_VALUE = 0, /* measurements of a moment: what is not declared */
    WEIR_COUNTER,   /* increments of a total that only grows: 0 to 4e304 */
    WEIR_GAUGE,     /* a level, which is replaced by the next one */
    WEIR_HISTOGRAM, /* measurements whose distribution matters: finite */
};

/* A double or an integer. This struct never changes. */
typedef struct weir_number {
    int kind; /* WEIR_KIND_DOUBLE or WEIR_KIND_INT */
    union {
        double f64;  /* of WEIR_KIND_DOUBLE; any double, including NaN and infinities */
        int64_t i64; /* of WEIR_KIND_INT */
    } is;            /* the value */
} weir_number;

/* One value of an event of doubles and integers. This struct never changes. */
typedef struct weir_typed_value {
    const char *name;   /* in a stream: as for weir_add_value of <weir/weir.h> */
    weir_number number; /* the value */
} weir_typed_value;

#ifndef __cplusplus

/* A double as a weir_number. */
#define WEIR_DOUBLE(value) ((weir_number){WEIR_KIND_DOUBLE, {.f64 = (value)}})

/* An integer as a weir_number. */
#define WEIR_INT(value) ((weir_number){WEIR_KIND_INT, {.i64 = (value)}})

#else

static inline weir_number WEIR_DOUBLE(double value)
{
    weir_number number;
    number.kind = WEIR_KIND_DOUBLE;
    number.is.f64 = value;
    return number;
}

static inline weir_number WEIR_INT(int64_t value)
{
    weir_number number;
    number.kind = WEIR_KIND_INT;
    number.is.i64 = value;
    return number;
}

#endif

/* WEIR_HAS(pointer, field): whether a struct that begins with its size is long enough to hold the field. The
 * two sides of the contract may be compiled with different versions of these headers: check this before you
 * read or write a field that is younger than the oldest version that you work with. Evaluates pointer more than
 * once. */
#ifdef __cplusplus
#define WEIR_HAS(pointer, field)                                                                               \
    ((pointer)->size >= static_cast<size_t>(reinterpret_cast<const char *>(&(pointer)->field + 1) -            \
                                            reinterpret_cast<const char *>(pointer)))
#else
#define WEIR_HAS(pointer, field)                                                                               \
    ((pointer)->size >= (size_t)((const char *)(&(pointer)->field + 1) - (const char *)(pointer)))
#endif

#endif
