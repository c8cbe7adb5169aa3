#include "relay/statsd_config.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/command.h"
#include "common/json.h"
#include "text/buffer.h"
#include "text/destination.h"

static bool has_scheme(const char *address)
{
    return strstr(address, "://") || strncmp(address, "unix-dgram:", strlen("unix-dgram:")) == 0;
}

/* Appends an address as the source type's option `listen` has it. Of a port alone the host is loopback. */
static void put_listen(struct wr_buffer *out, const char *scheme, const char *address)
{
    const char *port = *address == ':' ? address + 1 : address;
    bool has_host = strspn(port, "0123456789") < strlen(port) || !*port;
    wr_buffer_put_format(out, "%s%s%s", scheme, has_host ? "" : "127.0.0.1:", has_host ? address : port);
}

/* The source type does not look names up either. */
static bool is_known(const struct wr_destination *at)
{
    struct in6_addr unused;
    return at->path || strcmp(at->host, "localhost") == 0 || inet_pton(AF_INET, at->host, &unused) == 1 ||
           inet_pton(AF_INET6, at->host, &unused) == 1;
}

/* Checked here, since the source type would speak of options in a configuration. */
static int check(const struct statsd_config *config, const struct command *command, const char *listen)
{
    const struct wr_destination_rules rules = {
        .kinds = WEIR_CONNECT_UDP | WEIR_CONNECT_TCP | WEIR_CONNECT_UNIX_DGRAM,
    };
    struct wr_destination at;
    char unused[512];
    if (!wr_destination_read(&at, &rules, listen, unused, sizeof unused) || !is_known(&at))
        return command_refuse(command,
                              "--statsd: \"%s\" is not an address; allowed: PORT, ADDRESS:PORT with an IP "
                              "address or localhost, udp://ADDRESS:PORT, tcp://ADDRESS:PORT, unix-dgram:/PATH",
                              config->address);
    if (!config->is_insecure && !(wr_destination_describe(&at) & WEIR_CONNECT_LOCAL))
        return command_refuse(command,
                              "--statsd: \"%s\" is not a loopback address: anybody who reaches it can add "
                              "values; --insecure allows it",
                              config->address);
    return COMMAND_CONTINUE;
}

/* Members of sets are printed as they come. second: NULL: there is one address. */
static char *make_text(const struct statsd_config *config, const char *first, const char *second)
{
    struct json_object *root = json_start_object();
    struct json_object *screen = json_add_object(json_add_object(root, "handlers"), "screen");
    json_add_text(screen, "type", "console");
    json_add_text(screen, "linger", "0s");
    json_add_text(json_add_object(root, "groups"), "*", "screen");
    struct json_object *statsd = json_add_object(json_add_object(root, "sources"), "statsd");
    json_add_text(statsd, "type", "statsd");
    json_add_text(statsd, "set_interval", "0s");
    json_add_bool(statsd, "insecure", config->is_insecure);
    struct json_object *listen = json_add_array(statsd, "listen");
    json_add_expandable(listen, NULL, first);
    if (second)
        json_add_expandable(listen, NULL, second);
    return json_take(root);
}

/* An address without a scheme is one of UDP and of TCP. */
int statsd_config_make(const struct statsd_config *config, const struct command *command, char **text)
{
    struct wr_buffer first = {0}, second = {0};
    bool is_one = has_scheme(config->address);
    put_listen(&first, is_one ? "" : "udp://", config->address);
    put_listen(&second, "tcp://", config->address);
    int result = check(config, command, command_text(&first));
    if (result == COMMAND_CONTINUE)
        *text = make_text(config, command_text(&first), is_one ? NULL : command_text(&second));
    wr_buffer_fini(&first);
    wr_buffer_fini(&second);
    return result;
}
