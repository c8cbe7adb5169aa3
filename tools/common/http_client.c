#include "http_client.h"

#include <string.h>

#include "command.h"

bool http_client_is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

#ifdef HAVE_HTTP

#include <curl/curl.h>
#include <dlfcn.h>
#include <json-c/json.h>

#include "handler/plugin.h"
#include "runtime/runtime.h"
#include "text/common.h"
#include "text/error.h"

enum { REQUEST_S = 10, RESPONSE_BYTES = 1 << 20 };

/* ---- libcurl --------------------------------------------------------------------------------- */

static struct {
    CURL *(*init)(void);
    CURLcode (*set)(CURL *, CURLoption, ...);
    CURLcode (*perform)(CURL *);
    CURLcode (*get)(CURL *, CURLINFO, ...);
    void (*cleanup)(CURL *);
    const char *(*explain)(CURLcode);
    struct curl_slist *(*append)(struct curl_slist *, const char *);
    void (*free_list)(struct curl_slist *);
} curl;

/* A pointer to a function from one to an object: ISO C has no cast for it. */
static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found;
}

bool http_client_load(const char *what)
{
    struct wr_error error = {0};
    const struct wr_type *type =
        wr_plugins_find(&wr_runtime_get()->plugins, &wr_plugins_handlers, "http", NULL, &error);
    if (!type) {
        command_fail("%s needs the handler type http: %s", what, error.text);
        return false;
    }
    /* what the plugin is linked with is found through it; NULL: it is part of this program */
    void *library = dlopen(type->path, RTLD_NOW | RTLD_LOCAL);
    bool is_found =
        library && find(library, "curl_easy_init", &curl.init) &&
        find(library, "curl_easy_setopt", &curl.set) && find(library, "curl_easy_perform", &curl.perform) &&
        find(library, "curl_easy_getinfo", &curl.get) && find(library, "curl_easy_cleanup", &curl.cleanup) &&
        find(library, "curl_easy_strerror", &curl.explain) &&
        find(library, "curl_slist_append", &curl.append) &&
        find(library, "curl_slist_free_all", &curl.free_list);
    if (!is_found)
        command_fail("%s: the handler type http has no libcurl", what);
    return is_found;
}

/* ---- Requests -------------------------------------------------------------------------------- */

struct response {
    struct wr_buffer *body;
    size_t limit_bytes;
    bool is_too_long;
};

static size_t take(char *data, size_t size, size_t count, void *ctx)
{
    struct response *response = ctx;
    response->is_too_long = response->body->length + size * count > response->limit_bytes;
    if (response->is_too_long)
        return 0;
    wr_buffer_put(response->body, data, size * count);
    return size * count;
}

static bool make_headers(const struct http_call *call, struct curl_slist **headers)
{
    *headers = NULL;
    for (size_t i = 0; i < WR_COUNT_OF(call->headers) && call->headers[i]; i++) {
        struct curl_slist *longer = curl.append(*headers, call->headers[i]);
        if (!longer)
            return false;
        *headers = longer;
    }
    return true;
}

static void set_options(CURL *easy, const struct http_call *call, struct curl_slist *headers,
                        struct response *response)
{
    curl.set(easy, CURLOPT_URL, call->url);
    curl.set(easy, CURLOPT_CUSTOMREQUEST, call->method);
    curl.set(easy, CURLOPT_HTTPHEADER, headers);
    if (call->body)
        curl.set(easy, CURLOPT_COPYPOSTFIELDS, call->body);
    curl.set(easy, CURLOPT_WRITEFUNCTION, take);
    curl.set(easy, CURLOPT_WRITEDATA, response);
    curl.set(easy, CURLOPT_TIMEOUT, (long)REQUEST_S);
    curl.set(easy, CURLOPT_NOSIGNAL, 1L);
    curl.set(easy, CURLOPT_PROXY, "");
    curl.set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
}

static void read_facts(CURL *easy, struct http_reply *reply)
{
    const char *type = NULL;
    curl.get(easy, CURLINFO_RESPONSE_CODE, &reply->status);
    if (!curl.get(easy, CURLINFO_CONTENT_TYPE, &type) && type && strlen(type) < sizeof reply->type)
        strcpy(reply->type, type);
}

bool http_client_send(const struct http_call *call, struct http_reply *reply)
{
    struct response response = {&reply->body, call->reply_bytes ? call->reply_bytes : RESPONSE_BYTES, false};
    struct curl_slist *headers;
    CURL *easy = curl.init();
    CURLcode code = make_headers(call, &headers) && easy ? CURLE_OK : CURLE_OUT_OF_MEMORY;
    *reply = (struct http_reply){0};
    if (!code) {
        set_options(easy, call, headers, &response);
        code = curl.perform(easy);
        read_facts(easy, reply);
    }
    curl.cleanup(easy);
    curl.free_list(headers);
    reply->problem = !code ? NULL : response.is_too_long ? "the reply is too long" : curl.explain(code);
    return !code;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void explain(const char *what, const char *other, const char *url, long status,
                    const struct json_object *reply)
{
    struct json_object *message = json_object_object_get(reply, "message");
    struct wr_buffer text = {0};
    if (message)
        command_put_text(&text, json_object_get_string(message));
    else
        wr_buffer_put_format(&text, "it is not %s", other);
    const char *reason = wr_buffer_text(&text);
    command_fail("%s: %s: the server returns status %ld: %s", what, url, status,
                 reason ? reason : "out of memory");
    wr_buffer_fini(&text);
}

struct json_object *http_client_ask(const char *what, const char *other, const struct http_call *call)
{
    struct http_reply reply;
    struct json_object *object = NULL;
    if (http_client_send(call, &reply)) {
        const char *text = wr_buffer_text(&reply.body);
        object = text ? json_tokener_parse(text) : NULL;
        bool is_object = json_object_is_type(object, json_type_object);
        if (reply.status / 100 != 2 || !is_object) {
            explain(what, other, call->url, reply.status, is_object ? object : NULL);
            json_object_put(object);
            object = NULL;
        }
    } else
        command_fail("%s: %s: %s", what, call->url, reply.problem);
    wr_buffer_fini(&reply.body);
    return object;
}

#else

bool http_client_load(const char *what)
{
    command_fail("%s: this weir was built without libcurl", what);
    return false;
}

bool http_client_send(const struct http_call *call, struct http_reply *reply)
{
    (void)call;
    *reply = (struct http_reply){.problem = "this weir was built without libcurl"};
    return false;
}

struct json_object *http_client_ask(const char *what, const char *other, const struct http_call *call)
{
    (void)other, (void)call;
    http_client_load(what);
    return NULL;
}

#endif
