/* Calls every function of memscope.h, with odd arguments too. Compiled as C99 and as C++. */
#include "memscope.h"
#include <stdio.h>

int main(void)
{
    static char long_name[3000];
    memset(long_name, 'n', sizeof long_name - 1);
    const void *address = (const void *)0x7000;

    memscope_step(7);
    memscope_phase("forward");
    memscope_scope_push("layer 3");
    memscope_tag(address, MEMSCOPE_WEIGHTS, "layers.3.weight, a name that does not fit into one record");
    memscope_tag(address, MEMSCOPE_GRADIENTS, NULL);
    memscope_tag(address, 4711, "layer 3");
    memscope_tag(NULL, MEMSCOPE_WEIGHTS, "nothing is there");
    memscope_block_alloc(address, 512, (void *)0x20);
    memscope_block_alloc(NULL, 512, NULL);
    memscope_block_free(address);
    memscope_block_free(NULL);
    memscope_scope_push(NULL);
    memscope_scope_pop();
    memscope_scope_push("\xff\xfe not UTF-8");
    memscope_scope_pop();
    memscope_scope_push(long_name);
    memscope_scope_pop();
    memscope_scope_push("layer 3");
    memscope_scope_pop();
    memscope_scope_pop();
    memscope_phase(NULL);
    puts(memscope_is_active() ? "under memscope" : "alone");
    return 0;
}
