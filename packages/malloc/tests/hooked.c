// Goal: a program runs under the drop-in beside a library whose functions, in the place of libc's, allocate (hooks.c).
// Method: blocks of all sizes, threads that end, a fork; the test preloads both. An endless recursion or a lock that is
// taken twice ends it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *churn(void *failed) {
    enum { count = 200 };
    for (int round = 0; round < 20; round++) {
        char *blocks[count];
        for (int i = 0; i < count; i++) {
            size_t size = (size_t)1 << i % 22;
            blocks[i] = malloc(size);
            if (blocks[i] == NULL)
                return failed;
            memset(blocks[i], i, size > 4096 ? 4096 : size);
        }
        for (int i = 0; i < count; i++)
            free(blocks[i]);
    }
    return NULL;
}

int main(void) {
    if (getenv("LD_PRELOAD") == NULL) {
        puts("run with LD_PRELOAD");
        return 2;
    }
    static char failed;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, churn, &failed) != 0)
            return 3;
    pid_t child = fork();
    if (child == 0)
        _exit(churn(&failed) == NULL ? 0 : 1);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 4;
    for (int i = 0; i < 4; i++) {
        void *result;
        if (pthread_join(threads[i], &result) != 0 || result != NULL)
            return 5;
    }
    return churn(&failed) == NULL ? 0 : 6;
}
