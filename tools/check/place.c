#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "text/buffer.h"
#include "text/common.h"

/* ---- One value ------------------------------------------------------------------------------- */

/* Without symbolic links, as far as it exists. */
static char *resolve(const char *path)
{
    struct wr_buffer whole = {0};
    const char *slash = strrchr(path, '/');
    char *real = realpath(path, NULL);
    if (real)
        return real;
    char *folder = slash ? command_must(strndup(path, slash == path ? 1 : (size_t)(slash - path))) : NULL;
    char *real_folder = folder ? realpath(folder, NULL) : NULL;
    wr_buffer_put_format(&whole, "%s%s", real_folder ? real_folder : "", real_folder ? slash : path);
    free(folder);
    free(real_folder);
    return command_take(&whole);
}

/* What follows "unix:" or "unix-dgram:", which may be followed by "//". NULL: it is no such address. */
static const char *find_path(const char *text)
{
    static const char *const schemes[] = {"unix:", "unix-dgram:"};
    for (size_t i = 0; i < WR_COUNT_OF(schemes); i++) {
        const char *path = text + strlen(schemes[i]);
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
            return strncmp(path, "///", 3) == 0 ? path + 2 : path;
    }
    return NULL;
}

/* [SCHEME://][USER@]HOST[:PORT][/...] */
static void set_address(struct place *place, const char *text)
{
    struct wr_buffer port = {0};
    const char *scheme = strstr(text, "://"), *host = scheme ? scheme + 3 : text;
    size_t authority = strcspn(host, "/?#");
    const char *end = host + authority, *at = memrchr(host, '@', authority);
    host = at ? at + 1 : host;
    const char *bracket = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : NULL;
    const char *colon = memrchr(bracket ? bracket : host, ':', (size_t)(end - (bracket ? bracket : host)));
    const char *host_end = bracket ? bracket : colon ? colon : end;
    host += bracket ? 1 : 0;
    place->kind = PLACE_ADDRESS;
    place->text = command_must(strndup(host, (size_t)(host_end - host)));
    wr_buffer_put_text(&port, strncmp(text, "udp:", 4) == 0 ? "udp" : "tcp");
    wr_buffer_put(&port, colon ? colon : "", colon ? (size_t)(end - colon) : 0);
    place->port = command_take(&port);
}

static void add(struct places *places, const char *type, const weir_option *row, const char *text)
{
    places->items = command_must(realloc(places->items, (places->count + 1) * sizeof *places->items));
    struct place *place = &places->items[places->count++];
    const char *path = !text ? NULL : row->type == WEIR_OPTION_PATH ? text : find_path(text);
    *place = (struct place){
        .option = row->name, .kind = PLACE_DEFAULT, .listens = strcmp(row->name, "listen") == 0, .whole = text};
    if (!text) {
        place->text = command_must(strdup(type));
    } else if (path) {
        place->kind = PLACE_FILE;
        place->text = resolve(path);
    } else {
        set_address(place, text);
    }
}

/* ---- All of a handler or source -------------------------------------------------------------- */

static void add_row(struct places *places, const char *type, const weir_option *row, const void *options)
{
    const void *field = (const char *)options + row->offset;
    const weir_list *list = row->type == WEIR_OPTION_LIST ? field : NULL;
    if (row->type == WEIR_OPTION_STRING || row->type == WEIR_OPTION_PATH)
        add(places, type, row, *(const char *const *)field);
    for (size_t i = 0; list && i < list->count; i++)
        add(places, type, row, list->items[i]);
    if (list && !list->count)
        add(places, type, row, NULL);
}

void places_init(struct places *places, const char *type, const struct wr_options_table *table,
                 const void *options)
{
    const weir_option *row;
    *places = (struct places){0};
    for (size_t i = 0; (row = wr_options_row(table, i)); i++)
        if (row->flags & WEIR_OPTION_DESTINATION)
            add_row(places, type, row, options);
}

void places_fini(struct places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        free(places->items[i].text);
        free(places->items[i].port);
    }
    free(places->items);
    *places = (struct places){0};
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool is_any(const char *host)
{
    return !*host || strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || strncmp(host, "127.", 4) == 0;
}

static bool is_first_loopback(const char *host)
{
    return strcmp(host, "127.0.0.1") == 0 || strcmp(host, "::1") == 0;
}

/* Whether what `a` listens at includes `b`. */
static bool includes(const struct place *a, const struct place *b)
{
    return is_any(a->text) && (b->listens || is_any(b->text) || is_loopback(b->text));
}

static bool is_same_host(const struct place *a, const struct place *b)
{
    return strcmp(a->text, b->text) == 0 || (strcmp(a->text, "localhost") == 0 && is_first_loopback(b->text)) ||
           (strcmp(b->text, "localhost") == 0 && is_first_loopback(a->text));
}

/* Port 0 is any that is free. */
static bool is_same_port(const struct place *a, const struct place *b)
{
    return strcmp(a->port, b->port) == 0 && strcmp(a->port + 3, ":0") != 0;
}

bool place_meets(const struct place *a, const struct place *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind != PLACE_ADDRESS)
        return strcmp(a->text, b->text) == 0;
    return is_same_port(a, b) &&
           (is_same_host(a, b) || (a->listens && includes(a, b)) || (b->listens && includes(b, a)));
}

static bool is_equal(const struct place *a, const struct place *b)
{
    if (a->kind != PLACE_ADDRESS || b->kind != PLACE_ADDRESS)
        return place_meets(a, b);
    return a->listens == b->listens && strcmp(a->whole, b->whole) == 0;
}

/* If there is none but defaults, what they are is not known. */
bool places_equal(const struct places *a, const struct places *b)
{
    bool equal = a->count == b->count, given = false;
    for (size_t i = 0; equal && i < a->count; i++) {
        equal = is_equal(&a->items[i], &b->items[i]);
        given |= a->items[i].kind != PLACE_DEFAULT;
    }
    return equal && given;
}
