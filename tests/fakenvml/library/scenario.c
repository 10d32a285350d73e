/* The scenario file's grammar (README.md): words, one statement a line. */
#include "fake.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <libgen.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#define DEEPEST_INCLUDE 8

static const struct {
    const char *name;
    nvmlValueType_t type;
} value_types[] = {
    {"double", NVML_VALUE_TYPE_DOUBLE},           {"uint", NVML_VALUE_TYPE_UNSIGNED_INT},
    {"ulong", NVML_VALUE_TYPE_UNSIGNED_LONG},     {"ulonglong", NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {"longlong", NVML_VALUE_TYPE_SIGNED_LONG_LONG}, {"int", NVML_VALUE_TYPE_SIGNED_INT},
    {"ushort", NVML_VALUE_TYPE_UNSIGNED_SHORT},
};

struct reader {
    struct scenario *scenario;
    const char *path;
    unsigned line, depth;
    char **words;
    size_t n_words, next;
    jmp_buf *refused;
};

_Noreturn __attribute__((format(printf, 2, 3))) static void refuse(struct reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "fake NVML: %s:%u: ", r->path, r->line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    longjmp(*r->refused, 1);
}

/* ---- words -------------------------------------------------------------------------------------- */

static bool add_word(struct reader *r, const char *start, size_t length)
{
    r->words = realloc(r->words, (r->n_words + 1) * sizeof *r->words);
    r->words[r->n_words++] = strndup(start, length);
    return true;
}

static void split(struct reader *r, const char *p)
{
    for (size_t i = 0; i < r->n_words; i++)
        free(r->words[i]);
    r->n_words = r->next = 0;
    for (;;) {
        p += strspn(p, " \t\r\n");
        if (!*p || *p == '#')
            return;
        const char *start = p;
        if (*p == '|') {
            p++;
        } else {
            for (bool quoted = false; *p && (quoted || !strchr(" \t\r\n|", *p)); p++)
                if (*p == '"')
                    quoted = !quoted;
        }
        add_word(r, start, p - start);
    }
}

static const char *peek(const struct reader *r)
{
    return r->next < r->n_words ? r->words[r->next] : NULL;
}

static const char *take(struct reader *r, const char *what)
{
    if (r->next == r->n_words)
        refuse(r, "the line ends where %s should stand", what);
    return r->words[r->next++];
}

static bool accept(struct reader *r, const char *word)
{
    bool is = peek(r) && !strcmp(peek(r), word);
    r->next += is;
    return is;
}

static void expect(struct reader *r, const char *word)
{
    const char *found = take(r, word);
    if (strcmp(found, word))
        refuse(r, "'%s' where '%s' should stand", found, word);
}

#define ADD(list, count) ((list) = realloc((list), ((count) + 1) * sizeof *(list)), memset(&(list)[count], 0, sizeof *(list)), &(list)[(count)++])

/* ---- numbers, times, values --------------------------------------------------------------------- */

static double parse_seconds(struct reader *r, const char *word)
{
    char *end;
    double seconds = strtod(word, &end);
    if (end == word || seconds < 0)
        refuse(r, "'%s' is no time; expected as 2.5us, 8ms, 3s or 3 (seconds)", word);
    if (!strcmp(end, "us"))
        return seconds * 1e-6;
    if (!strcmp(end, "ms"))
        return seconds * 1e-3;
    if (!strcmp(end, "s") || !*end)
        return seconds;
    refuse(r, "'%s' is no time; expected as 2.5us, 8ms, 3s or 3 (seconds)", word);
}

static unsigned parse_count(struct reader *r, const char *what, unsigned most)
{
    const char *word = take(r, what);
    char *end;
    unsigned long count = strtoul(word, &end, 10);
    if (*end || end == word || count > most)
        refuse(r, "'%s' is no %s; expected a number from 0 to %u", word, what, most);
    return count;
}

/* A..B, A.. or ..B in seconds */
static struct window parse_window(struct reader *r, const char *word)
{
    struct window window = {-FOREVER, FOREVER};
    const char *dots = strstr(word, "..");
    char *end;
    if (!dots)
        refuse(r, "'%s' is no window; expected as 5..15, 5.. or ..15 (seconds)", word);
    if (dots > word) {
        char *from = strndup(word, dots - word); /* strtod would take the first dot of `5..` */
        window.from = strtod(from, &end);
        bool whole = !*end;
        free(from);
        if (!whole)
            refuse(r, "'%s' is no window; expected as 5..15, 5.. or ..15 (seconds)", word);
    }
    if (dots[2]) {
        window.to = strtod(dots + 2, &end);
        if (*end)
            refuse(r, "'%s' is no window; expected as 5..15, 5.. or ..15 (seconds)", word);
    }
    return window;
}

static long double parse_unit(const char **p)
{
    static const struct {
        const char *name;
        long double factor;
    } units[] = {{"KiB", 1024.0L}, {"MiB", 1048576.0L}, {"GiB", 1073741824.0L}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strncmp(*p, units[i].name, 3)) {
            *p += 3;
            return units[i].factor;
        }
    return 1;
}

static void parse_term(struct reader *r, const char **p, const char *word, struct term *term)
{
    long double sign = 1;
    for (; **p == '+' || **p == '-'; (*p)++)
        if (**p == '-')
            sign = -sign;
    if (isalpha((unsigned char)**p)) {
        size_t length = strspn(*p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        char *name = strndup(*p, length);
        long long constant = 0;
        *p += length;
        if (!strcmp(name, "now_us"))
            term->wall_us = true;
        else if (!strcmp(name, "index"))
            term->index = true;
        else if (!constant_named(name, &constant))
            refuse(r, "'%s' is neither a number nor a constant of nvml.h, in '%s'", name, word);
        term->amount = sign * (term->wall_us || term->index ? 1 : (long double)constant);
        free(name);
        return;
    }
    char *end;
    bool hexadecimal = !strncmp(*p, "0x", 2);
    long double number = hexadecimal ? (long double)strtoull(*p, &end, 16) : strtold(*p, &end);
    if (end == *p)
        refuse(r, "'%s' is no value; expected a number, a constant, \"text\", an error's name, HANG, CRASH or DEFAULT",
               word);
    *p = end;
    term->amount = sign * number * parse_unit(p);
    term->window = (struct window){0, FOREVER};
    if (!strncmp(*p, "/s", 2)) {
        term->per_second = true;
        *p += 2;
        if (**p == '[') {
            const char *close = strchr(*p, ']');
            if (!close)
                refuse(r, "'%s': '[' without ']'", word);
            char *window = strndup(*p + 1, close - *p - 1);
            term->window = parse_window(r, window);
            free(window);
            *p = close + 1;
        }
    }
}

static void parse_number(struct reader *r, const char *p, const char *word, struct value *value)
{
    do {
        struct term *term = ADD(value->terms, value->n_terms);
        parse_term(r, &p, word, term);
        if (*p && *p != '+' && *p != '-')
            refuse(r, "'%s': '%s' is not understood; expected as 5000+50/s[5..20]", word, p);
    } while (*p);
}

static void parse_value(struct reader *r, const char *word, struct value *value)
{
    const char *equals = strchr(word, '='), *quote = strchr(word, '"');
    if (equals && (!quote || equals < quote)) {
        value->name = strndup(word, equals - word);
        word = equals + 1;
    }
    if (*word == '"') {
        size_t length = strlen(word);
        if (length < 2 || word[length - 1] != '"')
            refuse(r, "%s: the quotation never ends", word);
        value->text = strndup(word + 1, length - 2);
    } else {
        parse_number(r, word, word, value);
    }
}

/* ---- whom a line is about ----------------------------------------------------------------------- */

static void parse_mig(struct reader *r, const char *word, const char *p, struct target *target)
{
    if (!strcmp(p, "*")) {
        target->mig = ANY_MIG;
        return;
    }
    char *end;
    target->mig = strtol(p, &end, 10);
    if (*end || end == p || target->mig < 0 || target->mig >= MAX_MIG)
        refuse(r, "'%s': a MIG device is CARD.INDEX with an index below %d, or CARD.*", word, MAX_MIG);
}

static struct target parse_target(struct reader *r)
{
    const char *word = take(r, "a card (all, 3, 0,2-4)"), *p = word;
    struct target target = {false, 0, WHOLE_CARD};
    if (!strncmp(word, "all", 3)) {
        target.cards = UINT64_MAX;
        p = word + 3;
    } else {
        do {
            char *end;
            unsigned long first = strtoul(p, &end, 10), last = first;
            if (end == p)
                refuse(r, "'%s' names no card; expected as all, 3, 0,2-4 or 0.1", word);
            if (*end == '-')
                last = strtoul(end + 1, &end, 10);
            if (last < first || last >= MAX_CARDS)
                refuse(r, "'%s': cards run from 0 to %d", word, MAX_CARDS - 1);
            if (r->scenario->cards <= last)
                refuse(r, "'%s': there are %u cards; put a larger `cards` line before", word, r->scenario->cards);
            for (unsigned long card = first; card <= last; card++)
                target.cards |= 1ULL << card;
            p = end;
        } while (*p == ',' && p++);
    }
    if (*p == '.')
        parse_mig(r, word, p + 1, &target);
    else if (*p)
        refuse(r, "'%s' names no card; expected as all, 3, 0,2-4 or 0.1", word);
    return target;
}

static char *parse_pattern(struct reader *r, struct target target, long long *args)
{
    const char *word = take(r, "a function");
    unsigned most = 0, matches = 0;
    for (size_t i = 0; i < n_functions; i++)
        if (functions[i].on_card != target.system && !fnmatch(word, functions[i].name, 0)) {
            matches++;
            most = functions[i].n_args > most ? functions[i].n_args : most;
        }
    if (!matches)
        refuse(r, "no %s function is named '%s'", target.system ? "system" : "card", word);
    char *pattern = strdup(word);
    for (int i = 0; i < MAX_ARGS; i++)
        args[i] = ANY_ARG;
    for (unsigned n = 0; peek(r) && strcmp(peek(r), "="); n++) {
        const char *arg = take(r, "an argument");
        if (n == most || n == MAX_ARGS)
            refuse(r, "'%s' takes %u arguments (besides the card), '%s' is one too many", pattern, most, arg);
        if (!strcmp(arg, "*"))
            continue;
        struct value value = {0};
        parse_number(r, arg, arg, &value);
        args[n] = (long long)value.terms[0].amount;
        free(value.terms);
    }
    expect(r, "=");
    return pattern;
}

/* ---- outcomes ----------------------------------------------------------------------------------- */

static bool is_modifier(const char *word)
{
    static const char *const words[] = {"|", "during", "repeat", "as", "every", "depth", "first"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i]))
            return true;
    return false;
}

