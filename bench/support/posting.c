#include "posting.h"

#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include "measure.h"

static struct {
    CURL *handle;
    struct curl_slist *headers;
    char reply[256];
    size_t reply_length;
} client;

/* Keeps the beginning of the response. */
static size_t take(char *data, size_t size, size_t count, void *unused)
{
    size_t length = size * count, room = sizeof client.reply - 1 - client.reply_length;
    (void)unused;
    memcpy(client.reply + client.reply_length, data, length < room ? length : room);
    client.reply_length += length < room ? length : room;
    return length;
}

void posting_open(const char *url, const char *content_type)
{
    char header[100];
    snprintf(header, sizeof header, "Content-Type: %s", content_type);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    client.handle = curl_easy_init();
    client.headers = curl_slist_append(curl_slist_append(NULL, header), "Expect:");
    if (!client.handle || !client.headers)
        measure_fail("out of memory");
    curl_easy_setopt(client.handle, CURLOPT_URL, url);
    curl_easy_setopt(client.handle, CURLOPT_HTTPHEADER, client.headers);
    curl_easy_setopt(client.handle, CURLOPT_POST, 1L);
    curl_easy_setopt(client.handle, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(client.handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(client.handle, CURLOPT_NOSIGNAL, 1L);
}

void posting_send(const void *body, size_t length)
{
    client.reply_length = 0;
    curl_easy_setopt(client.handle, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(client.handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
    CURLcode code = curl_easy_perform(client.handle);
    client.reply[client.reply_length] = '\0';
    if (code != CURLE_OK)
        measure_fail("%s", curl_easy_strerror(code));
    if (strstr(client.reply, "\"errors\":true"))
        measure_fail("%s", client.reply);
}

void posting_close(void)
{
    curl_easy_cleanup(client.handle);
    curl_slist_free_all(client.headers);
}
