#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "otlp_env.h"
#include "text/base64.h"

const weir_option wr_settings_table[] = {
    WEIR_OPTION_ROW(
        "url", STRING, WEIR_OPTION_URL | WEIR_OPTION_DESTINATION, NULL, NULL,
        "the destination: http:// or https://; it may contain a user and a password; required, except for the "
        "format "
        "otlp if OTEL_EXPORTER_OTLP_ENDPOINT is set",
        struct settings_options, url),
    WEIR_OPTION_ROW("method", ENUM, 0, "POST", "POST|PUT|PATCH", "the request method", struct settings_options,
                    method),
    WEIR_OPTION_ROW(
        "headers", MAP, WEIR_OPTION_SECRET, NULL, NULL,
        "additional headers of each request; a Content-Type here takes precedence over the format's",
        struct settings_options, headers),
    WEIR_OPTION_ROW("username", STRING, 0, NULL, NULL, "user name for HTTP basic authentication",
                    struct settings_options, username),
    WEIR_OPTION_ROW("password", STRING, WEIR_OPTION_SECRET, NULL, NULL, "password for username",
                    struct settings_options, password),
    WEIR_OPTION_ROW("bearer_token", STRING, WEIR_OPTION_SECRET, NULL, NULL,
                    "sent as \"Authorization: Bearer ...\"", struct settings_options, bearer_token),
    WEIR_OPTION_ROW("ca_file", PATH, 0, NULL, NULL, "trusted CA certificates, instead of the system's",
                    struct settings_options, ca_file),
    WEIR_OPTION_ROW("cert_file", PATH, 0, NULL, NULL, "a client certificate", struct settings_options,
                    cert_file),
    WEIR_OPTION_ROW("key_file", PATH, 0, NULL, NULL,
                    "the private key of cert_file, if it is not in the same file", struct settings_options,
                    key_file),
    WEIR_OPTION_ROW("verify", BOOL, 0, "true", NULL, "false: accept any certificate", struct settings_options,
                    verify),
    WEIR_OPTION_ROW("compress", ENUM, 0, "none", "none|gzip", "how to compress request bodies",
                    struct settings_options, compress),
    WEIR_OPTION_ROW("timeout", DURATION, 0, "30s", "10ms..1h", "time limit for a whole request",
                    struct settings_options, timeout_ns),
    WEIR_OPTION_ROW("connect_timeout", DURATION, 0, "10s", "10ms..1h",
                    "time limit for name resolution, connecting and the TLS handshake", struct settings_options,
                    connect_timeout_ns),
    WEIR_OPTION_ROW("proxy", STRING, WEIR_OPTION_URL, NULL, NULL,
                    "a proxy's URL; http_proxy and similar environment variables are ignored",
                    struct settings_options, proxy),
    {0},
};

enum { NS_PER_MS = 1000000 };

/* ---- Addresses ------------------------------------------------------------------------------- */

/* The message does not contain the value, which may contain a password. */
static bool check_address(const weir_host *host, const char *option, const char *url, struct address *address)
{
    if (!strstr(url, "://"))
        host->refuse(host, option, "the value is not a URL: it has no scheme; write http://... or https://...");
    else if (!wr_address_parse(address, url))
        host->refuse(host, option, "the value is not a URL like http://127.0.0.1:8086/write?db=bench");
    else if (!address->is_http)
        host->refuse(host, option, "%s is neither HTTP nor HTTPS; allowed: http://..., https://...",
                     address->display);
    else
        return true;
    return false;
}

/* The URL of the options, or else of the environment. */
static const char *url_of(const struct settings_options *options, const struct settings *settings)
{
    return options->url ? options->url : settings->environment_url;
}

static bool find_url(const weir_host *host, const struct settings_options *options, struct settings *settings,
                     const struct protocol *protocol)
{
    bool no_memory = false;
    if (!options->url && protocol->has_environment)
        settings->environment_url = wr_otlp_env_url(&no_memory);
    if (url_of(options, settings))
        return true;
    if (no_memory)
        host->refuse(host, "", "no memory");
    else
        host->refuse(host, "", "the option \"url\" is missing%s",
                     protocol->has_environment ? ", and OTEL_EXPORTER_OTLP_ENDPOINT is not set" : "");
    return false;
}

