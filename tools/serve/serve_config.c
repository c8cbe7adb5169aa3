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
#include "common/configure.h"
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

/* , "KEY": "VALUE" */
static void put_text(struct wr_buffer *out, const char *key, const char *value)
{
    wr_buffer_put_format(out, ", \"%s\": ", key);
    configure_put_text(out, value);
}

static void put_socket(struct wr_buffer *out, const char *path)
{
    struct wr_buffer name = {0};
    wr_buffer_put_format(&name, "unix:%s", path);
    const char *text = wr_buffer_text(&name);
    wr_buffer_put_text(out, ", \"listen\": [");
    configure_put_text(out, text ? text : "");
    wr_buffer_put_char(out, ']');
    wr_buffer_fini(&name);
}

static void put_ingest(struct wr_buffer *out, const struct serve_config *config)
{
    if (!is_off(config->http)) {
        wr_buffer_put_text(out, ",\n  \"http\": {\"type\": \"http\", \"ack\": \"delivered\"");
        put_text(out, "listen", or_default(config->http, HTTP));
        wr_buffer_put_char(out, '}');
    }
    if (!is_off(config->forward)) {
        wr_buffer_put_text(out, ",\n  \"forward\": {\"type\": \"forward\"");
        if (config->forward)
            put_socket(out, config->forward);
        if (config->group)
            put_text(out, "allow_group", config->group);
        wr_buffer_put_char(out, '}');
    }
    if (config->has_statsd)
        wr_buffer_put_text(out, ",\n  \"statsd\": {\"type\": \"statsd\"}");
    if (config->fifo) {
        wr_buffer_put_text(out, ",\n  \"fifo\": {\"type\": \"fifo\", \"parse\": \"auto\"");
        put_text(out, "path", config->fifo);
        wr_buffer_put_char(out, '}');
    }
}

static char *make_text(const struct serve_config *config, const char *state)
{
    struct wr_buffer out = {0};
    char *store = config->store ? strdup(config->store) : command_join(state, "weir.db");
    char *access = command_join(state, "collector"), *journal = command_join(state, "journal");
    if (!store)
        command_out_of_memory();
    wr_buffer_put_text(&out, "{\"settings\": {\"status\": \"auto\"");
    put_text(&out, "journal", journal);
    wr_buffer_put_text(&out, "},\n\"handlers\": {\"store\": {\"type\": \"store\"");
    put_text(&out, "path", store);
    wr_buffer_put_text(&out,
                       "}},\n\"groups\": {\"*\": \"store\"},\n\"sources\": {\n  \"collector\": {\"type\": "
                       "\"collector\"");
    put_text(&out, "listen", find_listen(config));
    put_text(&out, "path", store);
    put_text(&out, "access", access);
    if (config->token_file)
        put_text(&out, "token_file", config->token_file);
    wr_buffer_put_char(&out, '}');
    put_ingest(&out, config);
    wr_buffer_put_text(&out, "}}\n");
    free(store);
    free(access);
    free(journal);
    return wr_buffer_take(&out);
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
    if (state && !problem && check(config)) {
        text = make_text(config, state);
        if (!text)
            command_out_of_memory();
    }
    free(state);
    return text;
}
