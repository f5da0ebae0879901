/* A library that calls back. -DNAME: how its inner function is called; -DPADDING: bytes before it, so that two builds differ. */
#ifdef PADDING
__attribute__((used)) static char padding(int value)
{
    volatile char room[PADDING] = {0};
    return room[value % PADDING];
}
#endif

__attribute__((noinline)) void NAME(void (*function)(void))
{
    function();
    __asm__ volatile("");
}

void call(void (*function)(void))
{
    NAME(function);
    __asm__ volatile("");
}
