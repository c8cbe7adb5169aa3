/* error: what went wrong, as a number and in words, on its way to the caller. */
#ifndef WR_ERROR_H
#define WR_ERROR_H

#include <stddef.h>

#include <weir/weir.h>

enum { WR_ERROR_ROOM = 1024 };

struct wr_error {
    int code; /* enum weir_error */
    char text[WR_ERROR_ROOM];
};

/* Sets both; a text that is too long is cut, and what could disguise others is shown escaped. error may be
 * NULL. Answers code. */
int wr_error_set(struct wr_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts words in front of the text. */
void wr_error_prefix(struct wr_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An error's name in words. Static. */
const char *wr_error_words(int code);

/* What errno's numbers mean. Static. Not strerror: that takes a lock of the C library, for translations, which
 * a process that is forked at that moment never gets back. */
const char *wr_error_of_system(int number);

#endif
