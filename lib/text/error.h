/* error: an error code with a text, which functions return to their callers. */
#ifndef WR_ERROR_H
#define WR_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

enum { WR_ERROR_ROOM = 1024 };

#define WR_ERROR_NOWHERE UINT64_MAX

struct wr_error {
    int code;        /* enum weir_error */
    uint64_t place;  /* in a configuration: a later place is a larger number. WR_ERROR_NOWHERE: none */
    bool is_missing; /* of a type: it is not installed */
    char text[WR_ERROR_ROOM];
};

/* Sets code and text, without a place. A text that is too long is cut; characters that could hide others on a
 * terminal are escaped. error may be NULL. Returns code. */
int wr_error_set(struct wr_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same. Returns false, for callers that return success. */
bool wr_error_refuse(struct wr_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets WEIR_ERR_MEMORY, "what: out of memory"; what NULL: "out of memory". error may be NULL. Returns false,
 * for callers that return success. */
bool wr_error_no_memory(struct wr_error *error, const char *what);

/* Inserts text before the error's text. Its place stays. */
void wr_error_prefix(struct wr_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Describes an error code. Static. */
const char *wr_error_text(int code);

/* Describes an errno number. Static. strerror is not used: it takes a lock of the C library, for translations,
 * which stays locked in a process that is forked at that moment. */
const char *wr_error_system_text(int number);

#endif
