/* Counts the signals it receives, and prints the counts when SIGUSR2 comes; then ends with status 9. Standard signals of one
 * kind that come while one is pending merge, as always. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t counts[65];

static void count(int number) { counts[number]++; }

int main(void) {
    const int watched[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT};
    for (unsigned i = 0; i < sizeof watched / sizeof *watched; i++)
        signal(watched[i], count);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (!counts[SIGUSR2])
        usleep(1000);
    printf("HUP %d INT %d QUIT %d USR1 %d TERM %d CONT %d\n", counts[SIGHUP], counts[SIGINT], counts[SIGQUIT],
           counts[SIGUSR1], counts[SIGTERM], counts[SIGCONT]);
    return 9;
}