static bool parse_act(const char *word, struct outcome *outcome)
{
    char name[128];
    long long error;
    snprintf(name, sizeof name, "NVML_ERROR_%s", word);
    if (!strcmp(word, "HANG"))
        outcome->act = ACT_HANG;
    else if (!strcmp(word, "CRASH"))
        outcome->act = ACT_CRASH;
    else if (!strcmp(word, "DEFAULT"))
        outcome->act = ACT_DEFAULT;
    else if (!strcmp(word, "SUCCESS"))
        outcome->act = ACT_VALUES;
    else if (constant_named(name, &error))
        *outcome = (struct outcome){outcome->at, ACT_ERROR, error, NULL, 0};
    else
        return false;
    return true;
}

static void parse_outcome(struct reader *r, bool timed, struct outcome *outcome)
{
    if (timed) {
        const char *word = take(r, "a time, as 5:");
        char *end;
        outcome->at = strtod(word, &end);
        if (end == word || strcmp(end, ":"))
            refuse(r, "'%s' where a time should stand, as 5:", word);
    }
    const char *word = take(r, "a value");
    if (parse_act(word, outcome))
        return;
    do {
        parse_value(r, word, ADD(outcome->values, outcome->n_values));
        if (outcome->n_values > MAX_VALUES)
            refuse(r, "more than %d values", MAX_VALUES);
        word = peek(r) && !is_modifier(peek(r)) ? take(r, "a value") : NULL;
    } while (word);
}

