/* A library whose `foo` calls the next library's `foo`. */
#define _GNU_SOURCE
#include <dlfcn.h>

int foo(void)
{
    static int depth;
    if (++depth > 3)
        return -1; /* found itself */
    int (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "foo");
    return next ? next() + 1 : -2;
}
