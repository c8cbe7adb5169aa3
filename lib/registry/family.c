#include "registry/family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "registry/metric_rules.h"
#include "registry/name.h"
#include "registry/name_key.h"
#include "registry/series.h"
#include "text/common.h"
#include "text/error.h"

const char *wr_family_instrument_name(enum weir_instrument instrument)
{
    static const char *const names[] = {"value", "counter", "gauge", "histogram"};
    return names[instrument];
}

/* ---- Finding and creating -------------------------------------------------------------------- */

static bool match_family(const struct wr_hash_entry *entry, const void *key)
{
    const struct wr_family *family = (const struct wr_family *)entry;
    return wr_name_key_is(key, &family->group->entry, family->name, family->length);
}

static struct wr_family *find(const struct wr_registry *registry, const struct wr_name_key *key)
{
    return (struct wr_family *)wr_hash_table_find(&registry->families, wr_name_key_hash(registry, key),
                                                  match_family, key);
}

struct wr_family *wr_family_find(const struct wr_registry *registry, const struct wr_group *group,
                                 const char *name, size_t length)
{
    return find(registry, &(struct wr_name_key){&group->entry, name, length});
}

/* ---- Names of parts -------------------------------------------------------------------------- */

/* Returns the WR_PART_* that a name is like, or 0. Sets the length of what it would be a part of. */
static unsigned find_part(const char *name, size_t length, size_t *stem)
{
    static const char *const suffixes[] = {"count", "sum", "bucket", "min", "max", "last"};
    const char *dot = memrchr(name, '.', length);
    if (!dot || dot == name)
        return 0;
    const char *suffix = dot + 1;
    *stem = (size_t)(dot - name);
    size_t left = length - *stem - 1;
    for (unsigned i = 0; i < WR_COUNT_OF(suffixes); i++)
        if (strlen(suffixes[i]) == left && memcmp(suffixes[i], suffix, left) == 0)
            return 1u << i;
    bool is_percentile = left > 1 && suffix[0] == 'p' && suffix[1] >= '0' && suffix[1] <= '9';
    return is_percentile ? WR_PART_PERCENTILE : 0;
}

/* [registry lock] Returns false if out of memory. */
static bool take_part(struct wr_registry *registry, const struct wr_family *family, bool cumulative)
{
    size_t stem = 0;
    unsigned part = find_part(family->name, family->length, &stem);
    bool is_written =
        cumulative || family->meaning.instrument == WEIR_COUNTER || family->meaning.instrument == WEIR_GAUGE;
    if (!part || !is_written)
        return true;
    struct wr_family *whole = wr_family_make(registry, family->group, family->name, stem);
    if (whole)
        atomic_fetch_or_explicit(&whole->taken_parts, (uint8_t)part, memory_order_relaxed);
    return whole;
}

bool wr_family_enter_calls(struct wr_registry *registry, struct wr_family *family, bool cumulative)
{
    family->is_in_calls = true;
    return take_part(registry, family, cumulative);
}

/* ---- The meaning in use ---------------------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_buckets(const struct wr_meaning *a, const struct wr_meaning *b)
{
    return a->bucket_count == b->bucket_count &&
           (!a->buckets || !b->buckets ||
            memcmp(a->buckets, b->buckets, a->bucket_count * sizeof *a->buckets) == 0);
}

static bool is_same(const struct wr_meaning *a, const struct wr_meaning *b)
{
    return a->instrument == b->instrument && is_same_text(a->unit, b->unit) && is_same_text(a->help, b->help) &&
           is_same_buckets(a, b) && a->merge == b->merge;
}

/* [registry lock] Replaces texts and buckets by copies that are never freed. Returns false if out of memory. */
static bool own(struct wr_registry *registry, struct wr_meaning *meaning)
{
    const char *unit = meaning->unit ? wr_registry_copy_text(registry, meaning->unit) : NULL;
    const char *help = meaning->help ? wr_registry_copy_text(registry, meaning->help) : NULL;
    double *buckets = NULL;
    if (meaning->bucket_count) {
        buckets = wr_arena_get(&registry->views, meaning->bucket_count * sizeof *buckets, sizeof *buckets);
        if (!buckets)
            return false;
        memcpy(buckets, meaning->buckets, meaning->bucket_count * sizeof *buckets);
    }
    if ((meaning->unit && !unit) || (meaning->help && !help))
        return false;
    *meaning =
        (struct wr_meaning){meaning->instrument, unit, help, buckets, meaning->bucket_count, meaning->merge};
    return true;
}

