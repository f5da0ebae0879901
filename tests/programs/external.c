/* Memory of another interface, which comes as a file descriptor: here a file in memory that the program makes itself. Prints of each
 * stage the result and the bytes in use on the device, as the driver says. Stays a while where most is in use. */
#define _GNU_SOURCE
#include "stages.h"
#include <sys/mman.h>
#include <unistd.h>

typedef struct { int type; union { int fd; void *pointers[2]; } handle; unsigned long long size; unsigned flags, reserved[16]; } Description;
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count);

enum { MIB = 1 << 20, OPAQUE = 1 };

int main(void)
{
    CUexternalMemory memory = 0;
    CUdeviceptr own = 0, address = 0, second = 0;
    int file = memfd_create("interface", 0), kept = dup(file);
    Description description = {OPAQUE, {file}, 4 * MIB, 0, {0}};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {1 * MIB, 2 * MIB, 0, {0}}, beyond = {3 * MIB, 2 * MIB, 0, {0}};
    unsigned char bytes[2] = {0};
    int bad = start() | cuMemAlloc_v2(&own, 5 * MIB);
    bad |= ftruncate(file, 3 * MIB);
    stage("too small", cuImportExternalMemory(&memory, &description));
    bad |= ftruncate(file, 4 * MIB);
    stage("taken in", cuImportExternalMemory(&memory, &description));
    stage("beyond", cuExternalMemoryGetMappedBuffer(&address, memory, &beyond));
    stage("mapped", cuExternalMemoryGetMappedBuffer(&address, memory, &buffer));
    stage("again", cuExternalMemoryGetMappedBuffer(&second, memory, &buffer));
    bad |= cuMemsetD8_v2(address, 0x5a, 1) | cuMemsetD8_v2(second + 2 * MIB - 1, 0x33, 1);
    bad |= pread(kept, bytes, 1, 1 * MIB) != 1 || pread(kept, bytes + 1, 1, 3 * MIB - 1) != 1 || bytes[0] != 0x5a || bytes[1] != 0x33;
    usleep(600000);
    stage("freed", cuMemFree_v2(address));
    stage("freed", cuMemFree_v2(address));
    stage("freed", cuMemFree_v2(second));
    stage("gone", cuDestroyExternalMemory(memory));
    stage("end", cuMemFree_v2(own));
    return bad ? 1 : 0;
}