static bool has_field(const struct function *function, const char *name)
{
    for (unsigned l = 0; l < function->n_layouts; l++)
        for (size_t f = 0; f < function->layouts[l].n_fields; f++)
            if (!strcmp(function->layouts[l].fields[f].path, name))
                return true;
    return false;
}

static void check_fields(struct reader *r, const struct function *function, const struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->n_values; i++)
        if (!outcome->values[i].name || !has_field(function, outcome->values[i].name))
            refuse(r, "%s answers with %s: expected FIELD=VALUE of that struct, not '%s'", function->name,
                   function->layouts[0].name, outcome->values[i].name ? outcome->values[i].name : "a bare value");
}

/* A line about one function must give what that function returns. */
static void check_outcome(struct reader *r, const struct rule *rule, const struct outcome *outcome)
{
    const struct function *function = function_named(rule->pattern);
    if (outcome->act != ACT_VALUES)
        return;
    if (!function) {
        if (outcome->n_values)
            refuse(r, "'%s' is a pattern: it takes an error, HANG, CRASH or DEFAULT, no value", rule->pattern);
        return;
    }
    if (function->shape == TAKES_FIELDS)
        check_fields(r, function, outcome);
    else if (function->shape == TAKES_NOTHING && outcome->n_values)
        refuse(r, "%s takes an outcome (SUCCESS, an error, HANG), but no value here", function->name);
    else if (function->shape == TAKES_VALUES && outcome->n_values != function->n_values)
        refuse(r, "%s answers with %u values, not %zu", function->name, function->n_values, outcome->n_values);
}