/* Whether the path, without parameters, ends in what the protocol's requests need. */
static bool check_path(const weir_host *host, const char *url, const struct address *address,
                       const struct protocol *protocol)
{
    size_t length = strcspn(url, "?#"), needed = protocol->path ? strlen(protocol->path) : 0;
    if (length >= needed && strncmp(url + length - needed, protocol->path ? protocol->path : "", needed) == 0)
        return true;
    host->refuse(host, "url", "the path must end in %s for the format %s, got %s", protocol->path,
                 protocol->format, address->display);
    return false;
}

static bool check_addresses(const weir_host *host, const struct settings_options *options,
                            struct settings *settings, const struct protocol *protocol)
{
    if (!find_url(host, options, settings, protocol))
        return false;
    const char *url = url_of(options, settings);
    return check_address(host, options->url ? "url" : "", url, &settings->address) &&
           check_path(host, url, &settings->address, protocol) &&
           (!options->proxy || !*options->proxy ||
            check_address(host, "proxy", options->proxy, &settings->proxy));
}

/* ---- Authentication -------------------------------------------------------------------------- */

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

static bool is_header(const char *name, const char *other)
{
    return strcasecmp(name, other) == 0;
}

static bool has_header(const struct settings_options *options, const char *name)
{
    for (size_t i = 0; i < options->headers.count; i++)
        if (is_header(options->headers.items[i].key, name))
            return true;
    return false;
}

static bool refuse_invalid_text(const weir_host *host, const char *option, const char *text,
                                const char *forbidden)
{
    if (text && has_control(text))
        host->refuse(host, option, "the value contains a control character, such as a line break");
    else if (text && strpbrk(text, forbidden))
        host->refuse(host, option,
                     "the value contains a colon, which HTTP basic authentication does not allow");
    else
        return false;
    return true;
}

static bool check_authentication(const weir_host *host, const struct settings_options *options,
                                 const struct settings *settings)
{
    int methods = (options->username != NULL) + (options->bearer_token != NULL) + settings->address.has_user +
                  has_header(options, "Authorization");
    if (refuse_invalid_text(host, "username", options->username, ":") ||
        refuse_invalid_text(host, "password", options->password, "") ||
        refuse_invalid_text(host, "bearer_token", options->bearer_token, ""))
        return false;
    if (options->password && !options->username)
        host->refuse(host, "password", "it requires \"username\"");
    else if (methods > 1)
        host->refuse(host, "",
                     "more than one authentication method is set; allowed: one of \"username\", "
                     "\"bearer_token\", a user in \"url\", an Authorization in \"headers\"");
    else if (options->key_file && !options->cert_file)
        host->refuse(host, "key_file", "it requires \"cert_file\"");
    else
        return true;
    return false;
}

/* ---- Headers --------------------------------------------------------------------------------- */

/* RFC 9110: the characters of a token. */
static bool is_token(const char *name)
{
    static const char punctuation[] = "!#$%&'*+-.^_`|~";
    for (const char *c = name; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
              strchr(punctuation, *c)))
            return false;
    return *name;
}

