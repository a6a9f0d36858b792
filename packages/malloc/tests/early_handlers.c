/* A library that asks to be notified of forks before anything else has run, and allocates when it is notified. */
#include <pthread.h>
#include <stdlib.h>

extern int handlers_run;
int handlers_run;

static void allocate(void) {
    void *volatile block = malloc(100);
    free(block);
    handlers_run++;
}

__attribute__((constructor)) static void start(void) {
    pthread_atfork(allocate, allocate, allocate);
}
