#include "configure.h"

#include <stdlib.h>

#include <weir/weir.h>

#include "command.h"
#include "config/benchmarkai.h"
#include "config/parse.h"
#include "runtime/configure.h"
#include "runtime/runtime.h"

static bool has_own_variable(void)
{
    return wr_parse_has_variable() || wr_benchmarkai_is_set();
}

/* A tee alone is a configuration, too. If a variable is invalid, the library has logged the error. */
static bool is_environment_applied(void)
{
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime || !wr_configure_ready(runtime))
        return false;
    return runtime->from_environment || (runtime->tee && !has_own_variable());
}

/* The variables take precedence over a program's own configuration, but not over a file that is given. */
bool configure_from(const char *file)
{
    if (!file) {
        bool is_applied = is_environment_applied();
        if (!is_applied)
            command_fail("%s is invalid: no value was added", wr_parse_has_variable()   ? "WEIR_CONFIG"
                                                              : wr_benchmarkai_is_set() ? "BENCHMARK_AI"
                                                                                        : "WEIR_TEE");
        return is_applied;
    }
    unsetenv("WEIR_CONFIG");
    unsetenv("BENCHMARK_AI");
    if (weir_configure_file(file) == 0)
        return true;
    command_fail("%s", weir_last_error());
    return false;
}