/* What the program declared, and where it did not, what recovered values brought. */
static struct wr_meaning add_learned(const struct wr_meaning *program, const struct wr_meaning *learned)
{
    struct wr_meaning meaning = *program;
    if (meaning.instrument == WEIR_VALUE)
        meaning.instrument = learned->instrument;
    if (!meaning.unit)
        meaning.unit = learned->unit;
    if (!meaning.help)
        meaning.help = learned->help;
    if (meaning.instrument == WEIR_HISTOGRAM && !meaning.bucket_count) {
        meaning.buckets = learned->buckets;
        meaning.bucket_count = learned->bucket_count;
    }
    return meaning;
}

/* What the program declared, changed by the rule of the configuration. */
static struct wr_meaning apply_rule(const struct wr_meaning *program, const struct wr_metric_rule *rule)
{
    struct wr_meaning meaning = *program;
    if (!rule)
        return meaning;
    if (rule->has_instrument)
        meaning.instrument = rule->meaning.instrument;
    if (rule->meaning.unit)
        meaning.unit = rule->meaning.unit;
    if (rule->meaning.help)
        meaning.help = rule->meaning.help;
    if (rule->has_buckets) {
        meaning.buckets = rule->meaning.buckets;
        meaning.bucket_count = rule->meaning.bucket_count;
    }
    meaning.merge = rule->meaning.merge;
    return meaning;
}

static struct wr_metric_rule *find_rule(const struct wr_registry *registry, const struct wr_family *family)
{
    return registry->rules ? wr_metric_rules_find(registry->rules, family->group->name, family->name) : NULL;
}

/* What a family is to mean. */
struct use {
    struct wr_meaning meaning;
    enum weir_instrument enforced;
};

static struct use work_out(const struct wr_family *family, const struct wr_metric_rule *rule)
{
    const struct wr_meaning known = add_learned(&family->program, &family->learned);
    return (struct use){apply_rule(&known, rule), apply_rule(&family->program, rule).instrument};
}

static bool is_in_use(const struct wr_family *family, const struct use *use)
{
    return is_same(&family->meaning, &use->meaning) &&
           atomic_load_explicit(&family->enforced, memory_order_relaxed) == use->enforced;
}

/* [registry lock] Sets the meaning of the family and of all its series. Returns false if out of memory. */
static bool set_use(struct wr_registry *registry, struct wr_family *family, const struct use *use)
{
    if (is_in_use(family, use))
        return true;
    struct wr_meaning copy = use->meaning;
    if (!own(registry, &copy))
        return false;
    family->meaning = copy;
    atomic_store_explicit(&family->enforced, (uint8_t)use->enforced, memory_order_relaxed);
    bool done = !family->is_in_calls || take_part(registry, family, false);
    for (uint32_t i = 0; i < family->member_count; i++)
        done &= wr_registry_set_view(registry, wr_registry_series(registry, family->members[i]), &copy,
                                     (int)use->enforced);
    return done;
}

/* [registry lock] Puts the family's rule in use; NULL: none. Returns false if out of memory. */
static bool use_rule(struct wr_registry *registry, struct wr_family *family, struct wr_metric_rule *rule)
{
    uint32_t max = registry->rules ? registry->rules->max_series_per_name : WR_FAMILY_DEFAULT_MAX_LABELED;
    if (rule)
        atomic_store_explicit(&rule->matched, true, memory_order_relaxed);
    if (rule && rule->max_series)
        max = rule->max_series;
    atomic_store_explicit(&family->max_labeled, max, memory_order_relaxed);
    const struct use use = work_out(family, rule);
    return set_use(registry, family, &use);
}

/* [registry lock] Works out the meaning and the limit anew. Returns false if out of memory. */
static bool refresh(struct wr_registry *registry, struct wr_family *family)
{
    return use_rule(registry, family, find_rule(registry, family));
}

