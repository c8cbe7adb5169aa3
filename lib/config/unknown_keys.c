#include "config/unknown_keys.h"

#include <string.h>

#include "os/log.h"
#include "text/error.h"

void wr_unknown_keys_fini(struct wr_unknown_keys *keys)
{
    wr_region_fini(&keys->keep);
    *keys = (struct wr_unknown_keys){0};
}

bool wr_unknown_keys_add(struct wr_unknown_keys *keys, const struct wr_node *node, const char *what,
                         const char *hint, struct wr_error *error)
{
    struct wr_error message;
    if (keys->count + keys->more == WR_UNKNOWN_KEYS_MAX)
        return wr_node_key_error(node, error, "%s; at most 1,000 unknown keys are ignored", what);
    const char *text = NULL;
    if (keys->count < WR_UNKNOWN_KEYS_SHOWN) {
        wr_node_key_error(node, &message, "%s, ignored%s", what, hint);
        text = wr_region_text(&keys->keep, message.text, strlen(message.text));
    }
    if (text)
        keys->texts[keys->count++] = text;
    else
        keys->more++;
    return true;
}

bool wr_unknown_keys_equal(const struct wr_unknown_keys *a, const struct wr_unknown_keys *b)
{
    bool are_equal = a->count == b->count && a->more == b->more;
    for (size_t i = 0; are_equal && i < a->count; i++)
        are_equal = strcmp(a->texts[i], b->texts[i]) == 0;
    return are_equal;
}

void wr_unknown_keys_log(const struct wr_unknown_keys *keys, struct wr_log *log)
{
    for (size_t i = 0; i < keys->count; i++)
        wr_log_write(log, WEIR_LOG_WARNING, "%s", keys->texts[i]);
    if (keys->more)
        wr_log_write(log, WEIR_LOG_WARNING, "%zu further unknown keys of the configuration are ignored",
                     keys->more);
}
