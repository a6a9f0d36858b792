/* Goal: handlers of a fork may allocate, however early they were registered (M2).
 * Method: a library's constructor registers them, and nothing allocates before. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern int handlers_run;

int main(void) {
    void *volatile block = malloc(10);
    free(block);
    alarm(20); /* a handler that waits for the heap's own one waits for ever */
    pid_t child = fork();
    if (child == 0)
        _exit(handlers_run == 2 ? 0 : 1);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return 1;
    return handlers_run == 2 ? 0 : 1;
}
