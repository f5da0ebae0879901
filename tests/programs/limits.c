/* Records under a limit of the size of files, and again after it was lifted. SIGXFSZ would end the program.
 * Arguments: the limit in bytes, events under it, events after it. */
#include "memscope.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    struct rlimit limit = {strtoull(arguments[1], NULL, 10), RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    uint64_t under = strtoull(arguments[2], NULL, 10), after = strtoull(arguments[3], NULL, 10);
    for (uint64_t number = 0; number < under; number++)
        memscope_step(number);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    for (uint64_t number = 0; number < after; number++)
        memscope_step(under + number);
    puts("unharmed");
    return 0;
}
