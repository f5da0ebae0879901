/* NVTX as its public headers describe it, as far as a profiler sees it: functions in the program itself that look for a profiler's
 * library at their first call, and call what that library asks to be called. Written by hand from the documentation of nvtx3;
 * -DNVTX_HEADERS takes NVIDIA's own instead. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

typedef uint64_t nvtxRangeId_t;
typedef void *nvtxDomainHandle_t;
typedef void *nvtxStringHandle_t;
enum { NVTX_VERSION = 3, NVTX_MESSAGE_TYPE_ASCII = 1, NVTX_MESSAGE_TYPE_REGISTERED = 3, NVTX_NO_PUSH_POP_TRACKING = -2 };

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    uint64_t payload;
    int32_t messageType;
    union {
        const char *ascii;
        const wchar_t *unicode;
        nvtxStringHandle_t registered;
    } message;
} nvtxEventAttributes_t;
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

/* Places of functions by module (1 core, 5 domains) and number; null until a profiler sets them. */
static void *nvtx_core[16], *nvtx_domains[16];
static void **nvtx_core_places[16], **nvtx_domain_places[16];

static int nvtx_functions(unsigned module, void ****places, unsigned *count)
{
    for (int i = 1; i < 16; i++) {
        nvtx_core_places[i] = &nvtx_core[i];
        nvtx_domain_places[i] = &nvtx_domains[i];
    }
    if (module != 1 && module != 5)
        return 0;
    *places = module == 1 ? nvtx_core_places : nvtx_domain_places;
    *count = 16;
    return 1;
}

static const void *nvtx_table(uint32_t id)
{
    static struct {
        size_t bytes;
        int (*functions)(unsigned, void ****, unsigned *);
    } callbacks = {sizeof callbacks, nvtx_functions};
    return id == 1 ? &callbacks : NULL;
}

static void *nvtx_function(void **functions, int number)
{
    static int looked;
    if (!looked) {
        looked = 1;
        const char *path = getenv("NVTX_INJECTION64_PATH");
        void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
        int (*initialize)(const void *(*)(uint32_t)) =
            library ? (int (*)(const void *(*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2") : NULL;
        if (initialize && !initialize(nvtx_table))
            abort();
    }
    return functions[number];
}

#define NVTX_CALL(functions, number, type, absent, arguments) \
    type = nvtx_function(functions, number);                  \
    return function ? function arguments : absent

static inline int nvtxRangePushA(const char *message)
{
    NVTX_CALL(nvtx_core, 9, int (*function)(const char *), NVTX_NO_PUSH_POP_TRACKING, (message));
}
static inline int nvtxRangePushW(const wchar_t *message)
{
    NVTX_CALL(nvtx_core, 10, int (*function)(const wchar_t *), NVTX_NO_PUSH_POP_TRACKING, (message));
}
static inline int nvtxRangePushEx(const nvtxEventAttributes_t *attributes)
{
    NVTX_CALL(nvtx_core, 8, int (*function)(const nvtxEventAttributes_t *), NVTX_NO_PUSH_POP_TRACKING, (attributes));
}
static inline int nvtxRangePop(void)
{
    NVTX_CALL(nvtx_core, 11, int (*function)(void), NVTX_NO_PUSH_POP_TRACKING, ());
}
static inline nvtxRangeId_t nvtxRangeStartA(const char *message)
{
    NVTX_CALL(nvtx_core, 5, nvtxRangeId_t (*function)(const char *), 0, (message));
}
static inline void nvtxRangeEnd(nvtxRangeId_t id)
{
    void (*function)(nvtxRangeId_t) = nvtx_function(nvtx_core, 7);
    if (function)
        function(id);
}
static inline void nvtxMarkA(const char *message)
{
    void (*function)(const char *) = nvtx_function(nvtx_core, 2);
    if (function)
        function(message);
}
static inline nvtxDomainHandle_t nvtxDomainCreateA(const char *name)
{
    NVTX_CALL(nvtx_domains, 12, nvtxDomainHandle_t (*function)(const char *), NULL, (name));
}
static inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain, const char *text)
{
    NVTX_CALL(nvtx_domains, 10, nvtxStringHandle_t (*function)(nvtxDomainHandle_t, const char *), NULL, (domain, text));
}
static inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
    NVTX_CALL(nvtx_domains, 4, int (*function)(nvtxDomainHandle_t, const nvtxEventAttributes_t *),
              NVTX_NO_PUSH_POP_TRACKING, (domain, attributes));
}
static inline int nvtxDomainRangePop(nvtxDomainHandle_t domain)
{
    NVTX_CALL(nvtx_domains, 5, int (*function)(nvtxDomainHandle_t), NVTX_NO_PUSH_POP_TRACKING, (domain));
}
static inline nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
    NVTX_CALL(nvtx_domains, 2, nvtxRangeId_t (*function)(nvtxDomainHandle_t, const nvtxEventAttributes_t *), 0,
              (domain, attributes));
}
static inline void nvtxDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    void (*function)(nvtxDomainHandle_t, nvtxRangeId_t) = nvtx_function(nvtx_domains, 3);
    if (function)
        function(domain, id);
}
