/* steps: makes the calls that its arguments name, one after the other, and prints its ledgers:
 *
 *     add GROUP NAME VALUE   configure GROUP TYPE OPTIONS   file PATH   reload   enabled GROUP
 *     fork                   the child makes all further calls, and the parent waits for it
 *     pause                  waits for the end of standard input
 *     close                  closes all descriptors above the standard streams, and these
 *
 * TYPE and OPTIONS may be "-": NULL. A call that fails is printed to standard error. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "ledger_json.h"

static const char *optional(const char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

static void check(const char *call, int result)
{
    if (result != 0)
        fprintf(stderr, "%s: %s\n", call, weir_last_error());
}

static void part(void)
{
    int status = 0;
    pid_t child = fork();
    if (child <= 0)
        return;
    while (waitpid(child, &status, 0) != child)
        ;
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

static void close_all(void)
{
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
}

int main(int argc, char **argv)
{
    (void)argc;
    for (char **step = argv + 1; *step;) {
        const char *name = *step++;
        if (strcmp(name, "add") == 0) {
            check(name, weir_add_value(weir_get_stream(step[0]), step[1], strtod(step[2], NULL)));
            step += 3;
        } else if (strcmp(name, "configure") == 0) {
            check(name, weir_configure(step[0], optional(step[1]), optional(step[2])));
            step += 3;
        } else if (strcmp(name, "file") == 0) {
            check(name, weir_configure_file(*step++));
        } else if (strcmp(name, "reload") == 0) {
            check(name, weir_reload());
        } else if (strcmp(name, "enabled") == 0) {
            fprintf(stderr, "%s is %s\n", *step, weir_stream_enabled(weir_get_stream(*step)) ? "on" : "off");
            step++;
        } else if (strcmp(name, "fork") == 0) {
            fflush(NULL);
            part();
        } else if (strcmp(name, "pause") == 0) {
            while (getchar() != EOF)
                ;
        } else if (strcmp(name, "close") == 0) {
            close_all();
        } else {
            fprintf(stderr, "%s: no such step\n", name);
            return 2;
        }
    }
    weir_flush(-1);
    ledger_json_all();
    return 0;
}