struct wr_family *wr_family_make(struct wr_registry *registry, struct wr_group *group, const char *name,
                                 size_t length)
{
    const struct wr_name_key key = {&group->entry, name, length};
    struct wr_family *family = find(registry, &key);
    if (family)
        return family;
    family = wr_arena_get(&registry->views, sizeof *family + length + 1, _Alignof(struct wr_family));
    if (!family)
        return NULL;
    wr_hash_set(&family->entry, wr_name_key_hash(registry, &key));
    family->group = group;
    family->length = (uint8_t)length;
    memcpy(family->name, name, length);
    if (!refresh(registry, family) ||
        !wr_hash_table_insert(&registry->families, &registry->arena, &family->entry))
        return NULL;
    return family;
}

/* ---- Series ---------------------------------------------------------------------------------- */

/* The former array stays in the arena, which costs at most as much as the new one. */
bool wr_family_reserve(struct wr_registry *registry, struct wr_family *family)
{
    if (family->member_count < family->member_room)
        return true;
    uint32_t room = family->member_room ? family->member_room * 2 : 1;
    uint32_t *members = wr_arena_get(&registry->views, room * sizeof *members, sizeof *members);
    if (!members)
        return false;
    if (family->member_count)
        memcpy(members, family->members, family->member_count * sizeof *members);
    family->members = members;
    family->member_room = room;
    return true;
}

void wr_family_add(struct wr_family *family, struct weir_metric *metric)
{
    family->members[family->member_count++] = metric->series;
    if (metric->stream->label_count && !metric->stream->overflow)
        atomic_fetch_add_explicit(&family->labeled, 1, memory_order_relaxed);
}

void wr_family_uncount(struct wr_family *family, const struct weir_metric *metric)
{
    if (metric->stream->label_count && !metric->stream->overflow)
        atomic_fetch_sub_explicit(&family->labeled, 1, memory_order_relaxed);
}

size_t wr_family_put_stem(const struct wr_registry *registry, const struct wr_group *group, const char *name,
                          unsigned parts, char *stem, size_t room)
{
    size_t length = (size_t)snprintf(stem, room, "%s", name);
    for (;;) {
        const struct wr_family *family = length < room ? wr_family_find(registry, group, stem, length) : NULL;
        if (!family || !(atomic_load_explicit(&family->taken_parts, memory_order_relaxed) & parts))
            return length;
        length += (size_t)snprintf(stem + length, room - length, ".distribution");
    }
}

bool wr_family_means_something(const struct wr_registry *registry, const struct wr_family *family)
{
    const struct wr_metric_rule *rule = find_rule(registry, family);
    const struct wr_meaning known = add_learned(&family->program, &family->learned);
    return !is_same(&known, &(struct wr_meaning){0}) || (rule && !wr_metric_rules_is_pattern(rule));
}

/* ---- The program ----------------------------------------------------------------------------- */

/* The length of a stream's name. 0: refused, with the error set. */
static size_t check_name(const struct weir_stream *stream, const char *name, struct wr_error *error)
{
    if (!stream->refusal)
        return wr_name_check(name, "name", error);
    wr_error_set(error, stream->refusal, "the stream refuses all values: %s", wr_error_text(stream->refusal));
    return 0;
}

/* The family of a stream's name, which is valid. NULL: refused, with the error set. */
static struct wr_family *make_for(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                                  size_t length, struct wr_error *error)
{
    struct wr_family *family = wr_family_find(registry, stream->group, name, length);
    if (family)
        return family;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    family = wr_family_find(registry, stream->group, name, length);
    bool may_make = family || wr_registry_count_one(registry);
    if (may_make)
        family = wr_family_make(registry, stream->group, name, length);
    wr_registry_unlock(registry, &signals);
    if (!may_make)
        wr_error_set(error, WEIR_ERR_LIMIT, "name \"%s\": settings.max_series (%u) is reached", name,
                     atomic_load_explicit(&registry->max, memory_order_relaxed));
    else if (!family)
        wr_error_set(error, WEIR_ERR_MEMORY, "name \"%s\": out of memory", name);
    return family;
}

/* [registry lock] Returns 0 or an error code. */
static int change(struct wr_registry *registry, struct wr_family *family, const struct wr_meaning *program)
{
    struct wr_meaning copy = *program;
    if (family->program_changes == WR_FAMILY_PROGRAM_CHANGES_MAX)
        return WEIR_ERR_LIMIT;
    if (!own(registry, &copy))
        return WEIR_ERR_MEMORY;
    family->program_changes++;
    family->program = copy;
    atomic_store_explicit(&family->declared_as, (uint8_t)copy.instrument, memory_order_relaxed);
    return refresh(registry, family) ? 0 : WEIR_ERR_MEMORY;
}

