#include "text/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/utf8.h"

/* Everything that is said of an error comes through here: paths, names and what plugins say are shown escaped.
 */
static void set_text(struct wr_error *error, const char *format, va_list arguments)
{
    /* longer than error->text by a character, so that none is taken for invalid because it is cut */
    char words[WR_ERROR_ROOM + 4];
    vsnprintf(words, sizeof words, format, arguments);
    wr_utf8_line(error->text, sizeof error->text, words);
}

int wr_error_set(struct wr_error *error, int code, const char *format, ...)
{
    if (!error)
        return code;
    error->code = code;
    va_list arguments;
    va_start(arguments, format);
    set_text(error, format, arguments);
    va_end(arguments);
    return code;
}

void wr_error_prefix(struct wr_error *error, const char *format, ...)
{
    char prefix[WR_ERROR_ROOM];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    wr_error_set(error, error->code, "%s%s", prefix, error->text);
}

const char *wr_error_words(int code)
{
    switch (code) {
    case WEIR_OK: return "no error";
    case WEIR_ERR_ARGUMENT: return "an argument is missing or out of its range";
    case WEIR_ERR_NAME: return "a name breaks the rules for names";
    case WEIR_ERR_CONFIG: return "the configuration is wrong";
    case WEIR_ERR_PLUGIN: return "the handler type cannot be loaded";
    case WEIR_ERR_MEMORY: return "no memory";
    case WEIR_ERR_LIMIT: return "settings.max_series is reached";
    case WEIR_ERR_FULL: return "the handler's queue is full";
    case WEIR_ERR_TIMEOUT: return "not done in time";
    case WEIR_ERR_DROPPED: return "values were dropped";
    case WEIR_ERR_SPOOLED: return "values are on disk only";
    case WEIR_ERR_CLOSED: return "weir has been shut down";
    case WEIR_ERR_BUSY: return "called by a signal handler that interrupted weir";
    case WEIR_ERR_TOO_LARGE: return "the event is too large";
    case WEIR_ERR_FIFO_NOT_CREATED: return "the named pipe was not created in time";
    default: return "unknown error";
    }
}

const char *wr_error_of_system(int number)
{
#ifdef HAVE_STRERRORDESC_NP
    const char *words = strerrordesc_np(number);
    return words ? words : "unknown error";
#else
    return strerror(number);
#endif
}
