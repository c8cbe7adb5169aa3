#include "address.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

/* Copies a part of a URL; "" if it has none. */
static void get_part(CURLU *url, CURLUPart part, unsigned flags, char *out, size_t room)
{
    char *text = NULL;
    *out = '\0';
    if (curl_url_get(url, part, &text, flags) == CURLUE_OK)
        snprintf(out, room, "%s", text);
    curl_free(text);
}

static CURLU *parse(const char *text)
{
    CURLU *url = curl_url();
    if (url && curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
        return url;
    curl_url_cleanup(url);
    return NULL;
}

static void format_display(CURLU *url, char *out, size_t room)
{
    char scheme[32], host[256], port[8], path[256];
    get_part(url, CURLUPART_SCHEME, 0, scheme, sizeof scheme);
    get_part(url, CURLUPART_HOST, 0, host, sizeof host);
    get_part(url, CURLUPART_PORT, 0, port, sizeof port);
    get_part(url, CURLUPART_PATH, 0, path, sizeof path);
    int length = snprintf(out, room, "%s://%s%s%s%s", scheme, host, *port ? ":" : "", port, path);
    if (length >= 0 && (size_t)length >= room)
        memcpy(out + room - 4, "...", 4);
}

bool wr_address_parse(struct address *address, const char *text)
{
    char scheme[32], port[8], user[2], password[2];
    CURLU *url = parse(text);
    *address = (struct address){0};
    if (!url)
        return false;
    get_part(url, CURLUPART_SCHEME, 0, scheme, sizeof scheme);
    get_part(url, CURLUPART_HOST, 0, address->host, sizeof address->host);
    get_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, port, sizeof port);
    get_part(url, CURLUPART_USER, 0, user, sizeof user);
    get_part(url, CURLUPART_PASSWORD, 0, password, sizeof password);
    snprintf(address->peer, sizeof address->peer, "%s:%s", address->host, port);
    format_display(url, address->display, sizeof address->display);
    address->has_user = *user || *password;
    address->is_http = strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
    curl_url_cleanup(url);
    return *address->host != '\0';
}

void wr_address_format(const char *text, char *out, size_t room)
{
    CURLU *url = parse(text);
    *out = '\0';
    if (url)
        format_display(url, out, room);
    curl_url_cleanup(url);
}