static int fail_change(const struct wr_family *family, int code, struct wr_error *error)
{
    if (code == WEIR_ERR_LIMIT)
        return wr_error_set(error, code, "name \"%s\": its description was changed %d times, the maximum",
                            family->name, WR_FAMILY_PROGRAM_CHANGES_MAX);
    return wr_error_set(error, code, "name \"%s\": out of memory", family->name);
}

int wr_family_describe(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                       const char *unit, const char *help, struct wr_error *error)
{
    if ((unit && !wr_name_check_text(unit, WR_NAME_UNIT_LONGEST, "unit", error)) ||
        (help && !wr_name_check_text(help, WR_NAME_HELP_LONGEST, "help", error)))
        return WEIR_ERR_NAME;
    size_t length = check_name(stream, name, error);
    struct wr_family *family = length ? make_for(registry, stream, name, length, error) : NULL;
    if (!family)
        return error->code;
    int result = 0;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    struct wr_meaning program = family->program;
    program.unit = unit;
    program.help = help;
    if (!is_same(&program, &family->program)) /* a program may repeat the description */
        result = change(registry, family, &program);
    wr_registry_unlock(registry, &signals);
    return result ? fail_change(family, result, error) : 0;
}

static int refuse_spec(struct wr_error *error, const char *name, const char *problem)
{
    return wr_error_set(error, WEIR_ERR_ARGUMENT, "name \"%s\": %s", name, problem);
}

static int check_buckets(const char *name, const weir_metric_spec *spec, struct wr_error *error)
{
    if (!spec->bucket_count)
        return 0;
    if (spec->instrument != WEIR_HISTOGRAM || !spec->buckets)
        return refuse_spec(error, name, "buckets belong to histograms only, and need an array of bounds");
    if (spec->bucket_count > WR_FAMILY_BUCKETS_MAX)
        return wr_error_set(error, WEIR_ERR_ARGUMENT, "name \"%s\": %zu buckets; at most %d are allowed", name,
                            spec->bucket_count, WR_FAMILY_BUCKETS_MAX);
    for (size_t i = 0; i < spec->bucket_count; i++)
        if (!isfinite(spec->buckets[i]) || (i && spec->buckets[i] <= spec->buckets[i - 1]))
            return wr_error_set(error, WEIR_ERR_ARGUMENT,
                                "name \"%s\": bucket %zu is %g; the bounds must be finite and rising", name, i,
                                spec->buckets[i]);
    return 0;
}

static int check_spec(const char *name, const weir_metric_spec *spec, struct wr_error *error)
{
    if (spec->instrument < WEIR_VALUE || spec->instrument > WEIR_HISTOGRAM)
        return wr_error_set(error, WEIR_ERR_ARGUMENT,
                            "name \"%s\": %d is not an instrument (enum weir_instrument)", name,
                            spec->instrument);
    if ((spec->unit && !wr_name_check_text(spec->unit, WR_NAME_UNIT_LONGEST, "unit", error)) ||
        (spec->help && !wr_name_check_text(spec->help, WR_NAME_HELP_LONGEST, "help", error)))
        return WEIR_ERR_NAME;
    return check_buckets(name, spec, error);
}

/* [registry lock] Whether the program declared something else before, which stays. */
static bool is_conflict(const struct wr_family *family, const struct wr_meaning *wanted)
{
    const struct wr_meaning *program = &family->program;
    if (program->instrument == WEIR_VALUE)
        return false;
    return program->instrument != wanted->instrument ||
           (wanted->bucket_count && program->bucket_count && !is_same_buckets(program, wanted));
}

