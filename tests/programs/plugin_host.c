/* Loads the plug-in named by the argument into a scope of its own; with a second argument, by RTLD_DEEPBIND: what the plug-in is
 * linked with then comes before what the program has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    int (*run)(void);
    int how = RTLD_NOW | RTLD_LOCAL | (count > 2 ? RTLD_DEEPBIND : 0);
    void *plugin = count > 1 ? dlopen(arguments[1], how) : NULL;
    if (!plugin)
        return puts(dlerror()), 1;
    *(void **)&run = dlsym(plugin, "run_plugin");
    printf("%d\n", run());
    return 0;
}
