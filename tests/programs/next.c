/* RTLD_NEXT of libraries that have nothing to do with CUDA. */
#include <stdio.h>
int foo(void);
int main(void) { return printf("foo %d\n", foo()) < 0; }
