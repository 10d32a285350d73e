/* A libcuda.so.1 of one card or more, told by the environment what to answer: FAKE_CUDA_<CALL>=code makes a call fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int code(const char *call) {
    char name[64];
    snprintf(name, sizeof name, "FAKE_CUDA_%s", call);
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

static int number(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

int cuInit(unsigned flags) { (void)flags; return code("cuInit"); }
int cuDriverGetVersion(int *version) { *version = number("FAKE_CUDA_VERSION", 13000); return 0; }
int cuDeviceGetCount(int *count) { *count = number("FAKE_CUDA_COUNT", 1); return code("cuDeviceGetCount"); }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return code("cuDeviceGet"); }
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)(0x10 * device + i);
    return 0;
}
int cuDeviceGetPCIBusId(char *text, int size, int device) {
    snprintf(text, (size_t)size, "0000:%02X:00.0", 0x4B + device);
    return 0;
}
int cuDeviceGetName(char *text, int size, int device) { (void)device; snprintf(text, (size_t)size, "NVIDIA Fake"); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)80 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? number("FAKE_CUDA_MAJOR", 9) : 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = (void *)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
int cuCtxPushCurrent_v2(void *context) { (void)context; return 0; }
int cuCtxPopCurrent_v2(void **context) { *context = (void *)1; return 0; }
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) { *free_bytes = (size_t)70 << 30; *total = (size_t)80 << 30; return 0; }
int cuPointerGetAttribute(void *value, int attribute, size_t address) {
    (void)attribute;
    if (address == 4096) return 1;
    *(unsigned *)value = address == 8192 ? 1 : 2;
    return 0;
}
int cuGetErrorName(int error, const char **name) {
    *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : error == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : NULL;
    return *name ? 0 : 1;
}
