#include "text/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/utf8.h"

/* All error texts pass through here, so paths, names and the texts of plugins are escaped. */
static void set(struct wr_error *error, int code, const char *format, va_list arguments)
{
    /* longer than error->text by one UTF-8 character, so that a character cut here does not show as invalid */
    char unescaped[WR_ERROR_ROOM + 4];
    if (!error)
        return;
    error->code = code;
    error->place = WR_ERROR_NOWHERE;
    error->is_missing = false;
    vsnprintf(unescaped, sizeof unescaped, format, arguments);
    wr_utf8_line(error->text, sizeof error->text, unescaped);
}

int wr_error_set(struct wr_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set(error, code, format, arguments);
    va_end(arguments);
    return code;
}

bool wr_error_refuse(struct wr_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set(error, code, format, arguments);
    va_end(arguments);
    return false;
}

bool wr_error_no_memory(struct wr_error *error, const char *what)
{
    wr_error_set(error, WEIR_ERR_MEMORY, "%s%sout of memory", what ? what : "", what ? ": " : "");
    return false;
}

void wr_error_prefix(struct wr_error *error, const char *format, ...)
{
    char prefix[WR_ERROR_ROOM];
    uint64_t place = error->place;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    wr_error_set(error, error->code, "%s%s", prefix, error->text);
    error->place = place;
}

const char *wr_error_text(int code)
{
    switch (code) {
    case WEIR_OK: return "no error";
    case WEIR_ERR_ARGUMENT: return "an argument is missing or out of range";
    case WEIR_ERR_NAME: return "a name is not valid";
    case WEIR_ERR_CONFIG: return "the configuration is not valid";
    case WEIR_ERR_PLUGIN: return "the handler type cannot be loaded";
    case WEIR_ERR_MEMORY: return "out of memory";
    case WEIR_ERR_LIMIT: return "settings.max_series is reached";
    case WEIR_ERR_FULL: return "the handler's queue is full";
    case WEIR_ERR_TIMEOUT: return "timed out";
    case WEIR_ERR_DROPPED: return "values were dropped";
    case WEIR_ERR_SPOOLED: return "values are on disk only";
    case WEIR_ERR_CLOSED: return "weir has been shut down";
    case WEIR_ERR_BUSY: return "the call interrupted another one, or would have to wait and must not";
    case WEIR_ERR_TOO_LARGE: return "the event is too large";
    case WEIR_ERR_FIFO_NOT_CREATED: return "the named pipe was not created in time";
    default: return "unknown error";
    }
}

const char *wr_error_system_text(int number)
{
#ifdef HAVE_STRERRORDESC_NP
    const char *text = strerrordesc_np(number);
    return text ? text : "unknown error";
#else
    return strerror(number);
#endif
}
