#include "config/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/buffer.h"
#include "text/error.h"
#include "text/utf8.h"
#include "os/fd.h"

extern char **environ;

/* ---- The environment ------------------------------------------------------------------------- */

static const char *no_entries[] = {NULL};
const struct wr_environment wr_environment_empty = {.entries = no_entries, .folder = "/"};

static size_t count_entries(void)
{
    size_t count = 0;
    if (!getauxval(AT_SECURE))
        while (environ && environ[count])
            count++;
    return count;
}

static bool copy_entries(struct wr_environment *environment)
{
    size_t count = count_entries();
    environment->entries = wr_region_alloc(&environment->keep, (count + 1) * sizeof *environment->entries);
    if (!environment->entries)
        return false;
    for (size_t i = 0; i < count; i++) {
        environment->entries[i] = wr_region_text(&environment->keep, environ[i], strlen(environ[i]));
        if (!environment->entries[i])
            return false;
    }
    return true;
}

struct wr_environment *wr_environment_take(void)
{
    struct wr_environment *environment = calloc(1, sizeof *environment);
    if (!environment)
        return NULL;
    atomic_store_explicit(&environment->references, 1, memory_order_relaxed);
    char *folder = getcwd(NULL, 0); /* NULL if it was deleted: absolute paths still work */
    environment->folder = folder ? wr_region_text(&environment->keep, folder, strlen(folder)) : NULL;
    bool done = copy_entries(environment) && (!folder || environment->folder);
    free(folder);
    if (done)
        return environment;
    wr_environment_drop(environment);
    return NULL;
}

void wr_environment_hold(struct wr_environment *environment)
{
    atomic_fetch_add_explicit(&environment->references, 1, memory_order_relaxed);
}

void wr_environment_drop(struct wr_environment *environment)
{
    if (!environment || atomic_fetch_sub_explicit(&environment->references, 1, memory_order_acq_rel) != 1)
        return;
    wr_region_fini(&environment->keep);
    free(environment);
}

static const char *get_entry(const struct wr_environment *environment, const char *name, size_t length)
{
    for (const char **entry = environment->entries; *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* ---- Files ----------------------------------------------------------------------------------- */

enum { FILE_BYTES_MAX = 64 * 1024, SHOWN_ROOM = 200 };

/* read_file and check_file return the problem, or NULL. */
static const char *read_file(int fd, struct wr_buffer *out)
{
    size_t left = FILE_BYTES_MAX + 1;
    while (left && wr_buffer_reserve(out, left)) {
        ssize_t got = read(fd, out->data + out->length, left);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return wr_error_system_text(errno);
        if (got == 0)
            return NULL;
        out->length += (size_t)got;
        left -= (size_t)got;
    }
    return left ? "out of memory" : "too long; at most 64 KiB are allowed";
}

static const char *check_file(int fd)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return wr_error_system_text(errno);
    return S_ISREG(status.st_mode) ? NULL : "not a regular file";
}

static bool put_contents(struct wr_buffer *out, struct wr_buffer *contents, const char *path,
                         struct wr_error *error)
{
    size_t length = contents->length;
    if (length && contents->data[length - 1] == '\n')
        length--;
    if (length && (memchr(contents->data, '\0', length) || !wr_utf8_is_valid(contents->data, length, NULL)))
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "${file:%s}: must be UTF-8 text without NUL", path);
    wr_buffer_put(out, contents->data, length);
    return true;
}

static bool expand_file(const char *path, struct wr_buffer *out, struct wr_expanded *total,
                        struct wr_error *error)
{
    if (++total->files > WR_EXPAND_FILES_MAX)
        return wr_error_refuse(error, WEIR_ERR_CONFIG,
                               "${file:%s}: the configuration reads too many files; at most 10,000 are allowed",
                               path);
    if (path[0] != '/')
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "${file:%s}: the path must be absolute", path);
    struct wr_buffer contents = {0};
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    const char *problem = check_file(fd);
    if (!problem)
        problem = read_file(fd, &contents);
    if (problem)
        wr_error_set(error, contents.failed ? WEIR_ERR_MEMORY : WEIR_ERR_CONFIG, "${file:%s}: %s", path,
                     problem);
    if (fd >= 0)
        close(fd);
    bool done = !problem && put_contents(out, &contents, path, error);
    wr_buffer_fini(&contents);
    return done;
}

