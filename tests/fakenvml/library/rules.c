/* Which line decides a call, and what it says at a given second. */
#include "fake.h"

#include <fnmatch.h>

bool targets(const struct target *target, int card, int mig)
{
    if (target->system || card < 0)
        return target->system && card < 0;
    bool same_part = target->mig == mig || (target->mig == ANY_MIG && mig != WHOLE_CARD);
    return same_part && (target->cards >> card & 1);
}

static bool within(const struct window *window, double t)
{
    return window->from <= t && t < window->to;
}

static bool args_fit(const long long *wanted, const struct call *call)
{
    for (unsigned i = 0; i < MAX_ARGS; i++)
        if (wanted[i] != ANY_ARG && (i >= call->n_args || wanted[i] != call->args[i]))
            return false;
    return true;
}

static bool fits(const struct target *target, const char *pattern, const struct function *function)
{
    return target->system != function->on_card && !fnmatch(pattern, function->name, 0);
}

static const struct matches *matches_of(const struct scenario *scenario, const struct function *function)
{
    struct matches *matches = &scenario->matches[function - functions];
    if (matches->known)
        return matches;
    matches->rules = malloc((scenario->n_rules + 1) * sizeof *matches->rules);
    for (size_t i = scenario->n_rules; i-- > 0;)
        if (fits(&scenario->rules[i].target, scenario->rules[i].pattern, function))
            matches->rules[matches->n_rules++] = &scenario->rules[i];
    matches->latencies = malloc((scenario->n_latencies + 1) * sizeof *matches->latencies);
    for (size_t i = scenario->n_latencies; i-- > 0;)
        if (fits(&scenario->latencies[i].target, scenario->latencies[i].pattern, function))
            matches->latencies[matches->n_latencies++] = &scenario->latencies[i];
    matches->known = true;
    return matches;
}

/* ---- what a rule says --------------------------------------------------------------------------- */

static long double term_at(const struct term *term, int card, double t)
{
    if (term->index)
        return term->amount * card;
    if (term->wall_us)
        return term->amount * wall_us();
    if (!term->per_second)
        return term->amount;
    double until = t < term->window.to ? t : term->window.to;
    double from = term->window.from > 0 ? term->window.from : 0;
    return until > from ? term->amount * (until - from) : 0;
}

long double value_at(const struct value *value, int card, double t)
{
    long double sum = 0;
    for (size_t i = 0; i < value->n_terms; i++)
        sum += term_at(&value->terms[i], card, t);
    return sum;
}

/* The last outcome at or before a second; NULL before the first. */
static const struct outcome *step_at(const struct rule *rule, double t)
{
    size_t low = 0, high = rule->n_outcomes;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rule->outcomes[middle].at <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &rule->outcomes[low - 1] : NULL;
}

static const struct outcome *outcome_at(const struct rule *rule, int card, double t)
{
    if (rule->course == COURSE_FIXED)
        return rule->outcomes;
    if (rule->course == COURSE_CALLS) {
        unsigned n = rule->calls[card + 1]++;
        return &rule->outcomes[rule->repeat ? n % rule->n_outcomes : n < rule->n_outcomes ? n : rule->n_outcomes - 1];
    }
    return step_at(rule, rule->repeat ? fmod(t, rule->repeat) : t);
}

static const struct outcome *decide(const struct scenario *scenario, const struct call *call, double t,
                                    const struct rule **decided)
{
    const struct matches *matches = matches_of(scenario, call->function);
    for (size_t i = 0; i < matches->n_rules; i++) {
        const struct rule *rule = matches->rules[i];
        if (!targets(&rule->target, call->card, call->mig) || !args_fit(rule->args, call) || !within(&rule->window, t))
            continue;
        const struct outcome *outcome = outcome_at(rule, call->card, t);
        if (outcome && outcome->act != ACT_DEFAULT) {
            *decided = rule;
            return outcome;
        }
    }
    *decided = NULL;
    return NULL;
}

const struct rule *rule_for(const struct scenario *scenario, const struct call *call, double t)
{
    const struct rule *rule;
    decide(scenario, call, t, &rule);
    return rule;
}

/* ---- the answer --------------------------------------------------------------------------------- */

/* `{index}`, `{index+27:02x}`: the card's index, more a number, written in a printf form of d or x. */
static const char *put_index(const char *p, int card, char *to, size_t room)
{
    unsigned long plus = 0;
    char form[8] = "d", whole[16], *end;
    p += strlen("{index");
    if (*p == '+') {
        plus = strtoul(p + 1, &end, 10);
        p = end;
    }
    if (*p == ':') {
        size_t length = strcspn(++p, "}");
        snprintf(form, sizeof form, "%.*s", (int)(length < 6 ? length : 6), p);
        p += length;
    }
    bool sound = strspn(form, "0123456789") == strlen(form) - 1 && strchr("dxX", form[strlen(form) - 1]);
    snprintf(whole, sizeof whole, "%%%s", sound ? form : "d");
    snprintf(to, room, whole, (int)(card + plus));
    return p + (*p == '}');
}

static const char *put_text(struct answer *answer, const char *text, int card)
{
    char *start = answer->texts + answer->texts_used, *to = start;
    char *end = answer->texts + sizeof answer->texts - 1;
    while (*text && to < end) {
        if (!strncmp(text, "{index", 6)) {
            text = put_index(text, card, to, end - to);
            to += strlen(to);
        } else {
            *to++ = *text++;
        }
    }
    *to = 0;
    answer->texts_used += to - start + (to < end);
    return start;
}

static void put_values(struct answer *answer, const struct rule *rule, const struct outcome *outcome, int card, double t)
{
    double local = rule->repeat ? fmod(t, rule->repeat) : t;
    const struct outcome *next = outcome + 1 < rule->outcomes + rule->n_outcomes ? outcome + 1 : NULL;
    bool ramp = rule->course == COURSE_RAMP && next && next->n_values == outcome->n_values && next->at > outcome->at;
    long double share = ramp ? (local - outcome->at) / (next->at - outcome->at) : 0;
    for (size_t i = 0; i < outcome->n_values; i++) {
        const struct value *value = &outcome->values[i];
        struct answer_value *out = &answer->values[answer->n_values++];
        *out = (struct answer_value){value->name, NULL, value_at(value, card, t)};
        if (value->text)
            out->text = put_text(answer, value->text, card);
        else if (ramp)
            out->number += share * (value_at(&next->values[i], card, t) - out->number);
    }
}

void answer_from(struct answer *answer, const struct scenario *scenario, const struct call *call, double t)
{
    const struct rule *rule;
    const struct outcome *outcome = decide(scenario, call, t, &rule);
    answer->act = outcome ? outcome->act : ACT_ERROR;
    answer->error = outcome ? outcome->error : NVML_ERROR_NOT_SUPPORTED;
    answer->unsaid = !outcome;
    answer->n_values = answer->texts_used = 0;
    answer->value_type = rule ? rule->value_type : -1;
    if (outcome)
        put_values(answer, rule, outcome, call->card, t);
}

double latency_of(struct scenario *scenario, const struct call *call, double t)
{
    const struct matches *matches = matches_of(scenario, call->function);
    for (size_t i = 0; i < matches->n_latencies; i++) {
        struct latency *latency = matches->latencies[i];
        if (targets(&latency->target, call->card, call->mig) && args_fit(latency->args, call) &&
            within(&latency->window, t)) {
            bool *called = &latency->called[call->card + 1];
            double seconds = *called ? latency->usual_s : latency->first_s;
            *called = true;
            return seconds;
        }
    }
    return 0;
}
