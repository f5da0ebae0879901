/* Records as many steps as each line of its input says, and answers each with a line when it has. The steps are numbered on. */
#include "memscope.h"
#include <stdio.h>

int main(void)
{
    unsigned long long events;
    uint64_t number = 0;
    while (scanf("%llu", &events) == 1) {
        for (; events > 0; events--)
            memscope_step(number++);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
