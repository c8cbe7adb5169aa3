/* statsd_config: the configuration of `weir relay --statsd`. */
#ifndef WEIR_TOOLS_STATSD_CONFIG_H
#define WEIR_TOOLS_STATSD_CONFIG_H

#include <stdbool.h>

#define STATSD_PORT "8125"
#define STATSD_ADDRESS "127.0.0.1:" STATSD_PORT

struct command;

struct statsd_config {
    const char *address; /* as given */
    bool is_insecure;    /* addresses other than loopback are allowed */
};

/* Makes the text of a configuration that prints what comes, which the caller frees. Returns COMMAND_CONTINUE,
 * or the exit code after a message: the address is not allowed. */
int statsd_config_make(const struct statsd_config *config, const struct command *command, char **text);

#endif