/* ---- Expressions ----------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return length && strspn(text, letters) >= length && !(text[0] >= '0' && text[0] <= '9');
}

static bool expand_built_in(const char *name, size_t length, struct wr_buffer *out)
{
    if (length == 3 && memcmp(name, "PID", 3) == 0) {
        wr_buffer_put_format(out, "%ld", (long)getpid());
        return true;
    }
    if (length == 8 && memcmp(name, "HOSTNAME", 8) == 0) {
        char host[HOST_NAME_MAX + 1] = "";
        gethostname(host, sizeof host - 1);
        wr_buffer_put_text(out, host);
        return true;
    }
    return false;
}

/* inside: the text between the braces. */
static bool expand_expression(const struct wr_environment *environment, char *inside, struct wr_buffer *out,
                              struct wr_expanded *total, struct wr_error *error)
{
    if (strstr(inside, "${")) {
        char shown[SHOWN_ROOM];
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "a default cannot have a variable in it: %s in braces",
                               wr_utf8_quote(shown, sizeof shown, inside, strlen(inside)));
    }
    if (strncmp(inside, "file:", 5) == 0)
        return expand_file(inside + 5, out, total, error);
    char *separator = strstr(inside, ":-");
    size_t length = separator ? (size_t)(separator - inside) : strlen(inside);
    if (!is_name(inside, length)) {
        char shown[SHOWN_ROOM];
        return wr_error_refuse(error, WEIR_ERR_CONFIG,
                               "must be ${NAME}, ${NAME:-default}, ${file:/path} or $$, got %s in braces",
                               wr_utf8_quote(shown, sizeof shown, inside, strlen(inside)));
    }
    if (expand_built_in(inside, length, out))
        return true;
    const char *value = get_entry(environment, inside, length);
    if (!value && !separator)
        return wr_error_refuse(error, WEIR_ERR_CONFIG,
                               "${%s}: the variable is not set; ${%s:-default} sets a default", inside, inside);
    if (value && !wr_utf8_is_valid(value, strlen(value), NULL))
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "${%.*s}: its value is not valid UTF-8", (int)length,
                               inside);
    /* as in the shell, the default also replaces an empty value */
    wr_buffer_put_text(out, value && (*value || !separator) ? value : separator + 2);
    return true;
}

/* *text: at a dollar sign; advanced past the expression. */
static bool expand_one(const struct wr_environment *environment, const char **text, struct wr_buffer *out,
                       struct wr_expanded *total, struct wr_error *error)
{
    const char *start = *text;
    if (start[1] == '$') {
        wr_buffer_put_char(out, '$');
        *text = start + 2;
        return true;
    }
    const char *end = start[1] == '{' ? strchr(start, '}') : NULL;
    if (!end)
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s; write $$ for a dollar sign, ${NAME} for a variable",
                               start[1] == '{' ? "unclosed ${" : "unescaped $");
    char *inside = strndup(start + 2, (size_t)(end - start - 2));
    if (!inside) {
        return wr_error_no_memory(error, NULL);
    }
    bool done = expand_expression(environment, inside, out, total, error);
    free(inside);
    *text = end + 1;
    return done;
}

bool wr_expand_count(struct wr_expanded *total, size_t bytes, struct wr_error *error)
{
    if (!total)
        return true;
    if (bytes <= WR_EXPAND_BYTES_MAX && total->bytes <= WR_EXPAND_BYTES_MAX - bytes) {
        total->bytes += bytes;
        return true;
    }
    return wr_error_refuse(error, WEIR_ERR_CONFIG,
                           "with it, the strings of the configuration take more than 16 MiB after expansion");
}

static bool expand(const struct wr_environment *environment, const char *text, struct wr_buffer *out,
                   struct wr_expanded *total, struct wr_error *error)
{
    while (*text) {
        size_t plain = strcspn(text, "$"), before = out->length;
        wr_buffer_put(out, text, plain);
        text += plain;
        if (*text == '$' && !expand_one(environment, &text, out, total, error))
            return false;
        if (!wr_expand_count(total, out->length - before, error))
            return false;
    }
    if (out->failed)
        wr_error_no_memory(error, NULL);
    return !out->failed;
}

bool wr_expand(const struct wr_environment *environment, const char *text, struct wr_buffer *out,
               struct wr_expanded *total, struct wr_error *error)
{
    struct wr_expanded alone = {0};
    return expand(environment, text, out, total ? total : &alone, error);
}
