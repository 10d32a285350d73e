/* Readings that come in bulk: field values, the driver's sample buffers, GPM. */
#include "fake.h"

#define MEAN_POINTS 32
#define POWER_PERIOD_S 0.02
#define POWER_DEPTH 119
#define OTHER_PERIOD_S 0.2
#define OTHER_DEPTH 71

static nvmlReturn_t enter(const char *function, nvmlDevice_t handle, unsigned n_args, const long long *args,
                          struct call *call)
{
    struct answer answer;
    const struct device *device = device_of(handle);
    *call = (struct call){function_named(function), device ? device->card : -1, device ? device->mig : WHOLE_CARD,
                          n_args, args};
    return ask_unless_unsaid(call, &answer);
}

/* ---- field values ------------------------------------------------------------------------------- */

static nvmlValueType_t type_of(const struct answer *answer)
{
    if (answer->value_type >= 0)
        return (nvmlValueType_t)answer->value_type;
    return answer->values[0].number < 0 ? NVML_VALUE_TYPE_SIGNED_INT : NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
}

static nvmlValue_t typed(long double number, nvmlValueType_t type)
{
    nvmlValue_t value = {0};
    switch (type) {
    case NVML_VALUE_TYPE_DOUBLE: value.dVal = (double)number; break;
    case NVML_VALUE_TYPE_UNSIGNED_INT: value.uiVal = (unsigned)number; break;
    case NVML_VALUE_TYPE_UNSIGNED_LONG: value.ulVal = (unsigned long)number; break;
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG: value.sllVal = (long long)number; break;
    case NVML_VALUE_TYPE_SIGNED_INT: value.siVal = (int)number; break;
    case NVML_VALUE_TYPE_UNSIGNED_SHORT: value.usVal = (unsigned short)number; break;
    default: value.ullVal = (unsigned long long)number; break;
    }
    return value;
}

static void put_field(const struct call *card, nvmlFieldValue_t *field)
{
    struct answer answer;
    long long args[] = {field->fieldId, field->scopeId};
    struct call call = {function_named("field"), card->card, card->mig, 2, args};
    field->nvmlReturn = ask(&call, &answer);
    field->timestamp = (long long)wall_us();
    field->latencyUsec = 0;
    if (!field->nvmlReturn) {
        field->valueType = type_of(&answer);
        field->value = typed(answer.values[0].number, field->valueType);
    }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields)
{
    struct call call;
    nvmlReturn_t result = enter("nvmlDeviceGetFieldValues", device, 0, NULL, &call);
    if (result)
        return result;
    if (count < 1 || !fields)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++)
        put_field(&call, &fields[i]);
    return NVML_SUCCESS;
}

/* ---- sample buffers ----------------------------------------------------------------------------- */

struct buffer {
    double period_s;
    unsigned depth;
};

static struct buffer buffer_of(const struct rule *rule, nvmlSamplingType_t type)
{
    bool power = type == NVML_TOTAL_POWER_SAMPLES || type == NVML_MODULE_POWER_SAMPLES;
    struct buffer buffer = {power ? POWER_PERIOD_S : OTHER_PERIOD_S, power ? POWER_DEPTH : OTHER_DEPTH};
    if (rule && rule->every_s > 0)
        buffer.period_s = rule->every_s;
    if (rule && rule->depth)
        buffer.depth = rule->depth;
    return buffer;
}

