/* Handles, identity on the PCI bus, and the MIG devices of a card. */
#include "fake.h"

#include <ctype.h>

#define CALL(word, at_card, at_mig)                                                                                    \
    (struct call){.function = function_named(word), .card = (at_card), .mig = (at_mig)}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct answer answer;
    struct call call = CALL("nvmlDeviceGetCount_v2", -1, WHOLE_CARD);
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    if (result || !count)
        return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    struct scenario *scenario = scenario_lock();
    *count = answer.n_values ? (unsigned)answer.values[0].number : scenario ? scenario->cards : 0;
    scenario_unlock();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

static nvmlReturn_t open_device(const char *function, int card, int mig, nvmlDevice_t *device)
{
    struct answer answer;
    struct call call = CALL(function, card, mig);
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    if (result || !device)
        return result ? result : NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_of(card, mig);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return open_device("nvmlDeviceGetHandleByIndex_v2", index < MAX_CARDS ? (int)index : MAX_CARDS, WHOLE_CARD, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index)
{
    struct answer answer;
    const struct device *device = device_of(handle);
    struct call call = CALL("nvmlDeviceGetIndex", device ? device->card : -1, device ? device->mig : WHOLE_CARD);
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    if (!result)
        *index = answer.n_values ? (unsigned)answer.values[0].number : (unsigned)device->card;
    return result;
}

/* ---- found by what is written on a card --------------------------------------------------------- */

typedef bool same_text(const char *wanted, const char *found);

static bool same(const char *wanted, const char *found)
{
    return !strcmp(wanted, found);
}

/* Domains are written with four or eight digits, in either case. */
static bool same_bus_id(const char *wanted, const char *found)
{
    unsigned a[4], b[4];
    return sscanf(wanted, "%x:%x:%x.%x", &a[0], &a[1], &a[2], &a[3]) == 4 &&
           sscanf(found, "%x:%x:%x.%x", &b[0], &b[1], &b[2], &b[3]) == 4 && !memcmp(a, b, sizeof a);
}

static bool says(struct scenario *scenario, const char *function, int card, int mig, const char *text, same_text *fits)
{
    struct answer answer;
    struct call call = CALL(function, card, mig);
    answer_from(&answer, scenario, &call, scenario_now());
    return answer.n_values && answer.values[0].text && fits(text, answer.values[0].text);
}

static nvmlReturn_t open_by(const char *opener, const char *function, const char *text, same_text *fits,
                            nvmlDevice_t *device)
{
    int found_card = -1, found_mig = WHOLE_CARD;
    struct scenario *scenario = scenario_lock();
    for (int card = 0; scenario && text && card < (int)scenario->cards; card++)
        for (int mig = WHOLE_CARD; mig < (int)scenario->mig[card]; mig++)
            if (found_card < 0 && says(scenario, function, card, mig, text, fits)) {
                found_card = card;
                found_mig = mig;
            }
    scenario_unlock();
    if (!initialised())
        return NVML_ERROR_UNINITIALIZED;
    return found_card < 0 ? NVML_ERROR_NOT_FOUND : open_device(opener, found_card, found_mig, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return open_by("nvmlDeviceGetHandleByUUID", "nvmlDeviceGetUUID", uuid, same, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return open_by("nvmlDeviceGetHandleBySerial", "nvmlDeviceGetSerial", serial, same, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return open_by("nvmlDeviceGetHandleByPciBusId_v2", "pci", bus_id, same_bus_id, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

/* ---- the PCI bus -------------------------------------------------------------------------------- */

struct pci {
    unsigned domain, bus, device, function, device_id, subsystem_id;
};

static nvmlReturn_t ask_pci(const char *function, nvmlDevice_t handle, struct pci *pci)
{
    struct answer answer;
    const struct device *device = device_of(handle);
    struct call call = CALL(function, device ? device->card : -1, WHOLE_CARD);
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    if (result)
        return result;
    call.function = function_named("pci");
    result = ask(&call, &answer);
    *pci = (struct pci){0};
    if (result || !answer.n_values || !answer.values[0].text)
        return result ? result : NVML_ERROR_UNKNOWN;
    sscanf(answer.values[0].text, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &pci->function);
    pci->device_id = answer.n_values > 1 ? (unsigned)answer.values[1].number : 0;
    pci->subsystem_id = answer.n_values > 2 ? (unsigned)answer.values[2].number : 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_pci(const char *function, nvmlDevice_t handle, nvmlPciInfo_t *info)
{
    struct pci pci;
    nvmlReturn_t result = info ? ask_pci(function, handle, &pci) : NVML_ERROR_INVALID_ARGUMENT;
    if (result)
        return result;
    *info = (nvmlPciInfo_t){.domain = pci.domain, .bus = pci.bus, .device = pci.device,
                            .pciDeviceId = pci.device_id, .pciSubSystemId = pci.subsystem_id};
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.%X", pci.domain & 0xffff, pci.bus & 0xff,
             pci.device & 0xff, pci.function & 0xf);
    snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.%X", pci.domain, pci.bus, pci.device, pci.function);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return put_pci("nvmlDeviceGetPciInfo_v3", device, info);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return put_pci("nvmlDeviceGetPciInfo_v2", device, info);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return put_pci("nvmlDeviceGetPciInfo", device, info);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *info)
{
    struct pci pci;
    if (!info || info->version != nvmlPciInfoExt_v1)
        return info ? NVML_ERROR_ARGUMENT_VERSION_MISMATCH : NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = ask_pci("nvmlDeviceGetPciInfoExt", device, &pci);
    if (result)
        return result;
    *info = (nvmlPciInfoExt_t){.version = nvmlPciInfoExt_v1, .domain = pci.domain, .bus = pci.bus,
                               .device = pci.device, .pciDeviceId = pci.device_id,
                               .pciSubSystemId = pci.subsystem_id, .baseClass = 3, .subClass = 2};
    snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.%X", pci.domain, pci.bus, pci.device, pci.function);
    return NVML_SUCCESS;
}

/* ---- MIG devices -------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned int index, nvmlDevice_t *mig)
{
    const struct device *device = device_of(handle);
    struct scenario *scenario = scenario_lock();
    unsigned count = scenario && device ? scenario->mig[device->card] : 0;
    scenario_unlock();
    if (!device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (index >= count)
        return NVML_ERROR_NOT_FOUND;
    return open_device("nvmlDeviceGetMigDeviceHandleByIndex", device->card, (int)index, mig);
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t handle, nvmlDevice_t *device)
{
    const struct device *mig = device_of(handle);
    if (!mig || mig->mig == WHOLE_CARD)
        return NVML_ERROR_INVALID_ARGUMENT;
    return open_device("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", mig->card, WHOLE_CARD, device);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned int *is_mig)
{
    const struct device *device = device_of(handle);
    if (!device || !is_mig)
        return NVML_ERROR_INVALID_ARGUMENT;
    *is_mig = device->mig != WHOLE_CARD;
    return initialised() ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    for (size_t i = 0; i < n_constants; i++)
        if (constants[i].value == (long long)result && !strncmp(constants[i].name, "NVML_ERROR_", 11))
            return constants[i].name + 11;
    return result ? "unknown error" : "SUCCESS";
}
