/* Records as many beginnings of steps as each line of its input says, and answers each with a line when it has. 4096 are of one
 * number: no program has a million steps a second, and a report of them takes long. */
#include "memscope.h"
#include <stdio.h>

int main(void)
{
    unsigned long long events;
    uint64_t number = 0;
    while (scanf("%llu", &events) == 1) {
        for (; events > 0; events--)
            memscope_step(number++ / 4096);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
