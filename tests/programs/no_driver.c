/* Looks for driver functions where no driver is loaded, and for what does not exist; prints what a program can see. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void look(const char *how, void *handle, const char *name)
{
    dlerror();
    void *found = dlsym(handle, name);
    const char *error = dlerror();
    /* The text begins with the library that asked; what follows is the same for all. */
    const char *message = error ? strstr(error, "undefined symbol") : NULL;
    printf("%s %s: %s, %s\n", how, name, found ? "found" : "null", message ? message : error ? "another error" : "no error");
    printf("  then %s\n", dlerror() ? "an error" : "no error");
}

int main(void)
{
    look("RTLD_DEFAULT", RTLD_DEFAULT, "cuMemAlloc_v2");
    look("RTLD_NEXT", RTLD_NEXT, "cuMemAlloc_v2");
    look("dlopen(NULL)", dlopen(NULL, RTLD_NOW), "cuMemFree_v2");
    look("libc", dlopen("libc.so.6", RTLD_NOW), "cuMemFree_v2");
    look("RTLD_DEFAULT", RTLD_DEFAULT, "cuNoSuchFunction");
    look("RTLD_DEFAULT", RTLD_DEFAULT, "no_such_function");
    look("RTLD_DEFAULT", RTLD_DEFAULT, "puts");
    dlerror();
    dlsym(RTLD_DEFAULT, "no_such_function");
    puts(dlerror());
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver)
        return 0;
    puts("with a driver");
    look("handle", driver, "cuMemAlloc_v2");
    look("handle", driver, "cuNoSuchFunction");
    look("RTLD_DEFAULT", RTLD_DEFAULT, "cuMemAlloc_v2");
    look("RTLD_NEXT", RTLD_NEXT, "cuMemAlloc_v2");
    look("dlopen(NULL)", dlopen(NULL, RTLD_NOW), "cuMemFree_v2");
    return 0;
}
