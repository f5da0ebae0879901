// An NVML without a driver, for tests and benches of whatever asks NVML: eight devices whose answers are known in advance.
//
// It owns: the answers. It refuses to be realistic where that would make them hard to predict. What it says is steered by
// files in the folder in which the library lies, so that a test decides when something happens, without clocks:
//
//   processes  a line a process: DEVICE PID BYTES KIND INSTANCE; BYTES is - where the driver does not tell; KIND is C
//              (compute), G (graphics) or B (both); INSTANCE is - or the number of an instance of the divided device
//   live       while it exists, `processes` is read anew for each question; otherwise once
//   vary       from its existence at the start on, utilisation, memory, power, clocks and temperature differ from answer to
//              answer
//   hold-N     while it exists, device N does not answer
//   slow-N     while it exists, device N takes 500 ms for an answer
//   handles    written: a line for each handle that is fetched
//
// Device 3 has neither sensors nor links; device 5 keeps its processes to itself; device 7 is divided (MIG): places 0, 1 and 4
// of seven are instances.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999 };
enum { DEVICES = 8, BARE = 3, SECRETIVE = 5, DIVIDED = 7, PLACES = 7, PROCESSES = 256 };
static const unsigned long long MIB = 1ull << 20, GIB = 1ull << 30, NOT_AVAILABLE = ~0ull;

typedef struct { unsigned long long total, free, used; } memory_1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_2;
typedef struct { unsigned pid; unsigned long long used; } process_1;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process_2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct {
    char bus_id_legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32];
} pci_info;

// Their addresses are the handles.
static char devices[DEVICES], instances[PLACES];
static struct { int device; unsigned pid; unsigned long long used; char kind; int instance; } processes[PROCESSES];
static int process_count, live, vary;
static unsigned answers[DEVICES];

// Path of a file beside this library.
static const char *path(char *buffer, size_t room, const char *name) {
    Dl_info library;
    const char *file = dladdr(devices, &library) ? library.dli_fname : "";
    const char *end = strrchr(file, '/');
    snprintf(buffer, room, "%.*s/%s", end ? (int)(end - file) : 1, end ? file : ".", name);
    return buffer;
}

static int exists(const char *name) {
    char buffer[4096];
    return access(path(buffer, sizeof buffer, name), F_OK) == 0;
}

static void note_handle(const char *what, unsigned number) {
    char buffer[4096], line[64];
    int file = open(path(buffer, sizeof buffer, "handles"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0) return;
    int length = snprintf(line, sizeof line, "%s %u\n", what, number);
    if (write(file, line, length) != length) perror("handles");
    close(file);
}

static void read_processes(void) {
    char buffer[4096], bytes[32], kind, instance[16];
    FILE *file = fopen(path(buffer, sizeof buffer, "processes"), "r");
    int count = 0, device;
    unsigned pid;
    while (file && count < PROCESSES && fscanf(file, "%d %u %31s %c %15s", &device, &pid, bytes, &kind, instance) == 5) {
        processes[count].device = device;
        processes[count].pid = pid;
        processes[count].used = *bytes == '-' ? NOT_AVAILABLE : strtoull(bytes, 0, 10);
        processes[count].kind = kind;
        processes[count++].instance = *instance == '-' ? -1 : atoi(instance);
    }
    if (file) fclose(file);
    __atomic_store_n(&process_count, count, __ATOMIC_RELEASE);
}

// Number of the device, or DEVICES + place of an instance.
static int number(void *handle) {
    char *address = handle;
    if (address >= devices && address < devices + DEVICES) return address - devices;
    return DEVICES + (int)(address - instances);
}

// A little of a value that differs from answer to answer.
static unsigned change(int device, unsigned most) {
    if (!vary || device >= DEVICES) return 0;
    return (answers[device] * 2654435761u >> 16) % (most + 1);
}

// Each answer begins with the memory: there a device waits.
static void wait_for_answer(int device) {
    char name[32];
    if (device >= DEVICES) device = DIVIDED;
    if (!live) return;
    snprintf(name, sizeof name, "hold-%d", device);
    while (exists(name)) usleep(1000);
    snprintf(name, sizeof name, "slow-%d", device);
    if (exists(name)) usleep(500000);
}

static int put(char *to, unsigned room, const char *text) {
    if (strlen(text) >= room) return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return SUCCESS;
}

static int bare(int device) { return device == BARE || device >= DEVICES; }

int nvmlInit_v2(void) {
    live = exists("live");
    vary = exists("vary");
    read_processes();
    return SUCCESS;
}
int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int error) { return error == SUCCESS ? "success" : "an error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned room) { return put(text, room, "580.00"); }
int nvmlSystemGetNVMLVersion(char *text, unsigned room) { return put(text, room, "13.580.00"); }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = DEVICES; return SUCCESS; }
int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if (index >= DEVICES) return INVALID_ARGUMENT;
    note_handle("device", index);
    *handle = devices + index;
    return SUCCESS;
}
int nvmlDeviceGetHandleByIndex(unsigned index, void **handle) { return nvmlDeviceGetHandleByIndex_v2(index, handle); }

