#include "access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../listening/framing.h"
#include "../state_folder.h"
#include "../system.h"

/* ---- Life ------------------------------------------------------------------------------------ */

static bool init_own(struct access *access)
{
    const weir_map none = {0};
    char path[4096];
    access->folder = access->options->folder ? strdup(access->options->folder) : state_folder_find("collector");
    if (!access->folder || snprintf(path, sizeof path, "%s/token", access->folder) >= (int)sizeof path)
        return tenants_init(&access->own, access->host, NULL, &none);
    access->token_path = strdup(path);
    return access->token_path && tenants_init(&access->own, access->host, access->token_path, &none);
}

bool access_init(struct access *access, const weir_host *host, const struct access_options *options,
                 bool is_loopback)
{
    const weir_map none = {0};
    *access = (struct access){.host = host, .options = options, .is_loopback = is_loopback};
    return tenants_init(&access->given, host, options->token_file, &none) && init_own(access);
}

void access_fini(struct access *access)
{
    tenants_fini(&access->given);
    tenants_fini(&access->own);
    free(access->folder);
    free(access->token_path);
}

bool access_open(struct access *access, char *reason, size_t room)
{
    return tenants_read(&access->given, reason, room);
}

/* Without these files there are no sessions; the rest works. */
static const char *make_files(const struct access *access)
{
    if (!access->folder)
        return "it has no folder: none of $STATE_DIRECTORY, $XDG_STATE_HOME and $HOME is an absolute path";
    const char *fault = access_files_make_folder(access->folder);
    int problem = fault ? 0 : access_files_make_token(access->folder);
    if (!fault && !problem)
        problem = access_files_write_url(access->folder, access->url);
    return problem ? wr_system_strerror(problem) : fault;
}

void access_publish(struct access *access, const char *address)
{
    char text[256];
    const char *port = strrchr(address, ':');
    snprintf(access->url, sizeof access->url, "http://%s", address);
    snprintf(access->cookie, sizeof access->cookie, "weir_session_%.5s", port ? port + 1 : "");
    const char *fault = make_files(access);
    if (!fault && !tenants_read(&access->own, text, sizeof text))
        fault = text;
    if (fault)
        access->host->log(access->host, WEIR_LOG_WARNING, "access %.300s: %s; pages cannot be opened by a URL",
                          access->folder ? access->folder : "", fault);
}

void access_close(struct access *access)
{
    if (access->folder && *access->url)
        access_files_remove_url(access->folder, access->url);
    *access->url = '\0';
}

/* Another collector with this folder has taken the URL away, which was its own by then. */
static void restore_url(const struct access *access)
{
    char url[ACCESS_URL_ROOM];
    if (access->folder && *access->url && access_files_read_url(access->folder, url) == ENOENT)
        access_files_write_url(access->folder, access->url);
}

void access_refresh(struct access *access)
{
    char text[256];
    restore_url(access);
    tenants_read(&access->own, text, sizeof text);
    bool is_good = tenants_read(&access->given, text, sizeof text);
    if (!is_good && !access->token_fault)
        access->host->log(access->host, WEIR_LOG_ERROR, "%s; the previous token stays in force", text);
    access->token_fault = !is_good;
}

/* ---- From where ------------------------------------------------------------------------------ */

/* Whether the first `length` characters are an address: no site can make its name resolve to that. */
static bool is_address(const char *text, size_t length)
{
    char host[64];
    struct in6_addr unused;
    bool is_v6 = length > 2 && *text == '[' && text[length - 1] == ']';
    if (length >= sizeof host)
        return false;
    memcpy(host, text, length);
    host[is_v6 ? length - 1 : length] = '\0';
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, is_v6 ? host + 1 : host, &unused) == 1;
}

static bool is_named(const char *name, const char *host, size_t length)
{
    return strlen(name) == length && strncasecmp(name, host, length) == 0;
}

/* Whether "HOST" or "HOST:PORT" is this machine: a page of another site that resolves its name to this address
 * sends that name. */
static bool is_this_machine(const struct access *access, const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *bracket = *host == '[' ? strchr(host, ']') : NULL;
    size_t length = bracket ? (size_t)(bracket + 1 - host) : strcspn(host, ":");
    if (host[length] &&
        (host[length] != ':' || strspn(host + length + 1, "0123456789") != strlen(host + length + 1)))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_named(names[i], host, length))
            return true;
    for (size_t i = 0; i < access->options->hosts.count; i++)
        if (is_named(access->options->hosts.items[i], host, length))
            return true;
    return !access->is_loopback && is_address(host, length);
}

static bool is_same_site(const char *origin, const char *host)
{
    size_t scheme = strncmp(origin, "http://", 7) == 0 ? 7 : strncmp(origin, "https://", 8) == 0 ? 8 : 0;
    return scheme && strcasecmp(origin + scheme, host) == 0;
}

