#include "configure.h"

#include <stdlib.h>

#include <weir/weir.h>

#include "command.h"
#include "config/parse.h"
#include "runtime/configure.h"
#include "runtime/runtime.h"

/* If the variable is invalid, the library has logged the error. */
static bool is_environment_applied(void)
{
    struct wr_runtime *runtime = wr_runtime_get();
    return runtime && wr_configure_ready(runtime) && runtime->from_environment;
}

/* The variables take precedence over a program's own configuration, but not over a file that is given. */
bool configure_from(const char *file)
{
    if (!file) {
        bool is_applied = is_environment_applied();
        if (!is_applied)
            command_fail("%s is invalid: no value was added",
                         wr_parse_has_variable() ? "WEIR_CONFIG" : "BENCHMARK_AI");
        return is_applied;
    }
    unsetenv("WEIR_CONFIG");
    unsetenv("BENCHMARK_AI");
    if (weir_configure_file(file) == 0)
        return true;
    command_fail("%s", weir_last_error());
    return false;
}