int nvmlDeviceGetUUID(void *handle, char *text, unsigned room) {
    char uuid[96];
    int device = number(handle);
    if (device < DEVICES) snprintf(uuid, sizeof uuid, "GPU-00000000-0000-0000-0000-%012d", device);
    else snprintf(uuid, sizeof uuid, "MIG-00000000-0000-0000-0000-%012d", device - DEVICES);
    return put(text, room, uuid);
}

int nvmlDeviceGetName(void *handle, char *text, unsigned room) {
    int device = number(handle);
    if (device >= DEVICES) return put(text, room, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
    return put(text, room, device == BARE ? "NVIDIA T400" : "NVIDIA H100 80GB HBM3");
}

int nvmlDeviceGetPciInfo_v3(void *handle, pci_info *info) {
    memset(info, 0, sizeof *info);
    info->bus = number(handle) + 1;
    info->device_id = 0x233010de;
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "0000:%02X:00.0", info->bus);
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v2(void *handle, pci_info *info) { return nvmlDeviceGetPciInfo_v3(handle, info); }
int nvmlDeviceGetPciInfo(void *handle, pci_info *info) { return nvmlDeviceGetPciInfo_v3(handle, info); }

// Total, reserved and used: 80 GiB, 600 MiB and 10 GiB + 1 GiB a device; an instance has 10 GiB, 16 MiB and 1 GiB.
static void memory(int device, memory_2 *memory) {
    int whole = device < DEVICES;
    if (whole) __atomic_add_fetch(answers + device, 1, __ATOMIC_RELAXED);
    memory->total = whole ? 80 * GIB : 10 * GIB;
    memory->reserved = whole ? 600 * MIB : 16 * MIB;
    memory->used = (whole ? (10 + device) * GIB : GIB) + change(device, 2048) * MIB;
    memory->free = memory->total - memory->reserved - memory->used;
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_2 *answer) {
    if (answer->version != (sizeof *answer | 2 << 24)) return ARGUMENT_VERSION_MISMATCH;
    wait_for_answer(number(handle));
    memory(number(handle), answer);
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_1 *answer) {
    memory_2 inner;
    wait_for_answer(number(handle));
    memory(number(handle), &inner);
    *answer = (memory_1){inner.total, inner.free, inner.used + inner.reserved};
    return SUCCESS;
}

// Whether a process is in the list of this kind that a handle gives.
static int listed(int index, int device, char kind) {
    if (processes[index].kind != kind && processes[index].kind != 'B') return 0;
    if (device < DEVICES) return processes[index].device == device;
    return processes[index].device == DIVIDED && processes[index].instance == device - DEVICES;
}

static int list(void *handle, char kind, unsigned *room, void *answer, int version) {
    int device = number(handle);
    unsigned count = 0;
    if (device == SECRETIVE) return NO_PERMISSION;
    if (live && device < DEVICES && kind == 'C') read_processes();
    int known = __atomic_load_n(&process_count, __ATOMIC_ACQUIRE);
    for (int index = 0; index < known; index++) {
        if (!listed(index, device, kind)) continue;
        if (count < *room && version == 1) {
            ((process_1 *)answer)[count] = (process_1){processes[index].pid, processes[index].used};
        } else if (count < *room) {
            unsigned instance = processes[index].instance < 0 ? ~0u : (unsigned)processes[index].instance;
            ((process_2 *)answer)[count] = (process_2){processes[index].pid, processes[index].used, instance, instance};
        }
        count++;
    }
    int fits = count <= *room;
    *room = count;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}

#define LISTS(NAME, KIND)                                                                                                       \
    int nvmlDeviceGet##NAME##RunningProcesses(void *h, unsigned *n, void *p) { return list(h, KIND, n, p, 1); }                \
    int nvmlDeviceGet##NAME##RunningProcesses_v2(void *h, unsigned *n, void *p) { return list(h, KIND, n, p, 2); }             \
    int nvmlDeviceGet##NAME##RunningProcesses_v3(void *h, unsigned *n, void *p) { return list(h, KIND, n, p, 3); }
LISTS(Compute, 'C')
LISTS(Graphics, 'G')

// A sensor of a whole device: what the value is for device `d`.
#define SENSOR(NAME, VALUE)                                                                                                     \
    int nvmlDeviceGet##NAME(void *handle, unsigned *value) {                                                                    \
        int d = number(handle);                                                                                                 \
        if (bare(d)) return NOT_SUPPORTED;                                                                                      \
        *value = VALUE;                                                                                                         \
        return SUCCESS;                                                                                                         \
    }
