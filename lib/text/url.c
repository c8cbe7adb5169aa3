#include "text/url.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "text/buffer.h"
#include "text/common.h"

static const char mask[] = "***";

static bool is_secret(const char *name, size_t length)
{
    static const char *const secrets[] = {"p",        "pass",    "passwd", "password", "token", "access_token",
                                          "apikey",   "api_key", "key",    "secret",   "auth",  "sig",
                                          "signature"};
    for (size_t i = 0; i < WR_COUNT_OF(secrets); i++)
        if (strlen(secrets[i]) == length && strncasecmp(secrets[i], name, length) == 0)
            return true;
    return false;
}

/* Appends name=value. Returns its end. */
static const char *put_parameter(struct wr_buffer *out, const char *text)
{
    size_t name = strcspn(text, "=&#"), length = strcspn(text, "&#");
    if (text[name] != '=' || !is_secret(text, name)) {
        wr_buffer_put(out, text, length);
        return text + length;
    }
    wr_buffer_put(out, text, name + 1);
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
    wr_buffer_put_text(out, rest);
}