static enum course parse_course(struct reader *r)
{
    if (accept(r, "calls"))
        return COURSE_CALLS;
    if (accept(r, "steps"))
        return COURSE_STEPS;
    if (accept(r, "ramp"))
        return COURSE_RAMP;
    return COURSE_FIXED;
}

static void parse_outcomes(struct reader *r, struct rule *rule)
{
    bool timed = rule->course == COURSE_STEPS || rule->course == COURSE_RAMP;
    do {
        struct outcome *outcome = ADD(rule->outcomes, rule->n_outcomes);
        parse_outcome(r, timed, outcome);
        check_outcome(r, rule, outcome);
        if (timed && rule->n_outcomes > 1 && outcome->at < outcome[-1].at)
            refuse(r, "second %g comes after second %g", outcome->at, outcome[-1].at);
    } while (accept(r, "|"));
    if (rule->course == COURSE_FIXED && rule->n_outcomes > 1)
        refuse(r, "several values without 'calls', 'steps' or 'ramp' before them");
}

static int parse_type(struct reader *r)
{
    const char *word = take(r, "a value type");
    for (size_t i = 0; i < sizeof value_types / sizeof *value_types; i++)
        if (!strcmp(word, value_types[i].name))
            return value_types[i].type;
    refuse(r, "'%s' is no value type; expected double, uint, ulong, ulonglong, longlong, int or ushort", word);
}

static void parse_modifiers(struct reader *r, struct rule *rule)
{
    while (peek(r)) {
        if (accept(r, "during"))
            rule->window = parse_window(r, take(r, "a window"));
        else if (accept(r, "repeat"))
            rule->repeat = rule->course == COURSE_CALLS ? 1 : parse_seconds(r, take(r, "a period"));
        else if (accept(r, "as"))
            rule->value_type = parse_type(r);
        else if (accept(r, "every"))
            rule->every_s = parse_seconds(r, take(r, "a period"));
        else if (accept(r, "depth"))
            rule->depth = parse_count(r, "a depth", 100000);
        else
            refuse(r, "'%s' is not understood; expected during, repeat, as, every or depth", peek(r));
    }
}

/* ---- statements --------------------------------------------------------------------------------- */

static void parse_rule(struct reader *r, struct target target)
{
    struct rule *rule = ADD(r->scenario->rules, r->scenario->n_rules);
    rule->target = target;
    rule->window = (struct window){-FOREVER, FOREVER};
    rule->value_type = -1;
    rule->pattern = parse_pattern(r, target, rule->args);
    rule->course = parse_course(r);
    parse_outcomes(r, rule);
    parse_modifiers(r, rule);
    if (rule->course == COURSE_CALLS)
        rule->calls = calloc(MAX_CARDS + 1, sizeof *rule->calls);
}

