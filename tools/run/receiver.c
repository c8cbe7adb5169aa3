#include "receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "common/command.h"
#include "common/json.h"
#include "os/fd.h"

enum { PIPE_BYTES = 1 << 20 };

/* ---- The tee --------------------------------------------------------------------------------- */

/* max_wait: at its end, the command does not wait for a pipe that is not there any more. block_timeout: if weir
 * run does not read, because it was stopped, the command waits so long, once. */
static void add_handler(struct json_object *handlers, const char *name, const char *pipe)
{
    struct json_object *handler = json_add_object(handlers, name);
    json_add_text(handler, "type", "fifo");
    json_add_expandable(handler, "path", pipe);
    json_add_text(handler, "format", "json");
    json_add_text(handler, "max_wait", "0s");
    json_add_text(handler, "queue", "4MiB");
    json_add_text(handler, "overflow", "block");
    json_add_text(handler, "block_timeout", "2s");
    json_add_text(handler, "delivery", "async");
}

/* The tee of this process, whose values are the command's too. NULL: there is none, or it is not understood;
 * then the command loses it. */
static struct json_object *read_outer(void)
{
    const char *text = getenv("WEIR_TEE");
    if (!text || !*text)
        return NULL;
    struct json_object *outer =
        text[strspn(text, " \t\r\n")] == '{' ? json_tokener_parse(text) : json_object_from_file(text);
    struct json_object *groups, *handlers;
    if (outer && json_object_is_type(outer, json_type_object) &&
        json_object_object_get_ex(outer, "groups", &groups) && json_object_is_type(groups, json_type_object) &&
        (!json_object_object_get_ex(outer, "handlers", &handlers) ||
         json_object_is_type(handlers, json_type_object)))
        return outer;
    json_object_put(outer);
    command_fail("WEIR_TEE is not understood, and replaced for the command");
    return NULL;
}

static struct json_object *member_of(struct json_object *object, const char *key)
{
    struct json_object *member;
    return json_object_object_get_ex(object, key, &member) ? member : json_add_object(object, key);
}

/* Each route of the outer tee gets the handler too. */
static void add_routes(struct json_object *groups, const char *name)
{
    bool has_default = false;
    json_object_object_foreach(groups, key, route)
    {
        has_default |= strcmp(key, "*") == 0;
        struct json_object *items = json_object_new_array();
        size_t count = json_object_is_type(route, json_type_array) ? json_object_array_length(route) : 0;
        for (size_t i = 0; i < count; i++)
            json_object_array_add(items, json_object_get(json_object_array_get_idx(route, i)));
        if (json_object_is_type(route, json_type_string))
            json_object_array_add(items, json_object_get(route));
        json_object_array_add(items, json_object_new_string(name));
        json_object_object_add(groups, key, items); /* of a known key: the loop may go on */
    }
    if (!has_default)
        json_add_text(groups, "*", name);
}

static char *make_tee(const char *pipe)
{
    char name[40];
    struct json_object *tee = read_outer();
    if (!tee)
        tee = json_start_object();
    snprintf(name, sizeof name, "weir-run-%ld", (long)getpid());
    add_handler(member_of(tee, "handlers"), name, pipe);
    add_routes(member_of(tee, "groups"), name);
    return json_take(tee);
}

/* ---- The pipe -------------------------------------------------------------------------------- */

/* A path that the command can use from any working folder. */
static char *find_parent(void)
{
    const char *given = getenv("TMPDIR");
    char *real = realpath(given && *given ? given : "/tmp", NULL);
    if (!real)
        command_fail("%s: %s; the command's values are not counted", given && *given ? given : "/tmp",
                     strerror(errno));
    return real;
}

static bool make_pipe(struct receiver *receiver, const char *parent)
{
    receiver->folder = command_join(parent, "weir-run-XXXXXX");
    if (!mkdtemp(receiver->folder)) { /* mode 0700 */
        free(receiver->folder);
        receiver->folder = NULL;
        return false;
    }
    receiver->pipe = command_join(receiver->folder, "values");
    if (mkfifo(receiver->pipe, 0600) != 0)
        return false;
    receiver->keeper_fd = wr_fd_open(receiver->pipe, O_RDWR | O_NONBLOCK, 0);
    /* if it may: the command waits less often */
    if (receiver->keeper_fd >= 0)
        (void)fcntl(receiver->keeper_fd, F_SETPIPE_SZ, PIPE_BYTES);
    return receiver->keeper_fd >= 0;
}

void receiver_open(struct receiver *receiver)
{
    *receiver = (struct receiver){.keeper_fd = -1};
    char *parent = find_parent();
    if (parent && make_pipe(receiver, parent)) {
        receiver->tee = make_tee(receiver->pipe);
    } else if (parent) {
        command_fail("%s: %s; the command's values are not counted", parent, strerror(errno));
        receiver_close(receiver);
    }
    free(parent);
}

void receiver_close(struct receiver *receiver)
{
    if (receiver->keeper_fd >= 0)
        close(receiver->keeper_fd);
    if (receiver->pipe)
        unlink(receiver->pipe);
    if (receiver->folder)
        rmdir(receiver->folder);
    free(receiver->folder);
    free(receiver->pipe);
    free(receiver->tee);
    *receiver = (struct receiver){.keeper_fd = -1};
}