SENSOR(PowerUsage, 100000 + 10000 * d + change(d, 50000))
SENSOR(EnforcedPowerLimit, 700000)
SENSOR(PowerManagementLimit, 700000)
SENSOR(FanSpeed, 30 + d)
SENSOR(CurrPcieLinkGeneration, 5)
SENSOR(CurrPcieLinkWidth, 16)
SENSOR(MaxPcieLinkGeneration, 5)
SENSOR(MaxPcieLinkWidth, 16)

int nvmlDeviceGetFanSpeed_v2(void *handle, unsigned fan, unsigned *percent) {
    return fan == 0 ? nvmlDeviceGetFanSpeed(handle, percent) : INVALID_ARGUMENT;
}
int nvmlDeviceGetUtilizationRates(void *handle, utilization *rates) {
    int d = number(handle);
    if (d >= DIVIDED) return NOT_SUPPORTED;
    *rates = (utilization){10 * d + change(d, 20), 5 * d};
    return SUCCESS;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius) {
    int d = number(handle);
    if (bare(d) || sensor != 0) return NOT_SUPPORTED;
    *celsius = 40 + d + change(d, 5);
    return SUCCESS;
}
int nvmlDeviceGetTemperatureThreshold(void *handle, int which, unsigned *celsius) {
    (void)which;
    if (bare(number(handle))) return NOT_SUPPORTED;
    *celsius = 90;
    return SUCCESS;
}
// Clock 0 is the graphics clock, 2 the memory's.
int nvmlDeviceGetClockInfo(void *handle, int clock, unsigned *megahertz) {
    int d = number(handle);
    if (bare(d)) return NOT_SUPPORTED;
    *megahertz = clock == 2 ? 2619 : 1000 + 100 * d + change(d, 200);
    return SUCCESS;
}
int nvmlDeviceGetMaxClockInfo(void *handle, int clock, unsigned *megahertz) {
    if (bare(number(handle))) return NOT_SUPPORTED;
    *megahertz = clock == 2 ? 2619 : 1980;
    return SUCCESS;
}
// Direction 0 is what the device sends, 1 what it receives; KB a second.
int nvmlDeviceGetPcieThroughput(void *handle, int direction, unsigned *kilobytes) {
    int d = number(handle);
    if (bare(d)) return NOT_SUPPORTED;
    *kilobytes = (direction == 1 ? 1000 : 2000) * (d + 1) + change(d, 100);
    return SUCCESS;
}
int nvmlDeviceGetEncoderUtilization(void *handle, unsigned *percent, unsigned *period) {
    (void)handle, (void)percent, (void)period;
    return NOT_SUPPORTED;
}
int nvmlDeviceGetDecoderUtilization(void *handle, unsigned *percent, unsigned *period) {
    return nvmlDeviceGetEncoderUtilization(handle, percent, period);
}
int nvmlDeviceGetProcessUtilization(void *handle, void *samples, unsigned *count, unsigned long long since) {
    (void)handle, (void)samples, (void)count, (void)since;
    return NOT_SUPPORTED;
}

int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *pending) {
    if (number(handle) == BARE) return NOT_SUPPORTED;
    *now = *pending = number(handle) == DIVIDED;
    return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count) {
    *count = number(handle) == DIVIDED ? PLACES : 0;
    return SUCCESS;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **instance) {
    if (number(handle) != DIVIDED || index >= PLACES) return INVALID_ARGUMENT;
    if (index != 0 && index != 1 && index != 4) return NOT_FOUND;
    note_handle("instance", index);
    *instance = instances + index;
    return SUCCESS;
}
