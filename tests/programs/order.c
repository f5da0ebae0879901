/* Calls outside the driver's life: before cuInit, in constructors, after main, in exit handlers and destructors, after the
 * driver has ended (build the driver with -DLIFE: not initialised is 3, deinitialised is 4). Prints what each call returns. */
#include "driver_api.h"
#include <stdio.h>
#include <stdlib.h>

static CUdeviceptr kept;

static void call(const char *when, size_t bytes)
{
    CUdeviceptr address = 0;
    int result = cuMemAlloc_v2(&address, bytes);
    printf("%s: alloc %d", when, result);
    printf(", free %d\n", cuMemFree_v2(result ? kept : address));
    fflush(stdout);
}

__attribute__((constructor)) static void early(void) { call("constructor", 1); }
__attribute__((destructor)) static void late(void) { call("destructor", 6); }
static void at_exit(void) { call("exit handler", 5); }
static void end_driver(void) { printf("driver ends: %d\n", cuInit(0xdead)); }

int main(void)
{
    atexit(end_driver);
    atexit(at_exit);
    call("before cuInit", 2);
    printf("cuInit: %d\n", cuInit(0));
    call("after cuInit", 3);
    cuMemAlloc_v2(&kept, 4);
    return 5;
}
