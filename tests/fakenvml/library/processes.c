/* Who is on a card. */
#include "fake.h"

#define MOST_PROCESSES 4096
#define CHURN_PIDS 1000000

static const char *const kinds[] = {"Compute", "Graphics", "MPSCompute"};

static unsigned list(const struct scenario *scenario, const struct call *call, enum process_kind kind,
                     nvmlProcessInfo_t *to)
{
    double t = scenario_now();
    unsigned n = 0;
    for (size_t i = 0; i < scenario->n_processes; i++) {
        const struct process *process = &scenario->processes[i];
        bool here = process->kind == kind && targets(&process->target, call->card, call->mig);
        if (!here || t < process->window.from || t >= process->window.to)
            continue;
        unsigned first = process->own_pid ? (unsigned)getpid() : process->pid;
        unsigned born = process->churns ? (unsigned)fmod(floor(t) * process->count, CHURN_PIDS) : 0;
        for (unsigned k = 0; k < process->count && n < MOST_PROCESSES; k++) {
            unsigned long long memory =
                process->memory_unknown ? ULLONG_MAX : (unsigned long long)value_at(&process->memory, call->card, t);
            to[n++] = (nvmlProcessInfo_t){first + born + k, memory, UINT_MAX, UINT_MAX};
        }
    }
    return n;
}

static nvmlReturn_t fetch(const char *function, nvmlDevice_t handle, enum process_kind kind, nvmlProcessInfo_t *to,
                          unsigned *n)
{
    struct answer answer;
    const struct device *device = device_of(handle);
    struct call call = {function_named(function), device ? device->card : -1, device ? device->mig : WHOLE_CARD, 0, NULL};
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    if (result)
        return result;
    struct scenario *scenario = scenario_lock();
    *n = scenario ? list(scenario, &call, kind, to) : 0;
    scenario_unlock();
    return NVML_SUCCESS;
}

static nvmlReturn_t put(const char *function, nvmlDevice_t device, enum process_kind kind, unsigned *count, void *to,
                        size_t size)
{
    static _Thread_local nvmlProcessInfo_t found[MOST_PROCESSES];
    unsigned n = 0, room = count ? *count : 0;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = fetch(function, device, kind, found, &n);
    if (result)
        return result;
    *count = n;
    if (n && (!to || room < n))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) /* the older struct is the first part of the newer one */
        memcpy((char *)to + i * size, &found[i], size);
    return NVML_SUCCESS;
}

#define LISTS(name, kind)                                                                                              \
    nvmlReturn_t nvmlDeviceGet##name##RunningProcesses(nvmlDevice_t device, unsigned int *n, nvmlProcessInfo_v1_t *to) \
    {                                                                                                                  \
        return put("nvmlDeviceGet" #name "RunningProcesses", device, kind, n, to, sizeof *to);                         \
    }                                                                                                                  \
    nvmlReturn_t nvmlDeviceGet##name##RunningProcesses_v2(nvmlDevice_t device, unsigned int *n,                        \
                                                          nvmlProcessInfo_v2_t *to)                                    \
    {                                                                                                                  \
        return put("nvmlDeviceGet" #name "RunningProcesses_v2", device, kind, n, to, sizeof *to);                      \
    }                                                                                                                  \
    nvmlReturn_t nvmlDeviceGet##name##RunningProcesses_v3(nvmlDevice_t device, unsigned int *n, nvmlProcessInfo_t *to) \
    {                                                                                                                  \
        return put("nvmlDeviceGet" #name "RunningProcesses_v3", device, kind, n, to, sizeof *to);                      \
    }

LISTS(Compute, PROCESS_COMPUTE)
LISTS(Graphics, PROCESS_GRAPHICS)
LISTS(MPSCompute, PROCESS_MPS)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *details)
{
    static _Thread_local nvmlProcessInfo_t found[MOST_PROCESSES];
    char function[64];
    unsigned n = 0;
    if (!details || details->mode >= sizeof kinds / sizeof *kinds)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (details->version != nvmlProcessDetailList_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    snprintf(function, sizeof function, "nvmlDeviceGet%sRunningProcesses_v3", kinds[details->mode]);
    nvmlReturn_t result = fetch(function, device, (enum process_kind)details->mode, found, &n);
    if (result)
        return result;
    unsigned room = details->numProcArrayEntries;
    details->numProcArrayEntries = n;
    if (n && (!details->procArray || room < n))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++)
        details->procArray[i] = (nvmlProcessDetail_v1_t){found[i].pid, found[i].usedGpuMemory, UINT_MAX, UINT_MAX, 0};
    return NVML_SUCCESS;
}
