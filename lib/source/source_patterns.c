#include "source/source_patterns.h"

#include <stdlib.h>
#include <string.h>

#include "parse/parse_plugin.h"
#include "text/buffer.h"
#include "text/error.h"

static const struct wr_plugins_kind parsers = {
    .noun = "parser", .suffix = ".parser.so", .entry = "weir_parse_plugin"};

/* ---- The plugin ------------------------------------------------------------------------------ */

static bool load_plugin(struct wr_source_patterns *patterns, struct wr_plugins *plugins, struct wr_error *error)
{
    char *path = wr_plugins_locate(plugins, &parsers, "patterns", error);
    wr_parse_plugin_get *get =
        path ? (wr_parse_plugin_get *)(uintptr_t)wr_plugins_open(plugins, &parsers, path, error) : NULL;
    const struct wr_parse_plugin *plugin = get ? get() : NULL;
    if (plugin && wr_parse_plugin_fits(plugin))
        patterns->plugin = plugin;
    else if (plugin)
        wr_error_set(error, WEIR_ERR_PLUGIN,
                     "%s: made for another build of weir than this one (" WEIR_VERSION ")", path);
    else if (!path)
        wr_error_prefix(error,
                        "the parser needs the plugin patterns.parser.so, which weir has if it was built with "
                        "PCRE2: ");
    free(path);
    return patterns->plugin;
}

/* ---- In the configuration -------------------------------------------------------------------- */

bool wr_source_patterns_are_inline(const struct wr_node *member)
{
    return member && (member->type == WR_NODE_ARRAY || member->type == WR_NODE_OBJECT);
}

/* Their text, with blanks for what precedes it in the document: so places in messages are those of the
 * document. Their strings are not expanded: dollar signs mean something else in expressions. Returns NULL if
 * out of memory. */
static char *cut_out(const struct wr_node *member)
{
    struct wr_buffer out = {0};
    const char *text = member->document->text, *at = text + member->offset;
    for (const char *before = text; before < at; before++)
        if (((unsigned char)*before & 0xc0) != 0x80) /* columns are counted in characters */
            wr_buffer_put_char(&out, *before == '\n' ? '\n' : ' ');
    wr_buffer_put(&out, at, member->end - member->offset);
    return wr_buffer_take(&out);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool compile(struct wr_source_patterns *patterns, const char *name, struct wr_error *error)
{
    if (!patterns->text)
        return wr_error_no_memory(error, name);
    patterns->patterns = patterns->plugin->read(name, patterns->text, strlen(patterns->text), error);
    return patterns->patterns;
}

/* What has no slash is a preset's name, so that a misspelled one is not taken for a file. */
static bool load_named(struct wr_source_patterns *patterns, const struct wr_node *at, const char *where,
                       struct wr_error *error)
{
    struct wr_error problem;
    size_t length;
    const char *preset = patterns->plugin->find_preset(where);
    if (preset) {
        patterns->text = strdup(preset);
        return compile(patterns, where, error);
    }
    if (!strchr(where, '/'))
        return wr_node_error(at, error, "\"%s\" is neither a preset (nginx) nor a file (a path with a slash)",
                             where);
    char *text = wr_document_load(where, &length, &problem); /* without a NUL behind it */
    bool has_nul = text && memchr(text, '\0', length);
    if (text && !has_nul)
        patterns->text = strndup(text, length);
    bool is_read = text && !has_nul;
    free(text);
    if (is_read)
        return compile(patterns, where, error);
    return wr_node_error(at, error, "%s%s", has_nul ? where : problem.text,
                         has_nul ? ": it has a NUL byte" : "");
}

bool wr_source_patterns_load(struct wr_source_patterns *patterns, struct wr_plugins *plugins,
                             const struct wr_node *source, const char *where, struct wr_error *error)
{
    struct wr_error problem = {0};
    const struct wr_node *member = wr_node_member(source, "patterns");
    if (!load_plugin(patterns, plugins, &problem)) {
        const struct wr_node *parse = wr_node_member(source, "parse");
        wr_node_error(parse ? parse : source, error, "%s", problem.text);
        error->code = problem.code;
        return false;
    }
    if (where)
        return load_named(patterns, member ? member : source, where, error);
    patterns->text = cut_out(member);
    return compile(patterns, member->document->name, error);
}

void wr_source_patterns_fini(struct wr_source_patterns *patterns)
{
    if (patterns->patterns)
        patterns->plugin->free(patterns->patterns);
    free(patterns->text);
    *patterns = (struct wr_source_patterns){0};
}
