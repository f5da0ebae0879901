/* The first way to a driver function: linked with -lcuda. */
#include "every_function.h"

int main(void)
{
    struct functions f;
#define X(name, symbol, version) f.name = name;
    FUNCTIONS(X)
#undef X
    return call_every_function(&f);
}
