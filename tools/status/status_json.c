#include "status_json.h"

#include <json-c/json.h>

#include "common/command.h"
#include "common/json.h"
#include "status/status_json.h"
#include "text/buffer.h"

static struct json_object *read_view(const struct wr_status_view *view)
{
    struct wr_buffer out = {0};
    wr_status_json_put(&out, view);
    const char *text = wr_buffer_text(&out);
    struct json_object *object = text ? json_tokener_parse(text) : NULL;
    if (!object)
        command_out_of_memory();
    wr_buffer_fini(&out);
    return object;
}

void status_json_add(struct json_object *array, const struct status_process *shown)
{
    struct json_object *object = read_view(shown->view);
    json_add_bool(object, "foreign_pid", shown->foreign);
    json_add_count(object, "user", shown->user);
    if (shown->age_ns < 0)
        json_add_text(object, "age_s", NULL);
    else
        json_add_decimals(object, "age_s", (double)shown->age_ns / 1e9, 3);
    if (json_object_array_add(array, object) != 0)
        command_out_of_memory();
}