/* [registry lock] Returns 0 or an error code. */
static int declare(struct wr_registry *registry, struct wr_family *family, const struct wr_meaning *wanted)
{
    if (is_conflict(family, wanted))
        return WEIR_ERR_ARGUMENT;
    struct wr_meaning program = *wanted;
    enum weir_instrument learned = family->learned.instrument;
    bool replaces_learned = learned != WEIR_VALUE && learned != wanted->instrument;
    if (replaces_learned)
        family->learned = (struct wr_meaning){.unit = family->learned.unit, .help = family->learned.help};
    if (!program.unit)
        program.unit = family->program.unit;
    if (!program.help)
        program.help = family->program.help;
    if (!program.bucket_count && program.instrument == WEIR_HISTOGRAM) {
        program.buckets = family->program.buckets;
        program.bucket_count = family->program.bucket_count;
    }
    if (!is_same(&program, &family->program))
        return change(registry, family, &program);
    return !replaces_learned || refresh(registry, family) ? 0 : WEIR_ERR_MEMORY;
}

static int fail_conflict(const char *name, enum weir_instrument before, const char *how, struct wr_error *error)
{
    return wr_error_set(error, WEIR_ERR_ARGUMENT, "name \"%s\": it was declared as a %s%s before, which stays",
                        name, wr_family_instrument_name(before), how);
}

int wr_family_declare(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                      const weir_metric_spec *spec, struct wr_error *error)
{
    size_t length = check_name(stream, name, error);
    if (!length || check_spec(name, spec, error) != 0)
        return error->code;
    struct wr_family *family = make_for(registry, stream, name, length, error);
    if (!family)
        return error->code;
    const struct wr_meaning wanted = {(enum weir_instrument)spec->instrument,
                                      spec->unit,
                                      spec->help,
                                      spec->buckets,
                                      spec->bucket_count,
                                      WR_MERGE_LAST};
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    int result = declare(registry, family, &wanted);
    enum weir_instrument before = family->program.instrument;
    wr_registry_unlock(registry, &signals);
    if (result == WEIR_ERR_ARGUMENT)
        return fail_conflict(name, before, before == wanted.instrument ? " with other buckets" : "", error);
    return result ? fail_change(family, result, error) : 0;
}

/* Both are read without order: a value that comes while the name is declared is judged as before or after it.
 */
bool wr_family_refuses(const struct wr_registry *registry, const struct wr_group *group, const char *name,
                       enum weir_instrument instrument, struct wr_error *error)
{
    const struct wr_family *family = wr_family_find(registry, group, name, strlen(name));
    enum weir_instrument declared =
        family ? atomic_load_explicit(&family->declared_as, memory_order_relaxed) : WEIR_VALUE;
    if (declared == WEIR_VALUE || declared == instrument ||
        atomic_load_explicit(&family->enforced, memory_order_relaxed) != declared)
        return false;
    fail_conflict(name, declared, "", error);
    return true;
}

/* ---- Recovered values ------------------------------------------------------------------------ */

void wr_family_learn(struct wr_registry *registry, struct weir_metric *metric, const weir_series *read)
{
    struct wr_meaning wanted = {(enum weir_instrument)read->instrument,
                                read->unit,
                                read->help,
                                read->buckets,
                                read->bucket_count,
                                WR_MERGE_LAST};
    struct wr_family *family = wr_family_find(registry, metric->stream->group, metric->name, metric->length);
    if (!family || is_same(&wanted, &(struct wr_meaning){0}))
        return;
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    const struct wr_meaning nothing = {0};
    if (is_same(&family->program, &nothing) && is_same(&family->learned, &nothing) && own(registry, &wanted)) {
        family->learned = wanted;
        refresh(registry, family);
    }
    wr_registry_unlock(registry, &signals);
}

/* ---- Configurations -------------------------------------------------------------------------- */

void wr_family_set_rules(struct wr_registry *registry, const struct wr_metric_rules *rules)
{
    sigset_t signals;
    wr_registry_lock(registry, &signals);
    registry->rules = rules;
    const struct wr_hash_slots *slots = atomic_load_explicit(&registry->families.slots, memory_order_relaxed);
    for (size_t i = 0; slots && i <= slots->mask; i++) {
        struct wr_family *family =
            (struct wr_family *)atomic_load_explicit(&slots->slots[i], memory_order_relaxed);
        if (!family)
            continue;
        struct wr_metric_rule *rule = find_rule(registry, family);
        const struct use use = work_out(family, rule);
        bool changes = !is_in_use(family, &use);
        if (changes && family->rule_changes == WR_FAMILY_RULE_CHANGES_MAX)
            continue; /* it keeps what it has */
        if (changes)
            family->rule_changes++;
        use_rule(registry, family, rule);
    }
    wr_registry_unlock(registry, &signals);
}