static void parse_card(struct reader *r)
{
    parse_rule(r, parse_target(r));
}

static void parse_system(struct reader *r)
{
    parse_rule(r, (struct target){true, 0, WHOLE_CARD});
}

static void parse_latency(struct reader *r)
{
    struct latency *latency = ADD(r->scenario->latencies, r->scenario->n_latencies);
    latency->target = accept(r, "system") ? (struct target){true, 0, WHOLE_CARD} : parse_target(r);
    latency->pattern = parse_pattern(r, latency->target, latency->args);
    latency->usual_s = latency->first_s = parse_seconds(r, take(r, "a time"));
    latency->window = (struct window){-FOREVER, FOREVER};
    latency->called = calloc(MAX_CARDS + 1, sizeof *latency->called);
    while (peek(r)) {
        if (accept(r, "first"))
            latency->first_s = parse_seconds(r, take(r, "a time"));
        else if (accept(r, "during"))
            latency->window = parse_window(r, take(r, "a window"));
        else
            refuse(r, "'%s' is not understood; expected first or during", peek(r));
    }
}

static enum process_kind parse_kind(struct reader *r)
{
    if (accept(r, "compute"))
        return PROCESS_COMPUTE;
    if (accept(r, "graphics"))
        return PROCESS_GRAPHICS;
    if (accept(r, "mps"))
        return PROCESS_MPS;
    refuse(r, "'%s' is no kind of process; expected compute, graphics or mps", take(r, "a kind of process"));
}

static void parse_process(struct reader *r)
{
    struct process *process = ADD(r->scenario->processes, r->scenario->n_processes);
    process->target = parse_target(r);
    process->kind = parse_kind(r);
    process->window = (struct window){-FOREVER, FOREVER};
    process->memory_unknown = true;
    process->pid = 100000;
    process->count = 1;
    while (peek(r)) {
        if (accept(r, "pid")) {
            process->own_pid = accept(r, "self");
            if (!process->own_pid)
                process->pid = parse_count(r, "process id", INT_MAX);
        } else if (accept(r, "memory")) {
            process->memory_unknown = accept(r, "unknown");
            if (!process->memory_unknown)
                parse_value(r, take(r, "a size"), &process->memory);
        } else if (accept(r, "count")) {
            process->count = parse_count(r, "count", 100000);
        } else if (accept(r, "churn")) {
            process->churns = true;
        } else if (accept(r, "during")) {
            process->window = parse_window(r, take(r, "a window"));
        } else {
            refuse(r, "'%s' is not understood; expected pid, memory, count, churn or during", peek(r));
        }
    }
}

static unsigned long long parse_whole(struct reader *r, const char *what)
{
    struct value value = {0};
    const char *word = take(r, what);
    parse_number(r, word, word, &value);
    unsigned long long number = (unsigned long long)value_at(&value, 0, 0);
    free(value.terms);
    return number;
}

static void parse_event(struct reader *r)
{
    struct event *event = ADD(r->scenario->events, r->scenario->n_events);
    event->target = parse_target(r);
    event->on_load = true;
    while (peek(r)) {
        if (accept(r, "at")) {
            event->at = parse_seconds(r, take(r, "a time"));
            event->on_load = false;
        } else if (accept(r, "every")) {
            event->every = parse_seconds(r, take(r, "a period"));
        } else if (accept(r, "xid")) {
            event->type = nvmlEventTypeXidCriticalError;
            event->data = parse_whole(r, "an XID");
        } else if (accept(r, "type")) {
            event->type = parse_whole(r, "an event type");
        } else if (accept(r, "data")) {
            event->data = parse_whole(r, "a number");
        } else {
            refuse(r, "'%s' is not understood; expected at, every, xid, type or data", peek(r));
        }
    }
    if (!event->type)
        refuse(r, "an event needs 'xid NUMBER' or 'type NUMBER'");
}

