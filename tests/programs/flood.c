/* Writes numbered lines as fast as it can: "flood BYTES". Line N is N in decimal, filled with dots to 64 bytes with
 * its end. Tells on descriptor 3, if that is open, how many nanoseconds it took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, LINES = 1024 };

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv) {
    long long bytes = argc > 1 ? atoll(argv[1]) : 1 << 20;
    static char batch[LINES * LINE];
    long long number = 0;
    long long begin = now();
    for (long long left = bytes; left > 0;) {
        for (int line = 0; line < LINES; line++) {
            char text[32];
            int length = snprintf(text, sizeof text, "%lld", number++);
            char *place = batch + line * LINE;
            memset(place, '.', LINE - 1);
            memcpy(place, text, (size_t)length);
            place[LINE - 1] = '\n';
        }
        size_t size = left < (long long)sizeof batch ? (size_t)left : sizeof batch;
        for (size_t done = 0; done < size;) {
            ssize_t count = write(1, batch + done, size - done);
            if (count < 0) {
                return 1;
            }
            done += (size_t)count;
        }
        left -= (long long)size;
    }
    dprintf(3, "%lld\n", now() - begin);
    return 0;
}
