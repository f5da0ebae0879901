/* The second way: dlopen and dlsym. With the argument "old" by the dlsym that programs built before glibc 2.34 refer to. */
#define _GNU_SOURCE
#include "every_function.h"
#include <dlfcn.h>
#include <string.h>

void *old_dlsym(void *, const char *);
__asm__(".symver old_dlsym,dlsym@GLIBC_2.2.5");

int main(int count, char **arguments)
{
    void *(*look_up)(void *, const char *) = count > 1 && !strcmp(arguments[1], "old") ? old_dlsym : dlsym;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return puts(dlerror()), 1;
    struct functions f;
#define X(name, symbol, version) *(void **)&f.name = look_up(driver, #name);
    FUNCTIONS(X)
#undef X
    return call_every_function(&f);
}
