#include "web_pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../prometheus/accepts.h"
#include "request.h"

static const char left_out[] =
    "The pages were left out when this weir was built, since Chart.js was not found (Debian: libjs-chart.js).\n"
    "The values can be queried all the same: /api/v1/\n";

/* ---- Files ----------------------------------------------------------------------------------- */

static const struct pages_file *find(const char *path)
{
    for (const struct pages_file *file = pages_files; file->path; file++)
        if (strcmp(file->path, path) == 0)
            return file;
    return NULL;
}

static const char *type_of(const char *path)
{
    static const char *const types[][2] = {
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending && i < sizeof types / sizeof *types; i++)
        if (strcmp(ending, types[i][0]) == 0)
            return types[i][1];
    return "text/html; charset=utf-8";
}

/* Returns the file as it was before it was compressed; the caller frees it. NULL: out of memory. */
static unsigned char *unpack(const struct pages_file *file)
{
    enum { GZIP_WINDOW = 15 + 16 };
    unsigned char *text = malloc(file->length + 1);
    z_stream stream = {0};
    if (!text || inflateInit2(&stream, GZIP_WINDOW) != Z_OK) {
        free(text);
        return NULL;
    }
    stream.next_in = (Bytef *)(uintptr_t)file->data;
    stream.avail_in = (uInt)file->size;
    stream.next_out = text;
    stream.avail_out = (uInt)file->length;
    bool is_done = inflate(&stream, Z_FINISH) == Z_STREAM_END;
    inflateEnd(&stream);
    if (is_done)
        return text;
    free(text);
    return NULL;
}

/* ---- Replies --------------------------------------------------------------------------------- */

/* Returns the file's bytes as the client takes them; NULL: out of memory. */
static struct MHD_Response *make_response(const struct pages_file *file, bool is_packed)
{
    if (is_packed) {
        void *data = (void *)(uintptr_t)file->data; /* it is only read */
        struct MHD_Response *response =
            MHD_create_response_from_buffer(file->size, data, MHD_RESPMEM_PERSISTENT);
        if (response)
            MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
        return response;
    }
    unsigned char *text = unpack(file);
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(file->length, text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!response)
        free(text);
    return response;
}

static void send_file(struct request *request, const struct pages_file *file)
{
    static char nothing[] = "";
    char tag[64];
    snprintf(tag, sizeof tag, "W/\"%.40s\"", file->check);
    const char *known = request_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH);
    bool is_known = known && strstr(known, tag);
    bool is_packed = accepts_gzip(request_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    struct MHD_Response *response = is_known
                                        ? MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT)
                                        : make_response(file, is_packed);
    if (response) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type_of(file->path));
        MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
        MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    }
    request_reply_response(request, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
}

bool web_pages_handle(struct request *request)
{
    const char *path = request->path;
    bool is_start = strcmp(path, "/") == 0;
    if (!is_start && strncmp(path, "/pages/", 7) != 0)
        return false;
    const struct pages_file *file = find(is_start ? "index.html" : path + 7);
    if (!request_is(request, MHD_HTTP_METHOD_GET))
        request_refuse_method(request, "GET");
    else if (file)
        send_file(request, file);
    else if (is_start)
        request_reply_bytes(request, MHD_HTTP_OK, "text/plain", left_out, sizeof left_out - 1, NULL);
    else
        request_fail(request, MHD_HTTP_NOT_FOUND, "the pages have no such file");
    return true;
}
