int foo(void) { return 41; }