/* Fill in what is newer than `last`, the oldest first; a second at which the line says an error has no sample. */
static unsigned collect(const struct scenario *scenario, const struct call *call, struct buffer buffer,
                        unsigned long long last, unsigned room, nvmlSample_t *samples, nvmlValueType_t *type)
{
    unsigned long long now = wall_us(), period = (unsigned long long)llround(buffer.period_s * 1e6);
    unsigned long long newest = now / period * period;
    double t = scenario_now();
    unsigned n = 0;
    for (unsigned back = buffer.depth; back-- > 0 && n < room;) {
        struct answer answer;
        unsigned long long stamp = newest - back * period;
        double then = t - (double)(now - stamp) * 1e-6 * scenario_speed();
        if (stamp <= last)
            continue;
        answer_from(&answer, scenario, call, then > 0 ? then : 0);
        if (answer.act != ACT_VALUES || !answer.n_values)
            continue;
        *type = answer.value_type >= 0 ? (nvmlValueType_t)answer.value_type : NVML_VALUE_TYPE_UNSIGNED_INT;
        samples[n++] = (nvmlSample_t){stamp, typed(answer.values[0].number, *type)};
    }
    return n;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long last,
                                  nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples)
{
    struct call call;
    struct answer answer;
    long long args[] = {(long long)type};
    nvmlReturn_t result = enter("nvmlDeviceGetSamples", device, 1, args, &call);
    call.function = function_named("samples");
    if (!result)
        result = ask(&call, &answer);
    if (result)
        return result;
    if (!value_type || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct scenario *scenario = scenario_lock();
    struct buffer buffer = buffer_of(scenario ? rule_for(scenario, &call, scenario_now()) : NULL, type);
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    *count = !samples ? buffer.depth
             : scenario ? collect(scenario, &call, buffer, last, *count, samples, value_type) : 0;
    scenario_unlock();
    return *count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* ---- GPM: what happened between two samples ----------------------------------------------------- */

struct nvmlGpmSample_st {
    int card, mig;
    bool taken;
    double t;
};

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    free(sample);
    return NVML_SUCCESS;
}

static bool gpm_supported(const struct call *call)
{
    struct answer answer;
    struct call support = {function_named("nvmlGpmQueryDeviceSupport"), call->card, WHOLE_CARD, 0, NULL};
    struct scenario *scenario = scenario_lock();
    bool supported = false;
    if (scenario) {
        answer_from(&answer, scenario, &support, scenario_now());
        const struct answer_value *value = answer_field(&answer, "isSupportedDevice");
        supported = answer.act == ACT_VALUES && value && value->number != 0;
    }
    scenario_unlock();
    return supported;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    struct call call;
    nvmlReturn_t result = enter("nvmlGpmSampleGet", device, 0, NULL, &call);
    if (result)
        return result;
    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpm_supported(&call))
        return NVML_ERROR_NOT_SUPPORTED;
    *sample = (struct nvmlGpmSample_st){call.card, call.mig, true, scenario_now()};
    return NVML_SUCCESS;
}

static void put_mean(nvmlGpmMetric_t *metric, nvmlGpmSample_t from, nvmlGpmSample_t to)
{
    long long args[] = {metric->metricId};
    struct call call = {function_named("gpm"), from->card, from->mig, 1, args};
    struct scenario *scenario = scenario_lock();
    long double sum = 0;
    metric->nvmlReturn = scenario ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
    for (int i = 0; scenario && i < MEAN_POINTS; i++) {
        struct answer answer;
        answer_from(&answer, scenario, &call, from->t + (to->t - from->t) * (i + 0.5) / MEAN_POINTS);
        if (answer.act != ACT_VALUES || !answer.n_values)
            metric->nvmlReturn = answer.error;
        else
            sum += answer.values[0].number;
    }
    scenario_unlock();
    metric->value = metric->nvmlReturn ? 0 : (double)(sum / MEAN_POINTS);
    memset(&metric->metricInfo, 0, sizeof metric->metricInfo);
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    struct answer answer;
    if (!get || !get->sample1 || !get->sample2)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (get->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlGpmSample_t from = get->sample1, to = get->sample2;
    bool pair = from->taken && to->taken && from->card == to->card && from->mig == to->mig && from->t < to->t;
    if (!pair || get->numMetrics > NVML_GPM_METRIC_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct call call = {function_named("nvmlGpmMetricsGet"), from->card, from->mig, 0, NULL};
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    for (unsigned i = 0; !result && i < get->numMetrics; i++)
        put_mean(&get->metrics[i], from, to);
    return result;
}
