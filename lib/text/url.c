#include "text/url.h"

#include <string.h>

#include "text/buffer.h"
#include "text/common.h"

static const char mask[] = "***";

/* Those that say where values are stored, and how, as in plugins/http. */
static bool is_harmless(const char *name, size_t length)
{
    static const char *const names[] = {"db", "rp", "bucket", "org", "precision", "consistency"};
    for (size_t i = 0; i < WR_COUNT_OF(names); i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* Appends name=***; a parameter without a name may be a secret as a whole. Returns its end. */
static const char *put_parameter(struct wr_buffer *out, const char *text)
{
    size_t name = strcspn(text, "=&#"), length = strcspn(text, "&#");
    bool has_name = text[name] == '=';
    if (has_name && is_harmless(text, name)) {
        wr_buffer_put(out, text, length);
        return text + length;
    }
    if (has_name)
        wr_buffer_put(out, text, name + 1);
    if (length)
        wr_buffer_put_text(out, mask);
    return text + length;
}

/* The host begins after the last @ between scheme and path. */
static const char *skip_user(const char *authority)
{
    size_t length = strcspn(authority, "/?#");
    const char *at = memrchr(authority, '@', length);
    return at ? at + 1 : authority;
}

void wr_url_mask(struct wr_buffer *out, const char *url)
{
    const char *scheme = strstr(url, "://"), *authority = scheme ? scheme + 3 : url;
    const char *host = skip_user(authority);
    wr_buffer_put(out, url, (size_t)(authority - url));
    if (host != authority) {
        wr_buffer_put_text(out, mask);
        wr_buffer_put_char(out, '@');
    }
    size_t path = strcspn(host, "?#");
    wr_buffer_put(out, host, path);
    const char *rest = host + path;
    while (*rest == '?' || *rest == '&') {
        wr_buffer_put_char(out, *rest);
        rest = put_parameter(out, rest + 1);
    }
    if (*rest == '#')
        wr_buffer_put_text(out, "#***");
}