static void parse_cards(struct reader *r)
{
    r->scenario->cards = parse_count(r, "count of cards", MAX_CARDS);
}

static void parse_mig_devices(struct reader *r)
{
    struct target target = parse_target(r);
    unsigned count = parse_count(r, "count of MIG devices", MAX_MIG);
    for (int card = 0; card < MAX_CARDS; card++)
        if (target.cards >> card & 1)
            r->scenario->mig[card] = count;
}

static void read_file(struct reader *r, const char *path);

static void parse_include(struct reader *r)
{
    const char *name = take(r, "a file's name");
    char path[PATH_MAX], folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", r->path);
    const char *ending = strstr(name, ".scenario") ? "" : ".scenario";
    if (*name == '/')
        snprintf(path, sizeof path, "%s%s", name, ending);
    else
        snprintf(path, sizeof path, "%.3000s/%.900s%s", dirname(folder), name, ending);
    if (r->depth == DEEPEST_INCLUDE)
        refuse(r, "includes are nested deeper than %d; does a file include itself?", DEEPEST_INCLUDE);
    struct reader inner = {.scenario = r->scenario, .path = path, .depth = r->depth + 1, .refused = r->refused};
    if (access(path, R_OK))
        refuse(r, "%s: %s", path, strerror(errno));
    read_file(&inner, path);
}

static void read_statement(struct reader *r)
{
    static const struct {
        const char *word;
        void (*parse)(struct reader *);
    } statements[] = {
        {"include", parse_include}, {"cards", parse_cards},     {"card", parse_card},   {"system", parse_system},
        {"latency", parse_latency}, {"process", parse_process}, {"event", parse_event}, {"mig", parse_mig_devices},
    };
    const char *word = take(r, "a statement");
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (!strcmp(word, statements[i].word)) {
            statements[i].parse(r);
            if (peek(r))
                refuse(r, "'%s' is more than '%s' takes", peek(r), word);
            return;
        }
    refuse(r, "'%s' is no statement; expected include, cards, card, system, latency, process, event or mig", word);
}

static void read_file(struct reader *r, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    if (!file)
        refuse(r, "%s", strerror(errno));
    for (r->line = 1; getline(&line, &room, file) >= 0; r->line++) {
        split(r, line);
        if (r->n_words)
            read_statement(r);
    }
    split(r, "");
    free(r->words);
    free(line);
    fclose(file);
}

static bool read_whole(struct reader *r, const char *path)
{
    jmp_buf refused;
    r->refused = &refused;
    if (setjmp(refused))
        return false;
    read_file(r, path);
    return true;
}

struct scenario *scenario_read(const char *path)
{
    struct reader r = {.scenario = calloc(1, sizeof *r.scenario), .path = path};
    if (!read_whole(&r, path)) /* what a refused file had allocated is left: it happens once for each bad file */
        return NULL;
    r.scenario->matches = calloc(n_functions, sizeof *r.scenario->matches);
    return r.scenario;
}

static void free_value(struct value *value)
{
    free(value->name);
    free(value->text);
    free(value->terms);
}

void scenario_free(struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->n_rules; i++) {
        struct rule *rule = &scenario->rules[i];
        for (size_t o = 0; o < rule->n_outcomes; o++) {
            for (size_t v = 0; v < rule->outcomes[o].n_values; v++)
                free_value(&rule->outcomes[o].values[v]);
            free(rule->outcomes[o].values);
        }
        free(rule->outcomes);
        free(rule->pattern);
        free(rule->calls);
    }
    for (size_t i = 0; i < scenario->n_latencies; i++) {
        free(scenario->latencies[i].pattern);
        free(scenario->latencies[i].called);
    }
    for (size_t i = 0; i < scenario->n_processes; i++)
        free_value(&scenario->processes[i].memory);
    for (size_t i = 0; i < n_functions; i++) {
        free(scenario->matches[i].rules);
        free(scenario->matches[i].latencies);
    }
    free(scenario->matches);
    free(scenario->rules);
    free(scenario->latencies);
    free(scenario->processes);
    free(scenario->events);
    free(scenario);
}
