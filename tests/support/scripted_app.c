/* scripted_app: executes commands from standard input, one per line, and writes the result of each as a line of
 * JSON to standard output: {"code": 0, "error": ""}.
 *
 *     add NAME VALUE     weir_add_value, on group "my_app"
 *     int NAME VALUE     weir_add_int
 *     event COUNT        weir_emit of values n0, n1, ... = 0, 1, ...
 *     note LENGTH        weir_add with LENGTH characters of metadata
 *     describe NAME UNIT weir_describe
 *     flush MS           weir_flush
 *     reload             weir_reload
 *     configure FILE     weir_configure_file
 *     ledger HANDLER     {"offered": ..., "delivered": ..., "dropped": [...], "queued": ...}
 *     fork NAME          a forked child adds NAME = 1 and exits; without NAME it waits for the end of this
 *                        program. code: the child's process id
 *     reap               waits for the last child. code: its wait status
 *     shutdown MS        weir_shutdown */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "ledger_json.h"

enum { LARGEST_EVENT = 1000, LONGEST_NOTE = 30000 };

static weir_stream *stream;
static pid_t child;

static void put_text(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20)
            printf("\\u%04x", *text);
        else
            putchar(*text);
    putchar('"');
}

static void reply(int code)
{
    printf("{\"code\": %d, \"error\": ", code);
    put_text(code < 0 ? weir_last_error() : "");
    puts("}");
    fflush(stdout);
}

static int emit_event(int count)
{
    static char names[LARGEST_EVENT][16];
    weir_value values[LARGEST_EVENT];
    for (int i = 0; i < count && i < LARGEST_EVENT; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        values[i] = (weir_value){names[i], i};
    }
    return weir_emit(stream, values, (size_t)count);
}

static int add_note(int length)
{
    static char text[LONGEST_NOTE + 1];
    memset(text, 'x', LONGEST_NOTE);
    text[length < LONGEST_NOTE ? length : LONGEST_NOTE] = '\0';
    weir_sample_spec spec = {.size = sizeof spec, .name = "noted", .value = 1, .metadata = text};
    return weir_add(stream, &spec);
}

static void print_ledger(const char *handler)
{
    weir_handler_stats stats;
    if (weir_get_handler_stats(handler, &stats, sizeof stats)) {
        reply(WEIR_ERR_ARGUMENT);
        return;
    }
    ledger_json_stats(&stats);
    puts("");
    fflush(stdout);
}

/* The child leaves by exit(), so its values are delivered. */
static void start_child(const char *name)
{
    char byte;
    int until_end[2];
    if (pipe(until_end) != 0)
        exit(2);
    child = fork();
    if (child == 0) {
        close(until_end[1]);
        if (name)
            exit(weir_add_value(stream, name, 1) ? 1 : 0);
        _exit(read(until_end[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(until_end[0]);
    reply(child);
}

static void reap(void)
{
    int status = -1;
    waitpid(child, &status, 0);
    reply(status);
}

static void execute(const char *verb, const char *first, const char *second)
{
    if (strcmp(verb, "add") == 0)
        reply(weir_add_value(stream, first, atof(second)));
    else if (strcmp(verb, "int") == 0)
        reply(weir_add_int(stream, first, atol(second)));
    else if (strcmp(verb, "describe") == 0)
        reply(weir_describe(stream, first, second, NULL));
    else if (strcmp(verb, "event") == 0)
        reply(emit_event(atoi(first)));
    else if (strcmp(verb, "note") == 0)
        reply(add_note(atoi(first)));
    else if (strcmp(verb, "flush") == 0)
        reply(weir_flush(atol(first)));
    else if (strcmp(verb, "reload") == 0)
        reply(weir_reload());
    else if (strcmp(verb, "configure") == 0)
        reply(weir_configure_file(first));
    else if (strcmp(verb, "ledger") == 0)
        print_ledger(first);
    else if (strcmp(verb, "fork") == 0)
        start_child(*first ? first : NULL);
    else if (strcmp(verb, "reap") == 0)
        reap();
    else if (strcmp(verb, "shutdown") == 0)
        reply(weir_shutdown(atol(first)));
    else
        exit(2);
}

int main(void)
{
    char line[5000], verb[32], first[4200], second[64];
    stream = weir_get_stream("my_app");
    while (fgets(line, sizeof line, stdin)) {
        verb[0] = first[0] = second[0] = '\0';
        sscanf(line, "%31s %4199s %63s", verb, first, second);
        execute(verb, first, second);
    }
    return 0;
}
