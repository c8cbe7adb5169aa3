#include "nats_settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/series_template.h"

const weir_option wr_nats_settings_table[] = {
    WEIR_OPTION_ROW("servers", LIST, WEIR_OPTION_DESTINATION, NULL, NULL,
                    "nats://HOST:PORT, or tls://HOST:PORT for all; default: nats://127.0.0.1:4222",
                    struct nats_options, servers),
    WEIR_OPTION_ROW(
        "subject", STRING, WEIR_OPTION_DESTINATION, "weir.{group}", NULL,
        "the subject of an event; {group}, {name} and {label.KEY} are replaced by those of its first value",
        struct nats_options, subject),
    WEIR_OPTION_ROW("jetstream", BOOL, 0, "true", NULL,
                    "false: without JetStream: delivered means that the server has received it",
                    struct nats_options, jetstream),
    WEIR_OPTION_ROW("stream", STRING, 0, NULL, NULL, "the stream that has to store the events; default: any",
                    struct nats_options, stream),
    WEIR_OPTION_ROW("create", BOOL, 0, "false", NULL, "create the stream if it does not exist",
                    struct nats_options, create),
    WEIR_OPTION_ROW("subjects", LIST, 0, NULL, NULL,
                    "create: the stream's subjects; default: what subject can become", struct nats_options,
                    subjects),
    WEIR_OPTION_ROW("duplicate_window", DURATION, 0, "10m", "100ms..30d",
                    "create: how long the server recognises an event that comes again", struct nats_options,
                    duplicate_window_ns),
    WEIR_OPTION_ROW("storage", ENUM, 0, "file", "file|memory", "create: where the stream is stored",
                    struct nats_options, storage),
    WEIR_OPTION_ROW("replicas", INT, 0, "1", "1..5", "create: on how many servers of a cluster it is stored",
                    struct nats_options, replicas),
    WEIR_OPTION_ROW("user", STRING, 0, NULL, NULL, "user name", struct nats_options, user),
    WEIR_OPTION_ROW("password", STRING, WEIR_OPTION_SECRET, NULL, NULL, "password for user",
                    struct nats_options, password),
    WEIR_OPTION_ROW("token", STRING, WEIR_OPTION_SECRET, NULL, NULL, "token, instead of a user",
                    struct nats_options, token),
    WEIR_OPTION_ROW("credentials_file", PATH, 0, NULL, NULL,
                    "a file with a JWT and its seed, instead of a user; read again for each connection",
                    struct nats_options, credentials_file),
    WEIR_OPTION_ROW("ca_file", PATH, 0, NULL, NULL, "tls: trusted CA certificates, instead of the system's",
                    struct nats_options, ca_file),
    WEIR_OPTION_ROW("cert_file", PATH, 0, NULL, NULL, "tls: a client certificate", struct nats_options,
                    cert_file),
    WEIR_OPTION_ROW("key_file", PATH, 0, NULL, NULL, "tls: the private key of cert_file", struct nats_options,
                    key_file),
    WEIR_OPTION_ROW("verify", BOOL, 0, "true", NULL, "tls: false: accept any certificate", struct nats_options,
                    verify),
    WEIR_OPTION_ROW("connect_timeout", DURATION, 0, "5s", "10ms..1h",
                    "time limit for connecting to one of the servers", struct nats_options, connect_timeout_ns),
    WEIR_OPTION_ROW(
        "ack_timeout", DURATION, 0, "5s", "10ms..1h",
        "how long to wait for the next acknowledgement before events without one are published again",
        struct nats_options, ack_timeout_ns),
    WEIR_OPTION_ROW("max_pending", INT, 0, "4096", "1..1000000",
                    "how many events are published ahead of their acknowledgements", struct nats_options,
                    max_pending),
    WEIR_OPTION_ROW("inbox_prefix", STRING, 0, "_INBOX", NULL,
                    "the subjects below it are where acknowledgements arrive: the user must be permitted to "
                    "subscribe there",
                    struct nats_options, inbox_prefix),
    {0},
};

/* ---- Servers --------------------------------------------------------------------------------- */

weir_list wr_nats_settings_servers(const struct nats_options *options)
{
    static const char *const local[] = {"nats://127.0.0.1:4222"};
    return options->servers.count ? options->servers : (weir_list){1, local};
}

static bool is_tls_url(const char *url)
{
    return strncmp(url, "tls://", 6) == 0;
}

bool wr_nats_settings_is_tls(const struct nats_options *options)
{
    return is_tls_url(wr_nats_settings_servers(options).items[0]);
}

/* "", or ":" and a number from 1 to 65535. */
static bool is_port(const char *text)
{
    char *end;
    if (!*text)
        return true;
    if (text[0] != ':' || text[1] < '0' || text[1] > '9')
        return false;
    unsigned long port = strtoul(text + 1, &end, 10);
    return *end == '\0' && port >= 1 && port <= 65535;
}

static bool is_host_and_port(const char *text)
{
    if (*text == '[') {
        size_t length = strspn(text + 1, "0123456789abcdefABCDEF:.%");
        return length && text[1 + length] == ']' && is_port(text + length + 2);
    }
    size_t length = strcspn(text, ":/?#[] \t\"'\\");
    return length && is_port(text + length);
}

