/* Events: XIDs and others, delivered to the sets that registered for them. */
#include "fake.h"

#define QUEUE 256
#define POLL_S 0.01

struct nvmlEventSet_st {
    unsigned long long types[MAX_CARDS];
    double seen_until; /* scenario time: what happened before is no longer told */
    nvmlEventData_t queue[QUEUE];
    unsigned head, length;
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    if (!initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    *set = calloc(1, sizeof **set);
    if (!*set)
        return NVML_ERROR_MEMORY;
    (*set)->seen_until = scenario_now();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    free(set);
    return NVML_SUCCESS;
}

static unsigned long long supported_types(const struct call *call)
{
    struct answer answer;
    struct call types = {function_named("nvmlDeviceGetSupportedEventTypes"), call->card, call->mig, 0, NULL};
    struct scenario *scenario = scenario_lock();
    unsigned long long supported = 0;
    if (scenario) {
        answer_from(&answer, scenario, &types, scenario_now());
        supported = answer.act == ACT_VALUES && answer.n_values ? (unsigned long long)answer.values[0].number : 0;
    }
    scenario_unlock();
    return supported;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long types, nvmlEventSet_t set)
{
    struct answer answer;
    const struct device *device = device_of(handle);
    struct call call = {.function = function_named("nvmlDeviceRegisterEvents"), .card = device ? device->card : -1,
                        .mig = WHOLE_CARD};
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    if (result)
        return result;
    if (!set || !types)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (types & ~supported_types(&call))
        return NVML_ERROR_NOT_SUPPORTED;
    set->types[device->card] |= types;
    return NVML_SUCCESS;
}

static void tell(nvmlEventSet_t set, const struct event *event, int card)
{
    if (set->length < QUEUE)
        set->queue[(set->head + set->length++) % QUEUE] =
            (nvmlEventData_t){handle_of(card, WHOLE_CARD), event->type, event->data, UINT_MAX, UINT_MAX};
}

static unsigned times_between(const struct scenario *scenario, const struct event *event, double from, double to)
{
    double at = event->on_load ? scenario->replaced_at : event->at;
    if (event->every > 0 && from >= at)
        at += (floor((from - at) / event->every) + 1) * event->every;
    if (at <= from || at > to)
        return 0;
    return event->every > 0 ? 1 + (unsigned)((to - at) / event->every) : 1;
}

static void collect(nvmlEventSet_t set, const struct scenario *scenario)
{
    double now = scenario_now();
    for (size_t i = 0; i < scenario->n_events; i++) {
        const struct event *event = &scenario->events[i];
        unsigned times = times_between(scenario, event, set->seen_until, now);
        for (int card = 0; times && card < (int)scenario->cards; card++)
            if (targets(&event->target, card, WHOLE_CARD) && set->types[card] & event->type)
                for (unsigned k = 0; k < times; k++)
                    tell(set, event, card);
    }
    set->seen_until = now;
}

static bool next_event(nvmlEventSet_t set, nvmlEventData_t *data)
{
    struct scenario *scenario = scenario_lock();
    if (scenario)
        collect(set, scenario);
    scenario_unlock();
    if (!set->length)
        return false;
    *data = set->queue[set->head];
    set->head = (set->head + 1) % QUEUE;
    set->length--;
    return true;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct answer answer;
    struct call call = {.function = function_named("nvmlEventSetWait_v2"), .card = -1, .mig = WHOLE_CARD};
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    double end = monotonic_s() + timeout_ms * 1e-3;
    if (result)
        return result;
    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    while (!next_event(set, data)) {
        double left_s = end - monotonic_s();
        if (left_s <= 0)
            return NVML_ERROR_TIMEOUT;
        rest(left_s < POLL_S ? left_s : POLL_S);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
