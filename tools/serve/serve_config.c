#include "serve_config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../plugins/forwarding/forward_default.h"
#include "../plugins/listening/listening.h"
#include "../plugins/state_folder.h"
#include "common/command.h"
#include "common/json.h"
#include "text/buffer.h"

#define LISTEN "127.0.0.1:8080"
#define HTTP "127.0.0.1:9465"

static const char *find_listen(const struct serve_config *config)
{
    return config->anywhere ? config->anywhere : config->listen ? config->listen : LISTEN;
}

static const char *or_default(const char *given, const char *otherwise)
{
    return given ? given : otherwise;
}

static bool is_off(const char *given)
{
    return given && strcmp(given, "off") == 0;
}

/* ---- The folder ------------------------------------------------------------------------------ */

static char *find_state(const char *given)
{
    char *state = given ? realpath(given, NULL) : state_folder_find(NULL);
    if (!state && given && errno == ENOENT && *given == '/')
        state = strdup(given);
    if (!state)
        command_fail("--state: %s",
                     given ? strerror(errno)
                           : "no folder: none of $STATE_DIRECTORY, $XDG_STATE_HOME and $HOME is an "
                             "absolute path");
    return state;
}

char *serve_config_access(const char *given)
{
    char *state = find_state(given);
    char *access = state ? command_join(state, "collector") : NULL;
    free(state);
    return access;
}

/* ---- Addresses ------------------------------------------------------------------------------- */

/* A source whose address is in use tries again for ever, which nobody sees who has just started the command. */
static bool check_address(const char *option, const char *text)
{
    struct listening listening;
    if (!listening_parse(&listening, text)) {
        command_fail("%s: \"%s\" is not an address with a port; allowed: like " LISTEN, option, text);
        return false;
    }
    int fd = listening_bind(&listening);
    bool is_free = fd >= 0 && listen(fd, 1) == 0;
    if (!is_free)
        command_fail("%s: %s: %s; choose another one with %s ADDRESS", text, option + 2, strerror(errno),
                     option);
    if (fd >= 0)
        close(fd);
    return is_free;
}

static bool check_loopback(const char *text)
{
    struct listening listening;
    if (!listening_parse(&listening, text) || listening.is_loopback)
        return true;
    command_fail(
        "--listen: \"%s\" lets other machines connect; allowed: --listen-anywhere %s --token-file FILE", text,
        text);
    return false;
}

/* Whether another process listens at a socket. A file that is left of one that has ended is no obstacle. */
static bool is_taken(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_taken = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return is_taken;
}

static bool check_socket(const char *given)
{
    char address[FORWARD_PATH_ROOM + 5];
    wr_forward_default(address);
    const char *path = given ? given : address + sizeof "unix:" - 1;
    bool is_free = !is_taken(path);
    if (!is_free)
        command_fail(
            "%s: another process listens there, such as `weir relay`; choose another one with --forward "
            "PATH, or --forward off",
            path);
    return is_free;
}

/* ---- The text -------------------------------------------------------------------------------- */

/* A handler or source. */
static struct json_object *add_part(struct json_object *parent, const char *name, const char *type)
{
    struct json_object *part = json_add_object(parent, name);
    json_add_text(part, "type", type);
    return part;
}

static void add_socket(struct json_object *source, const char *path)
{
    struct wr_buffer address = {0};
    wr_buffer_put_format(&address, "unix:%s", path);
    json_add_expandable(json_add_array(source, "listen"), NULL, command_text(&address));
    wr_buffer_fini(&address);
}

static void add_ingest(struct json_object *sources, const struct serve_config *config)
{
    if (!is_off(config->http)) {
        struct json_object *http = add_part(sources, "http", "http");
        json_add_text(http, "ack", "delivered");
        json_add_expandable(http, "listen", or_default(config->http, HTTP));
    }
    if (!is_off(config->forward)) {
        struct json_object *forward = add_part(sources, "forward", "forward");
        if (config->forward)
            add_socket(forward, config->forward);
        if (config->group)
            json_add_expandable(forward, "allow_group", config->group);
    }
    if (config->has_statsd)
        add_part(sources, "statsd", "statsd");
    if (config->fifo) {
        struct json_object *fifo = add_part(sources, "fifo", "fifo");
        json_add_text(fifo, "parse", "auto");
        json_add_expandable(fifo, "path", config->fifo);
    }
}

static void add_path(struct json_object *parent, const char *key, const char *folder, const char *name)
{
    char *path = command_join(folder, name);
    json_add_expandable(parent, key, path);
    free(path);
}

static char *make_text(const struct serve_config *config, const char *state)
{
    struct json_object *root = json_start_object(), *settings = json_add_object(root, "settings");
    char *store = config->store ? command_must(strdup(config->store)) : command_join(state, "weir.db");
    json_add_text(settings, "status", "auto");
    add_path(settings, "journal", state, "journal");
    json_add_expandable(add_part(json_add_object(root, "handlers"), "store", "store"), "path", store);
    json_add_text(json_add_object(root, "groups"), "*", "store");
    struct json_object *sources = json_add_object(root, "sources");
    struct json_object *collector = add_part(sources, "collector", "collector");
    json_add_expandable(collector, "listen", find_listen(config));
    json_add_expandable(collector, "path", store);
    add_path(collector, "access", state, "collector");
    if (config->token_file)
        json_add_expandable(collector, "token_file", config->token_file);
    add_ingest(sources, config);
    free(store);
    return json_take(root);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static bool check(const struct serve_config *config)
{
    return (config->anywhere || check_loopback(find_listen(config))) &&
           check_address(config->anywhere ? "--listen-anywhere" : "--listen", find_listen(config)) &&
           (is_off(config->http) || check_address("--http", or_default(config->http, HTTP))) &&
           (is_off(config->forward) || check_socket(config->forward));
}

char *serve_config_make(const struct serve_config *config)
{
    char *state = find_state(config->state), *text = NULL;
    int problem = state ? state_folder_make(state, true) : 0;
    if (problem)
        command_fail("%s: %s", state, strerror(problem));
    if (state && !problem && check(config))
        text = make_text(config, state);
    free(state);
    return text;
}