/* The message does not contain a value that may have a password in it. */
static bool check_server(const weir_host *host, const char *url)
{
    bool has_scheme = is_tls_url(url) || strncmp(url, "nats://", 7) == 0;
    if (strchr(url, '@'))
        host->refuse(host, "servers",
                     "a URL contains a user or a token; allowed: nats://HOST:PORT, and the options \"user\", "
                     "\"password\", \"token\"");
    else if (!has_scheme || !is_host_and_port(strstr(url, "://") + 3))
        host->refuse(host, "servers", "\"%s\" is not a server; allowed: nats://HOST:PORT, tls://HOST:PORT",
                     url);
    else
        return true;
    return false;
}

static bool check_servers(const weir_host *host, const struct nats_options *options)
{
    const weir_list *servers = &options->servers;
    for (size_t i = 0; i < servers->count; i++) {
        if (!check_server(host, servers->items[i]))
            return false;
        if (is_tls_url(servers->items[i]) == is_tls_url(servers->items[0]))
            continue;
        host->refuse(host, "servers", "\"%s\" and \"%s\": allowed: either tls:// for all servers, or for none",
                     servers->items[0], servers->items[i]);
        return false;
    }
    return true;
}

/* ---- Subjects and names ---------------------------------------------------------------------- */

/* Whether a text has empty tokens: dots at its ends or next to each other. */
static bool has_empty_token(const char *text)
{
    size_t length = strlen(text);
    return !length || text[0] == '.' || text[length - 1] == '.' || strstr(text, "..");
}

static bool has_blank(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return true;
    return false;
}

static bool check_subject(const weir_host *host, const char *subject)
{
    if (!wr_series_template_check(host, "subject", subject))
        return false;
    if (has_blank(subject) || strpbrk(subject, "*>"))
        host->refuse(host, "subject", "\"%s\": a subject to publish to has no blanks, no * and no >", subject);
    else if (has_empty_token(subject))
        host->refuse(host, "subject", "\"%s\": between dots, and at both ends, there must be text", subject);
    else if (*subject == '$')
        host->refuse(host, "subject", "\"%s\": subjects that begin with $ belong to the server", subject);
    else
        return true;
    return false;
}

/* Each * and > is a token of its own, > the last one. */
static bool is_filter(const char *text)
{
    if (has_blank(text) || has_empty_token(text))
        return false;
    for (const char *token = text; *token;) {
        size_t length = strcspn(token, ".");
        bool is_wild = memchr(token, '*', length) || memchr(token, '>', length);
        if (is_wild && (length > 1 || (*token == '>' && token[1])))
            return false;
        token += length + (token[length] == '.');
    }
    return true;
}

static bool check_subjects(const weir_host *host, const weir_list *subjects)
{
    for (size_t i = 0; i < subjects->count; i++)
        if (!is_filter(subjects->items[i])) {
            host->refuse(
                host, "subjects",
                "\"%s\" is not a subject; allowed: tokens with dots between them, * for any token, > at "
                "the end for any rest",
                subjects->items[i]);
            return false;
        }
    return true;
}

/* Characters that the server allows in a subject but not in the name of a stream are refused here too. */
static bool check_names(const weir_host *host, const struct nats_options *options)
{
    if (options->stream &&
        (!*options->stream || has_blank(options->stream) || strpbrk(options->stream, ".*>/\\")))
        host->refuse(host, "stream", "\"%s\" is not the name of a stream: it has no blanks and none of .*>/\\",
                     options->stream);
    else if (has_blank(options->inbox_prefix) || has_empty_token(options->inbox_prefix) ||
             strpbrk(options->inbox_prefix, "*>"))
        host->refuse(host, "inbox_prefix",
                     "\"%s\" is not a prefix; allowed: tokens with dots between them, without blanks, * and >",
                     options->inbox_prefix);
    else if (strlen(options->inbox_prefix) > 255)
        host->refuse(host, "inbox_prefix", "it has more than 255 bytes");
    else
        return check_subjects(host, &options->subjects);
    return false;
}

/* ---- What belongs together ------------------------------------------------------------------- */

static bool check_stream(const weir_host *host, const struct nats_options *options)
{
    if (options->stream && !options->jetstream)
        host->refuse(host, "stream", "it requires \"jetstream\": true");
    else if (options->create && !options->stream)
        host->refuse(host, "create", "it requires \"stream\", the name of the stream");
    else if (options->subjects.count && !options->create)
        host->refuse(host, "subjects", "it requires \"create\": true");
    else
        return true;
    return false;
}

static bool check_login(const weir_host *host, const struct nats_options *options)
{
    int ways = (options->user != NULL) + (options->token != NULL) + (options->credentials_file != NULL);
    if (ways > 1)
        host->refuse(host, "",
                     "more than one login is set; allowed: one of \"user\", \"token\", "
                     "\"credentials_file\"");
    else if (options->password && !options->user)
        host->refuse(host, "password", "it requires \"user\"");
    else
        return true;
    return false;
}

static bool check_tls(const weir_host *host, const struct nats_options *options)
{
    const char *option = options->ca_file     ? "ca_file"
                         : options->cert_file ? "cert_file"
                         : options->key_file  ? "key_file"
                         : options->verify    ? NULL
                                              : "verify";
    if (option && !wr_nats_settings_is_tls(options))
        host->refuse(host, option, "it requires \"servers\" of tls://");
    else if (options->key_file && !options->cert_file)
        host->refuse(host, "key_file", "it requires \"cert_file\"");
    else if (options->cert_file && !options->key_file)
        host->refuse(host, "cert_file", "it requires \"key_file\"");
    else
        return true;
    return false;
}

bool wr_nats_settings_check(const weir_host *host, const struct nats_options *options)
{
    return check_servers(host, options) && check_subject(host, options->subject) &&
           check_names(host, options) && check_stream(host, options) && check_login(host, options) &&
           check_tls(host, options);
}