static const char *find_header_error(const weir_label *header)
{
    static const char *const reserved[] = {"Content-Length", "Content-Encoding", "Transfer-Encoding",
                                           "Connection",     "Expect",           "TE",
                                           "Trailer",        "Upgrade"};
    if (!is_token(header->key))
        return "is not a header name; allowed: letters, digits and !#$%&'*+-.^_`|~";
    for (const char *c = header->value; *c; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
            return "has a control character in its value, such as a line break";
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (is_header(header->key, reserved[i]))
            return "is set by the handler itself";
    return NULL;
}

static bool check_headers(const weir_host *host, const struct settings_options *options)
{
    for (size_t i = 0; i < options->headers.count; i++) {
        const weir_label *header = &options->headers.items[i];
        const char *error = find_header_error(header);
        if (error) {
            host->refuse(host, "headers", "\"%s\" %s", header->key, error);
            return false;
        }
    }
    return true;
}

static bool add_header(struct settings *settings, const char *name, const char *value)
{
    char *line;
    /* libcurl's syntax: "Name;" sends a header without a value, "Expect:" suppresses libcurl's own header */
    if (asprintf(&line, *value || is_header(name, "Expect") ? "%s: %s" : "%s;%s", name, value) < 0)
        return false;
    struct curl_slist *headers = curl_slist_append(settings->client.headers, line);
    explicit_bzero(line, strlen(line));
    free(line);
    if (headers)
        settings->client.headers = headers;
    return headers;
}

static bool add_token(struct settings *settings, const char *token)
{
    char *value;
    if (asprintf(&value, "Bearer %s", token) < 0)
        return false;
    bool added = add_header(settings, "Authorization", value);
    explicit_bzero(value, strlen(value));
    free(value);
    return added;
}

static bool add_headers(struct settings *settings, const struct settings_options *options,
                        const char *content_type)
{
    bool added = add_header(settings, "Expect", "");
    if (!has_header(options, "Content-Type"))
        added = added && add_header(settings, "Content-Type", content_type);
    if (options->compress == SETTINGS_GZIP)
        added = added && add_header(settings, "Content-Encoding", "gzip");
    if (options->bearer_token)
        added = added && add_token(settings, options->bearer_token);
    for (size_t i = 0; added && i < options->headers.count; i++)
        added = add_header(settings, options->headers.items[i].key, options->headers.items[i].value);
    return added;
}

/* ---- Secrets --------------------------------------------------------------------------------- */

/* Adds a text to what is masked in messages, and takes ownership. NULL: out of memory. */
static bool add_text(struct settings *settings, char *text)
{
    size_t size = (settings->secret_count + 2) * sizeof *settings->secrets;
    char **secrets = text ? realloc(settings->secrets, size) : NULL;
    if (!secrets) {
        free(text);
        return false;
    }
    settings->secrets = secrets;
    secrets[settings->secret_count++] = text;
    secrets[settings->secret_count] = NULL;
    return true;
}

/* Adds a secret, as it is and as it is written in URLs. NULL: none. */
static bool add_secret(struct settings *settings, const char *secret)
{
    if (!secret)
        return true;
    char *escaped = curl_easy_escape(NULL, secret, 0);
    bool added = add_text(settings, strdup(secret)) &&
                 (!escaped || strcmp(escaped, secret) == 0 || add_text(settings, strdup(escaped)));
    curl_free(escaped);
    return added;
}

static char *encode_base64(const char *text, size_t length)
{
    char *out = malloc(WR_BASE64_ROOM(length));
    if (out)
        wr_base64_encode(text, length, true, out);
    return out;
}

/* Adds a password, and the credentials as HTTP basic authentication sends them. */
static bool add_credentials(struct settings *settings, const char *user, const char *password)
{
    char *both;
    int length = asprintf(&both, "%s:%s", user ? user : "", password ? password : "");
    if (length < 0)
        return false;
    bool added = add_secret(settings, password) && add_text(settings, encode_base64(both, (size_t)length));
    explicit_bzero(both, (size_t)length);
    free(both);
    return added;
}

/* Parameters that only say where and how values are stored. */
static bool is_harmless(const char *name, size_t length)
{
    static const char *const names[] = {"db", "rp", "bucket", "org", "precision", "consistency"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
            return true;
    return false;
}

static bool add_parameter(struct settings *settings, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : 0, skip = equals ? name + 1 : 0;
    if (length == skip || is_harmless(text, name))
        return true;
    char *raw = strndup(text + skip, length - skip);
    char *decoded = raw ? curl_easy_unescape(NULL, raw, 0, NULL) : NULL;
    bool added = raw && add_secret(settings, decoded);
    curl_free(decoded);
    return added ? add_text(settings, raw) : (free(raw), false);
}

static bool add_query(struct settings *settings, const char *query)
{
    bool added = true;
    while (query && added) {
        size_t length = strcspn(query, "&");
        added = add_parameter(settings, query, length);
        query = query[length] ? query + length + 1 : NULL;
    }
    return added;
}

static bool add_url(struct settings *settings, const char *text)
{
    char *user = NULL, *password = NULL, *raw = NULL, *query = NULL;
    CURLU *url = curl_url();
    if (!url)
        return false;
    bool added = true;
    if (text && curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK) {
        curl_url_get(url, CURLUPART_USER, &user, CURLU_URLDECODE);
        curl_url_get(url, CURLUPART_PASSWORD, &password, CURLU_URLDECODE);
        curl_url_get(url, CURLUPART_PASSWORD, &raw, 0);
        curl_url_get(url, CURLUPART_QUERY, &query, 0);
        added = ((!user && !password) || add_credentials(settings, user, password)) &&
                add_secret(settings, raw) && add_query(settings, query);
    }
    curl_free(user);
    curl_free(password);
    curl_free(raw);
    curl_free(query);
    curl_url_cleanup(url);
    return added;
}

/* A header's value, and its part behind a scheme such as "Basic". */
static bool add_header_value(struct settings *settings, const char *value)
{
    const char *blank = strchr(value, ' ');
    return add_secret(settings, value) && (!blank || add_secret(settings, blank + 1));
}

static bool list_secrets(struct settings *settings, const struct settings_options *options)
{
    bool added = (!options->username || add_credentials(settings, options->username, options->password)) &&
                 add_secret(settings, options->bearer_token) && add_url(settings, url_of(options, settings)) &&
                 add_url(settings, options->proxy);
    for (size_t i = 0; added && i < options->headers.count; i++)
        added = add_header_value(settings, options->headers.items[i].value);
    return added && (settings->secrets || add_text(settings, strdup("")));
}

/* ---- The environment -------------------------------------------------------------------------- */

struct environment {
    const weir_host *host;
    const struct settings_options *options;
    struct settings *settings;
    bool is_refused;
};

/* What is configured takes precedence. */
static bool is_configured(const struct settings_options *options, const char *name)
{
    return has_header(options, name) ||
           (is_header(name, "Authorization") && (options->username || options->bearer_token));
}

static bool add_environment_header(void *ctx, const char *variable, const char *name, const char *value)
{
    struct environment *environment = ctx;
    const weir_label header = {name, value};
    const char *error = find_header_error(&header);
    if (error) {
        environment->host->refuse(environment->host, "", "%s: \"%s\" %s", variable, name, error);
        environment->is_refused = true;
        return false;
    }
    if (is_configured(environment->options, name))
        return true;
    return add_header(environment->settings, name, value) && add_header_value(environment->settings, value);
}

/* The environment's headers may be secret: they are for its URL only. */
static bool add_environment(struct settings *settings, const weir_host *host,
                            const struct settings_options *options, bool *is_refused)
{
    struct environment environment = {host, options, settings, false};
    const char *fault;
    *is_refused = false;
    if (!settings->environment_url || wr_otlp_env_headers(add_environment_header, &environment, &fault))
        return true;
    if (fault)
        host->refuse(host, "", "%s must be a list like name=value,name=value", fault);
    *is_refused = fault || environment.is_refused;
    return false;
}

/* ---- All of it ------------------------------------------------------------------------------- */

bool wr_settings_init(struct settings *settings, const weir_host *host, const struct settings_options *options,
                      const char *content_type, const struct protocol *protocol)
{
    static const char *const methods[] = {"POST", "PUT", "PATCH"};
    *settings = (struct settings){0};
    if (!check_addresses(host, options, settings, protocol) || !check_authentication(host, options, settings) ||
        !check_headers(host, options)) {
        wr_settings_fini(settings);
        return false;
    }
    settings->client = (struct client_settings){
        .url = url_of(options, settings),
        .method = methods[options->method],
        .proxy = options->proxy,
        .username = options->username,
        .password = options->password,
        .ca_file = options->ca_file,
        .cert_file = options->cert_file,
        .key_file = options->key_file,
        .verify = options->verify,
        .timeout_ms = options->timeout_ns / NS_PER_MS,
        .connect_timeout_ms = options->connect_timeout_ns / NS_PER_MS,
    };
    bool is_refused = false;
    if (add_headers(settings, options, content_type) && list_secrets(settings, options) &&
        add_environment(settings, host, options, &is_refused))
        return true;
    wr_settings_fini(settings);
    if (!is_refused)
        host->refuse(host, "", "no memory");
    return false;
}

void wr_settings_fini(struct settings *settings)
{
    for (struct curl_slist *header = settings->client.headers; header; header = header->next)
        explicit_bzero(header->data, strlen(header->data));
    curl_slist_free_all(settings->client.headers);
    for (size_t i = 0; i < settings->secret_count; i++) {
        explicit_bzero(settings->secrets[i], strlen(settings->secrets[i]));
        free(settings->secrets[i]);
    }
    free(settings->secrets);
    free(settings->environment_url);
    *settings = (struct settings){0};
}
