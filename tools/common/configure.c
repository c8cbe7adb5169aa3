#include "configure.h"

#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "command.h"
#include "config/benchmarkai.h"
#include "config/config_read.h"
#include "runtime/configure.h"
#include "runtime/runtime.h"

static bool has_own_variable(void)
{
    return wr_config_has_variable("WEIR_CONFIG") || wr_benchmarkai_is_set();
}

/* A tee alone is a configuration, too. If a variable is invalid, the library has logged the error. */
static bool is_environment_applied(void)
{
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime || !wr_configure_ready(runtime))
        return false;
    return runtime->from_environment || (runtime->tee && !has_own_variable());
}

static int configure_whole(const char *text)
{
    return weir_configure_text(text, strlen(text));
}

/* What a user has asked for takes the place of the variables. */
static bool is_applied(int (*configure)(const char *given), const char *given)
{
    unsetenv("WEIR_CONFIG");
    unsetenv("BENCHMARK_AI");
    if (configure(given) == 0)
        return true;
    command_fail("%s", weir_last_error());
    return false;
}

/* The variables take precedence over a program's own configuration, but not over a file that is given. */
bool configure_from(const char *file)
{
    if (!file) {
        bool is_done = is_environment_applied();
        if (!is_done)
            command_fail("%s is invalid: no value was added", wr_config_has_variable("WEIR_CONFIG")
                                                                  ? "WEIR_CONFIG"
                                                              : wr_benchmarkai_is_set() ? "BENCHMARK_AI"
                                                                                        : "WEIR_TEE");
        return is_done;
    }
    return is_applied(weir_configure_file, file);
}

bool configure_text(const char *text)
{
    return is_applied(configure_whole, text);
}
