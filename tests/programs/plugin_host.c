/* Loads the plug-in named by the argument into a scope of its own. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    int (*run)(void);
    void *plugin = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin)
        return puts(dlerror()), 1;
    *(void **)&run = dlsym(plugin, "run_plugin");
    printf("%d\n", run());
    return 0;
}
