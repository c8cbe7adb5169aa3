#include "tenants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../system.h"

enum { GROUP_LONGEST = 255 };

/* ---- Options --------------------------------------------------------------------------------- */

static bool refuse_word(const weir_host *host, const struct tenant *tenant, const char *word, const char *why)
{
    host->refuse(host, "tenants",
                 "%s: \"%s\" %s; allowed: token_file=/PATH (required), group_prefix=NAME, label.KEY=VALUE, "
                 "max_series=1.., rate=VALUES_A_SECOND, separated by spaces",
                 tenant->name, word, why);
    return false;
}

static bool read_number(const char *text, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return strspn(text, "0123456789") == strlen(text) && *text && !*end && *number >= 1 && *number <= 1e15;
}

/* As the core allows a group, which else refuses each value. */
static bool is_group(const char *text)
{
    size_t length = strlen(text);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < ' ' || *c == 0x7f || *c == '*')
            return false;
    return length && length <= GROUP_LONGEST && text[0] != '.' && text[length - 1] != '.' &&
           !strstr(text, "..");
}

static bool read_word(const weir_host *host, struct tenant *tenant, char *word)
{
    char *value = strchr(word, '=');
    double number = 0;
    if (!value || !value[1])
        return refuse_word(host, tenant, word, "is not KEY=VALUE");
    *value++ = '\0';
    if (strcmp(word, "token_file") == 0 && *value == '/') {
        tenant->token_file = value;
    } else if (strcmp(word, "group_prefix") == 0 && is_group(value)) {
        tenant->group_prefix = value;
    } else if (strcmp(word, "max_series") == 0 && read_number(value, &number)) {
        tenant->has_max_series = true;
        tenant->series_left = (uint64_t)number;
    } else if (strcmp(word, "rate") == 0 && read_number(value, &number)) {
        tenant->rate = tenant->ready = number;
    } else if (strncmp(word, "label.", 6) == 0 && word[6] && tenant->label_count < TENANT_LABELS) {
        tenant->labels[tenant->label_count++] = (weir_label){word + 6, value};
    } else {
        value[-1] = '=';
        return refuse_word(host, tenant, word, "is not allowed");
    }
    return true;
}

static bool read_words(const weir_host *host, struct tenant *tenant, const char *words)
{
    char *rest;
    tenant->words = strdup(words);
    if (!tenant->words) {
        host->refuse(host, "", "out of memory");
        return false;
    }
    for (char *word = strtok_r(tenant->words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (!read_word(host, tenant, word))
            return false;
    return tenant->token_file || refuse_word(host, tenant, words, "has no token_file");
}

bool tenants_init(struct tenants *tenants, const weir_host *host, const char *token_file, const weir_map *given)
{
    tenants->items = calloc(given->count + 1, sizeof *tenants->items);
    if (!tenants->items) {
        host->refuse(host, "", "out of memory");
        return false;
    }
    if (token_file)
        tenants->items[tenants->count++] = (struct tenant){.name = "", .token_file = token_file};
    for (size_t i = 0; i < given->count; i++) {
        struct tenant *tenant = &tenants->items[tenants->count++];
        tenant->name = given->items[i].key;
        if (!read_words(host, tenant, given->items[i].value))
            return false;
    }
    return true;
}

void tenants_fini(struct tenants *tenants)
{
    for (size_t i = 0; i < tenants->count; i++)
        free(tenants->items[i].words);
    free(tenants->items);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* Returns what is wrong, or NULL. */
static const char *read_open_token(struct tenant *tenant, int fd, struct stat *status)
{
    char token[TENANT_TOKEN_ROOM + 1];
    if (!S_ISREG(status->st_mode))
        return "is not a regular file";
    if (status->st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
        return "can be read by others, or written by its group; chmod 600 it";
    ssize_t length = read(fd, token, sizeof token);
    if (length < 0)
        return wr_system_strerror(errno);
    while (length && (token[length - 1] == '\n' || token[length - 1] == '\r' || token[length - 1] == ' '))
        length--;
    for (ssize_t i = 0; i < length; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return "has a token with blanks, or with characters beyond ASCII";
    if (length < 8 || length >= TENANT_TOKEN_ROOM)
        return "has a token of a length that is not allowed (8 to 512 characters)";
    memset(tenant->token, 0, sizeof tenant->token);
    memcpy(tenant->token, token, (size_t)length);
    tenant->token_length = (size_t)length;
    return NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static const char *read_token(struct tenant *tenant)
{
    struct stat status;
    int fd = wr_fd_open(tenant->token_file, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        memset(&tenant->status, 0, sizeof tenant->status);
        return wr_system_strerror(error);
    }
    const char *fault = NULL;
    if (!is_same(&status, &tenant->status))
        fault = read_open_token(tenant, fd, &status);
    if (fault) /* refused again next time, until it is changed */
        memset(&tenant->status, 0, sizeof tenant->status);
    else
        tenant->status = status;
    close(fd);
    return fault;
}

bool tenants_read(struct tenants *tenants, char *text, size_t room)
{
    bool done = true;
    for (size_t i = 0; i < tenants->count; i++) {
        struct tenant *tenant = &tenants->items[i];
        const char *fault = read_token(tenant);
        if (fault && done)
            snprintf(text, room, "token_file %.120s: %s", tenant->token_file, fault);
        done = done && !fault;
    }
    return done;
}

/* All bytes are looked at, whatever the first that differs. */
static bool is_equal(const struct tenant *tenant, const char given[TENANT_TOKEN_ROOM], size_t length)
{
    volatile unsigned char differs = tenant->token_length != length;
    for (size_t i = 0; i < TENANT_TOKEN_ROOM; i++)
        differs |= (unsigned char)(tenant->token[i] ^ given[i]);
    return !differs;
}

struct tenant *tenants_find(struct tenants *tenants, const char *token)
{
    char given[TENANT_TOKEN_ROOM] = "";
    struct tenant *found = NULL;
    size_t length = strnlen(token, TENANT_TOKEN_ROOM);
    if (!length || length == TENANT_TOKEN_ROOM)
        return NULL;
    memcpy(given, token, length);
    for (size_t i = 0; i < tenants->count; i++)
        if (tenants->items[i].token_length && is_equal(&tenants->items[i], given, length))
            found = &tenants->items[i];
    return found;
}

/* ---- Rate ------------------------------------------------------------------------------------ */

bool tenant_may_add(struct tenant *tenant, int64_t now_ms, unsigned *seconds)
{
    if (tenant->rate <= 0)
        return true;
    if (tenant->ready_ms)
        tenant->ready += tenant->rate * (double)(now_ms - tenant->ready_ms) / 1000;
    tenant->ready_ms = now_ms;
    if (tenant->ready > tenant->rate)
        tenant->ready = tenant->rate;
    if (tenant->ready > 0)
        return true;
    double wait = 1 - tenant->ready / tenant->rate;
    *seconds = wait > 3600 ? 3600 : (unsigned)wait + 1;
    return false;
}
