/* Goal: the static form stands in for libc's functions in a program in plain C, for what libc allocates itself too.
 * Method: blocks of ours have sizes that libc's have not. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int expect(size_t bytes, const char *what, void *block) {
    size_t usable = malloc_usable_size(block);
    if (usable == bytes)
        return 0;
    printf("%s: %zu usable bytes, not %zu\n", what, usable, bytes);
    return 1;
}

int main(void) {
    char *own = malloc(100);
    char *libc = strndup("a text of thirty-one characters", 100);
    void *aligned = NULL;
    int wrong = posix_memalign(&aligned, 4096, 100);
    wrong += expect(112, "malloc(100)", own) + expect(32, "strndup", libc) + expect(4096, "posix_memalign", aligned);
    free(own);
    free(libc);
    free(aligned);
    return wrong;
}