/* Another site's page may send requests here too; its browser says whose it is. */
static bool check_sender(const struct access *access, struct request *request)
{
    const char *host = request_header(request, MHD_HTTP_HEADER_HOST);
    const char *origin = request_header(request, MHD_HTTP_HEADER_ORIGIN);
    if (!host || framing_count_headers(request->connection, MHD_HTTP_HEADER_HOST) != 1 ||
        !is_this_machine(access, host))
        request_fail(request, MHD_HTTP_FORBIDDEN, "the header Host names another machine");
    else if (origin && !is_same_site(origin, host))
        request_fail(request, MHD_HTTP_FORBIDDEN, "the request comes from a page of another site");
    return !request->is_replied;
}

/* ---- By whom --------------------------------------------------------------------------------- */

static bool has_token(struct access *access, const struct request *request)
{
    const char *given = request_header(request, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!given || strncasecmp(given, "Bearer ", 7) != 0 ||
        framing_count_headers(request->connection, MHD_HTTP_HEADER_AUTHORIZATION) != 1)
        return false;
    given += 7 + strspn(given + 7, " ");
    return tenants_find(&access->given, given) || tenants_find(&access->own, given);
}

static bool has_session(const struct access *access, const struct request *request)
{
    const char *given = MHD_lookup_connection_value(request->connection, MHD_COOKIE_KIND, access->cookie);
    return given && access->folder && access_files_check_ticket(access->folder, ACCESS_SESSION, given);
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/');
}

/* Whether everybody on this machine may ask that. */
static bool is_public(const struct access *access, const char *path)
{
    static const char *const open[] = {"/healthz", "/readyz", "/api/runs", "/api/metrics", "/api/pods"};
    if (is_below(path, "/session"))
        return true;
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (is_below(path, open[i]))
            return access->is_loopback;
    return false;
}

/* A person reads it in a browser: what to do next. Programs get JSON, with the reason. */
static void refuse(struct request *request, unsigned status, const char *title, const char *why)
{
    char page[2048];
    const char *accepts = request_header(request, MHD_HTTP_HEADER_ACCEPT);
    if (!accepts || !strstr(accepts, "text/html")) {
        request_fail(request, status, "%s", why);
        return;
    }
    int length =
        snprintf(page, sizeof page,
                 "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>%s - weir</title>\n"
                 "<meta name=\"viewport\" content=\"width=device-width\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n<h1>%s</h1>\n"
                 "<p>This browser has no session here, or a session that has ended. To go on, run this on the "
                 "machine where "
                 "weir runs, as the same user:</p>\n<pre>weir serve --url</pre>\n"
                 "<p>If it runs as the system's service:</p>\n<pre>sudo weir serve --url --state "
                 "/var/lib/weir-serve</pre>\n"
                 "<p>It prints a URL that is valid once, for ten minutes. Open it in this browser: it begins a "
                 "session of 30 "
                 "days, after which this page can be reloaded, too.</p>\n",
                 title, title);
    request_reply_bytes(request, status, "text/html; charset=utf-8", page, (size_t)length, NULL);
}

bool access_check(struct access *access, struct request *request)
{
    if (!check_sender(access, request))
        return false;
    if (is_public(access, request->path) || has_token(access, request) || has_session(access, request))
        return true;
    access->host->count(access->host, "refused_requests", 1);
    refuse(
        request, MHD_HTTP_UNAUTHORIZED, "There is no session",
        "There is neither a session nor a known token. Programs send one header Authorization: Bearer TOKEN; "
        "`weir serve --url` prints a URL for a browser");
    return false;
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static void begin_session(const struct access *access, struct request *request, const char *ticket)
{
    char session[ACCESS_TICKET_ROOM], cookie[256];
    int problem = 0;
    if (!access->folder || !access_files_check_ticket(access->folder, ACCESS_ONCE, ticket)) {
        refuse(request, MHD_HTTP_FORBIDDEN, "This URL is not valid any more",
               "This URL was used already, or is older than ten minutes; `weir serve --url` prints a new one");
        return;
    }
    problem = access_files_make_ticket(access->folder, ACCESS_SESSION, session);
    if (problem) {
        request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "a session cannot be stored: %s",
                     wr_system_strerror(problem));
        return;
    }
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict", access->cookie,
             session);
    request_reply_redirect(request, "/", cookie);
}

bool session_handle(struct access *access, struct request *request)
{
    if (!is_below(request->path, "/session"))
        return false;
    const char *ticket = request->path[8] ? request->path + 9 : "";
    if (strcmp(request->method, MHD_HTTP_METHOD_GET) != 0)
        request_refuse_method(request, "GET");
    else if (has_session(access, request)) /* a browser that opens its pages again */
        request_reply_redirect(request, "/", NULL);
    else
        begin_session(access, request, ticket);
    return true;
}
